"""The pass that finds softmax and its logarithm where they are written out in simpler operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, either_way, number_of, producer, replace
from ._rows import below_views, rows_of


@dataclass(frozen=True)
class FindSoftmax(ModulePass):
    """e / sum(e), e = exp(x - max(x)) -> softmax(x); d - log(sum(exp(d))), d = x - max(x) -> log_softmax(x).

    Sum and maximum are along the same axis, in whatever shape and type of floats they are read again. The division may
    also be a product with the reciprocal of the sum, and the logarithm x - (max(x) + log(sum(exp(x - max(x))))).
    """

    name: ClassVar[str] = "lw-graph-find-softmax"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            rule = {"divide": _quotient, "multiply": _quotient, "subtract": _difference}.get(found.operator.data)
            value = rule(found) if rule is not None else None
            if value is not None:
                replace(found, [value])


@dataclass(frozen=True)
class _Shifted:
    """A tensor without the largest element of each row, x - max(x): x, and the axis of its rows."""

    data: SSAValue
    axis: int


def _shifted(value: SSAValue) -> _Shifted | None:
    op = producer(value, "subtract")
    if op is None or shape_of(value) != shape_of(op.inputs[0]) or dtype_of(value) not in FLOATS:
        return None
    data, largest = op.inputs
    axes = rows_of(below_views(largest, "max"), largest, data)
    return _Shifted(data, axes[0]) if axes is not None and len(axes) == 1 else None


def _quotient(op: ApplyOp) -> SSAValue | None:
    for value, total, statistic in _divided(op):
        exponential = producer(value, "exp")
        shifted = None if exponential is None else _shifted(exponential.inputs[0])
        if shifted is None or shifted.data.type != op.outputs[0].type:
            continue
        if rows_of(below_views(total, "sum"), statistic, value) == (shifted.axis,):
            return Before(op).apply("softmax", shifted.data, axis=shifted.axis)
    return None


def _divided(op: ApplyOp) -> Iterator[tuple[SSAValue, SSAValue, SSAValue]]:
    """Match x / y, x * reciprocal(y) and x * (1 / y): x, y, and y or its reciprocal in the shape that it is read in."""
    if op.operator.data == "divide":
        yield op.inputs[0], op.inputs[1], op.inputs[1]
        return
    for value, factor in either_way(op):
        inverse = below_views(factor, "reciprocal", "divide")
        if inverse is not None and (inverse.operator.data == "reciprocal" or number_of(inverse.inputs[0]) == 1):
            yield value, inverse.inputs[-1], factor


def _difference(op: ApplyOp) -> SSAValue | None:
    data, statistic = op.inputs
    own = _shifted(data)
    if data.type != op.outputs[0].type:
        return None
    if own is not None and own.data.type == data.type and own == _logarithm(statistic, statistic):
        return Before(op).apply("log_softmax", own.data, axis=own.axis)
    added = below_views(statistic, "add")
    if added is None or prod(shape_of(added.inputs[0])) != prod(shape_of(added.inputs[1])):
        return None
    for largest, log in either_way(added):
        found = _logarithm(log, statistic)
        if found is None or found.data is not data:
            continue
        if rows_of(below_views(largest, "max"), statistic, data) == (found.axis,):
            return Before(op).apply("log_softmax", data, axis=found.axis)
    return None


def _logarithm(value: SSAValue, statistic: SSAValue) -> _Shifted | None:
    """Match log(sum(exp(x - max(x)))), stretched as `statistic` is along the rows of x."""
    log = below_views(value, "log")
    total = None if log is None else below_views(log.inputs[0], "sum")
    exponential = None if total is None else below_views(total.inputs[0], "exp")
    found = None if exponential is None else _shifted(exponential.inputs[0])
    if found is None or exponential is None:
        return None
    return found if rows_of(total, statistic, exponential.outputs[0]) == (found.axis,) else None
