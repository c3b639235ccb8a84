"""Make one axis of several that a block and its neighbours walk as one, and one dimension of those of their buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, FunctionType, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.buffers import SHAPE
from ...dialects.index import ZERO, IndexExpr, axis
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_shape, buffer_type, scope_of
from ..analysis.access import reads
from ..analysis.argument_marks import argument_attributes, packing_of
from ..analysis.joined_axes import JoinedAxes, Walk, Walker, join_axes
from ..analysis.nest import buffer_name, find_block, function_of, functions, nest_around, only_child, require_plain
from ..parametric.index import Index, from_ir
from ..parametric.nest import Loop, Nest, SizedAxis, Stage, nested
from ..parametric.sizes import Sizes, is_one, known_number
from ..primitive import Primitive
from ._staging import legal_steps, top_level


@dataclass(frozen=True)
class Plan:
    """The function, its blocks by name, what becomes of them, and the dimensions that buffers keep."""

    func: FuncOp
    blocks: dict[str, BlockOp]
    walkers: dict[str, Walker]
    joined: JoinedAxes
    kept: dict[SSAValue, list[tuple[int, ...]]]


@dataclass(frozen=True)
class Collapse(Primitive[Plan]):
    """`for n in 1 { for f in 8 { for y in 5 { for x in 6 { for c in 3 { block b { out[n, f, y, x] += data[n, c, y, x] *
    kernel[f, c, 0, 0] } } } } }` -> `for f in 8 { for y_x in 30 { for c in 3 { block b { out[f, y_x] += data[c, y_x] *
    kernel[f, c] } } } }`

    for `axes=y,x`, in all blocks that walk those dimensions of the same buffers; what reads a buffer in another way, as
    with strides, does so at `y_x floordiv 6` and `y_x mod 6`. Iterators of one iteration go, and dimensions of one
    element of the buffers that these blocks use. Memory stays as it is: an argument keeps the shape that callers give
    it by the attribute `lw.shape`.

    Requires: `axes`, one or more neighbouring iterators of results; whoever uses a buffer that is walked along all of
    them does so too; blocks in loops of their own, one for each iterator in their order, without a predicate.
    """

    name = "lw-collapse"
    block: str
    axes: tuple[str, ...]

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        func = function_of(block)
        blocks = {each.block_name: each for each in blocks_in(func)}
        walkers = {name: _walker(each) for name, each in blocks.items()}
        shapes = {buffer_name(b): buffer_shape(b) for each in blocks.values() for b in _buffers(each)}
        if not self.axes:
            raise self.error("at least one axis is needed", at=block)
        joined = join_axes(walkers, shapes, self.block, self.axes)
        if isinstance(joined, str):
            raise self.error(joined, at=block)
        for name in joined.blocks:
            self._require_own_loops(blocks[name])
        kept = _kept(joined, blocks)
        for buffer in kept:
            self._require_plain(block, buffer)
        return Plan(func, blocks, walkers, joined, kept)

    def _require_plain(self, block: BlockOp, buffer: SSAValue) -> None:
        if isinstance(buffer.owner, AllocOp) and (buffer.owner.alignment is not None or buffer.owner.swizzle_bytes):
            raise self.error(
                f"'{buffer_name(buffer)}' must not be aligned or swizzled yet: this step comes first", at=block
            )
        for load in reads(buffer):
            if load.positions:
                raise self.error(
                    f"'{buffer_name(buffer)}' must be read where iterators say, not where data do", at=block
                )

    def _require_own_loops(self, block: BlockOp) -> None:
        loops = block.enclosing_loops
        for loop in loops:
            require_plain(self, loop)
        plain = [e.as_axis() for e in block.bindings.data]
        alone = all(only_child(loop) is not None for loop in loops)
        if plain != [loop.loop_name for loop in loops] or not alone or block.conditions:
            rule = f"block '{block.block_name}' must be in loops of its own, one for each iterator in their order, "
            raise self.error(f"{rule}without a predicate: this step comes first", at=block)
        if block.is_reduction and all(a.extent == 1 for a in block.axes if a.reduce):
            raise self.error(f"block '{block.block_name}' must reduce over more than one iteration", at=block)

    def rewrite(self, plan: Plan) -> None:
        for name, block in plan.blocks.items():
            values = plan.joined.values(name, plan.walkers[name]) if name in plan.joined.blocks else {}
            whole = axis(plan.joined.name(name, plan.walkers[name])) if values else None
            _rewrite_block(block, values, whole, plan.kept)
            if values:
                self._renest(block, plan)
        for buffer, groups in plan.kept.items():
            _retype(buffer, groups)
        plan.func.function_type = FunctionType.from_lists(plan.func.body.block.arg_types, [])

    def _renest(self, block: BlockOp, plan: Plan) -> None:
        axes = plan.joined.axes(block.block_name, plan.walkers[block.block_name])
        reduce = plan.walkers[block.block_name].reduce
        block.iterators = AxesAttr(tuple(Axis(name, extent, name in reduce) for name, extent in axes))
        block.rebind([axis(name) for name, _ in axes], ())
        old = top_level(block)
        place = old.parent_block()
        assert place is not None
        around = block.parent_block()
        assert around is not None
        around.detach_op(block)
        place.insert_op_before(nest_around(block, axes), old)
        place.erase_op(old)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stages = {stage.name: stage for stage in nest.root.stages()}
        walkers = {name: _sized_walker(stage) for name, stage in stages.items()}
        buffers = {b.name: b for stage in stages.values() for b in (a.buffer for a in stage.accesses)}
        shapes = {name: [known_number(n) for n in buffer.shape] for name, buffer in buffers.items()}
        joined = join_axes(walkers, shapes, self.block, self.axes)
        assert isinstance(joined, JoinedAxes)
        kept = {
            a.buffer.name: joined.kept(a.buffer.name, shapes[a.buffer.name])
            for name in joined.blocks
            for a in stages[name].accesses
        }
        for name, stage in stages.items():
            _replay_stage(nest, stage, joined, walkers[name], kept)
        for name, groups in kept.items():
            buffers[name].shape = [prod(shapes[name][d] for d in group) for group in groups]

    def describe(self) -> str:
        return f"Walk {', '.join(self.axes)} of {self.block} as one axis, and leave out axes of one iteration."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Collapse, ...]:
        return legal_steps((s for f in functions(module_op) for b in blocks_in(f) for s in cls._for(b)), module_op)

    @classmethod
    def _for(cls, block: BlockOp) -> Iterator[Collapse]:
        names = [a.name for a in block.axes if a.extent > 1 and not a.reduce]
        if names and any(a.extent == 1 for a in block.axes):
            yield cls(block.block_name, (names[-1],))
        for pair in pairwise(names):
            yield cls(block.block_name, pair)


def _walker(block: BlockOp) -> Walker:
    accesses = [(o, w, True) for o, w in zip(block.outputs, block.write_indices, strict=True)]
    accesses += [(load.buffer, load.indices.data, False) for load in block.loads]
    ones = {a.name: ZERO for a in block.axes if a.extent == 1}
    walks = [
        Walk(buffer_name(b), tuple(e.as_axis() for e in places), tuple(frozenset(e.axes()) for e in places), writes)
        for b, indices, writes in accesses
        if (places := [e.substitute(ones) for e in indices]) is not None
    ]
    axes = tuple((a.name, a.extent) for a in block.axes)
    return Walker(axes, frozenset(a.name for a in block.axes if a.reduce), tuple(walks))


def _sized_walker(stage: Stage) -> Walker:
    ones = {a.name: Index.constant(0) for a in stage.iterators if is_one(a.extent)}
    walks = [
        Walk(a.buffer.name, tuple(e.as_name for e in a.indices), tuple(e.names for e in a.indices), number == 0)
        for number, accesses in enumerate((stage.writes, stage.loads))
        for a in (access.substituted(ones) for access in accesses)
    ]
    axes = tuple((a.name, known_number(a.extent)) for a in stage.iterators)
    return Walker(axes, frozenset(a.name for a in stage.iterators if a.is_reduce), tuple(walks))


def _buffers(block: BlockOp) -> list[SSAValue]:
    return [*block.outputs, *(load.buffer for load in block.loads)]


def _kept(joined: JoinedAxes, blocks: dict[str, BlockOp]) -> dict[SSAValue, list[tuple[int, ...]]]:
    """The dimensions that buffers keep which the joined blocks use, where they lose any."""
    used = dict.fromkeys(buffer for name in joined.blocks for buffer in _buffers(blocks[name]) if _may_change(buffer))
    kept = {buffer: joined.kept(buffer_name(buffer), buffer_shape(buffer)) for buffer in used}
    return {buffer: groups for buffer, groups in kept.items() if len(groups) < len(buffer_shape(buffer))}


def _may_change(buffer: SSAValue) -> bool:
    """False for an argument that is packed, whose dimensions are those of its layout."""
    func = buffer.owner.parent_op() if isinstance(buffer, BlockArgument) else None
    return not (isinstance(func, FuncOp) and isinstance(buffer, BlockArgument) and packing_of(func, buffer.index))


def _rewrite_block(
    block: BlockOp,
    values: dict[str, IndexExpr],
    whole: IndexExpr | None,
    kept: dict[SSAValue, list[tuple[int, ...]]],
) -> None:
    """Have a block use buffers by the dimensions that they keep, and its iterators be those it has afterwards."""

    def placed(buffer: SSAValue, indices: tuple[IndexExpr, ...]) -> IndicesAttr:
        moved = [e.substitute(values) for e in indices]
        if buffer not in kept:
            return IndicesAttr(tuple(moved))
        return IndicesAttr(tuple(whole if whole and len(group) > 1 else moved[group[0]] for group in kept[buffer]))

    for op in block.body.block.ops:
        if isinstance(op, LoadOp):
            op.indices = placed(op.buffer, op.indices.data)
            if op.where is not None:
                op.where = IndicesAttr(tuple(e.substitute(values) for e in op.conditions))
            continue
        for key, held in op.properties.items():
            if isinstance(held, IndicesAttr):
                op.properties[key] = IndicesAttr(tuple(e.substitute(values) for e in held.data))
    writes = zip(block.outputs, block.write_indices, strict=True)
    block.writes = ArrayAttr([placed(buffer, indices) for buffer, indices in writes])


def _retype(buffer: SSAValue, groups: list[tuple[int, ...]]) -> None:
    """Give a buffer the dimensions that it keeps; what callers give has its shape noted."""
    assert isinstance(buffer.type, MemRefType)
    shape = buffer_shape(buffer)
    new = [prod(shape[d] for d in group) for group in groups]
    replaced = Rewriter.replace_value_with_new_type(
        buffer, buffer_type(buffer.type.element_type, new, scope_of(buffer))
    )
    if isinstance(replaced, BlockArgument):
        func = replaced.block.parent_op()
        assert isinstance(func, FuncOp) and func.arg_attrs is not None
        known = argument_attributes(func, replaced.index)
        marks = [*func.arg_attrs.data]
        marks[replaced.index] = DictionaryAttr({SHAPE: DenseArrayBase.from_list(i64, shape), **known})
        func.arg_attrs = ArrayAttr(marks)


def _replay_stage(
    nest: Nest, stage: Stage, joined: JoinedAxes, walker: Walker, kept: dict[str, list[tuple[int, ...]]]
) -> None:
    """Do to a stage of a nest what `_rewrite_block` and new loops do to a block."""
    changes = stage.name in joined.blocks
    values = {n: from_ir(e) for n, e in joined.values(stage.name, walker).items()} if changes else {}
    whole = Index.axis(joined.name(stage.name, walker)) if changes else None
    for access in stage.accesses:
        moved = [e.substitute(values) for e in access.indices]
        groups = kept.get(access.buffer.name, [(d,) for d in range(len(moved))])
        access.indices = [whole if whole and len(group) > 1 else moved[group[0]] for group in groups]
    if changes:
        axes = joined.axes(stage.name, walker)
        place = nest.root.body.index(nest.top_level(stage))
        stage.iterators = [SizedAxis(n, extent, n in walker.reduce, Index.axis(n)) for n, extent in axes]
        nest.root.body.pop(place)
        nest.root.add(nested(stage, [Loop(n, extent) for n, extent in axes]), place)
