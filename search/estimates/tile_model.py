"""Analytic model of a CPU tile, as array expressions over a population: limits, and an estimate in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...dialects.target import Target
from ..sketch.hole import Columns

Array = npt.NDArray[np.float64]

CYCLES_PER_S = 3.0e9
"""A clock to turn cycles into seconds with; only ratios matter."""
FMA_LATENCY = 4
"""Cycles from an FMA's operands to its result on current x86 cores (Intel and AMD optimisation manuals)."""
FMA_PER_CYCLE = 2
"""FMAs of whole vectors that begin in a cycle (the same manuals)."""
LOADS_PER_CYCLE = 2
"""Vectors that are loaded from the first-level cache in a cycle (the same manuals)."""
L2_BYTES_PER_CYCLE = 32
"""Bytes from the second-level cache in a cycle. No measurement is kept."""
PACK_CYCLES = 1.0
"""Cycles to lay out one element anew where it stays in the caches (measured on a Zen 5)."""
FAR_PACK_CYCLES = 3.0
"""Cycles more for an element that goes through memory, fresh pages included (measured on a Zen 5)."""
MOST_COPIES = 256
"""Multiply-adds of whole vectors that the innermost code writes out, at most. No measurement is kept, nor for the
numbers below: as factors of an estimate they order candidates, and a search measures these."""
MOST_WASTE = 1.6
"""Work done over work asked for, at most."""
MOST_WASTE_OVER_NARROWEST = 1.25
"""The same over what the narrowest vectors must do."""
LOOP_CYCLES = 2.0
"""Cycles of a loop around the steps that are written out."""
STORE_CYCLES = 2.0
"""Cycles to load and store an accumulator."""
L1_MISS = 1.08
"""Factor where a panel of the register tile does not fit the first-level cache."""
L2_MISS = 1.2
"""Factor where a cache tile does not fit the second-level cache."""
UNPACKED = 1.1
"""Factor where operands along the vectors are read where they are."""
PADDED_INLINE = 1.1
"""Factor where padding is asked for in the innermost code."""
PACK_PASSES = 4
"""Bytes moved for each byte of a panel that is packed in a tile."""
FAR_L2 = 8
"""Panels of so many second-level caches go through memory whole."""


@dataclass(frozen=True)
class TiledAxis:
    """A spatial axis and the names of its tile factors, from the middle to the innermost."""

    name: str
    extent: int
    middle: str
    inner: str


@dataclass(frozen=True)
class ReduceAxis:
    """A reduce axis; `middle` is empty where it is not blocked."""

    name: str
    extent: int
    middle: str
    unroll: str


@dataclass(frozen=True)
class TileModel:
    """The shape of one tiled reduction: extents, holes, and along which axes each operand moves.

    Axes that became lanes together are one axis here, under one name. `packed` are the elements that are laid out anew
    before the reduction, all at once; `turning` are the cycles of an epilogue that writes along another axis.
    """

    target: Target
    outer: int
    rows: tuple[TiledAxis, ...]
    vector: TiledAxis
    lanes: str
    fewest_lanes: int
    reduce: tuple[ReduceAxis, ...]
    element_bytes: int
    panel: str
    operands: tuple[frozenset[str], ...]
    padded_inline: bool
    packed: int = 0
    turning: float = 0.0

    def limit_registers(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The accumulators of a register tile, its vectors and one broadcast fit the registers."""
        vectors = c[self.vector.inner] * self._registers_a_vector(c)
        tile = self._row_tile(c) * vectors
        return np.asarray(tile + vectors + 1 <= self.target.vector_registers)

    def limit_code(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The replicated body stays within a few hundred multiply-adds."""
        return np.asarray(self._row_tile(c) * c[self.vector.inner] * self._unrolled(c) <= MOST_COPIES)

    def limit_waste(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tails add not too much to the work, or little to what the narrowest vectors must, and no factor is idle."""
        narrowest = -(-self.vector.extent // self.fewest_lanes) * self.fewest_lanes / self.vector.extent
        mask = self._waste(c) <= max(MOST_WASTE, MOST_WASTE_OVER_NARROWEST * narrowest)
        for axis in self.rows:
            mask &= c[axis.inner] * c[axis.middle] < 2 * axis.extent
        span = c[self.vector.inner] * c[self.lanes]
        mask &= (c[self.vector.middle] == 1) | (span * c[self.vector.middle] < 2 * self.vector.extent)
        mask &= (c[self.vector.inner] == 1) | (c[self.lanes] * (c[self.vector.inner] - 1) < self.vector.extent)
        return np.asarray(mask)

    def _registers_a_vector(self, c: Columns) -> npt.NDArray[np.int64]:
        return np.maximum(1, c[self.lanes] * self.element_bytes // self.target.vector_bytes)

    def _row_tile(self, c: Columns) -> npt.NDArray[np.int64]:
        tile = np.ones_like(c[self.lanes])
        for axis in self.rows:
            tile = tile * c[axis.inner]
        return tile

    def _unrolled(self, c: Columns) -> npt.NDArray[np.int64]:
        total = np.ones_like(c[self.lanes])
        for axis in self.reduce:
            total = total * c[axis.unroll]
        return total

    def _waste(self, c: Columns) -> Array:
        """Work done over work asked for."""
        waste = np.ones(len(c[self.lanes]))
        for axis in self.rows:
            tile = c[axis.inner]
            waste = waste * (-(-axis.extent // tile) * tile / axis.extent)
        step = c[self.vector.inner] * c[self.lanes]
        return np.asarray(waste * (-(-self.vector.extent // step) * step / self.vector.extent))

    def _tasks(self, c: Columns) -> Array:
        tasks = np.full(len(c[self.lanes]), float(self.outer))
        for axis in self.rows:
            tasks = tasks * -(-axis.extent // (c[axis.middle] * c[axis.inner]))
        step = c[self.vector.middle] * c[self.vector.inner] * c[self.lanes]
        return np.asarray(tasks * -(-self.vector.extent // step))

    def _depth(self, c: Columns) -> tuple[Array, Array]:
        """Reduction steps in all, and between two visits of an accumulator."""
        total = np.ones(len(c[self.lanes]))
        block = np.ones(len(c[self.lanes]))
        for axis in self.reduce:
            total = total * axis.extent
            block = block * (np.minimum(c[axis.middle] * c[axis.unroll], axis.extent) if axis.middle else axis.extent)
        return total, block

    def _loads(self, c: Columns, operand: frozenset[str], vectors: Array) -> Array:
        """Loads of an operand for one reduction step of the register tile."""
        loads = vectors.copy() if self.vector.name in operand else np.ones(len(vectors))
        for axis in self.rows:
            if axis.name in operand:
                loads = loads * c[axis.inner]
        return loads

    def _panel_bytes(self, c: Columns, operand: frozenset[str], middle: bool) -> Array:
        """Bytes of an operand's panel for a register tile, or with `middle` for the tile around it, in a reduce block.

        A panel has an element for each point of the axes that the operand moves along, as one that is packed for this
        tile has. It is no footprint: windows that overlap in the operand count once for each step.
        """
        size = np.full(len(c[self.lanes]), float(self.element_bytes))
        for axis in (*self.rows, self.vector):
            if axis.name in operand:
                size = size * c[axis.inner] * (c[axis.middle] if middle else 1)
                size = size * (c[self.lanes] if axis is self.vector else 1)
        for reduce in self.reduce:
            if reduce.name in operand:
                whole = reduce.extent
                size = size * (np.minimum(c[reduce.middle] * c[reduce.unroll], whole) if reduce.middle else whole)
        return size

    def seconds(self, c: Columns) -> Array:
        """A rough time: arithmetic and loads of the register tile, tails, balance, and what does not fit a cache."""
        rows = self._row_tile(c).astype(np.float64)
        vectors = (c[self.vector.inner] * self._registers_a_vector(c)).astype(np.float64)
        total, block = self._depth(c)
        tasks = self._tasks(c)
        middle = c[self.vector.middle].astype(np.float64)
        for axis in self.rows:
            middle = middle * c[axis.middle]
        fmas = rows * vectors
        loads = sum((self._loads(c, operand, vectors) for operand in self.operands), np.zeros(len(rows)))
        issue = np.maximum(fmas / FMA_PER_CYCLE, loads / LOADS_PER_CYCLE)
        latency = np.where(fmas < FMA_LATENCY * FMA_PER_CYCLE, FMA_LATENCY / np.maximum(1.0, fmas) * fmas, issue)
        step = (
            np.maximum(issue, latency) + LOOP_CYCLES / self._unrolled(c) + STORE_CYCLES * fmas / np.maximum(block, 1.0)
        )
        balance = np.ceil(tasks / self.target.cores) * self.target.cores / tasks
        cycles = tasks * middle * total * step * balance / self.target.cores
        vector_side = [o for o in self.operands if self.vector.name in o]
        row_side = [o for o in self.operands if self.vector.name not in o]
        micro_panel = sum((self._panel_bytes(c, o, False) for o in vector_side), np.zeros(len(rows)))
        vector_tile = sum((self._panel_bytes(c, o, True) for o in vector_side), np.zeros(len(rows)))
        row_tile = sum((self._panel_bytes(c, o, True) for o in row_side), np.ones(len(rows)))
        cycles = cycles * np.where(micro_panel > self.target.l1_bytes, L1_MISS, 1.0)
        cycles = cycles * np.where(vector_tile + row_tile > self.target.l2_bytes, L2_MISS, 1.0)
        if self.panel == "inner":
            packed = tasks * vector_tile * (total / np.maximum(block, 1.0)) / self.target.cores
            cycles = cycles + packed / L2_BYTES_PER_CYCLE * PACK_PASSES
        if self.panel == "direct":
            cycles = cycles * UNPACKED
        far = min(1.0, self.packed * self.element_bytes / (FAR_L2 * max(1, self.target.l2_bytes)))
        cycles = cycles + self.packed * (PACK_CYCLES + FAR_PACK_CYCLES * far) / self.target.cores
        if self.padded_inline:
            cycles = cycles * PADDED_INLINE
        cycles = cycles + self.turning / self.target.cores
        return np.asarray(cycles / CYCLES_PER_S)
