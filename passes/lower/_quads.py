"""Stores of pairs that four neighbouring threads transpose, so that each has neighbours in memory.

A matrix instruction leaves a thread pairs of a row, eight columns apart, and three other threads those in between.
"""

from __future__ import annotations

from ...dialects.element import element_bytes
from ...dialects.index import IndexExpr, Ranges, axis
from ...dialects.kernel import QUAD
from ...dialects.loop import BlockOp, element_of_buffer
from ._block_plan import Access, BlockPlan
from ._loop_values import LoopValues

LANES = 8
"""Elements of a vector: a pair of each of the four threads."""
BYTES = 2
"""Bytes of an element: a pair is the word of 32 bits that threads exchange. Pairs of four bytes fill sectors as they
are."""
_PAIR = 2
"""Elements of a word."""
_FOUR, _OF_FOUR = "?four", "?of four"


def are_transposed(plan: BlockPlan, write: Access, lane: str, lanes: int, at: LoopValues) -> bool:
    """True where four threads that transpose what the lanes of a loop write each write neighbours.

    All four must come to it: no predicate may tell them apart, but for the end of a row, which is for stores alone.
    """
    if lanes != LANES or write.place.scope != "global" or element_bytes(element_of_buffer(write.buffer)) != BYTES:
        return False
    thread = _thread(plan.block)
    if thread is None or plan.block.is_reduction:
        return False
    pairs = _pairs(lane, thread)
    rest = [at.fixed(write.offset) - pairs]
    for condition in plan.conditions:
        test = at.fixed(condition)
        rest.append(test + pairs if _is_end_of_row(test + pairs) else test)
    return all(lane not in e.axes() and _same_for_four(e, thread, at.ranges) for e in rest)


def _is_end_of_row(test: IndexExpr) -> bool:
    """True where as many columns are left of a row as whole vectors hold, whatever else a test is of."""
    return all(c % LANES == 0 for _, c in test.terms) and test.const % LANES == LANES - 1


def transposed(block: BlockOp, expr: IndexExpr, lane: str, sign: int = 1) -> IndexExpr:
    """A settled position that a lane writes, once four threads have transposed; -1 for a limit of it."""
    thread = _thread(block)
    assert thread is not None
    return expr + (axis(thread) % QUAD * LANES + axis(lane) - _pairs(lane, thread)) * sign


def _pairs(lane: str, thread: str) -> IndexExpr:
    """The distance of the element of a lane and a thread from the first one of the four threads."""
    return axis(thread) % QUAD * _PAIR + axis(lane) // _PAIR * LANES + axis(lane) % _PAIR


def _thread(block: BlockOp) -> str | None:
    """The loop whose iterations are neighbouring threads, in whole fours."""
    found = [x for x in block.enclosing_loops if x.loop_kind == "threadIdx.x"]
    return found[0].loop_name if len(found) == 1 and found[0].size % QUAD == 0 else None


def _same_for_four(expr: IndexExpr, thread: str, ranges: Ranges) -> bool:
    """True where an expression does not tell the threads of four apart."""
    if thread not in expr.axes():
        return True
    _, last = ranges[thread]
    inside = {**ranges, _FOUR: (0, last // QUAD), _OF_FOUR: (0, QUAD - 1)}
    return _OF_FOUR not in expr.substitute({thread: axis(_FOUR) * QUAD + axis(_OF_FOUR)}).simplify(inside).axes()
