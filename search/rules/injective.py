"""Element-by-element blocks on a CPU: all loops into one, dealt to threads, with lanes inside."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import MemRefType

from ...dialects.combiner import element_bytes
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.nest import find_block
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.parallel import Parallel
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..chains import unscheduled
from ..sketch import Draft
from ..sketch_rules import SketchRule

PARALLEL_ELEMENTS = 16384
"""Below this many elements, waking threads costs more than it saves (about 5 us against 4 elements a ns)."""


class Injective(SketchRule):
    """What no rule has scheduled, on a CPU."""

    order: ClassVar[int] = 700

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for block in unscheduled(draft):
            if block.enclosing_loops and not block.is_reduction:
                spread(draft, block.block_name, target)
        return [draft]


def spread(draft: Draft, name: str, target: Target) -> None:
    """Schedule a block without a reduction: lanes along its last axis, the other loops dealt to threads."""
    block = find_block(None, draft.module, name)
    loops = [(loop.loop_name, loop.size) for loop in block.enclosing_loops]
    if not loops or any(loop.loop_kind != "serial" for loop in block.enclosing_loops):
        return
    total = 1
    for _, extent in loops:
        total *= extent
    lanes = lanes_of_block(block, target)
    last, extent = loops[-1]
    if extent >= lanes // 2 and extent > 1:
        draft.do(Split, block=name, loop=last, factors=(0, lanes))
        draft.do(Vectorize, block=name, loop=f"{last}1")
        loops[-1] = (f"{last}0", -(-extent // lanes))
    if target.cores < 2 or total < PARALLEL_ELEMENTS:
        return
    outer = [n for n, _ in loops[:-1]] or [loops[0][0]]
    if len(outer) > 1:
        draft.do(Fuse, block=name, loops=tuple(outer))
    draft.do(Parallel, block=name, loop="_".join(outer))


def lanes_of_block(block: BlockOp, target: Target) -> int:
    """Elements of the block's output that fill a vector register."""
    output = block.outputs[0].type
    assert isinstance(output, MemRefType)
    return max(1, target.vector_bytes // element_bytes(output.element_type))
