"""Stage what a block reads from a buffer in a buffer of its own, in another scope or layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr, Ranges, axis
from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in, buffer_shape, buffer_type
from ..analysis.access import writers
from ..analysis.domain import conditions_on_iterators
from ..analysis.layout import AxisLayout, LayoutError, layout_names, parse_layout
from ..analysis.nest import buffer_name, find_block, fresh_buffer_name, function_of, functions
from ..parametric.index import Index
from ..parametric.layout import SizedLayout
from ..parametric.nest import Access, Buffer, Nest, SizedAxis, Stage
from ..parametric.sizes import Size, Sizes, is_one
from ..primitive import Primitive
from ._staging import (
    check_scope,
    copy_nest,
    dimension_names,
    insert_alloc,
    legal_steps,
    new_buffer_name,
    redirect_load,
    scope_in_words,
    top_level,
    values_taken,
)


@dataclass(frozen=True)
class Plan:
    """The loads to redirect, the copy to put before `before`, and what the loads read then."""

    func: FuncOp
    before: Operation
    loads: tuple[LoadOp, ...]
    label: str
    axes: tuple[Axis, ...]
    source: tuple[tuple[IndexExpr, ...], tuple[IndexExpr, ...]]
    panel: tuple[IndexExpr, ...] | None


@dataclass(frozen=True)
class CacheRead(Primitive[Plan]):
    """`block c { B[k, j] }` -> `block B_local { B_local[ax0, ax1] = B[ax0, ax1] } ... block c { B_local[k, j] }`

    The copy is a nest of its own before the one of `block`; `compute_at` moves it to where it pays. With a layout over
    the iterators that the load depends on, the copy is a panel of just what the block reads, in its order:
    `layout="j/64","k","j%64"` -> `block B_packed (j_o, k, j_i) { B[k, j_o * 64 + j_i] where inside }`, and the block
    reads `B_packed[j floordiv 64, k, j mod 64]`. The mask of the load moves into the copy, so a panel of a padded
    convolution input (`layout="rc","ry","rx","yy*xx"`) is read without one; padding of the panel is zero.
    The new buffer and its block are called `label`, by default `B_<scope>`, or `B_packed` with a layout.

    Requires: whatever writes the buffer stands in nests before that of `block`; without a layout, that all of the
    buffer is written; with one, that `block` reads the buffer in one place.
    """

    name = "lw-cache-read"
    block: str
    buffer: str
    scope: str = "local"
    layout: tuple[str, ...] = ()
    label: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        check_scope(self, self.scope, block)
        loads = self._loads(block)
        before = self._place(block, loads[0].buffer)
        func = function_of(block)
        label = new_buffer_name(self, func, self.label, self._default_label, block)
        if self.layout:
            axes, source, panel = self._panel(block, loads)
            return Plan(func, before, loads, label, axes, source, panel)
        shape = buffer_shape(loads[0].buffer)
        self._require_filled(block, loads[0].buffer)
        whole = tuple(Axis(f"ax{d}", extent) for d, extent in enumerate(shape))
        return Plan(func, before, loads, label, whole, (tuple(axis(a.name) for a in whole), ()), None)

    @property
    def _default_label(self) -> str:
        return f"{self.buffer}_{'packed' if self.layout else self.scope}"

    def _loads(self, block: BlockOp) -> tuple[LoadOp, ...]:
        loads = tuple(load for load in block.loads if buffer_name(load.buffer) == self.buffer)
        if not loads:
            read = ", ".join(dict.fromkeys(buffer_name(load.buffer) for load in block.loads)) or "nothing"
            rule = f"block '{self.block}' must read buffer '{self.buffer}'; it reads {read}"
            raise self.error(rule, at=block)
        return loads

    def _place(self, block: BlockOp, source: SSAValue) -> Operation:
        before = top_level(block)
        for writer in writers(source):
            if writer is block:
                raise self.error(f"block '{self.block}' must not write '{self.buffer}' itself", at=block)
            nest = top_level(writer)
            if nest is before or not nest.is_before_in_block(before):
                rule = f"what writes '{self.buffer}' must stand in a nest before that of '{self.block}', "
                rule += f"'{writer.block_name}' is in the same; do this step before moving it there"
                raise self.error(rule, at=writer)
        return before

    def _require_filled(self, block: BlockOp, source: SSAValue) -> None:
        written = [_written(writer, source) for writer in writers(source)]
        if written and max(written) < prod(buffer_shape(source)):
            rule = f"all of '{self.buffer}' must be written, its padding is not; a layout copies just what is read"
            raise self.error(rule, at=block)

    def _panel(
        self, block: BlockOp, loads: tuple[LoadOp, ...]
    ) -> tuple[tuple[Axis, ...], tuple[tuple[IndexExpr, ...], tuple[IndexExpr, ...]], tuple[IndexExpr, ...]]:
        load = loads[0]
        if load.positions:
            rule = (
                f"with a layout, '{self.buffer}' must be read where the iterators of '{self.block}' say, not where data"
            )
            raise self.error(f"{rule} does; without one, all of it is copied", at=block)
        for other in loads[1:]:
            if other.indices != load.indices or other.conditions != load.conditions:
                rule = f"with a layout, all reads of '{self.buffer}' in '{self.block}' must be at the same place, "
                texts = " and ".join("[" + ", ".join(map(str, x.indices.data)) + "]" for x in (load, other))
                raise self.error(f"{rule}they are at {texts}", at=block)
        layout = self._parsed(block, load)
        dims = dimension_names(layout)
        axes = tuple(Axis(name, extent) for name, extent in zip(dims, layout.shape, strict=True))
        ranges = {a.name: (0, a.extent - 1) for a in axes}
        values = layout.inverse(dims)
        indices = tuple(e.substitute(values).simplify(ranges) for e in load.indices.data)
        mask = [e.substitute(values).simplify(ranges) for e in load.conditions]
        if conditions_on_iterators(block) != []:
            mask += _inside(indices, buffer_shape(load.buffer), ranges)
        return axes, (indices, (*mask, *layout.padding(dims))), layout.forward()

    def _parsed(self, block: BlockOp, load: LoadOp) -> AxisLayout:
        used = set().union(*(e.axes() for e in (*load.indices.data, *load.conditions)))
        extents = {a.name: a.extent for a in block.axes if a.name in used or a.extent == 1}
        try:
            return parse_layout(self.layout, extents)
        except LayoutError as error:
            rule = f"the layout must hold the iterators that the read of '{self.buffer}' depends on, but {error}"
            raise self.error(rule, at=block) from None

    def rewrite(self, plan: Plan) -> None:
        source = plan.loads[0].buffer
        assert isinstance(source.type, MemRefType)
        shape = [a.extent for a in plan.axes]
        alloc = AllocOp(plan.label, buffer_type(source.type.element_type, shape, self.scope))
        indices, where = plan.source
        target = [axis(a.name) for a in plan.axes]
        nest = copy_nest(plan.label, plan.axes, (source, indices, where), (alloc.buffer, target))
        plan.func.body.block.insert_op_before(nest, plan.before)
        insert_alloc(plan.func, alloc)
        for load in plan.loads:
            if plan.panel is None:
                redirect_load(load, alloc.buffer, load.indices.data, load.conditions)
            else:
                redirect_load(load, alloc.buffer, plan.panel, ())

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        loads = [a for a in stage.loads if a.buffer.name == self.buffer]
        source = loads[0].buffer
        label = self.label or fresh_buffer_name(self._default_label, {*nest.buffers, *nest.stage_names})
        dimensions, shape, read, panel = self._sized_panel(stage, loads[0], sizes)
        buffer = Buffer(label, shape, source.element_bytes, self.scope, False)
        axes = [SizedAxis(n, e, False, Index.axis(n)) for n, e in zip(dimensions, shape, strict=True)]
        copy = Stage(label, axes, [Access(buffer, [a.bound for a in axes])], [Access(source, read)])
        nest.add_copy(copy, nest.root.body.index(nest.top_level(stage)))
        for load in loads:
            load.buffer = buffer
            if panel is not None:
                load.indices = panel

    def _sized_panel(
        self, stage: Stage, load: Access, sizes: Sizes
    ) -> tuple[list[str], list[Size], list[Index], list[Index] | None]:
        """The names and extents of the copy's dimensions, where it reads, and where the stage reads it."""
        if not self.layout:
            names = [f"ax{d}" for d in range(len(load.buffer.shape))]
            return names, list(load.buffer.shape), [Index.axis(n) for n in names], None
        used = {n for e in load.indices for n in e.names} | layout_names(self.layout)  # masks may use more than indices
        extents = {a.name: a.extent for a in stage.iterators if a.name in used or is_one(a.extent)}
        layout = SizedLayout(self.layout, extents, sizes)
        values = layout.inverse()
        return layout.dimensions, layout.shape, [e.substitute(values) for e in load.indices], layout.forward()

    def describe(self) -> str:
        order = ", in the order it is read," if self.layout else ""
        return f"Copy what {self.block} reads of {self.buffer} to {scope_in_words(self.scope)}{order} first."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[CacheRead, ...]:
        return legal_steps((s for f in functions(module_op) for b in blocks_in(f) for s in cls._for(b)), module_op)

    @classmethod
    def _for(cls, block: BlockOp) -> Iterator[CacheRead]:
        for load in block.loads:
            buffer = buffer_name(load.buffer)
            yield cls(block.block_name, buffer)
            yield cls(block.block_name, buffer, "shared")
            used = set().union(*(e.axes() for e in (*load.indices.data, *load.conditions)))
            yield cls(block.block_name, buffer, "local", tuple(a.name for a in block.axes if a.name in used))


def _inside(indices: Sequence[IndexExpr], shape: Sequence[int], ranges: Ranges) -> list[IndexExpr]:
    """Return conditions that keep `indices` in a buffer, where the block's predicate did and its iterators do not."""
    conditions: list[IndexExpr] = []
    for index, extent in zip(indices, shape, strict=True):
        lowest, highest = index.bounds(ranges)
        conditions += [index] if lowest < 0 else []
        conditions += [extent - 1 - index] if highest >= extent else []
    return conditions


def _written(writer: BlockOp, buffer: SSAValue) -> int:
    """Count the elements of `buffer` that a block writes, at most: the values of the iterators that it writes at."""
    used: set[str] = set()
    for output, indices in zip(writer.outputs, writer.write_indices, strict=True):
        if output is buffer:
            used |= set().union(*(e.axes() for e in indices))
    return values_taken(writer, used)
