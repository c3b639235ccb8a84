"""Analytic model of a product on a CPU's matrix unit, as array expressions over a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.intrinsics import Intrinsic
from ...dialects.target import Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .cache_traffic import KEPT
from .tile_model import (
    CYCLES_PER_S,
    L2_BYTES_PER_CYCLE,
    L3_BYTES_PER_CYCLE,
    LOOP_CYCLES,
    PACK_CYCLES,
)

Array = npt.NDArray[np.float64]

TILE_REGISTERS = 8
"""Tiles of AMX (Intel Software Developer's Manual, palette 1)."""
TILE_LATENCY = 52
"""Cycles from a tile product's operands to its result (Intel Optimization Reference Manual, TMUL)."""
UNFUSED_REGISTERS = 6
"""Registers that products on their way to a sum take, and the limits and shuffles of an epilogue, which LLVM keeps
through all of it: a sum that it spills for them costs a round trip to memory in each step. Products of 128 x 768 with
768 x 768 (int16, `vpmaddwd`, AMD EPYC of Zen 3, one thread) run at 69 to 73 G multiply-adds a second in tiles of 8 x 1
instructions, at 34 to 74 in 4 x 2, as it is a sum or not that is spilled, at 35 in 2 x 4, at 54 in 4 x 3."""
COPY_CYCLES = 0.25
"""Cycles to copy an element of two bytes or one, in vectors, to where its rows are padded. A choice: of lanes alone it
would be a sixteenth of a cycle; masks and fresh lines take the rest."""
DOT_LATENCY = 5
"""Cycles from the operands of a dot product in lanes to its result (the same manual, VPDPBUSD)."""


@dataclass(frozen=True)
class UnitModel:
    """The shape of a product in instructions: `outer` products of `lines` times `rows` by `columns`, `depth` along k.

    `packed` are the elements that are laid out anew in each run, `a_elements` those of the other operand in memory.
    `names` are those of the holes: lines and instructions of a register tile along rows, register tiles of a task along
    rows, both along columns, and steps that are written out.
    """

    target: Target
    intrinsic: Intrinsic
    outer: int
    lines: int
    rows: int
    columns: int
    depth: int
    packed: int
    a_elements: int
    names: tuple[str, ...]

    @property
    def is_tiles(self) -> bool:
        """True where matrices are registers of their own."""
        return self.intrinsic.tiles

    @property
    def is_fused(self) -> bool:
        """True where one instruction multiplies and adds."""
        return self.intrinsic.code.startswith("llvm.")

    @property
    def columns_first(self) -> bool:
        """True where tasks go along columns first: what is read along them is larger than what is along rows."""
        return self._b_bytes > self._a_bytes

    @property
    def _a_bytes(self) -> int:
        return self.a_elements * self.intrinsic.a.bytes

    @property
    def _b_bytes(self) -> int:
        return self.depth * self.columns * self._bytes()[1]

    def limit_registers(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The sums of a register tile, one factor's matrices and one of the other's fit the registers."""
        lines, rows, _, columns, _, _ = (c[name] for name in self.names)
        registers = TILE_REGISTERS if self.is_tiles else self.target.vector_registers
        taken = 0 if self.is_fused else UNFUSED_REGISTERS
        return np.asarray(lines * rows * columns + columns + 1 <= registers - taken)

    def limit_extents(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tiles divide the extents: an instruction cannot be cut."""
        lines, rows, row_tiles, columns, column_tiles, _ = (c[name] for name in self.names)
        along = (self.lines % lines == 0) & (self.rows % (rows * row_tiles) == 0)
        return np.asarray(along & (self.columns % (columns * column_tiles) == 0))

    def seconds(self, c: Columns) -> Array:
        """A rough time: products, loads and latency of a register tile, its sums, balance, packing."""
        lines, along, row_tiles, columns, column_tiles, steps = (c[name].astype(np.float64) for name in self.names)
        rows = lines * along
        products = rows * columns
        ports = 1 if self.is_tiles else self.target.fma_per_cycle
        issue = products * self.intrinsic.cycles / ports
        loads = (rows * self.intrinsic.rows("a") + columns * self.intrinsic.rows("b")) / self.target.loads_per_cycle
        latency = TILE_LATENCY if self.is_tiles else DOT_LATENCY
        moves = loads + self._far_bytes(c) / L2_BYTES_PER_CYCLE
        step = np.maximum(np.maximum(issue, moves), latency) + LOOP_CYCLES / steps
        sums = products * self.intrinsic.rows("c") * 4.0
        tiles = self.lines * self.rows / rows * (self.columns / columns) * self.outer
        tasks = tiles / (row_tiles * column_tiles)
        balance = np.ceil(tasks / self.target.cores) * self.target.cores / tasks
        cycles = tiles * (self.depth * step + sums) * balance + self._farther_cycles(c)
        return np.asarray((cycles + self.packed * PACK_CYCLES) / self.target.cores / CYCLES_PER_S)

    def _bytes(self) -> tuple[int, int]:
        """Bytes of a factor's matrix in one instruction."""
        a, b = (self.intrinsic.elements(x) * self.intrinsic.fragment(x).bytes for x in ("a", "b"))
        return a, b

    def _far_bytes(self, c: Columns) -> Array:
        """Bytes that a step of a register tile takes from the second-level cache.

        Columns stay in the first-level cache over the register tiles of a task along rows if they fit there with a
        tile of rows, over those of all tasks where these go along columns first; rows do over those along columns if
        all of a task fit.
        """
        lines, along, row_tiles, columns, column_tiles, _ = (c[name].astype(np.float64) for name in self.names)
        rows = lines * along
        a_bytes, b_bytes = self._bytes()
        kept = KEPT * self.target.l1_bytes
        near_b = self.depth * (rows * a_bytes + columns * b_bytes) <= kept
        near_a = self.depth * (rows * row_tiles * a_bytes + columns * b_bytes) <= kept
        again_b = self.lines * self.rows / rows if self.columns_first else row_tiles
        again_a = column_tiles if self.columns_first else self.columns / columns
        far_a = rows * a_bytes / np.where(near_a, again_a, 1)
        return np.asarray(far_a + columns * b_bytes / np.where(near_b, again_b, 1))

    def _farther_cycles(self, c: Columns) -> Array:
        """Cycles of what comes from behind the second-level cache, where not all fits there.

        What is read along the outer loops over tasks is so once where a task's part of it stays there, the other
        operand where all of it does; else each task reads its part anew, and rows that do not stay even in their own
        task are read for each register tile along columns.
        """
        if self._a_bytes + self._b_bytes <= KEPT * self.target.l2_bytes:
            return np.zeros(len(c[self.names[0]]))
        lines, along, row_tiles, columns, column_tiles, _ = (c[name].astype(np.float64) for name in self.names)
        kept = KEPT * self.target.l2_bytes
        along_rows = self.lines * self.rows / (lines * along * row_tiles)
        along_columns = self.columns / (columns * column_tiles)
        part_b = self._b_bytes / along_columns if self.columns_first else self._b_bytes
        again_a = along_columns if self.columns_first and self._a_bytes > kept else 1.0
        again_a = np.where(self._a_bytes / along_rows > kept, self.columns / columns, again_a)
        passes = self._a_bytes * again_a + self._b_bytes * np.where(part_b > kept, along_rows, 1.0)
        return np.asarray(passes / L3_BYTES_PER_CYCLE * self.outer)
