"""Place predicates: where each is tested, which loops end by one, and which nests have a version for whole tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.attributes import IndicesAttr
from ...dialects.index import IndexExpr
from ...dialects.loop import (
    SERIAL,
    AtOp,
    BarrierOp,
    BlockOp,
    ForOp,
    IfOp,
    VersionsOp,
    blocks_in,
    loops_in,
    scope_of,
    statements,
)
from ...dialects.target import target_of
from ...dialects.te import PredicateOp
from ..analysis.joined import launch_sizes
from ..analysis.nest import functions_on_loops, ranges_of, widest_ranges
from ..analysis.placement import Placement
from ..analysis.regions import interval_of
from ..analysis.vanishing import added_where
from ._block_plan import BlockPlan, load_conditions, reduce_loops
from ._cut_tiles import whole_steps
from ._loop_values import LoopValues
from ._run_ahead import BULK, taken_ahead
from ._starts import is_start, nests_of_launches, without_joins
from ._steps import note_step, require_after
from ._thread_dependence import over_threads
from ._turned_copies import turns_rows
from .place_buffers import placements_of
from .settle_loop_kinds import SettleLoopKinds

_LEAST_LEFT_OUT = 8
"""Instances of a block, those in lanes counted once, that are worth a branch around them where padding leaves nothing
to add. Depthwise 7x7 of 768 channels of 7x7 and a batch of 32, in a candidate of 56 of them, takes 4.0 ms with 1, 4.3
with 8, 6.3 with 64 and 6.6 without branches; of 3x3 ones of 14x14 and 28x28 none takes longer by more than the noise
(Emerald Rapids, one core)."""


@dataclass(frozen=True)
class PlacePredicates(ModulePass):
    """`for i { for j { block b where (9 - i >= 0) } }` -> `for i while (9 - i >= 0) { for j { block b } }`

    A predicate that all blocks of a nest share is tested around the outermost nest for which it is known: `lw_loop.if`.
    Where it is known in a serial loop alone, and holds up to some iteration, the loop ends there: `while`. A nest of
    unrolled loops in which it does not hold everywhere has a version for whole tiles, `lw_loop.versions`, as has one
    around loads that pad, and on a GPU one that masks registers in a loop which ends where masks leave nothing. What
    is asked of the lanes of a vector, and by each virtual thread, is left to the blocks.

    On a CPU a nest of register tiles in which a sum reads padding alone, and adds nothing, is left out: an `lw_loop.if`
    of the conditions that hold somewhere in it. The version that reads no padding is in the loops over taps, where
    others over terms are inside: of one tap more tiles are whole than of all.

    Blocks keep their predicates, which say when they are run. On a GPU no barrier comes to stand in a branch. What the
    copy engine copies is not branched: it tells by itself which elements are of the array. Nor is what fills registers
    beyond an edge, for nobody, from what a block of threads keeps: threads of a warp would part.

    Requires: loop kinds settled (`lw-settle-loop-kinds`).
    """

    name = "lw-place-predicates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, SettleLoopKinds.name)
            place_predicates(func, target_of(op).is_gpu)


def place_predicates(func: FuncOp, gpu: bool) -> None:
    """Place the predicates of a function whose loop kinds are settled, in place."""
    walk = _Walk(gpu, placements_of(func))
    for nests in map(without_joins, list(nests_of_launches(func))):
        walk.sizes = launch_sizes(nests)
        for nest in nests:
            assert isinstance(nest, ForOp | BlockOp), "predicates are placed once"
            walk.statement(nest)
    note_step(func, PlacePredicates.name)


@dataclass(frozen=True)
class _Asked:
    """Predicates of a block: under which it is run, under which its loads read, by which it masks scores, and those
    without which it adds nothing.
    """

    predicates: tuple[IndexExpr, ...]
    padding: tuple[IndexExpr, ...]
    masks: tuple[IndexExpr, ...]
    added: tuple[IndexExpr, ...]


_Conditions = Mapping[IndexExpr, frozenset[str]]
"""Conditions with the loops that they ask for."""


class _Nest:
    """A loop or block with what is in it."""

    def __init__(self, op: ForOp | BlockOp, asked: Sequence[_Asked]) -> None:
        self.op = op
        self.loops = (op, *loops_in(op)) if isinstance(op, ForOp) else ()
        self.ranges = widest_ranges(self.loops)
        self.lanes = {loop.loop_name for loop in self.loops if loop.loop_kind == "vectorized"}
        self.copied = {loop.loop_name for loop in self.loops if loop.loop_kind == "unrolled"}
        self.blocks = dict(zip(blocks_in(op) if isinstance(op, ForOp) else [op], asked, strict=True))
        self.steps = self.copied | self.lanes | {name for block in self.blocks for name in reduce_loops(block)}
        self.predicates = _with_axes(c for block in asked for c in block.predicates)
        self.padding = _with_axes(c for block in asked for c in block.padding)
        self.masks = _with_axes(c for block in asked for c in block.masks)
        self.shared = {c for c in self.predicates if all(c in block.predicates for block in asked)}
        self.added = asked[0].added if len(asked) == 1 else ()
        self.starts = is_start(op)
        self.turns = turns_rows(self.loops, self.blocks)


def _with_axes(conditions: Iterable[IndexExpr]) -> dict[IndexExpr, frozenset[str]]:
    return {c: frozenset(c.axes()) for c in dict.fromkeys(conditions)}


class _Walk:
    """Walks nests from the outside in, with what is known of the loops around."""

    def __init__(self, gpu: bool, placements: Mapping[SSAValue, Placement]) -> None:
        self.gpu = gpu
        self.placements = placements
        self.sizes: Mapping[str, int] = {}
        self.at = LoopValues()
        self.names: tuple[str, ...] = ()
        """The loops around that have a value here: all but those of lanes and virtual threads."""
        self.lane: str | None = None
        self.copied: frozenset[str] = frozenset()
        """The loops around that are unrolled."""
        self.known: frozenset[IndexExpr] = frozenset()
        """Predicates that hold here."""
        self.whole: frozenset[IndexExpr] = frozenset()
        """Conditions that hold here in the version for whole tiles."""
        self.asked: dict[BlockOp, _Asked] = {}
        self.waiting: dict[Operation, bool] = {}

    def statement(self, op: ForOp | BlockOp) -> None:
        """Place what is asked for in a nest, around it and in it."""
        nest = _Nest(op, [self._asked(block) for block in (blocks_in(op) if isinstance(op, ForOp) else [op])])
        known, whole = self.known, self.whole
        around: Operation = op
        if nest.predicates or nest.padding or nest.masks:
            decided = [*self._decided(nest), *self._adding(nest)]
            self.known |= set(decided)
            tiles = self._tiles(nest) if isinstance(op, ForOp) and not nest.starts else []
            if tiles:
                around = _around(around, lambda body: VersionsOp(tiles, body))
            if decided:
                around = _around(around, lambda body: IfOp(decided, body))
        if isinstance(op, ForOp):
            self._loop(op, nest)
        self.known, self.whole = known, whole

    def _asked(self, block: BlockOp) -> _Asked:
        found = self.asked.get(block)
        if found is None:
            unasked = BULK in block.notes or (self.gpu and self._fills_registers(block))
            masks = _masks(block) if self.gpu else ()
            predicates, added = () if unasked else block.conditions, () if self.gpu else added_where(block)
            found = self.asked[block] = _Asked(predicates, load_conditions(block), masks, added)
        return found

    def _fills_registers(self, block: BlockOp) -> bool:
        """True where a block may run beyond its edges, and reads only what a block of threads or a thread keeps.

        A convolution of 256x14x14, batch 32, took 490 us on an H200 with tiles of 4 x 8 pixels, three times as long as
        its arithmetic, when windows asked for their edge: threads of a warp parted, twice in each reduction step.
        """
        if not block.conditions or any(scope_of(load.buffer) == "global" for load in block.loads):
            return False
        ranges = ranges_of(block.enclosing_loops) | _elsewhere_of(block)
        plan = BlockPlan(block, self.placements)
        return plan.may_overshoot(plan.conditions, ranges, lambda offset: offset.simplify(ranges))

    # -- where predicates are tested ----------------------------------------------------------------------------------

    def _open(self, nest: _Nest, conditions: _Conditions) -> Iterator[tuple[IndexExpr, frozenset[str]]]:
        """The conditions that are not known, and that `nest` may be branched by."""
        if conditions and not self._waits(nest.op):
            yield from ((c, axes) for c, axes in conditions.items() if c not in self.known)

    def _decided(self, nest: _Nest) -> list[IndexExpr]:
        return [c for c, axes in self._open(nest, nest.predicates) if axes <= set(self.names) and c in nest.shared]

    def _adding(self, nest: _Nest) -> list[IndexExpr]:
        """The conditions that hold somewhere in a nest of register tiles where it adds anything at all."""
        if not nest.added or not isinstance(nest.op, ForOp) or self.copied or self.lane is not None:
            return []
        if prod(loop.size for loop in nest.loops if loop.loop_kind != "vectorized") < _LEAST_LEFT_OUT:
            return []
        found = []
        for condition in nest.added:
            part = interval_of(self.at.fixed(condition), nest.ranges)
            most = self.at.fixed(part.low + (part.extent - 1))
            if most not in self.known and most.axes() <= set(self.names) and most.bounds(self.at.ranges)[0] < 0:
                found.append(most)
        return found

    def _tiles(self, nest: _Nest) -> list[IndexExpr]:
        """The conditions that do not hold everywhere in a nest, but do in whole tiles of it, where that pays.

        On a CPU a tile is what is copied and the lanes, and the steps of its sums, between which they stay in
        registers: of several tiles in loops the last alone is cut.
        """
        names = set(self.names)
        tiles = []
        for c, axes in self._open(nest, nest.predicates):
            free = axes - names
            if free and self._varies(nest, axes) and axes & nest.copied and (self.gpu or free <= nest.steps):
                tiles.append(c)
        if isinstance(nest.op, ForOp) and nest.op.size > 1:
            padding = [c for c, axes in self._open(nest, nest.padding) if self._varies(nest, axes)]
            tiles += [c for c in padding if not self._waits_for_taps(nest, c)]
        tiles += [c for c, axes in self._open(nest, nest.masks) if axes <= {*self.names, *nest.ranges}]
        turned = [c for c in self._of_turned_lanes(nest) if c not in tiles or c in self.whole]
        return [*(c for c in tiles if c not in self.whole and self._may_be_whole(nest, c)), *turned]

    def _of_turned_lanes(self, nest: _Nest) -> list[IndexExpr]:
        """The conditions of lanes of a nest that transposes rows, each of which has a version for those of the last.

        Also in the version for the rest of a larger nest, whose whole tiles are among them.
        """
        if self.gpu or not nest.turns:
            return []
        open_ones = [*self._open(nest, nest.predicates), *self._open(nest, nest.padding)]
        return [c for c, axes in open_ones if axes & nest.lanes and axes - set(self.names) <= nest.steps]

    def _waits_for_taps(self, nest: _Nest, condition: IndexExpr) -> bool:
        """True where sums on a CPU leave padding out, and ask for it in loops around others over their terms.

        Of each tap more tiles are whole than of all, and few are cut.
        """
        padded = [block for block, asked in nest.blocks.items() if condition in asked.padding]
        return not self.gpu and all(
            condition in nest.blocks[block].added and _is_settled_around(nest, block, condition) for block in padded
        )

    def _varies(self, nest: _Nest, axes: frozenset[str]) -> bool:
        """True where loops that are lanes neither here nor in the nest leave a condition over `axes` open.

        On a CPU lanes of the nest may where it is copied: each copy would ask its lanes anew.
        """
        free = axes - set(self.names)
        by_lanes = free & nest.lanes and (self.gpu or not nest.copied)
        return free <= nest.ranges.keys() and not by_lanes and self.lane not in free

    def _may_be_whole(self, nest: _Nest, condition: IndexExpr) -> bool:
        """True where a condition may hold for all iterations of a nest; notes it where copies of loops say no more.

        On a CPU also where it ends the steps of a sum, whose last ones are then written apart.
        """
        lowest = self.at.fixed(interval_of(self.at.fixed(condition), nest.ranges).low)
        if lowest.bounds(self.at.ranges)[1] < 0 and (self.gpu or not self._ends_steps(nest, condition)):
            return False
        if not lowest.axes() & self.copied:
            self.whole |= {condition}
        return True

    def _ends_steps(self, nest: _Nest, condition: IndexExpr) -> bool:
        """True where a condition holds for the first iterations of a loop over terms, and for a part of one more."""
        if condition not in nest.shared:
            return False
        fixed = self.at.fixed(condition)
        loops = [loop for loop in nest.loops if loop.loop_name in nest.steps - nest.copied - nest.lanes]
        found = (whole_steps(fixed, loop.loop_name, widest_ranges(loops_in(loop))) for loop in loops)
        return any(steps is not None and steps[0] > 0 for steps in found)

    def _waits(self, op: Operation) -> bool:
        """True where threads wait for each other in `op`: at a barrier, or to join what they have."""
        if not self.gpu:
            return False
        found = self.waiting.get(op)
        if found is None:
            found = isinstance(op, BarrierOp) or (isinstance(op, BlockOp) and over_threads(reduce_loops(op)))
            if isinstance(op, AtOp | ForOp | IfOp | VersionsOp):
                found = any(map(self._waits, op.body.block.ops))
            self.waiting[op] = found
        return found

    # -- loops --------------------------------------------------------------------------------------------------------

    def _loop(self, op: ForOp, nest: _Nest) -> None:
        kind = op.loop_kind if op.written is None else op.written.data.kind
        if kind == SERIAL and op.size > 1 and taken_ahead(op) is None and not nest.starts:
            ends = self._ends(op, nest)
            if ends:
                op.ends = IndicesAttr((*(op.ends.data if op.ends is not None else ()), *ends))
                self.known |= set(ends)
        with self._inside(op, kind):
            for child in list(op.body.block.ops):
                if isinstance(child, AtOp):
                    self._elsewhere(child)
                elif isinstance(child, ForOp | BlockOp):
                    self.statement(child)

    def _ends(self, op: ForOp, nest: _Nest) -> list[IndexExpr]:
        """The predicates that hold up to some iteration of a loop, and in none behind it."""
        name, names = op.loop_name, {op.loop_name, *self.names}
        found = self._open(nest, nest.predicates)
        return [
            c
            for c, axes in found
            if axes <= names and c in nest.shared and c.is_linear_in(name) and c.coefficient(name) < 0
        ]

    @contextmanager
    def _inside(self, op: ForOp, kind: str) -> Iterator[None]:
        names, lane, copied = self.names, self.lane, self.copied
        if op.size > 1 and kind == "vectorized":
            self.lane = op.loop_name
        elif kind != "vthread":
            self.names = (*names, op.loop_name)
        if op.size > 1 and kind == "unrolled":
            self.copied |= {op.loop_name}
        with self.at.inside(op, self.sizes):
            yield
        self.names, self.lane, self.copied = names, lane, copied

    def _elsewhere(self, op: AtOp) -> None:
        names, known, whole = self.names, self.known, self.whole
        name = op.loop_name
        self.known = frozenset(c for c in known if name not in c.axes())
        self.whole = frozenset(c for c in whole if name not in c.axes())
        with self.at.at_iteration(op):
            self.names = (*names, name)
            for nest in statements(op):
                self.statement(nest)
        self.names, self.known, self.whole = names, known, whole


def _is_settled_around(nest: _Nest, block: BlockOp, condition: IndexExpr) -> bool:
    """True where loops of a nest that are written as such settle a condition of a block, around one that none asks for.

    As those over taps do around channels: sums over taps alone, as of depthwise windows, ask around all of them.
    """
    written = [x for x in block.enclosing_loops if x in nest.loops and x.size > 1]
    serial = [x.loop_name for x in written if x.loop_name not in nest.copied | nest.lanes]
    asked = [number for number, name in enumerate(serial) if name in condition.axes()]
    axes = {name for c in nest.blocks[block].padding for name in c.axes()}
    return bool(asked) and not axes.issuperset(serial[asked[-1] :])


def _elsewhere_of(block: BlockOp) -> dict[str, tuple[int, int]]:
    """The iterations, as numbers, of loops behind it that a block is run for."""
    found: dict[str, tuple[int, int]] = {}
    around = block.parent_op()
    while isinstance(around, ForOp | AtOp):
        if isinstance(around, AtOp) and around.value.is_constant:
            found[around.loop_name] = (around.value.const, around.value.const)
        around = around.parent_op()
    return found


def _masks(block: BlockOp) -> tuple[IndexExpr, ...]:
    """The conditions by which a block masks what is in registers, in a loop that ends where such hold nowhere.

    Most of its iterations are those in which they hold everywhere: of causal attention, but for the last of a tile.
    """
    asked = [op for op in block.body.block.ops if isinstance(op, PredicateOp)]
    if not asked or not any(loop.ends for loop in block.enclosing_loops):
        return ()
    if block.is_reduction or any(scope_of(output) != "local" for output in block.outputs):
        return ()
    bound = block.bound
    return tuple(dict.fromkeys(c.substitute(bound) for op in asked for c in op.where.data))


def _around(op: Operation, make: Callable[[Region], Operation]) -> Operation:
    """Put an operation into one that `make` makes of its body."""
    parent = op.parent_block()
    assert parent is not None
    body = Block()
    around = make(Region(body))
    parent.insert_op_before(around, op)
    op.detach()  # type: ignore[no-untyped-call]
    body.add_op(op)
    return around
