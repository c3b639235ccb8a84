"""Reductions across memory or over windows, such as column sums and pooling: results in lanes and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.nest import loops_reduced
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole, Kind
from ..structure.chains import along_reduce
from ..structure.strides import lanes_of_block, nearly_in_rows
from ._lanes import PARALLEL_ELEMENTS, TASKS_A_CORE, deal, lane_choices, not_idle, together, upto

SHORT = 8
"""A reduce axis up to this extent, such as a window's, is written out whole or not at all."""
MOST_COPIES = 256
"""Updates of vectors that are written out at most."""
USUAL_COPIES = 64
"""Updates of vectors that are written out without a search."""
USUAL_WINDOW = 32
"""Terms of a window that are written out without a search."""
PAIRED_ROW = 4
"""Vectors of a row from which on its partial pairs are worth joining one by one."""
VECTORS = (1, 2, 4, 8, 16)
STRIPS = (1, 2, 4, 8, 16, 32)
STEPS = (1, 2, 4, 8)


def in_columns(block: BlockOp, target: Target) -> bool:
    """True for a reduction whose neighbouring results come from neighbouring elements, or elements a few apart.

    False where what it reduces over is contiguous itself and fills vectors. Pairs, such as value and position, take so
    long to join that lanes of results pay even where each gathers its elements from a short row of its own.
    """
    axis = _column(block)
    reduce = [a for a in block.axes if a.reduce and a.extent > 1]
    if axis is None or not reduce:
        return False
    lanes = lanes_of_block(block, target)
    paired = block.combiner.data == "custom"
    if along_reduce(block) and reduce[-1].extent >= (PAIRED_ROW if paired else 2) * lanes:
        return False
    return nearly_in_rows(block, axis.name) or (axis.extent >= lanes // 2 and (paired or not along_reduce(block)))


def _column(block: BlockOp) -> Axis | None:
    """The last axis of the results, where it is a loop of its own."""
    if len({write[-1:] for write in block.write_indices}) != 1 or not block.write_indices[0]:
        return None
    axes = {a.name: a for a in block.axes if not a.reduce and a.extent > 1}
    names = [e.as_axis() for e in block.write_indices[0]]
    found = next((axes[n] for n in reversed(names) if n in axes), None)
    loops = [loop.loop_name for loop in block.enclosing_loops]
    return found if found is not None and found.name in loops else None


class ColumnTiles:
    """One such reduction being scheduled.

    `for rows { for columns { for steps { S } } }` -> strips of columns; in a strip, for a few steps at a time, vectors
    side by side, whose sums stay in registers. A short reduce axis is written out.
    """

    def __init__(self, draft: Draft, name: str, target: Target, outside: int = 0) -> None:
        self.draft = draft
        self.name = name
        self.target = target
        self.outside = outside
        """How many of the outermost loops are shared with other blocks and stay as they are."""
        self.vectors_of_strip: tuple[Derived, Derived] | None = None
        """Vectors side by side, and how many times those, where who set the strip's width says how many."""
        loops = self.block.enclosing_loops
        self.total = prod(loop.size for loop in loops)
        self.searched = self.total >= PARALLEL_ELEMENTS and not outside
        reduced = loops_reduced(self.block)
        own = loops[outside:]
        self.column, self.extent = together(draft, name, [x for x in own if x.loop_name not in reduced])
        self.rows = [x.loop_name for x in self.block.enclosing_loops[outside:] if x.loop_name not in reduced][:-1]
        self.short = [x for x in own if x.loop_name in reduced and 1 < x.size <= SHORT]
        self.long = [x for x in own if x.loop_name in reduced and x not in self.short]
        self.stepped = next((x for x in reversed(self.long) if x.size > SHORT), None)

    @property
    def block(self) -> BlockOp:
        return self.draft.block(self.name)

    def write(self) -> None:
        """Apply all steps; the loops of rows and strips are left to `deal`."""
        do, name = self.draft.do, self.name
        self._choose()
        parts = (0, self.strip, self.vectors, self.lanes) if self.stepped else (0, self.vectors, self.lanes)
        columns = self.draft.split(name, self.column, parts)
        steps, whole, copied = [x.loop_name for x in self.long], [], []
        for axis, count in self.copies.items():
            around, inside = self.draft.split(name, axis, (0, count))
            copied.append(inside)
            if axis in steps:
                steps[steps.index(axis)] = around
            else:
                whole.append(around)
        self.tasks = [*self.rows, columns[0]]
        order = [*self.tasks, *steps, *columns[1:-2], *whole, *copied, *columns[-2:]]
        self.draft.order(name, order)
        do(Vectorize, block=name, loop=columns[-1])
        for loop in (*copied, columns[-2]):
            do(Unroll, block=name, loop=loop)

    def deal(self) -> None:
        """Give rows, and strips where rows are few, to threads."""
        if self.target.cores < 2 or self.total < PARALLEL_ELEMENTS:
            return
        sizes = self.draft.sizes(self.name)
        enough = self.rows and prod(sizes[n] for n in self.rows) >= TASKS_A_CORE * self.target.cores
        deal(self.draft, self.name, self.rows if enough else self.tasks)

    # -- numbers ------------------------------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Holes where there is much to do, fixed numbers where there is little."""
        usual = self._usual()
        full = lanes_of_block(self.block, self.target)
        choices, lanes = lane_choices(self.extent, full)
        most = -(-self.extent // lanes)
        self.lanes = self._number("lanes", choices, lanes, "vector")
        self.vectors: Hole | Derived | int = self._number(
            "vectors", upto(VECTORS, most), usual["vectors"], "unroll", "column"
        )
        self.strip: Hole | Derived | int = self._number("strip", upto(STRIPS, most), usual["strip"], "tile", "column")
        if self.vectors_of_strip is not None:
            self.lanes, (self.vectors, self.strip) = full, self.vectors_of_strip
        self.copies: dict[str, Hole | int] = {}
        if self.stepped:
            axis = self.stepped.loop_name
            self.copies[axis] = self._number(f"{axis}_unroll", upto(STEPS, self.stepped.size), usual["steps"], "unroll")
        for loop in self.short:
            axis = loop.loop_name
            self.copies[axis] = self._number(f"{axis}_unroll", (1, loop.size), usual[axis], "unroll")
        if self.searched:
            self._limit(full)

    def _number(self, label: str, choices: tuple[int, ...], usual: int, kind: Kind, axis: str = "") -> Hole | int:
        if not self.searched or (label == "strip" and not self.stepped):
            return usual
        return self.draft.hole(f"{self.name}_{label}", choices, usual, kind, axis and f"{self.name}_{axis}")

    def _usual(self) -> dict[str, int]:
        """What the numbers are without a search."""
        lanes = lane_choices(self.extent, lanes_of_block(self.block, self.target))[1]
        paired = self.block.combiner.data == "custom"
        found, copies = {}, 1
        for loop in reversed(self.short):
            fits = copies * loop.size <= USUAL_WINDOW
            found[loop.loop_name] = loop.size if fits else 1
            copies *= found[loop.loop_name]
        vectors = [n for n in VECTORS if n <= (8 if self.stepped and not paired else 4) and n * copies <= USUAL_COPIES]
        found["vectors"] = self._most(vectors, lanes, self.target.cores)
        copies *= found["vectors"]
        found["strip"] = self._most(STRIPS, lanes * found["vectors"], 2 * self.target.cores) if self.stepped else 1
        found["steps"] = max(n for n in STEPS if n == 1 or n * copies <= USUAL_COPIES)
        return found

    def _most(self, choices: Sequence[int], span: int, tasks: int) -> int:
        """The largest choice for which so many spans cover the columns, and leave threads their tasks."""
        sizes = self.draft.sizes(self.name)
        rows = prod(sizes[n] for n in self.rows)
        wanted = tasks if self.target.cores > 1 and self.total >= PARALLEL_ELEMENTS and not self.outside else 1
        fits = [n for n in choices if span * (n - 1) < self.extent and rows * -(-self.extent // (span * n)) >= wanted]
        return max(fits, default=1)

    def _limit(self, full: int) -> None:
        """Sums fit the registers, copies a few hundred instructions, and no factor is idle."""
        registers = self.target.vector_registers // (4 if self.block.combiner.data == "custom" else 2)
        names = {"lanes": self.lanes, "vectors": self.vectors, "strip": self.strip}
        lanes, vectors, strip = (n.name if isinstance(n, Hole) else "" for n in names.values())
        copies = [n.name for n in self.copies.values() if isinstance(n, Hole)]

        def fits(c: Columns) -> npt.NDArray[np.bool_]:
            held = c[vectors] * -(-c[lanes] // full)
            return np.asarray((held <= max(1, registers)) & (prod((c[n] for n in copies), start=held) <= MOST_COPIES))

        self.draft.limits.append(fits)
        self.draft.limits.append(not_idle([n for n in (strip, vectors, lanes) if n], self.extent))
