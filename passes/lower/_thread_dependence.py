"""Threads that a statement tells apart: by the elements that it touches, or only by whether it is needed at all."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.utils.exceptions import PassFailedException

from ._block_plan import BlockPlan
from ._starts import is_start


def joins_threads(plan: BlockPlan) -> bool:
    """True for a reduction over the threads of a block."""
    return over_threads(plan.reduce_loops)


def over_threads(loops: Iterable[str]) -> bool:
    """True where one of the loops is on an axis of the threads of a block."""
    return any(name.startswith("threadIdx") for name in loops)


def element_axes(plan: BlockPlan) -> set[str]:
    """The loops and threads on which depends what a statement reads, writes and computes."""
    exprs = [a.offset for a in (*plan.loads.values(), *plan.writes)]
    exprs += [c for a in plan.loads.values() for c in a.where]
    exprs += [e for es in plan.indices.values() for e in es]
    return {name for e in exprs for name in e.axes()}


def predicate_axes(plan: BlockPlan) -> set[str]:
    """The loops and threads on which depends whether a statement is run."""
    return {name for e in plan.conditions for name in e.axes()}


def is_for_the_first(plan: BlockPlan, thread: str, told_apart: set[str]) -> bool:
    """True for a reduction of which a thread's number decides only whether it is needed: by the first, if by any.

    `told_apart` are the threads that it tells apart otherwise. PassFailedException where a later thread may need it
    that the first does not.
    """
    asked = [c for c in plan.conditions if thread in c.axes()]
    if not asked or thread in told_apart or not (plan.block.is_reduction or is_start(plan.block)):
        return False
    if all(c.is_linear_in(thread) and c.coefficient(thread) < 0 for c in asked):
        return True
    rule = f"reduction '{plan.name}' is the same for all of '{thread}', of which later ones need it, the first may not"
    raise PassFailedException(f"lw-lower-loop-to-kernel: {rule}; move it out of that loop")
