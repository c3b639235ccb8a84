"""Let a block write to a buffer of its own, in another scope or layout, which is copied to the real one after."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr
from ...dialects.loop import AllocOp, BlockOp, blocks_in, buffer_shape, buffer_type
from ..analysis.access import readers, writers
from ..analysis.layout import AxisLayout, LayoutError, parse_layout
from ..analysis.nest import buffer_name, find_block, fresh_buffer_name, function_of, functions
from ..parametric.index import Index
from ..parametric.layout import SizedLayout
from ..parametric.nest import Access, Buffer, Nest, SizedAxis, Stage
from ..parametric.sizes import Size, Sizes, is_one
from ..primitive import Primitive
from ._staging import (
    check_scope,
    copy_nest,
    insert_alloc,
    legal_steps,
    new_buffer_name,
    output_index,
    redirect_write,
    scope_in_words,
    top_level,
    values_taken,
)


@dataclass(frozen=True)
class Write:
    """A write to redirect: where one block writes the buffer now, and the indices it writes the new one at."""

    block: BlockOp
    position: int
    indices: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class Plan:
    """The writes to redirect, and the copy `buffer[target] = cache[source]` to put behind `after`."""

    func: FuncOp
    after: Operation
    buffer: SSAValue
    label: str
    shape: tuple[int, ...]
    writes: tuple[Write, ...]
    axes: tuple[Axis, ...]
    source: tuple[IndexExpr, ...]
    target: tuple[IndexExpr, ...]


@dataclass(frozen=True)
class CacheWrite(Primitive[Plan]):
    """`block c { C[i, j] += ... }` -> `block c { C_local[i, j] += ... } ... block C_local { C[i, j] = C_local[i, j] }`

    The copy is a nest of its own behind the one of `block`; `reverse_compute_at` moves it to where it pays. Its
    iterators are those that `block` writes at. A layout over them (`layout="i/8","j/16","i%8","j%16"`) changes the new
    buffer only. All that reads `buffer` still does. The new buffer and the copy are called `label`, by default
    `C_<scope>`. `buffer` may be left out where the block writes one.

    Requires: no other block writes the buffer, except the one that initialises it after `decompose_reduction`; none
    in the same nest reads it. The block runs for all values of the iterators that it writes at, as the copy does.
    """

    name = "lw-cache-write"
    block: str
    buffer: str = ""
    scope: str = "local"
    layout: tuple[str, ...] = ()
    label: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        check_scope(self, self.scope, block)
        position = output_index(self, block, self.buffer)
        buffer, target = block.outputs[position], block.write_indices[position]
        owners = self._owners(block, buffer)
        after = top_level(owners[-1])
        self._require_readers_outside(buffer, owners)
        func = function_of(block)
        used = set().union(*(e.axes() for e in target))
        axes = tuple(Axis(a.name, a.extent) for a in block.axes if a.name in used)
        if values_taken(block, used) < prod(a.extent for a in axes):
            rule = f"'{self.block}' must run for all values of the iterators that it writes at"
            why = "padding of a fused loop and stages of a pipeline leave some out"
            raise self.error(f"{rule}; {why}: do this step before", at=block)
        ones = tuple(Axis(a.name, 1) for a in block.axes if a.extent == 1 and a.name not in used)
        layout = self._parsed(block, (*axes, *ones))
        source = target if layout is None else layout.forward()
        shape = buffer_shape(buffer) if layout is None else layout.shape
        writes = tuple(self._redirected(owner, buffer, block, target, source) for owner in owners)
        label = new_buffer_name(self, func, self.label, f"{buffer_name(buffer)}_{self.scope}", block)
        return Plan(func, after, buffer, label, shape, writes, axes, source, target)

    def _owners(self, block: BlockOp, buffer: SSAValue) -> list[BlockOp]:
        """Return the block, or the pair that initialises and updates, in program order."""
        owners = writers(buffer)
        if len(owners) == 1:
            return owners
        others = [b for b in owners if b is not block]
        pair = sorted([block, *others], key=lambda b: b.no_init is not None)
        if len(pair) != 2 or pair[0].is_reduction or pair[1].no_init is None:
            rule = f"'{self.block}' must be the only block that writes '{buffer_name(buffer)}', "
            raise self.error(f"{rule}'{others[0].block_name}' does as well", at=others[0])
        return pair

    def _require_readers_outside(self, buffer: SSAValue, owners: list[BlockOp]) -> None:
        nests = {top_level(owner) for owner in owners}
        for reader in readers(buffer):
            if top_level(reader) in nests:
                rule = f"no block in the same nest may read '{buffer_name(buffer)}', '{reader.block_name}' does; "
                raise self.error(f"{rule}do this step before moving one to the other", at=reader)

    def _parsed(self, block: BlockOp, axes: tuple[Axis, ...]) -> AxisLayout | None:
        if not self.layout:
            return None
        try:
            return parse_layout(self.layout, {a.name: a.extent for a in axes})
        except LayoutError as error:
            rule = f"the layout must hold the iterators that '{self.block}' writes at, but {error}"
            raise self.error(rule, at=block) from None

    def _redirected(
        self,
        owner: BlockOp,
        buffer: SSAValue,
        block: BlockOp,
        target: tuple[IndexExpr, ...],
        source: tuple[IndexExpr, ...],
    ) -> Write:
        """Return the write of `owner`, whose iterators may have other names than those of `block`."""
        position = list(owner.outputs).index(buffer)
        if owner is block:
            return Write(owner, position, source)
        own = owner.write_indices[position]
        values = {name: e for t, e in zip(target, own, strict=True) if (name := t.as_axis()) is not None}
        if tuple(t.substitute(values) for t in target) != own:
            rule = f"'{owner.block_name}' must write '{buffer_name(buffer)}' at the same places as '{self.block}'"
            raise self.error(rule, at=owner)
        return Write(owner, position, tuple(e.substitute(values) for e in source))

    def rewrite(self, plan: Plan) -> None:
        assert isinstance(plan.buffer.type, MemRefType)
        alloc = AllocOp(plan.label, buffer_type(plan.buffer.type.element_type, plan.shape, self.scope))
        for write in plan.writes:
            redirect_write(write.block, write.position, alloc.buffer, write.indices)
        source = (alloc.buffer, plan.source, ())
        nest = copy_nest(plan.label, plan.axes, source, (plan.buffer, plan.target))
        plan.func.body.block.insert_op_after(nest, plan.after)
        insert_alloc(plan.func, alloc)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        write = stage.output(self.buffer)
        real, target = write.buffer, write.indices
        owners = nest.writers(real)
        used = {n for e in target for n in e.names}
        axes = [a for a in stage.iterators if a.name in used]
        shape, source = self._sized_layout(stage, used, write, sizes)
        taken = {*nest.buffers, *nest.stage_names}
        label = self.label or fresh_buffer_name(f"{real.name}_{self.scope}", taken)
        buffer = Buffer(label, shape, real.element_bytes, self.scope, False)
        for owner in owners:
            for access in owner.writes:
                if access.buffer is real:
                    access.indices = _sized_indices(target, access.indices, source)
                    access.buffer = buffer
        copied = [SizedAxis(a.name, a.extent, False, Index.axis(a.name)) for a in axes]
        copy = Stage(label, copied, [Access(real, list(target))], [Access(buffer, list(source))])
        nest.add_copy(copy, nest.root.body.index(nest.top_level(owners[-1])) + 1)

    def _sized_layout(
        self, stage: Stage, used: set[str], write: Access, sizes: Sizes
    ) -> tuple[list[Size], list[Index]]:
        """The shape of the new buffer and where the stage writes it."""
        if not self.layout:
            return list(write.buffer.shape), list(write.indices)
        extents = {a.name: a.extent for a in stage.iterators if a.name in used or is_one(a.extent)}
        layout = SizedLayout(self.layout, extents, sizes)
        return layout.shape, layout.forward()

    def describe(self) -> str:
        buffer = f"{self.buffer} " if self.buffer not in ("", self.block) else ""
        return f"Let {self.block} write {buffer}to {scope_in_words(self.scope)}, and copy it out afterwards."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[CacheWrite, ...]:
        steps = (
            cls(block.block_name, buffer_name(output), scope)
            for func in functions(module_op)
            for block in blocks_in(func)
            for output in block.outputs
            for scope in ("local", "shared")
        )
        return legal_steps(steps, module_op)


def _sized_indices(target: list[Index], own: list[Index], source: list[Index]) -> list[Index]:
    """The new indices of a stage whose iterators may have other names than those of the stage of the step."""
    values = {n: e for t, e in zip(target, own, strict=True) if (n := t.as_name) is not None}
    return [e.substitute(values) for e in source]
