"""Compute a producer where it is used, as much as is used there."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from ...dialects.index import ZERO, IndexExpr, axis
from ...dialects.loop import BlockOp, ForOp, blocks_in, buffer_shape, scope_of
from ..analysis.access import consumers, is_argument, is_under, shared_loops, shares_a_block
from ..analysis.nest import buffer_name, find_block, fresh_name, functions, ranges_of, simplify_conditions
from ..analysis.regions import Interval, clip_conditions, region_of
from ..parametric.index import Cap, Index, SizedInterval, interval_of, union, within
from ..parametric.nest import Loop, Nest, Stage, nested
from ..parametric.sizes import Size, Sizes, is_one, less, minimum
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
class ComputeAt(Primitive[Move]):
    """`for i in 8 { p(i) } for x in 4 { for y in 2 { c reads p[x * 2 + y] } }` ->

    `for x in 4 { for i in 2 { p(x * 2 + i) } for y in 2 { c reads p[x * 2 + y] } }` for `block=p loop=x`

    In each iteration of `loop` the block computes the box that all readers below it read in that iteration; for a
    buffer in scope shared, what those of all threads of a block read (bind their loops before this step). A reduction
    runs from its start; parts of the box outside of the block's domain are left out by a predicate. `consumer` says
    around which reader the loop is found where readers have different loops of that name. Dimensions of which one
    element is needed have a loop with `unit_loops` only: then the names of the loops do not depend on tile sizes.

    Requires: all readers are under `loop`, what the block reads has run before; the block alone writes its buffer, at
    plain iterators, and the buffer is no output; none of its own loops is marked.
    """

    name = "lw-compute-at"
    block: str
    loop: str
    consumer: str = ""
    unit_loops: bool = False

    def check(self, module: ModuleOp) -> Move:
        block = find_block(self, module, self.block)
        dimension_of = self._dimensions(block)
        order = program_order(block)
        readers = sorted(consumers(block), key=lambda reader: order[reader])
        loop = self._target(block, readers)
        path = path_of(loop)
        require_no_lanes(self, path)
        require_unmarked_nest(self, block)
        before = child_of(loop, readers[0])
        box = _box(block, readers, path)
        outer = ranges_of(path)
        taken = set(outer)
        loops: list[tuple[str, int]] = []
        values: dict[str, IndexExpr] = {}
        where: list[IndexExpr] = []
        for a in sorted(block.axes, key=lambda a: a.reduce):
            part = Interval(ZERO, a.extent) if a.reduce else _clamp(box[dimension_of[a.name]], a.extent)
            name = fresh_name(a.name, taken)
            has_loop = part.extent > 1 or self.unit_loops
            if has_loop:
                taken.add(name)
                loops.append((name, part.extent))
            values[a.name] = part.low + axis(name) if has_loop else part.low
            clipped = clip_conditions(part.low, name, part.extent, a.extent, outer)
            where += clipped if has_loop else [e.substitute({name: ZERO}) for e in clipped]
        inner = {name: (0, extent - 1) for name, extent in loops}
        where += [e.substitute(values) for e in required_conditions(self, block)]
        earliest = min((order[b] for b in blocks_at(before) if b is not block), default=0)
        require_inputs(self, block, values, inner, path, earliest, order)
        bindings = tuple(values[a.name] for a in block.axes)
        return Move(block, before, tuple(loops), bindings, tuple(simplify_conditions(where)))

    def _dimensions(self, block: BlockOp) -> dict[str, int]:
        """Return the dimension of the buffer that each spatial iterator stands for."""
        for output in block.outputs:
            if is_argument(output):
                rule = f"'{buffer_name(output)}' must not be an output of the function; reverse_compute_at moves"
                raise self.error(f"{rule} '{self.block}' under a loop of what it reads", at=block)
        require_only_writer(self, block)
        if block.is_reduction and not block.has_init:
            raise self.error("the reduction must start in the block itself", at=block)
        dimensions = written_axes(block)
        if dimensions is None:
            rule = f"block '{self.block}' must write at plain iterators, each of its spatial ones once"
            raise self.error(f"{rule}; do this step before transform_layout", at=block)
        return dimensions

    def _target(self, block: BlockOp, readers: list[BlockOp]) -> ForOp:
        if not readers:
            raise self.error(f"no block reads what '{self.block}' writes", at=block)
        named = [r for r in readers if r.block_name == self.consumer] if self.consumer else readers
        if not named:
            known = ", ".join(r.block_name for r in readers)
            raise self.error(f"consumer must read what '{self.block}' writes ({known}), got '{self.consumer}'")
        found = {x: r for r in named for x in r.enclosing_loops if x.loop_name == self.loop}
        if not found:
            known = ", ".join(dict.fromkeys(x.loop_name for r in named for x in r.enclosing_loops)) or "none"
            raise self.error(f"loop must be around a reader of '{self.block}', got '{self.loop}'; there are: {known}")
        if len(found) > 1:
            names = [r.block_name for r in found.values()]
            fix = ComputeAt(self.block, self.loop, names[0])
            raise self.error(f"several loops are called '{self.loop}', around {', '.join(names)}: say which", fix)
        loop = next(iter(found))
        for reader in readers:
            if not is_under(reader, loop):
                rule = f"all readers of '{self.block}' must be under '{self.loop}', '{reader.block_name}' is not"
                raise self.error(rule, self._common_loop(readers), reader)
        return loop

    def _common_loop(self, readers: list[BlockOp]) -> ComputeAt | None:
        common = readers[0].enclosing_loops
        for reader in readers[1:]:
            common = common[: len(shared_loops(readers[0], reader))]
        return ComputeAt(self.block, common[-1].loop_name, self.consumer) if common else None

    def rewrite(self, plan: Move) -> None:
        move(plan, InsertPoint.before)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        readers = [r for r in nest.readers(stage.writes[0].buffer) if r is not stage]
        named = [r for r in readers if not self.consumer or r.name == self.consumer]
        loop = next(x for r in named for x in r.loops if x.name == self.loop)
        path = loop.path
        box = _sized_box(stage, readers, path)
        before = loop.child_holding(readers[0])
        taken = {x.name for x in path}
        dimensions = stage.dimension_of
        loops: list[Loop] = []
        caps: list[Cap] = []
        for a in sorted(stage.iterators, key=lambda a: a.is_reduce):
            whole = SizedInterval(Index.constant(0), a.extent)
            part = whole if a.is_reduce else _sized_clamp(box[dimensions[a.name]], a.extent)
            a.bound = part.low
            if self.unit_loops or not is_one(part.extent):
                fresh = fresh_name(a.name, taken)
                taken.add(fresh)
                loops.append(Loop(fresh, part.extent))
                a.bound = part.low + Index.axis(fresh)
            caps.append(Cap.of(a.bound, a.extent - 1))
        stage.caps = caps
        stage.take_out()
        loop.add(nested(stage, loops), loop.body.index(before))

    def describe(self) -> str:
        return f"Compute {self.block} inside loop {self.loop}, just the part that is needed there."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ComputeAt, ...]:
        steps: list[ComputeAt] = []
        for func in functions(module_op):
            for block in blocks_in(func):
                for reader in consumers(block)[:1]:
                    steps += [cls(block.block_name, x.loop_name, reader.block_name) for x in reader.enclosing_loops]
        return legal_steps(steps, module_op)


def _box(block: BlockOp, readers: list[BlockOp], path: list[ForOp]) -> list[Interval]:
    """Return the box of `block`'s outputs that `readers` read in one iteration of the last loop of `path`.

    What is in scope shared belongs to all threads of a block: then that is what any of them reads.
    """
    accesses: list[list[IndexExpr]] = []
    inner: list[dict[str, tuple[int, int]]] = []
    together = [x for x in path if scope_of(block.outputs[0]) == "shared" and shares_a_block(x)]
    for reader in readers:
        bound = reader.bound
        ranges = ranges_of([*reader.enclosing_loops[len(path) :], *together])
        for load in reader.loads:
            if load.buffer in block.outputs:
                accesses.append([e.substitute(bound) for e in load.indices.data])
                inner.append(ranges)
    outer = ranges_of(x for x in path if x not in together)
    return region_of(accesses, inner, outer, buffer_shape(block.outputs[0]))


def _clamp(part: Interval, extent: int) -> Interval:
    """Return the whole domain `[0, extent)` in the place of a box that is as large."""
    return part if part.extent < extent else Interval(ZERO, extent)


def _sized_box(stage: Stage, readers: list[Stage], path: list[Loop]) -> list[SizedInterval]:
    """Region read by all readers in one iteration of the last loop of `path`; for scope shared, by all threads."""
    buffer = stage.writes[0].buffer
    together = [x for x in path if buffer.scope == "shared" and x.shares_a_block]
    outer = {x.name: x.extent for x in path if x not in together}
    boxes: list[SizedInterval | None] = [None] * len(buffer.shape)
    for reader in readers:
        inner = {x.name: x.extent for x in [*reader.loops[len(path) :], *together]}
        bound = reader.bound
        for load in reader.loads:
            if load.buffer is buffer:
                for d, index in enumerate(load.indices):
                    part = interval_of(index.substitute(bound), inner, outer)
                    known = boxes[d]
                    boxes[d] = part if known is None else union(known, part, outer)
    return [within(part, extent, outer) for part, extent in zip(boxes, buffer.shape, strict=True) if part is not None]


def _sized_clamp(part: SizedInterval, extent: Size) -> SizedInterval:
    """The whole domain in the place of a box that is as large."""
    if isinstance(part.extent, int) and isinstance(extent, int):
        return part if part.extent < extent else SizedInterval(Index.constant(0), extent)
    return SizedInterval(part.low.times_where(less(part.extent, extent)), minimum(part.extent, extent))
