"""Lay out a buffer differently in memory; a constant argument is then packed once, ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.buffers import callers_shape
from ...dialects.index import IndexExpr
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_shape, buffer_type, scope_of
from ..analysis.access import reads, writers
from ..analysis.argument_marks import CONSTANT, argument_attributes, packing_attributes, packing_of
from ..analysis.layout import AxisLayout, LayoutError, parse_layout
from ..analysis.nest import buffer_name, find_block, function_of, functions
from ..analysis.packing import Packing
from ..parametric.layout import SizedLayout
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import legal_steps, redirect_load, redirect_write
from .cache_read import CacheRead
from .cache_write import CacheWrite


@dataclass(frozen=True)
class Plan:
    """The buffer, the names of its dimensions, its new layout over them, and the packing to record for an argument."""

    buffer: SSAValue
    names: tuple[str, ...]
    layout: AxisLayout
    packing: Packing | None


@dataclass(frozen=True)
class TransformLayout(Primitive[Plan]):
    """`W : memref<64x9xf32>`, `W[i, k]` -> `W : memref<4x9x16xf32>`, `W[i floordiv 16, k, i mod 16]`

    for `layout="i/16","k","i%16"`, in all blocks that write or read the buffer. The names are those of the iterators by
    which `block` writes the buffer (or reads it, where it does not write it): dimension by dimension, `i` where its
    index is just the iterator `i`, else `d0`, `d1`, ... by the number of the dimension. An argument that is marked
    constant (`lw.constant`) gets a packed type and the attributes `lw.layout` and `lw.packed_from`: whoever calls the
    function packs it once, with zeros in the padding.

    Requires: a buffer that `block` writes or reads, not aligned yet; for an argument, the mark, and no packing yet.
    """

    name = "lw-transform-layout"
    block: str
    buffer: str
    layout: tuple[str, ...]

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        buffer, indices = self._access(block)
        names = _dimension_names([e.as_axis() for e in indices])
        extents = dict(zip(names, buffer_shape(buffer), strict=True))
        try:
            layout = parse_layout(self.layout, extents)
        except LayoutError as error:
            raise self.error(f"the layout must hold the dimensions of '{self.buffer}', but {error}", at=block) from None
        if isinstance(buffer.owner, AllocOp):
            if buffer.owner.alignment is not None:
                rule = f"'{self.buffer}' must not be aligned yet; do storage_align after this step"
                raise self.error(rule, at=buffer.owner)
            return Plan(buffer, names, layout, None)
        self._require_constant(block, buffer, names)
        return Plan(buffer, names, layout, Packing(tuple(map(str, layout.items)), extents))

    def _access(self, block: BlockOp) -> tuple[SSAValue, tuple[IndexExpr, ...]]:
        for output, write in zip(block.outputs, block.write_indices, strict=True):
            if buffer_name(output) == self.buffer:
                return output, write
        for load in block.loads:
            if buffer_name(load.buffer) == self.buffer:
                return load.buffer, load.indices.data
        known = dict.fromkeys(buffer_name(b) for b in (*block.outputs, *(load.buffer for load in block.loads)))
        rule = f"block '{self.block}' must write or read buffer '{self.buffer}'; it uses {', '.join(known)}"
        raise self.error(rule, at=block)

    def _require_constant(self, block: BlockOp, buffer: SSAValue, names: tuple[str, ...]) -> None:
        assert isinstance(buffer, BlockArgument)
        func = function_of(block)
        if CONSTANT not in argument_attributes(func, buffer.index) or writers(buffer):
            rule = f"'{self.buffer}' is an argument that is not constant, so the caller decides its layout; "
            step = CacheWrite if buffer in block.outputs else CacheRead
            fix = step(self.block, self.buffer, layout=self.layout) if set(names) <= block.bound.keys() else None
            raise self.error(f"{rule}{step.name[3:].replace('-', '_')} with a layout copies it", fix, block)
        packing = packing_of(func, buffer.index)
        if packing is not None:
            raise self.error(f"'{self.buffer}' is packed already, as {', '.join(packing.layout)}", at=block)
        if callers_shape(buffer) != buffer_shape(buffer):
            raise self.error(
                f"'{self.buffer}' has other dimensions than its callers give; pack it before that", at=block
            )

    def rewrite(self, plan: Plan) -> None:
        forward = plan.layout.forward()
        for writer in writers(plan.buffer):
            for position, output in enumerate(writer.outputs):
                if output is plan.buffer:
                    indices = _mapped(plan, forward, writer.write_indices[position], writer)
                    redirect_write(writer, position, output, indices)
        for load in reads(plan.buffer):
            indices = _mapped(plan, forward, load.indices.data, _block_of(load))
            redirect_load(load, load.buffer, indices, load.conditions)
        assert isinstance(plan.buffer.type, MemRefType)
        packed = buffer_type(plan.buffer.type.element_type, plan.layout.shape, scope_of(plan.buffer))
        replaced = Rewriter.replace_value_with_new_type(plan.buffer, packed)
        if isinstance(replaced, BlockArgument) and plan.packing is not None:
            func = replaced.block.parent_op()
            assert isinstance(func, FuncOp)
            _record(func, replaced.index, plan.packing)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        access = next(a for a in stage.accesses if a.buffer.name == self.buffer)
        buffer = access.buffer
        names = _dimension_names([e.as_name for e in access.indices])
        layout = SizedLayout(self.layout, dict(zip(names, buffer.shape, strict=True)), sizes)
        forward = layout.forward()
        for other in nest.root.stages():
            for use in other.accesses:
                if use.buffer is buffer:
                    values = dict(zip(names, use.indices, strict=True))
                    use.indices = [e.substitute(values) for e in forward]
        buffer.shape = layout.shape

    def describe(self) -> str:
        return f"Store {self.buffer or 'what ' + self.block + ' writes'} in another order of elements."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[TransformLayout, ...]:
        steps = (
            cls(block.block_name, buffer_name(buffer), layout)
            for func in functions(module_op)
            for block in blocks_in(func)
            for buffer, indices in _accesses(block)
            for layout in _offered(_dimension_names([e.as_axis() for e in indices]))
        )
        return legal_steps(steps, module_op)


def _dimension_names(plain: Sequence[str | None]) -> tuple[str, ...]:
    """A name for each dimension: the iterator that is its index, where just one is and is so once, else `d<number>`."""
    names = [name if name is not None and plain.count(name) == 1 else None for name in plain]
    return tuple(f"d{d}" if name is None or name in _numbered(len(names), d) else name for d, name in enumerate(names))


def _numbered(rank: int, own: int) -> set[str]:
    """Return the names that stand for other dimensions by number."""
    return {f"d{d}" for d in range(rank) if d != own}


def _accesses(block: BlockOp) -> list[tuple[SSAValue, tuple[IndexExpr, ...]]]:
    written = list(zip(block.outputs, block.write_indices, strict=True))
    return written + [(load.buffer, load.indices.data) for load in block.loads]


def _offered(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Layouts worth a try: the last dimension outermost, tiles of 16 of the first innermost."""
    if not names:
        return []
    first, *rest = names
    return [(names[-1], *names[:-1]), (f"{first}/16", *rest, f"{first}%16")]


def _mapped(
    plan: Plan, forward: tuple[IndexExpr, ...], indices: tuple[IndexExpr, ...], block: BlockOp
) -> tuple[IndexExpr, ...]:
    values = dict(zip(plan.names, indices, strict=True))
    ranges = {a.name: (0, a.extent - 1) for a in block.axes}
    return tuple(e.substitute(values).simplify(ranges) for e in forward)


def _block_of(load: LoadOp) -> BlockOp:
    block = load.parent_op()
    assert isinstance(block, BlockOp)
    return block


def _record(func: FuncOp, position: int, packing: Packing) -> None:
    """Let the type of `func` follow its arguments, and note the packing on one of them."""
    assert func.arg_attrs is not None
    func.function_type = FunctionType.from_lists(func.body.block.arg_types, func.function_type.outputs.data)
    attributes = list(func.arg_attrs.data)
    attributes[position] = DictionaryAttr({**attributes[position].data, **packing_attributes(packing)})
    func.arg_attrs = ArrayAttr(attributes)
