"""Operators that write at places which a tensor gives, and sums and products so far along an axis."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import NARROW, Expr
from ...topi.arguments import one_axis
from ..operator import Kind, Operator

_MODES = ("none", "add", "mul", "max", "min")


def _scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """data, with updates[..., k, ...] at place indices[..., k, ...] of an axis; the last of several, or all joined.

    Each element looks at all updates of its row: as many steps as the axis of `updates` is long. It reads the last one
    that is of it, where it is not joined.
    """
    place = one_axis("scatter_elements", axis, data.ndim)
    if indices.shape != updates.shape or indices.ndim != data.ndim or reduction not in _MODES:
        raise ShapeError(
            f"scatter_elements: indices {format_shape(indices.shape)} and updates {format_shape(updates.shape)} must "
            f"have one shape of {data.ndim} axes, and reduction, '{reduction}', be one of {', '.join(_MODES)}"
        )
    within = [(d, n) for d, n in enumerate(updates.shape) if d != place and n < data.shape[d]]

    def reduced(name: str, joined: Any, value: Any, neutral: Any) -> Tensor:
        """Over the updates of a row: `value(k, update)` where update k is of the element, else `neutral`."""
        k = reduce_axis((0, updates.shape[place]), "k")

        def element(*i: Expr) -> Any:
            at = (*i[:place], k, *i[place + 1 :])
            inside = [i[d] < n for d, n in within]
            hits = te.all(*inside, _is_at(indices[at], i[place]))
            return joined(te.select(hits, value(k, updates[at], i), neutral), axis=k)

        result: Tensor = compute(data.shape, element, name)
        return result

    if reduction == "none":
        last = reduced("scatter_last", te.max, lambda k, *_: te.cast(k, "int32"), te.const(-1, "int32"))

        def written(*i: Expr) -> Any:
            found, inside = last[i], [i[d] < n for d, n in within]
            return te.select(te.all(*inside, found >= 0), updates[(*i[:place], found, *i[place + 1 :])], data[i])

        result: Tensor = compute(data.shape, written, "T_scatter")
        return result
    neutral = {"add": te.const(0, data.dtype), "mul": te.const(1, data.dtype)}
    joined = {"add": te.sum, "mul": te.prod, "max": te.max, "min": te.min}[reduction]
    lowest = te.min_value(data.dtype) if reduction == "max" else te.max_value(data.dtype)
    start = neutral.get(reduction, lowest)
    found = reduced("scatter_joined", joined, lambda k, u, i: u, start)
    join = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "max": te.maximum, "min": te.minimum}[reduction]
    result = compute(data.shape, lambda *i: join(data[i], found[i]), "T_scatter")
    return result


def _is_at(place: Expr, index: Expr) -> Any:
    """True where a place is an index, in 32 bits at least: bytes do not count the elements of a long axis."""
    kind = "int32" if place.dtype in NARROW else place.dtype
    return te.cast(place, kind) == te.cast(index, kind)


def _scatter_slices(data: Tensor, places: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    """data, with updates[..., k, ...] as the slice at places[k] of an axis; the last of several; none out of range.

    Places are told once for each slice, and not once for each element.
    """
    place = one_axis("scatter_slices", axis, data.ndim)
    (count,) = places.shape if places.ndim == 1 else (-1,)
    if updates.shape != (*data.shape[:place], count, *data.shape[place + 1 :]):
        raise ShapeError(
            f"scatter_slices: updates {format_shape(updates.shape)} must be slices of axis {place} of data "
            f"{format_shape(data.shape)}, as many as places {format_shape(places.shape)} are"
        )

    if count == 1:  # no search, and one kernel
        zero = te.const(0, "int32")
        made: Tensor = compute(
            data.shape,
            lambda *i: te.select(_is_at(places[zero], i[place]), updates[(*i[:place], zero, *i[place + 1 :])], data[i]),
            "T_scatter",
        )
        return made
    k = reduce_axis((0, count), "k")
    never = te.const(-1, "int32")
    last: Tensor = compute(
        data.shape[place : place + 1],
        lambda i: te.max(te.select(_is_at(places[k], i), te.cast(k, "int32"), never), axis=k),
        "scatter_last",
    )

    def element(*i: Expr) -> Any:
        found = last[i[place]]
        return te.select(found >= 0, updates[(*i[:place], found, *i[place + 1 :])], data[i])

    result: Tensor = compute(data.shape, element, "T_scatter")
    return result


def _cumprod(data: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The product of the elements up to each along an axis, without it where `exclusive`, from the end in `reverse`."""
    return topi.cumprod(data, axis, exclusive, reverse)


def _cumsum(data: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sum of the elements up to each along an axis, without it where `exclusive`, from the end in `reverse`."""
    return topi.cumsum(data, axis, exclusive, reverse)


scatter_elements = Operator(_scatter_elements, Kind.OPAQUE)
scatter_slices = Operator(_scatter_slices, Kind.OPAQUE)
cumprod = Operator(_cumprod, Kind.OPAQUE)
cumsum = Operator(_cumsum, Kind.OPAQUE)
