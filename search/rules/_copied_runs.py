"""Blocks that only copy long runs on a CPU: left as loops, of which LLVM makes calls of the C library's memcpy."""

from __future__ import annotations

from itertools import chain
from math import prod

from ...dialects.loop import BlockOp, LoadOp
from ...dialects.target import Target
from ...dialects.te import PredicateOp
from ..structure.strides import accesses, output_bytes

MOVES = frozenset({"lw_loop.load", "lw_te.predicate", "arith.select", "lw_te.yield"})
"""Operations of a block that computes nothing."""


def is_copied_whole(block: BlockOp, run: str, seam: str, target: Target) -> bool:
    """True where iterations of `run` copy so much that it is not left in the second-level cache, a run at a time.

    Which part a run is copied from may be asked along another loop, the `seam`, and nothing else may. What is the same
    for a whole run, as what is broadcast, only says where it is copied from.
    """
    sizes = {loop.loop_name: loop.size for loop in block.enclosing_loops}
    size = output_bytes(block)
    if size * sizes[run] <= target.l1_bytes or size * prod(sizes.values()) <= target.l2_bytes:
        return False
    if not block.loads or block.conditions or any(op.name not in MOVES for op in block.body.block.ops):
        return False
    predicates = [op for op in block.body.block.ops if isinstance(op, PredicateOp)]
    conditions = chain(*(load.conditions for load in block.loads), *(op.where.data for op in predicates))
    asked = {name for c in conditions for name in c.substitute(block.bound).axes()}
    (written, *read) = [access.step(run) for access in accesses(block)]
    fits = all(step == 1 or (step == 0 and _is_place(load)) for load, step in zip(block.loads, read, strict=True))
    return asked <= {seam} - {run} and written == 1 and fits


def _is_place(load: LoadOp) -> bool:
    """True for a load of a place that another load is at."""
    return all(isinstance(use.operation, LoadOp) for use in load.results[0].uses)
