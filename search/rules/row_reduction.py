"""Chains of reductions over rows, such as softmax: all stages of a row under one loop, while the row is in the cache.

Each reduction along contiguous memory becomes a vector of partial results (`rfactor`) that are joined at the end.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import MemRefType

from ...dialects.combiner import element_bytes
from ...dialects.loop import BlockOp, blocks_in
from ...dialects.target import Target
from ...passes.analysis.access import shared_loops
from ...passes.analysis.nest import buffer_name, find_block
from ...passes.primitive import ScheduleError
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.rfactor import Rfactor
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..chains import along_reduce, next_chain, row_dimensions
from ..sketch import Draft, Hole
from ..sketch_rules import SketchRule
from ._columns import ColumnTiles, in_columns
from ._lanes import PARALLEL_ELEMENTS, lanes_of_block

ROW_BYTES = 32768
"""A stage's row up to this size is kept on the thread's stack; a first-level cache holds about as much."""


class RowReduction(SketchRule):
    """What is left of reductions: chains under a common loop over rows, single ones with lanes and threads."""

    order: ClassVar[int] = 500

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        while (chain := next_chain(draft)) is not None:
            _Rows(draft, target, chain).write()
        return [draft]


class _Rows:
    """One chain being scheduled; the last block of `chain` stays, the others move to it."""

    def __init__(self, draft: Draft, target: Target, chain: list[str]) -> None:
        self.draft = draft
        self.target = target
        self.chain = chain
        self.last = chain[-1]
        self.width: Hole | None = None

    def write(self) -> None:
        block = find_block(None, self.draft.module, self.last)
        self.draft.settled.update(self.chain)
        names = [e.as_axis() for e in block.write_indices[0]]
        rows = [n for n in names[: row_dimensions(block)] if n is not None]
        if len(self.chain) == 1 and in_columns(block, self.target):
            columns = ColumnTiles(self.draft, self.last, self.target)
            columns.write()
            columns.deal()
            return
        around = [x.loop_name for x in block.enclosing_loops]
        rows = [n for n in rows if n in around]
        work = 1
        for loop in block.enclosing_loops:
            work *= loop.size
        loop_name = "_".join(rows)
        if len(rows) > 1:
            self.draft.do(Fuse, block=self.last, loops=tuple(rows))
        moved = [self.last]
        if rows:
            moved += [n for n in reversed(self.chain[:-1]) if self._move(n, loop_name)]
        for name in self.chain:
            if name in moved:
                self._stage(name)
        if rows and self.target.cores > 1 and work * len(self.chain) >= PARALLEL_ELEMENTS:
            self.draft.do(Parallel, block=self.last, loop=loop_name)

    def _move(self, name: str, loop: str) -> bool:
        try:
            self.draft.do(ComputeAt, block=name, loop=loop)
        except ScheduleError:
            self.draft.settled.discard(name)
            return False
        return True

    def _stage(self, name: str) -> None:
        """Lanes for one stage, and its row on the stack."""
        block = find_block(None, self.draft.module, name)
        if block.is_reduction and along_reduce(block):
            self._partial(block)
        elif not block.is_reduction:
            self._lanes(block)
        block = find_block(None, self.draft.module, name)
        shared = shared_loops(block, find_block(None, self.draft.module, self.last))
        if name != self.last and shared and _row_bytes(block, len(shared)) <= ROW_BYTES:
            self.draft.do(SetScope, block=name, scope="local")

    def _lane_width(self, block: BlockOp) -> Hole:
        lanes = lanes_of_block(block, self.target)
        if self.width is None:
            choices = tuple(lanes * n for n in (1, 2, 4, 8))
            self.width = self.draft.hole(f"{self.last}_width", choices, lanes * 4, "vector")
        return self.width

    def _partial(self, block: BlockOp) -> None:
        """Lanes of partial results, joined at the end of the row."""
        name = block.block_name
        axis = [a for a in block.axes if a.reduce and a.extent > 1][-1]
        if axis.extent < 2 * lanes_of_block(block, self.target):
            return
        self.draft.do(Split, block=name, loop=axis.name, factors=(0, self._lane_width(block)))
        before = {b.block_name for b in blocks_in(self.draft.module)}
        try:
            self.draft.do(Rfactor, block=name, loop=f"{axis.name}1")
        except ScheduleError:
            return
        partial = next(b.block_name for b in blocks_in(self.draft.module) if b.block_name not in before)
        self.draft.settled.add(partial)
        self.draft.do(Vectorize, block=partial, loop=f"{axis.name}1")
        outputs = [buffer_name(o) for o in find_block(None, self.draft.module, partial).outputs]
        for output in outputs if len(outputs) > 1 else [""]:
            self.draft.do(SetScope, block=partial, buffer=output, scope="local")
        if block.combiner.data == "custom":
            return
        joined = find_block(None, self.draft.module, name).enclosing_loops[-1].loop_name
        self.draft.do(Vectorize, block=name, loop=joined)

    def _lanes(self, block: BlockOp) -> None:
        loops = block.enclosing_loops
        if not loops or loops[-1].size < lanes_of_block(block, self.target):
            return
        axis = loops[-1].loop_name
        self.draft.do(Split, block=block.block_name, loop=axis, factors=(0, self._lane_width(block)))
        self.draft.do(Vectorize, block=block.block_name, loop=f"{axis}1")


def _row_bytes(block: BlockOp, outside: int) -> int:
    """Bytes of the output that the loops below the `outside` outermost ones write."""
    output = block.outputs[0].type
    assert isinstance(output, MemRefType)
    size = element_bytes(output.element_type)
    spatial = {n for a, e in zip(block.axes, block.bindings.data, strict=True) if not a.reduce for n in e.axes()}
    for loop in block.enclosing_loops[outside:]:
        if loop.loop_name in spatial:
            size *= loop.size
    return size
