"""Compute a consumer as soon as what it reads is there."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from ...dialects.index import Div, IndexExpr, Mod, Ranges, axis, constant
from ...dialects.loop import BlockOp, ForOp, LoadOp, blocks_in, buffer_shape
from ..analysis.access import consumers, producers, shared_loops
from ..analysis.nest import (
    buffer_name,
    find_block,
    fresh_name,
    functions,
    ranges_of,
    simplify_conditions,
)
from ..analysis.regions import interval_of
from ..parametric.index import Index
from ..parametric.nest import Loop, Nest, Stage, nested
from ..parametric.sizes import Sizes, is_one
from ..primitive import Primitive
from ._moving import (
    Move,
    blocks_at,
    child_of,
    move,
    path_of,
    program_order,
    require_inputs,
    require_no_lanes,
    require_only_writer,
    require_unmarked_nest,
    required_conditions,
    written_axes,
)
from ._staging import legal_steps


@dataclass(frozen=True)
class ReverseComputeAt(Primitive[Move]):
    """`for x in 4 { for y in 2 { for k { p(x * 2 + y) } } } for i in 8 { c(i) reads p[i] }` ->

    `for x in 4 { for y in 2 { for k { p(x * 2 + y) } } for y in 2 { c(x * 2 + y) } }` for `block=c loop=x`

    The block follows the producer: it gets copies of the producer's spatial loops below `loop`, runs for each element
    right after it is final, and for each once. Iterators that no index of the producer's buffer determines keep loops
    of their own inside. `producer` says which one to follow where several are under a loop of that name; otherwise it
    is the last.

    Requires: the block reads the producer's buffer at one list of plain iterators (plus a constant, or at 0 where the
    extent is 1), without a mask; the producer's reduce loops are all inside of `loop`; everything else that the block
    reads is there by then; none of its own loops is marked.
    """

    name = "lw-reverse-compute-at"
    block: str
    loop: str
    producer: str = ""

    def check(self, module: ModuleOp) -> Move:
        block = find_block(self, module, self.block)
        require_only_writer(self, block)
        if block.is_reduction and not block.has_init:
            raise self.error("the reduction must start in the block itself", at=block)
        order = program_order(block)
        loop, producer = self._target(block, order)
        path = path_of(loop)
        require_no_lanes(self, path)
        require_unmarked_nest(self, block)
        values, where = self._follow(block, producer)
        copied = self._spatial_loops(producer, path)
        self._require_same_share(block, producer, values)
        self._require_ordered_reduction(block, values, {x.loop_name for x in copied})
        loops = [(x.loop_name, x.size) for x in copied]
        taken = {x.loop_name for x in (*path, *copied)}
        where = [e for e in where if e.axes() <= taken]
        for a in sorted(block.axes, key=lambda a: a.reduce):
            if a.name in values:
                continue
            name = fresh_name(a.name, taken)
            values[a.name] = axis(name) if a.extent > 1 else constant(0)
            if a.extent > 1:
                taken.add(name)
                loops.append((name, a.extent))
        after = child_of(loop, producer)
        latest = max(order[b] for b in blocks_at(after) if b is not block)
        if early := next((reader for reader in consumers(block) if order[reader] <= latest), None):
            rule = f"'{early.block_name}' reads what '{self.block}' writes and would run before it"
            raise self.error(rule, at=early)
        inner = {name: (0, extent - 1) for name, extent in loops}
        require_inputs(self, block, values, inner, path, latest + 1, order, without=producer)
        where += [e.substitute(values) for e in required_conditions(self, block)]
        bindings = tuple(values[a.name] for a in block.axes)
        ranges = {**ranges_of(path), **inner}
        return Move(block, after, tuple(loops), bindings, tuple(simplify_conditions(where, ranges)))

    def _target(self, block: BlockOp, order: dict[BlockOp, int]) -> tuple[ForOp, BlockOp]:
        """Return the loop, and the producer to follow."""
        known = sorted(producers(block), key=lambda p: order[p])
        named = [p for p in known if not self.producer or p.block_name == self.producer]
        if not named:
            names = ", ".join(p.block_name for p in known) or "no block"
            wanted = f" '{self.producer}'" if self.producer else ""
            raise self.error(f"'{self.block}' must read what a block{wanted} writes, it reads from {names}", at=block)
        found = [(x, p) for p in named for x in p.enclosing_loops if x.loop_name == self.loop]
        if not found:
            names = ", ".join(dict.fromkeys(x.loop_name for p in named for x in p.enclosing_loops)) or "none"
            raise self.error(f"loop must be around a producer of '{self.block}', got '{self.loop}'; there are: {names}")
        if len({x for x, _ in found}) > 1:
            names = ", ".join(p.block_name for _, p in found)
            fix = ReverseComputeAt(self.block, self.loop, found[0][1].block_name)
            raise self.error(f"several loops are called '{self.loop}', around {names}: say which", fix)
        return max(found, key=lambda pair: order[pair[1]])

    def _follow(self, block: BlockOp, producer: BlockOp) -> tuple[dict[str, IndexExpr], list[IndexExpr]]:
        """Solve for the iterators that the producer's buffer determines, and when the block runs: over its loops."""
        if written_axes(producer) is None:
            rule = f"'{producer.block_name}' must write at plain iterators, each of its spatial ones once"
            raise self.error(f"{rule}; do this step before transform_layout", at=producer)
        bound = producer.bound
        ranges = ranges_of(producer.enclosing_loops)
        read = self._read_indices(block, producer)
        extents = {a.name: a.extent for a in block.axes}
        values: dict[str, IndexExpr] = {}
        where = list(producer.conditions)
        shape = buffer_shape(producer.outputs[0])
        for index, write, extent in zip(read, producer.write_indices[0], shape, strict=True):
            written = _simpler(write.substitute(bound), ranges)
            name = (index - index.const).as_axis()
            if name is None or name in values:
                if extent == 1 and index == constant(0):
                    continue
                name = buffer_name(producer.outputs[0])
                rule = f"'{self.block}' must read '{name}' at iterators of its own, each once, got [{index}]"
                raise self.error(rule, at=block)
            values[name] = written - index.const
            if index.const > 0:
                where.append(values[name])
            if extents[name] < extent - index.const:
                where.append(extents[name] - 1 - values[name])
        return values, where

    def _read_indices(self, block: BlockOp, producer: BlockOp) -> tuple[IndexExpr, ...]:
        loads = [load for load in block.loads if load.buffer in producer.outputs]
        first = loads[0].indices.data
        name = buffer_name(loads[0].buffer)
        if any(load.conditions for load in loads):
            raise self.error(f"'{self.block}' must read '{name}' without a mask; compute_at moves producers", at=block)
        for load in loads:
            if load.indices.data != first:
                both = f"[{_format(loads[0])}] and [{_format(load)}]"
                raise self.error(f"'{self.block}' must read '{name}' at one place, it reads at {both}", at=block)
        return first

    def _spatial_loops(self, producer: BlockOp, path: list[ForOp]) -> list[ForOp]:
        """Return the producer's loops below the last of `path` that its spatial iterators are bound to."""
        spatial: set[str] = set()
        reduce: set[str] = set()
        for a, e in zip(producer.axes, producer.bindings.data, strict=True):
            (reduce if a.reduce else spatial).update(e.axes())
        ranges = ranges_of(producer.enclosing_loops)
        for loop in path:
            name = loop.loop_name
            if name in reduce and loop.size > 1:
                rule = f"'{producer.block_name}' must be final in '{self.loop}', but '{name}' still reduces into it"
                raise self.error(rule, self._outside_of_reduction(path, reduce), loop)
            if name not in spatial and loop.size > 1 and not _stays_at_0(name, producer, ranges):
                rule = f"'{self.block}' would run again in each iteration of '{name}', in which"
                raise self.error(f"{rule} '{producer.block_name}' is computed again", at=loop)
        copied = [x for x in producer.enclosing_loops[len(path) :] if x.loop_name in spatial]
        known = {x.loop_name for x in (*path, *copied)}
        start = dict.fromkeys(reduce, constant(0))
        for condition in producer.conditions:
            mixed = not condition.axes() <= known and condition.axes() & spatial
            if mixed and simplify_conditions([condition.substitute(start)], ranges):
                rule = f"the predicate ({condition} >= 0) of '{producer.block_name}' must not mix loops"
                raise self.error(f"{rule} over spatial and reduce iterators", at=producer)
        return copied

    def _outside_of_reduction(self, path: list[ForOp], reduce: set[str]) -> ReverseComputeAt | None:
        outside = [x.loop_name for x in path]
        first = next(k for k, x in enumerate(path) if x.loop_name in reduce and x.size > 1)
        return ReverseComputeAt(self.block, outside[first - 1], self.producer) if first else None

    def _require_same_share(self, block: BlockOp, producer: BlockOp, values: dict[str, IndexExpr]) -> None:
        """Refuse where one iteration of loops around both computes more, or other, elements than the block reads."""
        shared = shared_loops(block, producer)
        if not shared:
            return
        names = {x.loop_name for x in shared}
        outer = ranges_of(shared)
        own = ranges_of(block.enclosing_loops[len(shared) :])
        theirs = ranges_of(producer.enclosing_loops[len(shared) :])
        points: dict[str, int] = {}
        elements = 1
        for a, bound in zip(block.axes, block.bindings.data, strict=True):
            if a.name not in values:
                if not names.isdisjoint(bound.axes()):
                    rule = f"iterator '{a.name}' of '{self.block}' must not depend on loops around both blocks"
                    raise self.error(rule, at=block)
                continue
            mine = interval_of(bound.simplify({**outer, **own}), own)
            other = interval_of(values[a.name].simplify({**outer, **theirs}), theirs)
            if mine.extent != other.extent or mine.low.simplify(outer) != other.low.simplify(outer):
                rule = f"'{producer.block_name}' must compute just what '{self.block}' reads in each iteration of"
                raise self.error(f"{rule} '{shared[-1].loop_name}'", at=producer)
            elements *= mine.extent
            points |= {name: own[name][1] + 1 for name in bound.axes() if name in own}
        if prod(points.values()) != elements:
            rule = f"'{self.block}' must read a box of what '{producer.block_name}' computes in each iteration of"
            raise self.error(f"{rule} '{shared[-1].loop_name}'", at=block)

    def _require_ordered_reduction(self, block: BlockOp, values: dict[str, IndexExpr], copied: set[str]) -> None:
        """Refuse where a reduction over elements of the producer would be torn apart, or not begin at its start."""
        reduced = [values[a.name] for a in block.axes if a.reduce and a.name in values]
        spatial = {n for a in block.axes if not a.reduce and a.name in values for n in values[a.name].axes()}
        for value in reduced:
            if not value.axes() <= copied - spatial or value.evaluate(dict.fromkeys(value.axes(), 0)):
                rule = (
                    f"'{self.block}' reduces over what it reads, all of which must be computed inside of '{self.loop}'"
                )
                raise self.error(f"{rule} in loops of its own", at=block)

    def rewrite(self, plan: Move) -> None:
        move(plan, InsertPoint.after)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        loop, producer = self._sized_target(nest, stage)
        path = loop.path
        values = _followed_sizes(stage, producer)
        spatial = producer.loop_names(reduce=False)
        copied = [x for x in producer.loops[len(path) :] if x.name in spatial]
        loops = [Loop(x.name, x.extent) for x in copied]
        taken = {x.name for x in (*path, *copied)}
        for a in sorted(stage.iterators, key=lambda a: a.is_reduce):
            if a.name in values:
                continue
            if is_one(a.extent):
                values[a.name] = Index.constant(0)
            else:
                fresh = fresh_name(a.name, taken)
                taken.add(fresh)
                loops.append(Loop(fresh, a.extent))
                values[a.name] = Index.axis(fresh)
        for a in stage.iterators:
            a.bound = values[a.name]
        after = loop.child_holding(producer)
        stage.caps = []
        stage.take_out()
        loop.add(nested(stage, loops), loop.body.index(after) + 1)

    def _sized_target(self, nest: Nest, stage: Stage) -> tuple[Loop, Stage]:
        """The loop, and the producer to follow: the last of those under a loop of that name."""
        read = [a.buffer for a in stage.loads]
        known = [s for s in nest.root.stages() if s is not stage and any(a.buffer is b for a in s.writes for b in read)]
        named = [s for s in known if not self.producer or s.name == self.producer]
        return [(x, s) for s in named for x in s.loops if x.name == self.loop][-1]

    def describe(self) -> str:
        return f"Compute {self.block} inside loop {self.loop}, as soon as what it reads is there."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ReverseComputeAt, ...]:
        steps: list[ReverseComputeAt] = []
        for func in functions(module_op):
            for block in blocks_in(func):
                for producer in producers(block):
                    steps += [cls(block.block_name, x.loop_name, producer.block_name) for x in producer.enclosing_loops]
        return legal_steps(steps, module_op)


def _stays_at_0(loop: str, block: BlockOp, ranges: Ranges) -> bool:
    """True where the predicate of `block` lets just the first iteration of a loop run, as after a split of 1."""
    for condition in block.conditions:
        step = dict(condition.terms).get(loop, 0)
        if step < 0 and (condition - axis(loop) * step).bounds(ranges)[1] < -step:
            return True
    return False


def _format(load: LoadOp) -> str:
    return ", ".join(map(str, load.indices.data))


def _followed_sizes(stage: Stage, producer: Stage) -> dict[str, Index]:
    """Solve for each iterator that an index of the producer's buffer determines."""
    bound = producer.bound
    written = producer.writes[0]
    read = next(a for a in stage.loads if any(a.buffer is w.buffer for w in producer.writes))
    values: dict[str, Index] = {}
    for index, write in zip(read.indices, written.indices, strict=True):
        shift = Index.constant(index.const)
        own = (index - shift).as_name
        if own is not None and own not in values:
            values[own] = write.substitute(bound) - shift
    return values


def _simpler(expr: IndexExpr, ranges: Ranges) -> IndexExpr:
    """An expression, simpler by its ranges; a digit that stays one as it is, as it folds with those beside it.

    `(i * 64 + j) floordiv 784`, with j below 16, is `i floordiv 12` besides, which is no digit of `i * 64 + j` to see:
    sums that are kept for 784 pixels of an image would not be known as neighbours.
    """
    found = expr.simplify(ranges)
    return expr if _has_digits(expr) and _has_digits(found) else found


def _has_digits(expr: IndexExpr) -> bool:
    return any(isinstance(atom, Div | Mod) for atom, _ in expr.terms)
