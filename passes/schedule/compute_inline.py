"""Put a producer into the blocks that read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects.attributes import IndicesAttr
from ...dialects.index import IndexExpr
from ...dialects.loop import BlockOp, LoadOp, blocks_in, buffer_shape
from ...dialects.te import PredicateOp
from ..analysis.access import is_argument, readers
from ..analysis.nest import buffer_name, find_block, functions
from ..parametric.index import Index
from ..parametric.nest import Access, Nest, Stage
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._inlining import TRAPPING, copy_body, is_zero_where_masked, needed_conditions, zero_of
from ._moving import drop_buffer, require_no_race, require_only_writer, take_out, written_axes
from ._staging import legal_steps


@dataclass(frozen=True)
class Plan:
    """The block, the dimension of its buffer that each of its iterators writes, and the blocks that read it."""

    block: BlockOp
    dimension_of: dict[str, int]
    readers: tuple[BlockOp, ...]


@dataclass(frozen=True)
class ComputeInline(Primitive[Plan]):
    """`for i { p[i] = f(i) } for x { c(x) reads p[x * 2] }` -> `for x { c(x) with f(x * 2) in it }` for `block=p`

    The block, its loops and its buffer are gone. Where a reader reads zero under a mask, the loads of `f` get the
    mask, and its value is replaced by zero unless it is zero then anyway.

    Requires: no reduction; one buffer, no output of the function, which the block alone writes, all of it, at plain
    iterators; readers that read it at index expressions of their iterators.
    """

    name = "lw-compute-inline"
    block: str

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        if block.is_reduction:
            rule = f"block '{self.block}' must not be a reduction, its value takes a loop to compute"
            raise self.error(f"{rule}; compute_at moves it to its readers", at=block)
        if len(block.outputs) != 1:
            raise self.error(f"block '{self.block}' must write one buffer, it writes {len(block.outputs)}", at=block)
        buffer = block.outputs[0]
        name = buffer_name(buffer)
        if is_argument(buffer):
            rule = f"'{name}' must not be an output of the function"
            raise self.error(f"{rule}; reverse_compute_inline puts a block into what it reads", at=block)
        require_only_writer(self, block)
        dimension_of = written_axes(block)
        shape = buffer_shape(buffer)
        if dimension_of is None or any(a.extent != shape[dimension_of[a.name]] for a in block.axes):
            rule = f"block '{self.block}' must write all of '{name}' at plain iterators, each of its own once"
            raise self.error(f"{rule}; do this step before transform_layout", at=block)
        found = readers(buffer)
        if not found:
            raise self.error(f"no block reads '{name}'", at=block)
        for reader in found:
            require_no_race(self, block, reader.enclosing_loops)
            self._require_safe_mask(block, reader)
            self._require_known_places(buffer, reader)
        return Plan(block, dimension_of, tuple(found))

    def _require_known_places(self, buffer: SSAValue, reader: BlockOp) -> None:
        if any(load.buffer is buffer and load.positions for load in reader.loads):
            rule = (
                f"'{reader.block_name}' must read '{buffer_name(buffer)}' where its iterators say, not where data does"
            )
            raise self.error(rule, at=reader)

    def _require_safe_mask(self, block: BlockOp, reader: BlockOp) -> None:
        trapping = next((op for op in block.body.block.ops if op.name in TRAPPING), None)
        masked = any(load.conditions for load in reader.loads if load.buffer is block.outputs[0])
        if trapping is not None and masked:
            rule = f"'{self.block}' divides integers, which must not run where '{reader.block_name}' reads under a mask"
            raise self.error(rule, at=reader)

    def rewrite(self, plan: Plan) -> None:
        buffer = plan.block.outputs[0]
        always_zero = is_zero_where_masked(plan.block)
        for reader in plan.readers:
            ranges = {a.name: (0, a.extent - 1) for a in reader.axes}
            done: dict[tuple[IndicesAttr, IndicesAttr | None], SSAValue] = {}
            for load in reader.loads:
                if load.buffer is not buffer:
                    continue
                place = (load.indices, load.where)
                if place not in done:
                    ops, done[place] = _inlined(plan, load, ranges, always_zero)
                    reader.body.block.insert_ops_before(ops, load)
                load.result.replace_all_uses_with(done[place])
                reader.body.block.erase_op(load)
        take_out(plan.block)
        plan.block.erase()
        drop_buffer(buffer)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        buffer = stage.writes[0].buffer
        for reader in nest.readers(buffer):
            _inline_sizes(stage, reader)
        stage.take_out()
        del nest.buffers[buffer.name]

    def describe(self) -> str:
        return f"Compute {self.block} anew wherever it is read, and do not store it."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ComputeInline, ...]:
        return legal_steps((cls(b.block_name) for func in functions(module_op) for b in blocks_in(func)), module_op)


def _inlined(
    plan: Plan, load: LoadOp, ranges: dict[str, tuple[int, int]], always_zero: bool
) -> tuple[list[Operation], SSAValue]:
    """Build what takes the place of `load`, and return its value."""
    indices: tuple[IndexExpr, ...] = load.indices.data
    iterators = {name: indices[dimension] for name, dimension in plan.dimension_of.items()}
    mask = needed_conditions(load.conditions, ranges)
    ops, (value,) = copy_body(plan.block, iterators, ranges, mask)
    if not mask or always_zero:
        return ops, value
    inside = PredicateOp(mask)
    zero = zero_of(value.type)
    selected = arith.SelectOp(inside.result, value, zero.result)
    return [*ops, inside, zero, selected], selected.result


def _inline_sizes(stage: Stage, reader: Stage) -> None:
    """Let `reader` read what `stage` reads, and compute what it computes, once for each place that it read of it."""
    written = stage.dimension_of
    loads: list[Access] = []
    places: list[list[Index]] = []
    for load in reader.loads:
        if load.buffer is not stage.writes[0].buffer:
            loads.append(load)
        elif load.indices not in places:
            places.append(load.indices)
            values = {n: load.indices[d] for n, d in written.items()}
            loads += [a.substituted(values) for a in stage.loads]
            reader.arithmetic = dict(Counter(reader.arithmetic) + Counter(stage.arithmetic))
    reader.loads = loads
