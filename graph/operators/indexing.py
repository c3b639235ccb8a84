"""Operators that read at places which a tensor gives."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr
from ...topi.arguments import Ints, Padding, one_axis, padding_of, spread
from ...topi.reduce import place_key, place_reducer
from ..operator import anchor, injective


def _take_along_axis(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """data[..., indices[i], ...] element by element; an index out of range is moved to the edge."""
    place = one_axis("take_along_axis", axis, data.ndim)
    if indices.ndim != data.ndim:
        raise ShapeError(
            f"take_along_axis: indices {format_shape(indices.shape)} and data {format_shape(data.shape)} "
            "have different numbers of axes"
        )

    def element(*i: Expr) -> Expr:
        return data[(*i[:place], indices[i], *i[place + 1 :])]

    result: Tensor = compute(indices.shape, element, "T_take_along_axis")
    return result


def _max_pool_places(
    data: Tensor,
    *,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    column_major: bool = False,
) -> Tensor:
    """Find each window's first largest element, as an int32 place in the flattened data (N, C, ...)."""
    count = data.ndim - 2
    layout = "NC" + "DHW"[3 - count :]
    shape = topi.nn.max_pool(data, kernel, stride, padding, dilation, ceil_mode, layout).shape
    kernels = spread("max_pool_places", "kernel", kernel, count)
    strides = spread("max_pool_places", "stride", kernels if stride is None else stride, count)
    dilations = spread("max_pool_places", "dilation", dilation, count)
    windows = tuple((k - 1) * d + 1 for k, d in zip(kernels, dilations, strict=True))
    before, _ = padding_of("max_pool_places", padding, data.shape[2:], windows, strides)
    axes = [reduce_axis((0, k), f"r{d}") for d, k in enumerate(kernels)]
    lowest = te.min_value(data.dtype)

    argmax = place_reducer("argmax")

    def element(*i: Expr) -> Any:
        at = [i[2 + d] * strides[d] + axes[d] * dilations[d] - before[d] for d in range(count)]
        inside = te.all(*(c for d, p in enumerate(at) for c in (p >= 0, p < data.shape[2 + d])))
        value = te.select(inside, data[(*i[:2], *at)], lowest)
        place: Expr = i[0] * data.shape[1] + i[1]
        order = list(reversed(range(count))) if column_major else list(range(count))
        for d in order:
            place = place * data.shape[2 + d] + at[d]
        return argmax((te.select(inside, place, te.max_value("int32")), place_key("argmax", value)), axis=axes)

    found: Any = compute(shape, element, "pool_place")
    result: Tensor = found[0]
    return result


take_along_axis = injective(_take_along_axis)
max_pool_places = anchor(_max_pool_places)
