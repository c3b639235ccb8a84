"""Statistics of rows as networks write them: a reduction along axes, under whatever shape it is read again."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..operator import is_view
from ..types import dtype_of, shape_of
from ._rewrite import option, producer


def source_of(value: SSAValue) -> SSAValue:
    """Return what a value was before it was given other shapes, or other types of floats."""
    while isinstance(owner := value.owner, ApplyOp) and (is_view(owner) or _is_of_floats(owner)):
        value = owner.inputs[0]
    return value


def _is_of_floats(op: ApplyOp) -> bool:
    """True for casts between floats: sums of 16-bit floats are taken in wider ones, as operators over rows do it."""
    return op.operator.data == "cast" and {dtype_of(op.inputs[0]), dtype_of(op.outputs[0])} <= set(FLOATS)


def below_views(value: SSAValue, *names: str) -> ApplyOp | None:
    """Return the operator that gives a value under some shape and type of floats, if it is one of those named."""
    return producer(source_of(value), *names)


def reduced_axes(op: ApplyOp) -> tuple[int, ...]:
    """Return the axes that a reduction goes along, counted from the front."""
    rank, axis = len(shape_of(op.inputs[0])), option(op, "axis")
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(int(a) % rank for a in given))


def is_along(statistic: SSAValue, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """True where a statistic is stretched along these axes of a shape, and along no others."""
    own = shape_of(statistic)
    return (1,) * (len(shape) - len(own)) + own == tuple(1 if d in axes else n for d, n in enumerate(shape))


def rows_of(reduction: ApplyOp | None, statistic: SSAValue, data: SSAValue) -> tuple[int, ...] | None:
    """Return the axes of a tensor that a statistic, computed from a reduction of it, is stretched along.

    None where it is a reduction of something else, or is stretched along other axes than it was made of. The reduction
    may be that of a view of the tensor.
    """
    if reduction is None or source_of(reduction.inputs[0]) is not source_of(data):
        return None
    shape, other, axes = shape_of(data), shape_of(reduction.inputs[0]), reduced_axes(reduction)
    found = axes if other == shape else _last_axes(shape, other, axes)
    return found if found is not None and is_along(statistic, shape, found) else None


def _last_axes(shape: tuple[int, ...], other: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the last axes of a shape that hold the same elements as those of another view, if they are its last."""
    if axes != tuple(range(len(other) - len(axes), len(other))):
        return None
    wanted = prod(other[d] for d in axes)
    for first in range(len(shape) - 1, -1, -1):
        if prod(shape[first:]) == wanted:
            return tuple(range(first, len(shape)))
    return None
