"""Padding with a constant."""

from __future__ import annotations

from collections.abc import Sequence

from ...te import ShapeError, Tensor, all, compute, const, select
from ...te.errors import format_shape
from ...te.expr import Expr


def pad(
    data: Tensor,
    before: Sequence[int],
    after: Sequence[int] | None = None,
    value: float = 0,
    name: str = "pad_temp",
) -> Tensor:
    """`data` with `before[k]` and `after[k]` elements of `value` around axis k; `after` is `before` unless given.

    `value` is made one of the data's type.
    """
    after = before if after is None else after
    if len(before) != data.ndim or len(after) != data.ndim or min((0, *before, *after)) < 0:
        raise ShapeError(
            f"pad: data of shape {format_shape(data.shape)} takes {data.ndim} amounts of at least 0 before and after, "
            f"got {tuple(before)} and {tuple(after)}"
        )
    if not any((*before, *after)):
        return data
    shape = tuple(e + b + a for e, b, a in zip(data.shape, before, after, strict=True))

    def element(*indices: Expr) -> Expr:
        inside: list[Expr] = []
        for i, extent, b, a in zip(indices, data.shape, before, after, strict=True):
            inside += [i >= b] if b else []
            inside += [i < extent + b] if a else []
        source = tuple(i - b if b else i for i, b in zip(indices, before, strict=True))
        return select(all(*inside), data[source], const(value, data.dtype))

    result: Tensor = compute(shape, element, name)
    return result


def pad_spatial(data: Tensor, before: Sequence[int], after: Sequence[int], first: int, value: float = 0) -> Tensor:
    """`data` padded on the axes `first, first + 1, ...` only."""
    rest = data.ndim - first - len(before)
    return pad(data, (*(0,) * first, *before, *(0,) * rest), (*(0,) * first, *after, *(0,) * rest), value)
