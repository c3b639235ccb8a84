"""Copies of an expanded pipelined loop that run ahead of the work in it, and the tests that they do."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ...dialects.loop import AllocOp, AtOp, BlockOp, ForOp, blocks_in, nested_in, statements
from ...dialects.loop_notes import PIPELINE_STAGES

ASYNCHRONOUS = "asynchronous"
"""The annotation of a copy to shared memory that the device does by itself where it can."""

BULK = "bulk"
"""The annotation of a copy to shared memory that the device's copy engine does, box by box."""

BEYOND = "beyond"
"""The annotation of a block by predicates that need not hold: what it writes beyond them nobody reads."""


def run_ahead(loop: ForOp) -> Sequence[ForOp | BlockOp]:
    """The nests directly in `loop` that are nothing but copies which may run ahead in it, as `pipeline` marks them."""
    if PIPELINE_STAGES not in loop.notes or loop.loop_kind != "serial":
        return ()
    return [nest for nest in statements(loop) if all(_is_ahead(block, loop) for block in blocks_of(nest))]


def taken_ahead(loop: ForOp) -> AtOp | None:
    """Return what an expanded pipeline runs ahead in its loop; None where `loop` is no such loop."""
    if PIPELINE_STAGES not in loop.notes:
        return None
    inside = (op for op in nested_in(loop) if isinstance(op, AtOp) and op.loop_name == loop.loop_name)
    return next(inside, None)  # in it, or spread over its steps


def work_of(loop: ForOp) -> list[ForOp | BlockOp]:
    """The loops and blocks directly in a loop, those included that run ahead, once."""
    ahead = taken_ahead(loop)
    return [*statements(loop), *(statements(ahead) if ahead is not None else ())]


def blocks_of(nest: Operation) -> Sequence[BlockOp]:
    """A block itself, or those in a loop."""
    return [nest] if isinstance(nest, BlockOp) else list(blocks_in(nest))


def _is_ahead(block: BlockOp, loop: ForOp) -> bool:
    alloc = block.outputs[0].owner
    if PIPELINE_STAGES not in block.notes or not isinstance(alloc, AllocOp):
        return False
    return alloc.parent_op() is loop and alloc.scope == "shared"
