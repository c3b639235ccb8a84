"""Blocks that only copy long runs on a CPU: left as loops, of which LLVM makes calls of the C library's memcpy."""

from __future__ import annotations

from math import prod

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ..structure.strides import accesses, output_bytes

MOVES = frozenset({"lw_loop.load", "lw_te.predicate", "arith.select", "lw_te.yield"})
"""Operations of a block that computes nothing."""


def is_copied_whole(block: BlockOp, run: str, seam: str, target: Target) -> bool:
    """True where iterations of `run` copy so much that it is not left in the second-level cache, a run at a time.

    Which part a run is copied from may be asked along another loop, the `seam`, and nothing else may.
    """
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    size = output_bytes(block)
    if size * sizes[run] <= target.l1_bytes or size * prod(sizes.values()) <= target.l2_bytes:
        return False
    if not block.loads or block.conditions or any(op.name not in MOVES for op in block.body.block.ops):
        return False
    asked = {name for load in block.loads for c in load.conditions for name in c.substitute(block.bound).axes()}
    steps = [access.step(run) for access in accesses(block)]
    return asked <= {seam} - {run} and steps[0] == 1 and set(steps) <= {0, 1}
