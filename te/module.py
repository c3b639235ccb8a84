"""Tensors to a module: one function on tensor types that holds one te.compute per stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from ..dialects.attributes import Axis
from ..dialects.element import DTYPES
from ..dialects.index import IndexExpr, axis
from ..dialects.names import GRAMMAR, LONGEST_GIVEN_NAME
from ..dialects.numpy_types import FLOATS
from ..dialects.presets import preset_target
from ..dialects.target import Target, TargetAttr
from ..dialects.te import ComputeOp, YieldOp
from ..dialects.workload import erase_unread
from .body import BodyBuilder
from .errors import ExpressionError
from .expr import Const, Expr, IterVar, Read, children
from .reduce import Reduce
from .tensor import Compute, Placeholder, Tensor


def with_inputs(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """The list of inputs and outputs that a workload is: of one tensor, the placeholders it reads and itself.

    TypeError where there is something else than tensors in it.
    """
    if isinstance(tensors, Tensor):
        _, used = _stages([tensors])
        return [*used, tensors]
    listed = list(tensors) if isinstance(tensors, Iterable) and not isinstance(tensors, str) else [tensors]
    wrong = next((item for item in listed if not isinstance(item, Tensor)), None)
    if wrong is not None:
        raise TypeError(f"a program is a te tensor, or a list of its inputs and outputs, got {type(wrong).__name__}")
    return listed


def create_module(
    tensors: Tensor | Sequence[Tensor], target: Target | str | None = None, name: str = "main"
) -> ModuleOp:
    """The function that takes the placeholders among `tensors`, in their order, and returns the other tensors.

    Of one tensor it takes the placeholders that are read, in the order in which they are met. Stages that nothing reads
    once selections between constants are folded are left out.
    """
    tensors = with_inputs(tensors)
    inputs = [t for t in tensors if isinstance(t.op, Placeholder)]
    outputs = [t for t in tensors if isinstance(t.op, Compute)]
    if not outputs:
        raise ExpressionError("there is no computed tensor in the list, only placeholders: list the outputs too")
    stages, used = _stages(outputs)
    _require_given(used, inputs)
    _require_once(inputs)
    labels = _Names()
    values: dict[Tensor, SSAValue] = {}
    block = Block(arg_types=[_type(t) for t in inputs])
    for tensor, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = labels.take(tensor.name)
        values[tensor] = argument
    names = [a.name_hint or "" for a in block.args]
    for stage in stages:
        _add_compute(block, stage, labels.take(stage[0].op.name), values)
    block.add_op(func.ReturnOp(*(values[t] for t in outputs)))
    erase_unread(block)
    function = func.FuncOp(
        _Names().take(name),
        ([_type(t) for t in inputs], [_type(t) for t in outputs]),
        Region(block),
        arg_attrs=ArrayAttr([_marks(t, n) for t, n in zip(inputs, names, strict=True)]),
    )
    attributes: dict[str, Attribute] = {}
    if target is not None:
        attributes["lw.target"] = TargetAttr(preset_target(target) if isinstance(target, str) else target)
    return ModuleOp([function], attributes)


def _require_given(used: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """ExpressionError where a placeholder is read that is not among the inputs."""
    for tensor in used:
        if not any(tensor is given for given in inputs):
            raise ExpressionError(f"placeholder '{tensor.name}' is read, but is not in the list: list every input")


def _require_once(inputs: Sequence[Tensor]) -> None:
    """ExpressionError where a placeholder is listed again: a kernel would read one of its two values."""
    for number, tensor in enumerate(inputs):
        if any(tensor is before for before in inputs[:number]):
            raise ExpressionError(f"placeholder '{tensor.name}' is in the list twice: list every input once")


def _marks(tensor: Tensor, name: str) -> DictionaryAttr:
    """Return the attributes of an argument: its name, and `lw.constant` where it is one."""
    marks: dict[str, Attribute] = {"lw.name": StringAttr(name)}
    if isinstance(tensor.op, Placeholder) and tensor.op.constant:
        marks["lw.constant"] = UnitAttr()
    return DictionaryAttr(marks)


def stage_labels(tensors: Tensor | Sequence[Tensor]) -> dict[Compute, str]:
    """Return the name that `create_module` gives each compute: equal names get a number."""
    labels = _Names()
    tensors = with_inputs(tensors)
    for tensor in tensors:
        if isinstance(tensor.op, Placeholder):
            labels.take(tensor.name)
    stages, _ = _stages([t for t in tensors if isinstance(t.op, Compute)])
    return {stage[0].op: labels.take(stage[0].op.name) for stage in stages if isinstance(stage[0].op, Compute)}


def _type(tensor: Tensor) -> TensorType[Any]:
    return TensorType(DTYPES[tensor.dtype], tensor.shape)


def _stages(outputs: Sequence[Tensor]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Every compute below `outputs`, producers first, as the list of its tensors; and the placeholders read."""
    stages: dict[Compute, list[Tensor]] = {}
    placeholders: dict[Tensor, None] = {}
    waiting: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(outputs)]
    while waiting:
        tensor, ready = waiting.pop()
        if isinstance(tensor.op, Placeholder):
            placeholders[tensor] = None
            continue
        if tensor.op in stages:
            if not any(tensor is known for known in stages[tensor.op]):
                stages[tensor.op].append(tensor)
            continue
        if ready:
            stages[tensor.op] = [tensor]
            continue
        waiting.append((tensor, True))
        waiting.extend((t, False) for t in reversed(_tensors_read(tensor.op.values)))
    return list(stages.values()), list(placeholders)


def _tensors_read(values: Iterable[Expr]) -> list[Tensor]:
    found: dict[Tensor, None] = {}
    seen: set[int] = set()
    waiting = list(values)[::-1]
    while waiting:
        expr = waiting.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Read):
            found[expr.tensor] = None
        waiting.extend(children(expr)[::-1])
    return list(found)


def _add_compute(block: Block, stage: list[Tensor], label: str, values: dict[Tensor, SSAValue]) -> None:
    tensor = stage[0]
    op = tensor.op
    assert isinstance(op, Compute)
    taken = _Names(GRAMMAR)
    axes: list[Axis] = []
    names: dict[IterVar, IndexExpr] = {}
    for var in (*op.axis, *op.reduce_axis):
        axes.append(Axis(taken.take(var.name), var.extent, var.reduce))
        names[var] = axis(axes[-1].name) + var.lower
    ranges = {a.name: (0, a.extent - 1) for a in axes}
    body = Block()
    builder = BodyBuilder(label, body, names, ranges, values)
    body.add_op(YieldOp(operands=[[builder.build(v) for v in op.values]]))
    reduce = op.body if isinstance(op.body, Reduce) else None
    custom = reduce is not None and reduce.combiner == "custom"
    compute = ComputeOp(
        label,
        axes,
        reduce.combiner if reduce is not None else "none",
        Region(body),
        [TensorType(DTYPES[t], tensor.shape) for t in op.dtypes],
        [_number(c) for c in reduce.identity] if reduce is not None and custom else None,
        _combine_region(label, op, reduce) if reduce is not None and custom else None,
    )
    block.add_op(compute)
    for k, result in enumerate(compute.results):
        result.name_hint = label if len(compute.results) == 1 else f"{label}_v{k}"
    for t in stage:
        values[t] = compute.results[t.value_index]


def _combine_region(label: str, op: Compute, reduce: Reduce) -> Region:
    block = Block(arg_types=[DTYPES[t] for t in (*op.dtypes, *op.dtypes)])
    builder = BodyBuilder(f"{label}' combiner", block, {}, {}, {}, block.args)
    block.add_op(YieldOp(operands=[[builder.build(j) for j in reduce.joined]]))
    return Region(block)


def _number(value: Const) -> Attribute:
    element: Any = DTYPES[value.dtype]
    return FloatAttr(float(value.value), element) if value.dtype in FLOATS else IntegerAttr(int(value.value), element)


class _Names:
    """Hands out identifiers, each once: `compute`, then `compute1`."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.used = set(reserved)

    def take(self, wanted: str) -> str:
        base = re.sub(r"\W", "_", wanted[:LONGEST_GIVEN_NAME], flags=re.ASCII)
        if not base or base[0].isdigit() or base.startswith("_"):
            base = "t" + base
        name, count = base, 0
        while name in self.used:
            count += 1
            name = f"{base}{count}"
        self.used.add(name)
        return name
