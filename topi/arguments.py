"""Arguments of operators beside tensors (strides, paddings, axes), brought to one form and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..dialects.numpy_types import plain_value
from ..te import ShapeError, Tensor
from ..te.errors import format_shape
from ..te.tensor import require_tensor

Ints: TypeAlias = int | Sequence[int]
Padding: TypeAlias = int | str | Sequence[int]


def spread(operator: str, what: str, value: Ints, count: int) -> tuple[int, ...]:
    """One positive integer per spatial axis: a single one stands for all."""
    value = plain_value(value)
    given = (value,) * count if isinstance(value, int) else tuple(int(v) for v in value)
    if len(given) == 1:
        given *= count
    if len(given) != count or min(given) < 1:
        raise ShapeError(f"{operator}: {what} takes {count} positive integers (or one for all), got {value}")
    return given


def padding_of(
    operator: str,
    padding: Padding,
    extents: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Zeros (before, after) each spatial axis.

    `padding` is one integer, one per axis, all befores then all afters (top, left, bottom, right), "VALID", or "SAME"
    (output extent = ceil(extent / stride), the odd zero after). `windows` are dilated kernel extents.
    """
    count = len(extents)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return (0,) * count, (0,) * count
        if padding.upper() != "SAME":
            raise ShapeError(f'{operator}: padding is integers, "SAME" or "VALID", got "{padding}"')
        totals = [max((-(-e // s) - 1) * s + w - e, 0) for e, w, s in zip(extents, windows, strides, strict=True)]
        before = tuple(t // 2 for t in totals)
        return before, tuple(t - b for t, b in zip(totals, before, strict=True))
    padding = plain_value(padding)
    given = (padding,) * count if isinstance(padding, int) else tuple(int(p) for p in padding)
    if len(given) == 1:
        given *= count
    if len(given) == count:
        given *= 2
    if len(given) != 2 * count or min(given) < 0:
        raise ShapeError(f"{operator}: padding takes 1, {count} or {2 * count} integers of at least 0, got {padding}")
    return given[:count], given[count:]


def window_output(
    operator: str,
    extents: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
) -> tuple[int, ...]:
    """Positions of a window along each padded axis; ShapeError where it does not fit once."""
    padded = tuple(e + b + a for e, b, a in zip(extents, before, after, strict=True))
    if any(w > p for w, p in zip(windows, padded, strict=True)):
        raise ShapeError(
            f"{operator}: a window of {format_shape(windows)} does not fit in the padded extents {format_shape(padded)}"
        )
    return tuple((p - w) // s + 1 for p, w, s in zip(padded, windows, strides, strict=True))


def require_rank(operator: str, rank: int, **tensors: Tensor) -> None:
    """ShapeError unless every tensor has this rank; TypeError for what is no tensor."""
    for name, tensor in tensors.items():
        require_tensor(operator, name, tensor)
        if tensor.ndim != rank:
            raise ShapeError(f"{operator}: {name} must have {rank} axes, got shape {format_shape(tensor.shape)}")


def one_axis(operator: str, axis: int, rank: int) -> int:
    """An axis counted from the end where negative, as one in `[0, rank)`."""
    axis = plain_value(axis)
    if not isinstance(axis, int):
        raise ShapeError(f"{operator}: an axis is a whole number, got {axis!r}")
    if not -rank <= axis < rank:
        raise ShapeError(f"{operator}: axis {axis} is out of range for a tensor with {rank} axes")
    return axis % rank


def several_axes(operator: str, axis: Ints | None, rank: int) -> tuple[int, ...]:
    """Axes in rising order, all of them for None."""
    if axis is None:
        return tuple(range(rank))
    axis = plain_value(axis)
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted(one_axis(operator, a, rank) for a in given))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{operator}: axes repeat in {given}")
    return axes
