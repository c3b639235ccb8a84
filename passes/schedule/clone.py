"""Give one reader of a buffer a producer of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.ir import Operation

from ...dialects.loop import AllocOp, BlockOp, LoadOp, blocks_in
from ..analysis.access import is_argument, readers
from ..analysis.nest import find_block, fresh_buffer_name, function_of, functions
from ..parametric.index import Index
from ..parametric.nest import Access, Buffer, Nest, SizedAxis, Stage
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._moving import require_only_writer
from ._staging import insert_alloc, legal_steps, new_buffer_name, redirect_load, top_level


@dataclass(frozen=True)
class Plan:
    """The block, the nest that it is alone in, the loads of the reader, and the name of the second block."""

    block: BlockOp
    nest: Operation
    loads: tuple[LoadOp, ...]
    label: str


@dataclass(frozen=True)
class Clone(Primitive[Plan]):
    """`block p; block c reads p; block d reads p` -> `block p; block p_clone; block c reads p_clone; block d reads p`

    What `block=p` computes is computed twice, for `reader=c` in a buffer of its own; so each may be where its reader
    is (`compute_at`), and nothing is kept from one to the other. The second block and its buffer are called `label`, by
    default `p_clone`.

    Requires: `block` stands alone in a nest as `lw-lower-te-to-loop` makes it, and writes one buffer, no output of the
    function, which no other block writes; `reader` reads that buffer, and is not the only one.
    """

    name = "lw-clone"
    block: str
    reader: str
    label: str = ""

    def check(self, module: ModuleOp) -> Plan:
        block, reader = find_block(self, module, self.block), find_block(self, module, self.reader)
        if len(block.outputs) != 1 or is_argument(block.outputs[0]):
            rule = f"block '{self.block}' must write one buffer, which is no output of the function"
            raise self.error(rule, at=block)
        require_only_writer(self, block)
        found = readers(block.outputs[0])
        if reader not in found or len(found) == 1:
            names = ", ".join(sorted(x.block_name for x in found)) or "none"
            rule = f"'{self.reader}' must be one of several blocks that read what '{self.block}' writes"
            raise self.error(f"{rule}; those that do: {names}", at=reader)
        nest = top_level(block)
        if not _is_untouched(block, nest):
            rule = f"block '{self.block}' must stand alone in a loop for each of its iterators"
            raise self.error(f"{rule}; do this step before others of it", at=block)
        label = new_buffer_name(self, function_of(block), self.label, f"{self.block}_clone", block)
        return Plan(block, nest, tuple(x for x in reader.loads if x.buffer is block.outputs[0]), label)

    def rewrite(self, plan: Plan) -> None:
        source = plan.block.outputs[0]
        assert isinstance(source.type, MemRefType)
        alloc = AllocOp(plan.label, source.type)
        nest = plan.nest.clone({source: alloc.buffer})
        (copy,) = _blocks_of(nest)
        copy.properties["label"] = StringAttr(plan.label)
        body = plan.nest.parent_block()
        assert body is not None
        body.insert_op_after(nest, plan.nest)
        insert_alloc(function_of(plan.block), alloc)
        for load in plan.loads:
            redirect_load(load, alloc.buffer, load.indices.data, load.conditions)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage, reader = nest.stage(self.block), nest.stage(self.reader)
        write = stage.writes[0]
        source = write.buffer
        label = self.label or fresh_buffer_name(f"{self.block}_clone", {*nest.buffers, *nest.stage_names})
        buffer = Buffer(label, list(source.shape), source.element_bytes, source.scope, False)
        copy = Stage(
            label,
            [SizedAxis(a.name, a.extent, a.is_reduce, Index.axis(a.name)) for a in stage.iterators],
            [Access(buffer, list(write.indices))],
            [Access(load.buffer, list(load.indices)) for load in stage.loads],
            dict(stage.arithmetic),
            stage.combiner,
            dict(stage.joining),
        )
        nest.add_copy(copy, nest.root.body.index(nest.top_level(stage)) + 1)
        for load in reader.loads:
            if load.buffer is source:
                load.buffer = buffer

    def describe(self) -> str:
        return f"Compute {self.block} twice, once for {self.reader} alone."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Clone, ...]:
        return legal_steps((s for f in functions(module_op) for b in blocks_in(f) for s in cls._for(b)), module_op)

    @classmethod
    def _for(cls, block: BlockOp) -> Iterator[Clone]:
        found = readers(block.outputs[0]) if len(block.outputs) == 1 else []
        for reader in found if len(found) > 1 else []:
            yield cls(block.block_name, reader.block_name)


def _blocks_of(nest: Operation) -> list[BlockOp]:
    """The blocks of a nest, which may be a block without loops."""
    return [nest] if isinstance(nest, BlockOp) else list(blocks_in(nest))


def _is_untouched(block: BlockOp, nest: Operation) -> bool:
    """True where the loops around a block are its iterators, in their order, and hold nothing else."""
    loops = block.enclosing_loops
    if len(_blocks_of(nest)) != 1 or block.conditions or block.notes or len(loops) != len(block.axes):
        return False
    return all(
        loop.loop_kind == "serial"
        and not loop.notes
        and loop.size == axis.extent
        and block.bound[axis.name].as_axis() == loop.loop_name == axis.name
        for loop, axis in zip(loops, block.axes, strict=True)
    )
