"""One function on its way from loops to a kernel: control flow, predicates, lanes, copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.element import element_bytes
from ...dialects.index import IndexExpr
from ...dialects.loop import AllocOp, AtOp, BlockOp, ForOp, IfOp, VersionsOp, blocks_in, loops_in
from ...dialects.loop_steps import LOWERED_BY
from ..analysis.nest import widest_ranges
from ..analysis.placement import Placement
from ..analysis.regions import interval_of
from ._addresses import Addresses, Scope
from ._block_body import BodyWriter
from ._block_plan import BlockPlan, load_conditions
from ._branches import branch, under
from ._cut_tiles import Cut, cut_of, whole_steps
from ._launch import allocate_first
from ._loop_values import Known
from ._padded_tiles import PaddedTiles, padded_tiles
from ._starts import is_start
from ._tile_product import TileWriter, tile_intrinsic
from ._turned_copies import turns_rows
from .place_buffers import placements_of
from .tell_loops_apart import spelled

LOCAL_BYTES = 65536
"""Local buffers above this size live in memory: a thread's stack is a few hundred KiB at worst."""


class Lowering:
    """Writes a function for the threads of a CPU."""

    most_cuts: ClassVar[int] = 2
    """Axes of which the cut tile has a version of its own: with both axes of a product's tile there are four."""

    def __init__(self, func: FuncOp, gpu: bool = False) -> None:
        self.func = func
        old = func.body.block
        self.entry = Block(arg_types=[a.type for a in old.args])
        self.at = Addresses(self.entry)
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.placements = placements_of(func)
        self.plans = {block: BlockPlan(block, self.placements) for block in blocks_in(func)}
        self.ranges: dict[VersionsOp, dict[str, tuple[int, int]]] = {}
        self.cutting: tuple[IndexExpr, ...] = ()
        """The conditions that hold for a part of what is written."""
        self.writer = BodyWriter(self.at, self.buffers, aligned=gpu)
        self.tiles = None if gpu else TileWriter(self.at, self.buffers, self.plans)
        for new, argument in zip(self.entry.args, old.args, strict=True):
            new.name_hint = argument.name_hint
            self.buffers[argument] = new

    def run(self) -> None:
        self._allocate_outermost()
        for op in self.func.body.block.ops:
            if not isinstance(op, AllocOp):
                self._child(op)
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

    def _open(self, condition: IndexExpr) -> bool:
        """True where the condition is not known to hold."""
        return condition not in self.at.known

    def _if(self, op: IfOp) -> None:
        """Write what is run under predicates; those over lanes are left to the blocks."""
        tested = [c for c in op.conditions if self._open(c) and self.at.lane not in c.axes()]
        under(self.at, tested, lambda: self._children(op))

    def _versions(self, op: VersionsOp) -> None:
        """Write a nest; where whole tiles are the rule, once for them and once for the rest.

        Where it is known which tile an edge cuts, there is a version for that one, in which each copy is needed or not,
        and none of the tiles behind it.
        """
        self._write_versions(op, list(filter(self._open, op.conditions)), self.most_cuts)

    def _write_versions(self, op: VersionsOp, conditions: list[IndexExpr], cuts: int) -> None:
        found = self._first_cut(op, conditions) if cuts else None
        if found is None:
            self._whole_and_rest(op, conditions)
            return
        condition, cut, (whole, some), zeros = found
        left = [c for c in conditions if c != condition]

        def of_whole() -> None:
            before, self.at.known = self.at.known, self.at.known | {condition}
            self._write_versions(op, left, cuts - 1)
            self.at.known = before

        def of_cut() -> None:
            before, self.at.cuts, self.cutting = (
                (self.at.cuts, self.cutting),
                (*self.at.cuts, cut),
                (*self.cutting, condition),
            )
            self._write_versions(op, left, cuts - 1)
            self.at.cuts, self.cutting = before

        self._either(
            whole, of_whole, lambda: self._either(some, of_cut, partial(self._children, op) if zeros else None)
        )

    def _first_cut(
        self, op: VersionsOp, conditions: Iterable[IndexExpr]
    ) -> tuple[IndexExpr, Cut, tuple[SSAValue | bool, SSAValue | bool], bool] | None:
        """The first condition that cuts one tile, whether it holds for all of a tile and for some of it, or for zeros.

        All blocks of the nest have it, so that nothing is run where it holds for none, or it is that of the rows that a
        tile transposes, which are zeros there.
        """
        inside = self._ranges(op)
        shared = {c: False for c in conditions if all(c in block.conditions for block in blocks_in(op))}
        if self.tiles is not None and turns_rows(loops_in(op), blocks_in(op)):
            padding = {c for block in blocks_in(op) for c in load_conditions(block)}
            shared |= {c: True for c in conditions if c in padding and c not in shared}
        for condition, zeros in shared.items():
            fixed = self.at.test(condition)
            cut = cut_of(fixed, inside)
            if cut is None or self.at.lane in fixed.axes():
                continue
            part = interval_of(fixed, inside)
            whole = self.at.condition(part.low)
            if whole is not True:
                return condition, cut, (whole, self.at.condition(part.low + (part.extent - 1))), zeros
        return None

    def _either(
        self, test: SSAValue | bool, then: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        """Write what is run by a test that may be known."""
        if not isinstance(test, bool):
            branch(self.at, test, then, otherwise)
        elif test:
            then()
        elif otherwise is not None:
            otherwise()

    def _whole_and_rest(self, op: VersionsOp, conditions: Iterable[IndexExpr]) -> None:
        """Write a nest once for the tiles for which conditions hold, and once for the others, which ask for them."""
        tests: list[SSAValue] = []
        hold: list[IndexExpr] = []
        for condition in conditions:
            value = self._whole(op, condition)
            if value is not False:
                hold.append(condition)
            if not isinstance(value, bool):
                tests.append(value)
        before = self.at.known

        def whole() -> None:
            self.at.known = before | set(hold)
            self._children(op)
            self.at.known = before

        test = self.at.conjunction(tests, False)
        if test is None:
            whole()
        else:
            branch(self.at, test, whole, lambda: self._rest(op, conditions))

    def _rest(self, op: VersionsOp, conditions: Iterable[IndexExpr]) -> None:
        """Write a nest for tiles of which not all is whole: where few read padding in part, a version for each of them.

        In it each copy reads a pixel, or is left out.
        """
        found = self._padded(op, conditions)
        if found is None:
            self._children(op)
        else:
            self._write_padded(op, found, False)

    def _padded(self, op: VersionsOp, conditions: Iterable[IndexExpr]) -> list[PaddedTiles] | None:
        """The padded tiles of a nest on a CPU that is one sum, which adds nothing for padding; None for others.

        None also where loops in it that are no copies ask for padding, iteration by iteration.
        """
        blocks = [*blocks_in(op)]
        if self.tiles is None or len(blocks) != 1:
            return None
        asked = {c: self.at.test(c) for c in conditions if self._whole(op, c) is not True}
        repeated = {x.loop_name for x in loops_in(op) if x.size > 1 and self._kind(x) not in ("unrolled", "vectorized")}
        if not asked.keys() <= set(self.plans[blocks[0]].added) or any(repeated & c.axes() for c in asked):
            return None
        return padded_tiles(asked, self._ranges(op), self.at.ranges)

    def _write_padded(self, op: VersionsOp, tiles: Sequence[PaddedTiles], is_cut: bool) -> None:
        """Write a nest for each combination of tiles in which one is cut."""
        if not tiles:
            if is_cut:
                self._children(op)
            return
        (first, *others), known = tiles, self.at.known

        def of_whole() -> None:
            self.at.known = known | set(first.conditions)
            self._write_padded(op, others, is_cut)
            self.at.known = known

        whole = [self._whole(op, c) for c in first.conditions]
        write = partial(self._either, self._all(whole), of_whole)
        for cut in first.cuts:
            write = partial(self._of_cut, op, others, cut, write)
        write()

    def _of_cut(self, op: VersionsOp, others: Sequence[PaddedTiles], cut: Cut, otherwise: Callable[[], None]) -> None:
        """Write a nest for the value of a sum that cuts it, and what is written for other values."""
        value, before = IndexExpr(cut.terms, -cut.value), self.at.cuts

        def of_cut() -> None:
            self.at.cuts = (*before, cut)
            self._write_padded(op, others, True)
            self.at.cuts = before

        self._either(self._all([self.at.condition(value), self.at.condition(-value)]), of_cut, otherwise)

    def _all(self, tests: Sequence[SSAValue | bool]) -> SSAValue | bool:
        """True where all tests hold."""
        if False in tests:
            return False
        found = self.at.conjunction([test for test in tests if not isinstance(test, bool)], False)
        return True if found is None else found

    def _whole(self, op: VersionsOp, condition: IndexExpr) -> SSAValue | bool:
        """True where a condition holds for all of a nest."""
        least = interval_of(self.at.fixed(condition), self._ranges(op)).low
        if self.tiles is not None and least in map(self.at.fixed, self.at.known):
            return True
        return self.at.condition(least)

    def _ranges(self, op: VersionsOp) -> dict[str, tuple[int, int]]:
        """The values of the loops in a nest."""
        if op not in self.ranges:
            self.ranges[op] = widest_ranges(loops_in(op))
        return self.ranges[op]

    # -- control flow -------------------------------------------------------------------------------------------------

    def _kind(self, op: ForOp) -> str:
        """Return the kind that a loop is written as here."""
        if op.written is None:
            return op.loop_kind
        written = op.written.data
        return op.loop_kind if self.at.is_copy(written.unless) else written.kind

    def _loop(self, op: ForOp) -> None:
        """Write what is in a loop for all of its iterations."""
        kind = self._kind(op)
        intrinsic = tile_intrinsic(op)
        if self.tiles is not None and intrinsic is not None:
            (self.tiles.start if is_start(op) else self.tiles.write)(op, intrinsic)
        elif op.size == 1 or kind == "unrolled":
            self._copies(op)
        elif kind == "vectorized":
            self._lanes(op)
        elif kind == "parallel":
            self._parallel(op)
        else:
            self._serial(op)

    def _children(self, op: ForOp | AtOp | IfOp | VersionsOp) -> None:
        for child in op.body.block.ops:
            self._child(child)

    def _child(self, child: Operation) -> None:
        """Write an operation of the loop dialect."""
        if isinstance(child, AllocOp):
            self._allocate(child.buffer, self.placements[child.buffer])
        elif isinstance(child, ForOp):
            self._loop(child)
        elif isinstance(child, BlockOp):
            self._block(self.plans[child])
        elif isinstance(child, IfOp):
            self._if(child)
        elif isinstance(child, VersionsOp):
            self._versions(child)

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

    def _serial(self, op: ForOp) -> None:
        cut = self._whole_steps(op)
        if cut is None:
            self._repeat(op, self.at.known)
            return
        condition, steps, more = cut
        if steps:
            self._repeat(op, self.at.known | {condition}, steps)
        if more:
            with self.at.valued(op.loop_name, steps, (steps, steps)):
                self._children(op)

    def _repeat(self, op: ForOp, known: frozenset[IndexExpr], steps: int | None = None) -> None:
        """Write a loop of so many steps, in which conditions are known; without a number to its end."""
        block, before = Block(arg_types=[IndexType()]), self.at.known
        end = self._end(op) if steps is None else self.at.constant(steps)
        self.at.known |= known
        self._within(op, block)
        self.at.known = before
        block.add_op(scf.YieldOp.create())
        bounds = [self.at.constant(0), end, self.at.constant(1)]
        self.at.here.block.add_op(scf.ForOp.create(operands=bounds, regions=[Region(block)]))
        self.at.here.loads.clear()

    def _whole_steps(self, op: ForOp) -> tuple[IndexExpr, int, bool] | None:
        """A condition that cuts a loop, the steps in which it holds, and whether there is one more that it cuts."""
        for condition in (*self.cutting, *self._of_lanes(op)) if not op.ends else ():
            fixed = self.at.test(condition)
            found = whole_steps(fixed, op.loop_name, widest_ranges(loops_in(op)))
            if found is not None and found[0] < op.size:
                return condition, *found
        return None

    def _of_lanes(self, op: ForOp) -> list[IndexExpr]:
        """The conditions that mask the last vector of an innermost loop."""
        within = [*loops_in(op)]
        lanes = {loop.loop_name for loop in within if loop.written is None and loop.loop_kind == "vectorized"}
        if self.tiles is None or not lanes or len(within) > len(lanes):
            return []
        first, *others = blocks_in(op)
        shared = [c for c in first.conditions if all(c in block.conditions for block in others)]
        return [c for c in shared if not lanes.isdisjoint(c.axes())]

    def _end(self, op: ForOp) -> SSAValue:
        """The loop's end, before which the predicates that it ends by hold: they need no test inside."""
        end = self.at.constant(op.size)
        for condition in op.ends.data if op.ends is not None else ():
            if not self._open(condition):
                continue
            step = condition.coefficient(op.loop_name)
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
        """Return the conditions left to test lane by lane; None where one never holds."""
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

    def _adds_nothing(self, plan: BlockPlan) -> bool:
        """True for an instance of a sum that reads padding alone, on a CPU."""
        return self.tiles is not None and any(self.at.holds(c) is False for c in plan.added)

    def _block(self, plan: BlockPlan) -> None:
        left = self._lane_conditions(plan.conditions)
        if left is None or self._adds_nothing(plan):
            return
        afresh = plan.block.has_init and not plan.reduce_loops
        self.writer.update(plan, left, afresh)
