"""One function on its way from loops to a kernel: control flow, predicates, lanes, copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.combiner import element_bytes
from ...dialects.index import IndexExpr
from ...dialects.loop import AllocOp, AtOp, BlockOp, ForOp, blocks_in, loops_in
from ...dialects.loop_steps import LOWERED_BY
from ..analysis.nest import widest_ranges
from ..analysis.placement import Placement
from ..analysis.regions import interval_of
from ._addresses import Addresses, Scope
from ._block_body import BodyWriter
from ._block_plan import BlockPlan
from ._branches import branch, under
from ._launch import allocate_first
from ._loop_values import Known
from ._starts import is_start
from .place_buffers import placements_of
from .tell_loops_apart import spelled

LOCAL_BYTES = 65536
"""Local buffers above this size live in memory: a thread's stack is a few hundred KiB at worst."""


class _Nest:
    """What stays the same each time a loop or block is written: what is in it, and what its blocks ask for."""

    def __init__(self, op: ForOp | BlockOp, plans: Mapping[BlockOp, BlockPlan]) -> None:
        blocks: Iterable[BlockOp] = [op] if isinstance(op, BlockOp) else blocks_in(op)
        self.plans = [plans[block] for block in blocks]
        self.loops = (op, *loops_in(op)) if isinstance(op, ForOp) else ()
        self.ranges = widest_ranges(self.loops)
        self.named = {loop.loop_name: loop for loop in self.loops}
        self.lanes = {loop.loop_name for loop in self.loops if loop.loop_kind == "vectorized"}
        conditions = dict.fromkeys(c for plan in self.plans for c in plan.conditions)
        self.conditions = {c: frozenset(c.axes()) for c in conditions}
        """The predicates of the blocks, with the loops they depend on; `shared` are those of all blocks."""
        self.shared = {c for c in conditions if all(c in plan.conditions for plan in self.plans)}
        padding = dict.fromkeys(c for plan in self.plans for c in plan.tests)
        self.padding = {c: frozenset(c.axes()) for c in padding}
        self.starts = is_start(op)


class Lowering:
    """Writes a function for the threads of a CPU."""

    def __init__(self, func: FuncOp, gpu: bool = False) -> None:
        self.func = func
        old = func.body.block
        self.entry = Block(arg_types=[a.type for a in old.args])
        self.at = Addresses(self.entry)
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.placements = placements_of(func)
        self.plans = {block: BlockPlan(block, self.placements) for block in blocks_in(func)}
        self.nests: dict[Operation, _Nest] = {}
        self.writer = BodyWriter(self.at, self.buffers, aligned=gpu)
        self.versioned = False
        for new, argument in zip(self.entry.args, old.args, strict=True):
            new.name_hint = argument.name_hint
            self.buffers[argument] = new

    def run(self) -> None:
        self._allocate_outermost()
        for op in self.func.body.block.ops:
            if isinstance(op, ForOp | BlockOp):
                self._guarded(op)
        self.entry.add_op(ReturnOp())
        self._replace_body()

    def _replace_body(self) -> None:
        self.func.body.detach_block(0)
        self.func.body.add_block(self.entry)
        del self.func.attributes[LOWERED_BY]

    # -- buffers ------------------------------------------------------------------------------------------------------

    def _allocate_outermost(self) -> None:
        """Allocate what is in no loop."""
        for buffer, place in self.placements.items():
            if not place.is_argument and place.owner is None:
                self._allocate(buffer, place)

    def _allocate(self, buffer: SSAValue, place: Placement) -> None:
        """Allocate a buffer of one iteration of its loop, once for all of them, at the start of the thread's body."""
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        local = place.scope == "local" and place.size * element_bytes(element) <= LOCAL_BYTES
        scope = self._thread_scope()
        known = scope.values.get(("alloc", buffer))
        if known is None:
            where = "local" if local else "global"
            known = allocate_first(scope.block, place.name, element, place.size, where)
            scope.values["alloc", buffer] = known
        self.buffers[buffer] = known

    def _thread_scope(self) -> Scope:
        for scope in reversed(self.at.scopes):
            parent = scope.block.parent_op()
            if isinstance(parent, kernel.ParallelOp):
                return scope
        return self.at.scopes[0]

    # -- predicates ---------------------------------------------------------------------------------------------------

    def _nest(self, op: ForOp | BlockOp) -> _Nest:
        nest = self.nests.get(op)
        if nest is None:
            nest = self.nests[op] = _Nest(op, self.plans)
        return nest

    def _plans_below(self, op: ForOp | BlockOp) -> list[BlockPlan]:
        return self._nest(op).plans

    def _open(self, condition: IndexExpr) -> bool:
        """True where the condition is not settled by the loops that are fixed."""
        return condition not in self.at.known

    def _guarded(self, op: ForOp | BlockOp) -> None:
        """Write `op` under the predicates that are decided here and shared by all blocks in it."""
        nest = self._nest(op)
        if not nest.conditions and not nest.padding:
            self._statement(op)
            return
        decided: list[IndexExpr] = []
        tiles: list[IndexExpr] = []
        for condition, axes in nest.conditions.items():
            if not self._open(condition) or not self._may_branch(op, condition):
                continue
            if axes <= self.at.env.keys():
                if condition in nest.shared:
                    decided.append(condition)
            elif isinstance(op, ForOp) and self._pays(nest, axes):
                tiles.append(condition)
        if isinstance(op, ForOp) and op.size > 1 and not self.versioned:
            for condition, axes in nest.padding.items():
                if self._open(condition) and self._varies(nest, axes) and self._may_branch(op, condition):
                    tiles.append(condition)
        if decided:
            under(self.at, decided, lambda: self._versions(op, tiles))
        else:
            self._versions(op, tiles)

    def _may_branch(self, op: ForOp | BlockOp, condition: IndexExpr) -> bool:
        """True where some threads may run `op` and others not, as far as `condition` tells them apart."""
        return True

    def _varies(self, nest: _Nest, axes: frozenset[str]) -> bool:
        """True where loops that are lanes neither here nor in the nest leave a condition over `axes` open."""
        free = axes - self.at.env.keys()
        return free <= nest.ranges.keys() and not free & nest.lanes and self.at.lane not in free

    def _pays(self, nest: _Nest, axes: frozenset[str]) -> bool:
        """True where a copy of the nest for whole tiles keeps the predicate out of replicated code."""
        if self.versioned or nest.starts or not self._varies(nest, axes):
            return False
        return any(nest.named[name].loop_kind == "unrolled" for name in axes & nest.named.keys())

    def _versions(self, op: ForOp | BlockOp, tiles: Sequence[IndexExpr]) -> None:
        """Write `op`; where whole tiles are the rule, once for them and once for the rest."""
        if not tiles or not isinstance(op, ForOp):
            self._statement(op)
            return
        inner = self._nest(op).ranges
        tests = []
        hold: list[IndexExpr] = []
        for condition in tiles:
            value = self.at.condition(interval_of(self.at.fixed(condition), inner).low)
            if value is False:
                continue
            hold.append(condition)
            if value is not True:
                tests.append(value)
        before = self.at.known

        def whole() -> None:
            self.at.known = before | set(hold)
            self._statement(op)
            self.at.known = before

        test = self.at.conjunction(tests, False)
        if test is None:
            whole()
            return

        def rest() -> None:
            self.versioned = True
            self._statement(op)
            self.versioned = False

        branch(self.at, test, whole, rest)

    # -- control flow -------------------------------------------------------------------------------------------------

    def _statement(self, op: ForOp | BlockOp) -> None:
        if isinstance(op, BlockOp):
            self._block(self.plans[op])
        else:
            self._loop(op)

    def _loop(self, op: ForOp) -> None:
        before = self.at.known
        self._iterate(op)
        self.at.known = before

    def _kind(self, op: ForOp) -> str:
        """How a loop is written here."""
        if op.written is None:
            return op.loop_kind
        written = op.written.data
        as_marked = any(all(self.at.condition(c) is True for c in conditions) for conditions in written.unless)
        return op.loop_kind if as_marked else written.kind

    def _iterate(self, op: ForOp) -> None:
        """Write what is in a loop for all of its iterations."""
        kind = self._kind(op)
        if op.size == 1 or kind == "unrolled":
            self._copies(op)
        elif kind == "vectorized":
            self._lanes(op)
        elif kind == "parallel":
            self._parallel(op)
        else:
            self._serial(op, self._shortened(op))

    def _children(self, op: ForOp | AtOp) -> None:
        for child in op.body.block.ops:
            self._child(child)

    def _child(self, child: Operation) -> None:
        """Write what stands directly in a loop."""
        if isinstance(child, AllocOp):
            self._allocate(child.buffer, self.placements[child.buffer])
        elif isinstance(child, ForOp | BlockOp):
            self._guarded(child)

    def _copies(self, op: ForOp) -> None:
        name = op.loop_name
        around, extent = self.at.env.get(name), self.at.ranges.get(name)
        for value in range(op.size):
            self.at.env[name] = value
            self.at.ranges[name] = (value, value)
            self._children(op)
        del self.at.env[name], self.at.ranges[name]
        if around is not None and extent is not None:  # a bound loop in a bound loop, each of one iteration
            self.at.env[name], self.at.ranges[name] = around, extent

    def _lanes(self, op: ForOp) -> None:
        self.at.lane, self.at.lanes = op.loop_name, op.size
        self.at.ranges[op.loop_name] = (0, op.size - 1)
        self._children(op)
        self.at.lane, self.at.lanes = None, 1
        del self.at.ranges[op.loop_name]

    def _serial(self, op: ForOp, end: SSAValue) -> None:
        block = Block(arg_types=[IndexType()])
        self._within(op, block)
        block.add_op(scf.YieldOp.create())
        bounds = [self.at.constant(0), end, self.at.constant(1)]
        self.at.here.block.add_op(scf.ForOp.create(operands=bounds, regions=[Region(block)]))
        self.at.here.loads.clear()

    def _shortened(self, op: ForOp) -> SSAValue:
        """The loop's end, before which the tail predicates over it hold: they need no test inside."""
        end = self.at.constant(op.size)
        nest = self._nest(op)
        if nest.starts:
            return end
        for condition, axes in nest.conditions.items():
            step = condition.coefficient(op.loop_name)
            if step >= 0 or not condition.is_linear_in(op.loop_name) or not self._open(condition):
                continue
            if not axes - {op.loop_name} <= self.at.env.keys() or condition not in nest.shared:
                continue
            if not self._may_branch(op, condition):
                continue
            rest = self.at.fixed(condition - IndexExpr(((op.loop_name, step),), 0))
            self.at.known = self.at.known | {condition}
            limit = rest // -step + 1
            lowest, highest = limit.bounds(self.at.ranges)
            if lowest >= op.size:
                continue
            value = self.at.scalar(limit)
            if highest > op.size or end is not self.at.constant(op.size):
                value = self._smaller(end, value)
            end = value
        return end

    def _smaller(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.at.here.add(arith.MinSIOp.create(operands=[a, b], result_types=[IndexType()]))

    def _parallel(self, op: ForOp) -> None:
        block = Block(arg_types=[IndexType()])
        parallel = kernel.ParallelOp(op.size, Region(block))
        self._within(op, block)
        self.at.here.block.add_op(parallel)
        self.at.here.loads.clear()

    def _within(self, op: ForOp, block: Block) -> None:
        block.args[0].name_hint = spelled(op.loop_name)
        self.at.scopes.append(Scope(block))
        self._known_as(op, block.args[0])
        self.at.scopes.pop()

    def _known_as(self, op: ForOp, value: SSAValue) -> None:
        """Write what is in a loop with its value given, as something known in the innermost scope."""
        name = op.loop_name
        self.at.env[name] = Known(value, len(self.at.scopes) - 1)
        self.at.ranges[name] = (0, op.size - 1)
        self._children(op)
        del self.at.env[name], self.at.ranges[name]

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _lane_conditions(self, conditions: Iterable[IndexExpr]) -> list[IndexExpr] | None:
        """What is left to test lane by lane; None where a condition never holds."""
        left = []
        for condition in conditions:
            if not self._open(condition):
                continue
            value = self.at.condition(condition)
            if value is False:
                return None
            if value is not True:
                left.append(condition)
        return left

    def _block(self, plan: BlockPlan) -> None:
        left = self._lane_conditions(plan.conditions)
        if left is None:
            return
        afresh = plan.block.has_init and not plan.reduce_loops
        self.writer.update(plan, left, afresh)
