"""Chains of reductions over rows, such as softmax: all stages of a row under one loop, while the row is in the cache.

Each reduction along contiguous memory becomes a vector of partial results (`rfactor`) that are joined at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...dialects.loop import BlockOp, ForOp
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.analysis.nest import buffer_name, loops_reduced
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.rfactor import may_trap
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Derived, Hole
from ..sketch.rule import SketchRule
from ..structure.row_chains import RowChain, next_row_chain
from ..structure.strides import accesses, lanes_of_block, nearly_in_rows, output_bytes, run_together
from ._columns import PAIRED_ROW, STRIPS, deal_columns, in_columns, plan_columns, write_columns
from ._lanes import PARALLEL_ELEMENTS, lane_choices, together, vectors_pay

ROW_BYTES = 32768
"""A stage's row up to this size is kept on the thread's stack; a first-level cache holds about as much."""
FLOAT_BYTES = 4
"""Bytes of an element as the width of a strip is chosen for: of half as wide ones less of the cache is used."""
VECTORS_OF_LANES = (1, 2, 4, 8)
"""Vectors side by side along the rows of a chain."""
USUAL_VECTORS = 4
"""The same without a search."""
MOST_IN_STRIP = 4
"""Vectors of a strip that a stage without a reduction has side by side, at most; the strip repeats them."""
MOST_SUMS_IN_STRIP = 8
"""Vectors of a strip that a reduction has side by side, at most: their sums are registers."""
WIDEST_HELD = 8
"""Vectors of a strip without a search, at most, where rows have several points for each column."""


class RowReduction(SketchRule):
    """What is left of reductions: chains under a common loop over rows, single ones with lanes and threads.

    A row is what all stages share: an image of a channel, a line of a matrix, or a strip of its columns.
    """

    order: ClassVar[int] = 500

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        while (chain := next_row_chain(draft, target)) is not None:
            block = draft.block(chain.names[-1])
            if len(chain.names) == 1 and in_columns(block, target):
                plan = plan_columns(draft, block.block_name, target)
                write_columns(draft, plan)
                deal_columns(draft, plan)
                draft.settled.add(block.block_name)
            else:
                _Rows(draft, target, chain).write()
        return [draft]


class _Rows:
    """One chain being scheduled; the last block of `chain` stays, the others move to it."""

    def __init__(self, draft: Draft, target: Target, chain: RowChain) -> None:
        self.draft = draft
        self.target = target
        self.chain = chain
        self.last = chain.names[-1]
        self.row = ""
        self.width: Hole | None = None

    def block(self, name: str) -> BlockOp:
        return self.draft.block(name)

    def write(self) -> None:
        self.draft.settled.update(self.chain.names)
        work = sum(prod(loop.size for loop in self.block(n).enclosing_loops) for n in self.chain.names)
        self.row = self._row_loop()
        moved = [self.last]
        if self.row:
            moved += [n for n in reversed(self.chain.names[:-1]) if self._move(n)]
        for name in self.chain.names:
            if name in moved:
                self._stage(name)
        if self.row and self.target.cores > 1 and work >= PARALLEL_ELEMENTS:
            self.draft.do(Parallel, block=self.last, loop=self.row)

    def _row_loop(self) -> str:
        """The loops over rows, and over strips of columns, made one at the outside; its name, "" without rows."""
        around = self.draft.loops(self.last)
        rows = [n for n in self.chain.rows if n in around]
        strip = []
        if self.chain.column:
            around_strip, inside = self.draft.split(self.last, self.chain.column, (0, self._strip_width()))
            rows.append(around_strip)
            strip = [inside]
        order = [*rows, *[n for n in around if n not in (*rows, self.chain.column)], *strip]
        self.draft.order(self.last, order)
        return self.draft.fuse(self.last, rows) if rows else ""

    def _move(self, name: str) -> bool:
        try:
            self.draft.do(ComputeAt, block=name, loop=self.row, unit_loops=bool(self.chain.column))
        except ScheduleError:
            self.draft.settled.discard(name)
            return False
        return True

    def _stage(self, name: str) -> None:
        """Lanes for one stage, and its row in a buffer of the thread."""
        outside = self._outside(name)
        if not self.block(name).is_reduction:
            self._lanes(name, outside)
        elif not self._partial(name, outside) and outside:
            self._columns(name, outside)
        block, outside = self.block(name), self._outside(name)
        most = self.target.l2_bytes if self.chain.column else ROW_BYTES
        if name != self.last and outside and _row_bytes(block, outside) <= most:
            self.draft.do(SetScope, block=name, scope="local")

    def _outside(self, name: str) -> int:
        """How many loops around a stage are those over rows."""
        if name == self.last:
            return 1 if self.row else 0
        return len(shared_loops(self.block(name), self.block(self.last)))

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _strip_width(self) -> Hole:
        """How many columns a strip has: as many as the second-level cache holds, but no more than feed the threads."""
        block = self.block(self.last)
        sizes = {x.loop_name: x.size for x in block.enclosing_loops}
        lanes, extent = lanes_of_block(block, self.target), sizes[self.chain.column]
        rows = prod(sizes[n] for n in self.chain.rows if n in sizes)
        choices = tuple(n for n in (lanes * k for k in STRIPS) if n < 2 * extent) or (lanes,)
        points, cores = self.chain.points, self.target.cores
        tasks = 2 * cores if cores > 1 else 1
        fed = [n for n in choices if rows * -(-extent // n) >= tasks]
        held = [n for n in fed if n <= WIDEST_HELD * lanes and 2 * FLOAT_BYTES * points * n <= self.target.l2_bytes]
        usual = max(fed if points == 1 else held, default=0)
        self.width = self.draft.hole(f"{self.last}_width", choices, max(usual, USUAL_VECTORS * lanes), "vector")
        return self.width

    def _lane_width(self, block: BlockOp, extent: int) -> Hole:
        """One hole for all stages, whose rows are of one length; none of its choices is two rows long."""
        if self.width is None:
            lanes = lanes_of_block(block, self.target)
            most = extent // 2 if block.combiner.data == "custom" else 2 * extent - 1
            choices = tuple(n for n in (lanes * k for k in VECTORS_OF_LANES) if n <= most)
            choices = choices or (lane_choices(extent, lanes)[1],)
            self.width = self.draft.hole(f"{self.last}_width", choices, lanes * USUAL_VECTORS, "vector")
        return self.width

    def _vectors(self, lanes: int, most: int) -> Derived:
        """Vectors side by side in a strip."""
        return self._derived(f"vectors{most}x{lanes}", lambda width: np.clip(width // lanes, 1, most))

    def _strips(self, lanes: int, most: int) -> Derived:
        """How many times those vectors a strip has."""
        return self._derived(f"strips{most}x{lanes}", lambda width: np.maximum(1, width // (lanes * most)))

    def _derived(self, label: str, of_width: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]) -> Derived:
        assert self.width is not None
        width, name = self.width.name, f"{self.last}_{label}"
        found = next((number for number in self.draft.derived if number.name == name), None)
        return found or self.draft.derive(name, lambda c: of_width(c[width]))

    def _partial(self, name: str, outside: int) -> bool:
        """Lanes of partial results, joined behind the row; False for one that is short, scattered or not innermost."""
        block = self.block(name)
        loops = _contiguous_reduce_loops(block, outside, self.target)
        if not loops:
            return False
        axis, extent = together(self.draft, name, loops)
        _, lane = self.draft.split(name, axis, (0, self._lane_width(block, extent)))
        try:
            partial = self.draft.partial(name, lane)
        except ScheduleError:
            return True
        self.draft.do(Vectorize, block=partial, loop=lane)
        outputs = [buffer_name(o) for o in self.block(partial).outputs]
        for output in outputs if len(outputs) > 1 else [""]:
            self.draft.do(SetScope, block=partial, buffer=output, scope="local")
        if block.combiner.data != "custom":
            self.draft.do(Vectorize, block=name, loop=self.block(name).enclosing_loops[-1].loop_name)
        return True

    def _columns(self, name: str, outside: int) -> None:
        """Results in lanes, where neighbours come from neighbouring elements."""
        block = self.block(name)
        reduced = loops_reduced(block)
        kept = [x for x in block.enclosing_loops[outside:] if x.loop_name not in reduced]
        if not kept or not nearly_in_rows(block, kept[-1].loop_name):
            return
        in_strip = None
        if self.chain.column:
            lanes = lanes_of_block(block, self.target)
            in_strip = self._vectors(lanes, MOST_SUMS_IN_STRIP), self._strips(lanes, MOST_SUMS_IN_STRIP)
        write_columns(self.draft, plan_columns(self.draft, name, self.target, outside, in_strip))

    def _lanes(self, name: str, outside: int) -> None:
        block = self.block(name)
        loops = block.enclosing_loops[outside:]
        if not loops:
            return
        lanes = lanes_of_block(block, self.target)
        if self.chain.column:
            parts = self.draft.split(name, loops[-1].loop_name, (0, self._vectors(lanes, MOST_IN_STRIP), lanes))
            self.draft.do(Vectorize, block=name, loop=parts[2])
            self.draft.do(Unroll, block=name, loop=parts[1])
            return
        axis, extent = together(self.draft, name, loops)
        if vectors_pay(self.block(name), axis, extent, lanes):
            _, lane = self.draft.split(name, axis, (0, self._lane_width(block, extent)))
            self.draft.do(Vectorize, block=name, loop=lane)


def _contiguous_reduce_loops(block: BlockOp, outside: int, target: Target) -> list[ForOp]:
    """The reduce loops of a stage whose terms lanes can take: innermost, contiguous and of enough terms; else none.

    None either of one that may divide by 0 where lanes are without an element: `rfactor` refuses such widths.
    """
    reduced = loops_reduced(block)
    loops = [x for x in block.enclosing_loops[outside:] if x.loop_name in reduced]
    if may_trap(block) or not loops or loops[-1] is not block.enclosing_loops[-1]:  # columns of a strip are inside
        return []
    if not any(access.step(loops[-1].loop_name) == 1 for access in accesses(block)):
        return []
    lanes = lanes_of_block(block, target)
    enough = PAIRED_ROW * lanes if block.combiner.data == "custom" else lanes // 2
    return loops if prod(x.size for x in loops[-run_together(block, loops) :]) >= enough else []


def _row_bytes(block: BlockOp, outside: int) -> int:
    """Bytes of the output that the loops below the `outside` outermost ones write."""
    size = output_bytes(block)
    spatial = {n for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce for n in e.axes()}
    for loop in block.enclosing_loops[outside:]:
        if loop.loop_name in spatial:
            size *= loop.size
    return size
