"""Intermediates laid out in the order in which they are read from elsewhere, where their own rows are short."""

from __future__ import annotations

from ...dialects.target import Target
from ...passes.schedule.transform_layout import TransformLayout
from ..sketch.draft import Draft
from ..structure.strides import accesses, lanes_of_block


def lay_as_read(draft: Draft, name: str, target: Target) -> None:
    """Put the dimensions of what a block copies, and its loops, in the order of what it reads.

    An image whose channels come first, padded with channels last: its pixels' rows of three fill no vector, while the
    image's own rows do. Who reads such rows one element at a time finds them anywhere.
    """
    block = draft.block(name)
    loops = [loop.loop_name for loop in block.enclosing_loops]
    reads = [access for access in accesses(block) if not access.is_write]
    if len(reads) != 1 or len(block.outputs) != 1 or len(loops) < 2:
        return
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    steps = {loop: reads[0].step(loop) for loop in loops if sizes[loop] > 1}
    fewest = lanes_of_block(block, target) // 2
    if any(step is None or step <= 0 for step in steps.values()) or sizes[loops[-1]] >= fewest:
        return
    along = next((loop for loop in loops if steps.get(loop) == 1), None)
    if along is None or sizes[along] < fewest:
        return
    order = sorted(loops, key=lambda loop: -(steps.get(loop) or 1 << 62))
    draft.do(TransformLayout, block=name, buffer=name, layout=tuple(order))
    draft.order(name, order)
