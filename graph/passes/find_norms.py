"""The pass that finds normalisations which are written out in simpler operators, as exporters of networks do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, either_way, number_of, producer, replace
from ._rows import below_views, is_along, reduced_axes, rows_of, source_of


@dataclass(frozen=True)
class FindNorms(ModulePass):
    """d / sqrt(mean(d^2) + epsilon), d = x - mean(x) -> layer_norm(x); x / sqrt(mean(x^2) + epsilon) -> rms_norm(x).

    Means are over the same axes, in whatever shape and type of floats they are read again, and epsilon is a number. The
    division may also be a product with the reciprocal of the root, and the square a power or a product; the variance
    may be mean(x^2) - mean(x)^2, bounded by 0 or not. Scale and shift stay behind.
    """

    name: ClassVar[str] = "lw-graph-find-norms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            value = _norm(found)
            if value is not None:
                replace(found, [value])


@dataclass(frozen=True)
class _Spread:
    """A root that was matched: of the mean of `squared`^2 or the variance of `source`, with epsilon, over `axes`."""

    squared: SSAValue | None
    source: SSAValue | None
    axes: tuple[int, ...]
    epsilon: float


def _norm(op: ApplyOp) -> SSAValue | None:
    for value, root, spread, factor in _quotients(op):
        shape = shape_of(value)
        if dtype_of(value) not in FLOATS or value.type != op.outputs[0].type or not is_along(root, shape, spread.axes):
            continue
        normal = _normalised(Before(op), value, spread)
        if normal is not None:
            return normal if factor is None else Before(op).apply("multiply", normal, factor)
    return None


def _normalised(before: Before, value: SSAValue, spread: _Spread) -> SSAValue | None:
    """Return the normalisation that a quotient of a value is."""
    options: dict[str, Any] = {"axis": spread.axes, "epsilon": spread.epsilon}
    centre = _centred(value, spread.axes)
    if centre is not None and _is_same(centre, spread.source):
        return before.apply("layer_norm", centre, **options)
    return before.apply("rms_norm", value, **options) if _is_same(value, spread.squared) else None


def _is_same(value: SSAValue, other: SSAValue | None) -> bool:
    """True for one tensor, as it is or as other floats."""
    return other is not None and shape_of(value) == shape_of(other) and source_of(value) is source_of(other)


def _quotients(op: ApplyOp) -> Iterator[tuple[SSAValue, SSAValue, _Spread, SSAValue | None]]:
    """Match x / root and x * (1 / root * factor): what is divided, its divisor or factor, which that is, the rest."""
    if op.operator.data == "divide":
        spread = _root(op.inputs[1])
        if spread is not None:
            yield op.inputs[0], op.inputs[1], spread, None
    elif op.operator.data == "multiply":
        for value, factor in either_way(op):
            product = producer(factor, "multiply")
            parts = ((factor, None), *(either_way(product) if product is not None else ()))
            for root, rest in parts:
                spread = _reciprocal(root)
                if spread is not None:
                    yield value, root, spread, rest


def _reciprocal(value: SSAValue) -> _Spread | None:
    """Match rsqrt(v), 1 / sqrt(v) or reciprocal(sqrt(v))."""
    op = below_views(value, "rsqrt", "reciprocal", "divide")
    if op is None or (op.operator.data == "divide" and number_of(op.inputs[0]) != 1):
        return None
    return _variance(op.inputs[0]) if op.operator.data == "rsqrt" else _root(op.inputs[-1])


def _root(value: SSAValue) -> _Spread | None:
    op = below_views(value, "sqrt")
    return None if op is None else _variance(op.inputs[0])


def _variance(value: SSAValue) -> _Spread | None:
    """Match mean(x^2) + epsilon."""
    op = below_views(value, "add")
    if op is None:
        return None
    for mean, added in either_way(op):
        epsilon = number_of(added)
        if epsilon is None:
            continue
        bounded = below_views(mean, "maximum")
        for inner, low in either_way(bounded) if bounded is not None else ((mean, added),):
            if bounded is None or number_of(low) == 0:
                found = _mean_of_squares(inner, epsilon) or _difference(inner, epsilon)
                if found is not None:
                    return found
    return None


def _mean_of_squares(value: SSAValue, epsilon: float) -> _Spread | None:
    mean = below_views(value, "mean")
    squared = None if mean is None else _square(mean.inputs[0])
    if mean is None or squared is None or shape_of(squared) != shape_of(mean.inputs[0]):
        return None
    axes = reduced_axes(mean)
    return _Spread(squared, _centred(squared, axes), axes, epsilon)


def _difference(value: SSAValue, epsilon: float) -> _Spread | None:
    """Match mean(x^2) - mean(x)^2."""
    op = below_views(value, "subtract")
    if op is None or prod(shape_of(op.inputs[0])) != prod(shape_of(op.inputs[1])):
        return None
    first, second = below_views(op.inputs[0], "mean"), _square(op.inputs[1])
    inner = None if first is None else _square(first.inputs[0])
    mean = None if second is None else below_views(second, "mean")
    if first is None or mean is None or inner is None or reduced_axes(first) != reduced_axes(mean):
        return None
    if not _is_same(inner, mean.inputs[0]) or shape_of(inner) != shape_of(first.inputs[0]):
        return None
    return _Spread(None, inner, reduced_axes(first), epsilon)


def _square(value: SSAValue) -> SSAValue | None:
    op = below_views(value, "square", "power", "multiply")
    if op is None:
        return None
    name = op.operator.data
    same = name == "square" or (op.inputs[0] is op.inputs[1] if name == "multiply" else number_of(op.inputs[1]) == 2)
    return op.inputs[0] if same else None


def _centred(value: SSAValue, axes: tuple[int, ...]) -> SSAValue | None:
    """Match x - mean(x) over these axes, and return x."""
    op = producer(value, "subtract")
    if op is None or shape_of(value) != shape_of(op.inputs[0]):
        return None
    data, mean = op.inputs
    return data if rows_of(below_views(mean, "mean"), mean, data) == axes else None
