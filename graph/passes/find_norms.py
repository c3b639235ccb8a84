"""The pass that finds normalisations which are written out in simpler operators, as exporters of networks do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp, ConstantOp
from ...dialects.numpy_types import FLOATS
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, option, producer, replace


@dataclass(frozen=True)
class FindNorms(ModulePass):
    """d / sqrt(mean(d^2) + epsilon), d = x - mean(x) -> layer_norm(x); x / sqrt(mean(x^2) + epsilon) -> rms_norm(x).

    Means are over the same axes, which they keep, and epsilon is a number. The division may also be a product with the
    reciprocal of the root, and the square a power or a product. Scale and shift stay behind.
    """

    name: ClassVar[str] = "lw-graph-find-norms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            value = _norm(found)
            if value is not None:
                replace(found, [value])


@dataclass(frozen=True)
class _Spread:
    """A root mean square that was matched: sqrt(mean(`squared`^2) + `epsilon`) over `axes`."""

    squared: SSAValue
    axes: tuple[int, ...]
    epsilon: float


def _norm(op: ApplyOp) -> SSAValue | None:
    for value, spread in _quotients(op):
        if shape_of(value) != shape_of(op.outputs[0]) or dtype_of(value) not in FLOATS:
            continue
        options: dict[str, Any] = {"axis": spread.axes, "epsilon": spread.epsilon}
        centre, other = _centred(value, spread.axes), _centred(spread.squared, spread.axes)
        if centre is not None and centre is other:
            return Before(op).apply("layer_norm", centre, **options)
        if value is spread.squared:
            return Before(op).apply("rms_norm", value, **options)
    return None


def _quotients(op: ApplyOp) -> Iterator[tuple[SSAValue, _Spread]]:
    """Match quotients by a root mean square: what is divided, and the root."""
    if op.operator.data == "divide":
        value, root = op.inputs
        spread = _root(root)
        if spread is not None:
            yield value, spread
    elif op.operator.data == "multiply":
        for value, factor in (tuple(op.inputs), tuple(op.inputs)[::-1]):
            spread = _reciprocal(factor)
            if spread is not None:
                yield value, spread


def _reciprocal(value: SSAValue) -> _Spread | None:
    """Match rsqrt(v), 1 / sqrt(v) or reciprocal(sqrt(v))."""
    if (op := producer(value, "rsqrt")) is not None:
        return _variance(op.inputs[0])
    if (op := producer(value, "reciprocal")) is not None:
        return _root(op.inputs[0])
    op = producer(value, "divide")
    return _root(op.inputs[1]) if op is not None and _number(op.inputs[0]) == 1 else None


def _root(value: SSAValue) -> _Spread | None:
    op = producer(value, "sqrt")
    return None if op is None else _variance(op.inputs[0])


def _variance(value: SSAValue) -> _Spread | None:
    """Match mean(x^2) + epsilon."""
    op = producer(value, "add")
    if op is None:
        return None
    for mean, added in (tuple(op.inputs), tuple(op.inputs)[::-1]):
        found, epsilon = producer(mean, "mean"), _number(added)
        if found is None or epsilon is None or not option(found, "keepdims"):
            continue
        squared = _square(found.inputs[0])
        if squared is not None:
            return _Spread(squared, _axes(found), epsilon)
    return None


def _square(value: SSAValue) -> SSAValue | None:
    op = producer(value, "square", "power", "multiply")
    if op is None:
        return None
    name = op.operator.data
    same = name == "square" or (op.inputs[0] is op.inputs[1] if name == "multiply" else _number(op.inputs[1]) == 2)
    return op.inputs[0] if same else None


def _centred(value: SSAValue, axes: tuple[int, ...]) -> SSAValue | None:
    """Match x - mean(x) over these axes, and return x."""
    op = producer(value, "subtract")
    mean = None if op is None else producer(op.inputs[1], "mean")
    if op is None or mean is None or mean.inputs[0] is not op.inputs[0]:
        return None
    return op.inputs[0] if option(mean, "keepdims") and _axes(mean) == axes else None


def _axes(mean: ApplyOp) -> tuple[int, ...]:
    rank, axis = len(shape_of(mean.inputs[0])), option(mean, "axis")
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(int(a) % rank for a in given))


def _number(value: SSAValue) -> float | None:
    """Return the number that a constant of one element is."""
    owner = value.owner
    return float(owner.value) if isinstance(owner, ConstantOp) and owner.value is not None else None
