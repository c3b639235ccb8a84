"""Software pipelining, shared by `pipeline` and `double_buffer`: copies whose buffer gets a place for each stage."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import axis
from ...dialects.interpret.loop import owning_loops
from ...dialects.loop import AllocOp, BlockOp, ForOp, LoadOp, buffer_shape, buffer_type, scope_of
from ...dialects.loop_notes import PIPELINE_BULK, PIPELINE_CLUSTER, PIPELINE_REGISTERS, PIPELINE_STAGES
from ..analysis.access import is_under, readers, writers
from ..analysis.copies import is_copy
from ..analysis.nest import buffer_name, fresh_name, function_of
from ..primitive import Primitive, ScheduleError


@dataclass(frozen=True)
class StagesPlan:
    """A software pipeline: the loop, its copies, and its number of stages."""

    loop: ForOp
    copies: tuple[BlockOp, ...]
    stages: int
    registers: bool = False
    bulk: bool = False
    cluster: tuple[str, ...] = ()


def require_copy_ahead(step: Primitive[StagesPlan], block: BlockOp, loop: ForOp) -> None:
    """Refuse a block that cannot run in an earlier iteration of `loop` than what reads its buffer."""
    name = buffer_name(block.outputs[0])
    if not is_copy(block):
        raise ScheduleError(step, f"block '{block.block_name}' must copy a buffer, it computes", at=block)
    if len(writers(block.outputs[0])) > 1:
        raise ScheduleError(step, f"'{name}' must be filled by '{block.block_name}' alone", at=block)
    source = block.loads[0].buffer
    behind = next((w for w in writers(source) if is_under(w, loop)), None)
    if behind is not None:
        rule = f"'{buffer_name(source)}' must be there before loop '{loop.loop_name}', '{behind.block_name}' writes it"
        raise ScheduleError(step, f"{rule} inside", at=behind)


def owner_of(block: BlockOp) -> ForOp | None:
    """Return the innermost loop around all that uses the buffer of `block`: each iteration has its own."""
    return owning_loops(function_of(block)).get(block.outputs[0])


def require_pipelinable(step: Primitive[StagesPlan], loop: ForOp, stages: int, other: int | None = None) -> None:
    """Refuse a loop that is marked, or a number of stages that it does not have; `other` stages it may have already."""
    name = loop.loop_name
    if loop.loop_kind != "serial":
        raise ScheduleError(step, f"loop '{name}' must be serial, it is {loop.loop_kind}", at=loop)
    known = loop.notes.get(PIPELINE_STAGES)
    if isinstance(known, IntegerAttr) and known.value.data != other:
        raise ScheduleError(step, f"loop '{name}' must not be pipelined yet, it has {known.value.data} stages", at=loop)
    if not 1 <= stages <= loop.size:
        rule = f"stages must be from 1 to the extent of '{name}', got {stages}, extent {loop.size}"
        raise ScheduleError(step, rule, at=loop)


def add_stages(plan: StagesPlan) -> None:
    """Give each copy's buffer one place per stage, used in turn, and note the stages on the loop and on the copies."""
    if plan.stages == 1:
        return
    stages = IntegerAttr(plan.stages, i64)
    through = {PIPELINE_REGISTERS: UnitAttr()} if plan.registers else {}
    through |= {PIPELINE_BULK: UnitAttr()} if plan.bulk else {}
    plan.loop.annotate(PIPELINE_STAGES, stages)
    if plan.cluster:
        plan.loop.annotate(PIPELINE_CLUSTER, StringAttr(" ".join(plan.cluster)))
    for copy in plan.copies:
        copy.annotations = DictionaryAttr({**copy.notes, PIPELINE_STAGES: stages, **through})
        buffer = copy.outputs[0]
        users = {copy: None} | dict.fromkeys(readers(buffer))
        names = {block: _stage_iterator(block, plan) for block in users}
        _put_first(copy, buffer, names[copy])
        for load in [use.operation for use in buffer.uses if isinstance(use.operation, LoadOp)]:
            block = load.parent_op()
            assert isinstance(block, BlockOp)
            load.indices = IndicesAttr((axis(names[block]), *load.indices.data))
        _widen(buffer, plan.stages)


def _stage_iterator(block: BlockOp, plan: StagesPlan) -> str:
    """Return the iterator of `block` that is the stage; a new one unless another buffer has brought it already."""
    name = plan.loop.loop_name
    value = (axis(name) % plan.stages).simplify({name: (0, plan.loop.size - 1)})
    for known, expr in zip(block.axes, block.bindings.data, strict=True):
        if expr == value and known.extent == plan.stages:
            return known.name
    fresh = fresh_name(f"{name}_stage", {a.name for a in block.axes})
    reducing = any(a.reduce and name in e.axes() for a, e in zip(block.axes, block.bindings.data, strict=True))
    block.iterators = AxesAttr((*block.axes, Axis(fresh, plan.stages, reducing)))
    block.rebind((*block.bindings.data, value), block.conditions)
    return fresh


def _put_first(block: BlockOp, buffer: SSAValue, stage: str) -> None:
    block.writes = ArrayAttr(
        [
            IndicesAttr((axis(stage), *write) if output is buffer else write)
            for output, write in zip(block.outputs, block.write_indices, strict=True)
        ]
    )


def _widen(buffer: SSAValue, stages: int) -> None:
    alloc = buffer.owner
    assert isinstance(alloc, AllocOp) and isinstance(buffer.type, MemRefType)
    if alloc.alignment is not None:
        dimension, factor, offset = alloc.alignment
        alloc.align = ArrayAttr([IntAttr(dimension + 1), IntAttr(factor), IntAttr(offset)])
    shape = (stages, *buffer_shape(buffer))
    Rewriter.replace_value_with_new_type(buffer, buffer_type(buffer.type.element_type, shape, scope_of(buffer)))
