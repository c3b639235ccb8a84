"""Blocks that copy, and those whose buffer each iteration of a loop has for itself, which may run ahead in it."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.interpret.loop import owning_loops
from ...dialects.loop import BlockOp, ForOp, blocks_in
from ...dialects.loop_notes import PIPELINE_STAGES
from .access import is_under, writers
from .nest import function_of


def is_copy(block: BlockOp) -> bool:
    """True for a block that stores what it loads, unchanged."""
    if block.is_reduction or len(block.outputs) != 1 or len(block.loads) != 1:
        return False
    return block.yielded[0] is block.loads[0].result


def copies_of(loop: ForOp) -> Sequence[BlockOp]:
    """The blocks in `loop` that fill a buffer of which each iteration has its own, from one that is there before."""
    owners = owning_loops(function_of(loop))
    found = []
    for block in blocks_in(loop):
        if not is_copy(block) or owners.get(block.outputs[0]) is not loop or PIPELINE_STAGES in block.notes:
            continue
        if len(writers(block.outputs[0])) > 1 or any(is_under(w, loop) for w in writers(block.loads[0].buffer)):
            continue
        found.append(block)
    return found
