"""Unrolled loops that are written once, as loops that the compiler of the printed source unrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Region

from ...dialects.index import IndexExpr
from ...dialects.kernel import UNROLL
from ...dialects.loop import AllocOp, BlockOp, ForOp, IfOp, is_bound
from ...dialects.loop_lanes import VECTOR, is_in_lanes
from ._addresses import INDEX, Addresses, Scope
from ._block_body import BodyWriter
from ._block_plan import Access, BlockPlan
from ._loop_values import Known
from ._matrix_product import is_product
from ._thread_dependence import joins_threads
from .tell_loops_apart import spelled

MOST_COPIES = 2048
"""Statements that the copies of a loop come to, at most.

NVRTC 13 unrolls 32 x 8 x 8 and 64 x 8 x 8 multiply-adds in registers (2048, 4096) whole, to the same code as copies of
the statements give, in 1.1 and 3.3 s of an AMD EPYC where those take 3.8 and 14.4; of 128 x 8 x 8 it leaves a loop.
Half of what it can, as other statements may be longer than a multiply-add.
"""


def write_once(at: Addresses, loop: ForOp, write: Callable[[], None]) -> None:
    """Write what is in an unrolled loop once, for all of its iterations."""
    if loop.size == 1:
        with at.valued(loop.loop_name, 0, (0, 0)):
            write()
        return
    body, known = Block(arg_types=[INDEX]), at.known
    body.args[0].name_hint = spelled(loop.loop_name)
    at.scopes.append(Scope(body))
    with at.valued(loop.loop_name, Known(body.args[0], len(at.scopes) - 1), (0, loop.size - 1)):
        write()
    at.scopes.pop()
    at.known = known
    body.add_op(scf.YieldOp.create())
    bounds = [at.constant(value) for value in (0, loop.size, 1)]
    attributes = {UNROLL: UnitAttr()}
    at.here.block.add_op(scf.ForOp.create(operands=bounds, regions=[Region(body)], attributes=attributes))
    at.here.loads.clear()


def _inside(nest: ForOp | IfOp) -> Iterator[object]:
    """The operations of a nest, but for allocations, which hold for all copies."""
    for op in nest.body.block.ops:
        if not isinstance(op, AllocOp):
            yield op
        if isinstance(op, ForOp | IfOp):
            yield from _inside(op)


def _copies(block: BlockOp, outermost: ForOp) -> int:
    """The copies of a statement, lanes among them, that unrolling the loops from `outermost` on makes."""
    loops = block.enclosing_loops
    return prod(loop.size for loop in loops[loops.index(outermost) :] if _kind(loop) != "serial")


def _kind(loop: ForOp) -> str:
    return loop.loop_kind if loop.written is None else loop.written.data.kind


def _asked_by(loop: ForOp) -> set[str]:
    """The loops around that decide how a loop is written."""
    unless = loop.written.data.unless if loop.written is not None else ()
    return {name for conditions in unless for c in conditions for name in c.axes()}


class UnrolledLoops:
    """Answers which unrolled loops may be written once, in a function that is being written."""

    def __init__(self, at: Addresses, plans: Mapping[BlockOp, BlockPlan], writer: BodyWriter) -> None:
        self.at = at
        self.plans = plans
        self.writer = writer

    def may_be_written_once(self, loop: ForOp, copies: int) -> bool:
        """True where the copies of an unrolled loop differ only by a number that is added to addresses.

        `copies` are those of each statement by virtual threads. What depends on the loop's value otherwise is known of
        each copy here, for the ranges of the loops around, where a C compiler would compute it: quotients, predicates,
        vectors that start evenly in some copies only.
        """
        inside = list(_inside(loop))
        if copies * sum(_copies(block, loop) for block in inside if isinstance(block, BlockOp)) > MOST_COPIES:
            return False
        name = loop.loop_name
        inner = [op for op in inside if isinstance(op, ForOp)]
        if any(is_bound(op) or is_product(op) or name in _asked_by(op) for op in inner):
            return False
        if not all(isinstance(op, ForOp | BlockOp | IfOp) for op in inside):
            return False
        with ExitStack() as stack:
            for each in (loop, *inner):
                stack.enter_context(self.at.valued(each.loop_name, None, (0, each.size - 1)))
            if any(self.open_of(op.conditions) for op in inside if isinstance(op, IfOp)):
                return False
            return all(self.is_steady(self.plans[op], name) for op in inside if isinstance(op, BlockOp))

    def is_steady(self, plan: BlockPlan, name: str) -> bool:
        """True where a statement asks nothing, and its addresses grow by as much in each iteration of a loop.

        Compilers join branches of copies that ask the same, so that all loads in them are under way at once, but not
        those of a loop that they unroll.
        """
        if joins_threads(plan) or any(name in e.axes() for es in plan.indices.values() for e in es):
            return False
        if self.open_of(plan.tests):
            return False
        still = self.open_of(plan.conditions)
        if still and not self.may_overshoot(plan, still, plan.loads.values()):
            return False
        return all(_grows_evenly(access, plan, name, self.at) for access in (*plan.loads.values(), *plan.writes))

    def open_of(self, conditions: Iterable[IndexExpr]) -> list[IndexExpr]:
        """The conditions that are not known to hold."""
        at = self.at
        return [c for c in conditions if c not in at.known and at.test(c).bounds(at.ranges)[0] < 0]

    def may_overshoot(self, plan: BlockPlan, still: Sequence[IndexExpr], reads: Iterable[Access]) -> bool:
        """True where running beyond the edges `still` fills registers that nobody reads, from memory that is there."""
        if any(self.at.test(c).bounds(self.at.ranges)[1] < 0 for c in still):
            return False
        if any(w.place.scope != "local" for w in plan.writes) or not self.writer.may_spill(plan, still):
            return False
        return all(self.writer.in_bounds(a, self.at.fixed(a.offset)) for a in reads)


def _grows_evenly(access: Access, plan: BlockPlan, name: str, at: Addresses) -> bool:
    if name not in access.offset.axes():
        return True
    if access.positions or access.place.layout.swizzle is not None:
        return False
    offset = access.offset if access.offset.is_linear_in(name) else at.fixed(access.offset)
    if not offset.is_linear_in(name):
        return False
    if access.lanes is None:
        return True
    if any(name in c.axes() for _, copies in access.lanes.other for conditions in copies for c in conditions):
        return False
    lanes = next(loop.size for loop in plan.block.enclosing_loops if is_in_lanes(loop))
    return access.lanes.usual != VECTOR or offset.coefficient(name) % lanes == 0
