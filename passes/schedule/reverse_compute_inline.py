"""Put an elementwise consumer into the block that writes what it reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from ...dialects.attributes import IndicesAttr
from ...dialects.index import ZERO, IndexExpr
from ...dialects.loop import BlockOp, blocks_in, buffer_shape
from ...dialects.te import YieldOp
from ..analysis.access import is_argument, readers, writers
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.index import Index
from ..parametric.nest import Nest, Stage
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._inlining import copy_body
from ._moving import (
    drop_buffer,
    program_order,
    require_inputs,
    require_only_writer,
    required_conditions,
    take_out,
    written_axes,
)
from ._staging import legal_steps


@dataclass(frozen=True)
class Plan:
    """The block, the block it goes into, and its iterators over those of that block."""

    block: BlockOp
    producer: BlockOp
    iterators: dict[str, IndexExpr]


@dataclass(frozen=True)
class ReverseComputeInline(Primitive[Plan]):
    """`for i { p[i] = f(i) } for x { c[x] = g(p[x]) }` -> `for i { c[i] = g(f(i)) }` for `block=c`

    The block and its loops are gone, and so is the buffer between: the producer `p`, which keeps its name, goes on with
    the body of the block and writes what it wrote.

    Requires: the block is elementwise on one buffer that no other block reads or writes (each of its iterators is one
    index of it, and it reads all of it); neither the block nor the producer is a reduction; everything else that the
    block reads is there when the producer runs.
    """

    name = "lw-reverse-compute-inline"
    block: str

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if block.is_reduction:
            raise self.error(f"block '{self.block}' must be elementwise, it is a reduction", at=block)
        require_only_writer(self, block)
        if required_conditions(self, block):
            raise self.error(f"block '{self.block}' must be elementwise, its predicate leaves some out", at=block)
        refusals: list[str] = []
        order = program_order(block)
        candidates = {w: None for load in block.loads for w in writers(load.buffer)}
        for producer in sorted(candidates, key=lambda p: -order[p]):
            found = self._match(block, producer)
            if isinstance(found, str):
                refusals.append(found)
                continue
            bound = {name: e.substitute(producer.bound) for name, e in found.items()}
            require_inputs(self, block, bound, {}, producer.enclosing_loops, order[producer], order, producer)
            return Plan(block, producer, found)
        raise self.error(refusals[0] if refusals else f"no block writes what '{self.block}' reads", at=block)

    def _match(self, block: BlockOp, producer: BlockOp) -> dict[str, IndexExpr] | str:
        """Match the iterators of `block` to those of `producer`, or say why it cannot go into it."""
        theirs = producer.block_name
        buffer = next(o for o in producer.outputs if any(load.buffer is o for load in block.loads))
        name = buffer_name(buffer)
        if producer.is_reduction:
            rule = f"'{name}' must not be reduced by '{theirs}', it is final after a loop only"
            return f"{rule}; reverse_compute_at moves '{self.block}' there"
        if len(producer.outputs) != 1:
            return f"'{theirs}' must write one buffer, it writes {len(producer.outputs)}"
        if is_argument(buffer):
            return f"'{name}' must not be an argument of the function, it would be gone"
        if others := [x.block_name for x in (*readers(buffer), *writers(buffer)) if x not in (block, producer)]:
            return f"no other block must use '{name}', '{others[0]}' does"
        written = written_axes(producer)
        shape = buffer_shape(buffer)
        if written is None or any(a.extent != shape[written[a.name]] for a in producer.axes):
            return f"'{theirs}' must write all of '{name}' at plain iterators, each of its own once"
        return self._iterators(block, producer, name)

    def _iterators(self, block: BlockOp, producer: BlockOp, name: str) -> dict[str, IndexExpr] | str:
        loads = [load for load in block.loads if load.buffer is producer.outputs[0]]
        indices = loads[0].indices.data
        if any(load.conditions or load.indices.data != indices for load in loads):
            return f"'{self.block}' must read '{name}' at one place and without a mask"
        values = {a.name: ZERO for a in block.axes if a.extent == 1}
        matched: set[str] = set()
        extents = {a.name: a.extent for a in block.axes}
        shape = buffer_shape(producer.outputs[0])
        for index, write, extent in zip(indices, producer.write_indices[0], shape, strict=True):
            iterator = index.as_axis()
            if iterator is None or iterator in matched or extents[iterator] != extent:
                if extent == 1 and index == ZERO:
                    continue
                return f"'{self.block}' must read all of '{name}' at iterators of its own, each once, got [{index}]"
            matched.add(iterator)
            values[iterator] = write
        if left := [a.name for a in block.axes if a.name not in values]:
            return f"'{self.block}' must be elementwise on '{name}', iterator '{left[0]}' is no index of it"
        return values

    def rewrite(self, plan: Plan) -> None:
        block, producer = plan.block, plan.producer
        buffer = producer.outputs[0]
        ranges = {a.name: (0, a.extent - 1) for a in producer.axes}
        loads = [op.result for op in block.loads if op.buffer is buffer]
        ops, values = copy_body(block, plan.iterators, ranges, values=dict.fromkeys(loads, producer.yielded[0]))
        body = producer.body.block
        last = body.last_op
        assert last is not None
        body.erase_op(last)
        body.add_ops([*ops, YieldOp.create(operands=values)])
        producer.operands = list(block.outputs)
        producer.writes = ArrayAttr(
            IndicesAttr(tuple(e.substitute(plan.iterators) for e in write)) for write in block.write_indices
        )
        take_out(block)
        block.erase()
        drop_buffer(buffer)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        producer = _sized_producer(nest, stage)
        between = producer.writes[0].buffer
        values = _sized_iterators(stage, producer)
        producer.loads += [a.substituted(values) for a in stage.loads if a.buffer is not between]
        producer.arithmetic = dict(Counter(producer.arithmetic) + Counter(stage.arithmetic))
        producer.writes = [a.substituted(values) for a in stage.writes]
        stage.take_out()
        del nest.buffers[between.name]

    def describe(self) -> str:
        return f"Apply {self.block} to each value as it is written; it is not stored without."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ReverseComputeInline, ...]:
        return legal_steps((cls(b.block_name) for func in functions(module_op) for b in blocks_in(func)), module_op)


def _sized_producer(nest: Nest, stage: Stage) -> Stage:
    """The last stage that nothing but `stage` reads from, and that is no reduction."""
    found = [
        s
        for s in nest.root.stages()
        if s is not stage
        and not s.is_reduction
        and any(a.buffer is s.writes[0].buffer for a in stage.loads)
        and nest.readers(s.writes[0].buffer) == [stage]
    ]
    return found[-1]


def _sized_iterators(stage: Stage, producer: Stage) -> dict[str, Index]:
    """The iterators of `stage` over those of the producer whose buffer it reads."""
    write = producer.writes[0]
    read = next(a for a in stage.loads if a.buffer is write.buffer)
    values = {a.name: Index.constant(0) for a in stage.iterators}
    for index, place in zip(read.indices, write.indices, strict=True):
        if (own := index.as_name) is not None:
            values[own] = place
    return values
