"""Vectorize loops: which elements of each buffer lanes touch, where they are joined, and what masks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.attributes import IndicesAttr
from ...dialects.index import IndexExpr
from ...dialects.loop import AtOp, BlockOp, ForOp, IfOp, LoadOp, VersionsOp
from ...dialects.loop_lanes import JOINED, SCALAR, SCATTERED, SINGLE, TRANSPOSED, LanesAttr, is_in_lanes, strided
from ..analysis.joined import launch_sizes
from ..analysis.nest import functions_on_loops
from ..analysis.placement import Placement, in_bounds
from ._block_plan import Access, BlockPlan
from ._copies import holding_for
from ._lanes import same_for_lanes, step_in_memory
from ._loop_values import LoopValues
from ._quads import are_transposed
from ._starts import nests_of_launches, without_joins
from ._steps import note_step, require_after
from .place_buffers import placements_of
from .place_predicates import PlacePredicates


@dataclass(frozen=True)
class VectorizeLoops(ModulePass):
    """`for j in 8 vectorized { block c writes %c[i, j] { load %a[i] + load %b[j] } }` ->

    `for j in 8 vectorized { block c writes %c[i, j] as vector { load %a[i] as scalar + load %b[j] as vector } }`

    By where the elements lie in memory, lanes touch one of them (`scalar`), neighbours (`vector`), some that are so
    many apart (`strided 64`), or each its own (`scattered`). Where that is not the same in all copies of unrolled loops
    around, the others follow: `as scattered, vector where (0 - i >= 0)`. Pairs between which those of three other
    threads lie are written as neighbours, once the four have transposed what they hold (`transposed`). A reduction into
    one element joins the lanes (`joined`); in a loop of one iteration that was split, the only lane that is on writes
    it (`single`). Parts of a predicate that lanes answer each for itself are masks: `where (...) masked (29 - j >= 0)`.

    What depends on vectors is computed in vectors, all else once, as a scalar.

    Requires: predicates placed (`lw-place-predicates`).
    """

    name = "lw-vectorize-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, PlacePredicates.name)
            vectorize_loops(func)


def vectorize_loops(func: FuncOp) -> None:
    """Say of all that is touched in lanes which elements these are, in a function whose predicates are placed."""
    walk = _Walk(placements_of(func))
    for nests in map(without_joins, nests_of_launches(func)):
        walk.sizes = launch_sizes(nests)
        for nest in nests:
            walk.statement(nest)
    note_step(func, VectorizeLoops.name)


class _Walk:
    """Walks nests from the outside in, with what is known of the loops around."""

    def __init__(self, placements: Mapping[SSAValue, Placement]) -> None:
        self.placements = placements
        self.sizes: Mapping[str, int] = {}
        self.at = LoopValues()
        self.copied: list[ForOp] = []
        """The loops around of whose iterations copies are written."""
        self.lanes: ForOp | None = None

    def statement(self, op: Operation) -> None:
        if isinstance(op, BlockOp):
            if self.lanes is not None:
                _Block(op, self.lanes, self.placements, self.at, self.copied).decide()
        elif isinstance(op, AtOp):
            with self.at.at_iteration(op):
                self._children(op)
        elif isinstance(op, ForOp):
            self._loop(op)
        elif isinstance(op, IfOp | VersionsOp):
            self._children(op)

    def _children(self, op: ForOp | AtOp | IfOp | VersionsOp) -> None:
        for child in op.body.block.ops:
            self.statement(child)

    def _loop(self, op: ForOp) -> None:
        lanes, copied = self.lanes, self.copied
        kind = op.loop_kind if op.written is None else op.written.data.kind
        if op.size > 1 and is_in_lanes(op):
            self.lanes = op
        elif op.size > 1 and kind in ("unrolled", "vthread"):
            self.copied = [*copied, op]
        with self.at.inside(op, self.sizes):
            self._children(op)
        self.lanes, self.copied = lanes, copied


class _Block:
    """The elements that lanes touch in one block, by the loops around it."""

    def __init__(
        self,
        block: BlockOp,
        loop: ForOp,
        placements: Mapping[SSAValue, Placement],
        at: LoopValues,
        copied: Sequence[ForOp],
    ) -> None:
        self.block = block
        self.plan = BlockPlan(block, placements)
        self.lane, self.lanes = loop.loop_name, loop.size
        self.at, self.copied = at, copied
        self.masks = tuple(c for c in block.conditions if self._is_mask(c))

    def decide(self) -> None:
        """Say it of the loads and of the block."""
        varying = self._moving()
        for load in self.block.loads:
            own = any(v in varying for v in load.positions)
            load.lanes = LanesAttr(strided(None)) if own else self._lanes(self.plan.loads[load], strided)
        self.block.masked = IndicesAttr(self.masks) if self.masks else None
        moving = [value in varying for value in self.block.yielded]
        if self.block.combiner.data == "custom":  # which may make each result of all values
            moving = [any(moving)] * len(moving)
        ways = [self._way(a, moves) for a, moves in zip(self.plan.writes, moving, strict=True)]
        self.block.lanes = ArrayAttr(ways)

    def _way(self, write: Access, moves: bool) -> LanesAttr:
        """The elements that lanes write, once threads have transposed what they hold where that makes neighbours."""
        found = self._lanes(write, self._written(moves))
        if found.data.usual == SCATTERED and are_transposed(self.plan, write, self.lane, self.lanes, self.at):
            return LanesAttr(TRANSPOSED)
        return found

    def _written(self, moves: bool) -> Callable[[int | None], str]:
        """Ways to write a value that `moves` with lanes, or that is the same for all, into elements so far apart."""
        reduction = self.block.is_reduction and self.block.combiner.data != "custom"
        if reduction and (moves or self.lane in self.plan.reduce_loops):
            one = JOINED
        else:
            one = SINGLE if moves else SCALAR
        return lambda step: one if step == 0 else strided(step)

    def _lanes(self, access: Access, kind: Callable[[int | None], str]) -> LanesAttr:
        """The elements that lanes touch, in most copies and in the others."""
        offset = access.offset
        step = self._step(access)
        copied = [loop for loop in self.copied if loop.loop_name in offset.axes()] if step is None else []
        if not copied:
            return LanesAttr(kind(step))
        found: dict[str, set[tuple[int, ...]]] = {}
        for copy in product(*(range(loop.size) for loop in copied)):
            with ExitStack() as stack:
                for loop, value in zip(copied, copy, strict=True):
                    stack.enter_context(self.at.valued(loop.loop_name, value, (value, value)))
                found.setdefault(kind(self._step(access)), set()).add(copy)
        usual, *others = sorted(found, key=lambda k: (-len(found[k]), k))
        return LanesAttr(usual, [(k, holding_for(copied, found[k])) for k in others])

    def _step(self, access: Access) -> int | None:
        return step_in_memory(self.at.fixed(access.offset), self.lane, self.lanes, access.place.layout.swizzle)

    def _is_mask(self, condition: IndexExpr) -> bool:
        """True where some lanes may fulfil a condition that others do not."""
        test = same_for_lanes(self.at.fixed(condition), self.lane, self.lanes)
        lowest, highest = test.bounds(self.at.ranges)
        return self.lane in test.axes() and lowest < 0 <= highest

    def _moving(self) -> set[SSAValue]:
        """The values of the body that are not the same for all lanes."""
        moving: set[SSAValue] = set()
        for op in self.plan.ops:
            if isinstance(op, LoadOp):
                moves = any(v in moving for v in op.positions) or self._load_moves(self.plan.loads[op])
            elif op in self.plan.indices:
                moves = any(self.lane in self.at.fixed(e).axes() for e in self.plan.indices[op])
            else:
                moves = any(v in moving for v in op.operands)
            if moves:
                moving |= set(op.results)
        return moving

    def _load_moves(self, access: Access) -> bool:
        fixed = self.at.fixed(access.offset)
        if self.lane in fixed.axes() or any(map(self._is_mask, access.where)):
            return True
        inside = in_bounds(fixed, access.indices, access.place, self.at.ranges, frozenset())
        return bool(self.masks) and not inside
