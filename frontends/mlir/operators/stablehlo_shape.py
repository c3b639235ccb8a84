"""StableHLO's constants, and operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node, known_values
from ._movement import pad_value, padded, taken


@Converter
def constant(node: Node) -> Value:
    return node.build.constant(node.need("value"))


@Converter
def iota(node: Node) -> Value:
    axis, shape = node.ints("iota_dimension")[0], node.shape
    numbers = node.build.constant(np.arange(shape[axis]), node.dtype)
    column = node.build.reshape(numbers, (shape[axis], *(1,) * (len(shape) - axis - 1)))
    return node.build.broadcast(column, shape)


@Converter
def broadcast_in_dim(node: Node) -> Value:
    x, dims, shape = node.value(), node.ints("broadcast_dimensions"), node.shape
    thin = node.build.thin(x) if len(node.build.thin(x).shape) == len(x.shape) else x
    if node.build.thin(x).shape == ():
        return node.build.broadcast(node.build.thin(x), shape)
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    thin = node.build.transpose(thin, order)
    places = [dims[k] for k in order]
    wide = [1] * len(shape)
    for place, extent in zip(places, thin.shape, strict=True):
        wide[place] = extent
    return node.build.broadcast(node.build.reshape(thin, wide), shape)


@Converter
def reshape(node: Node) -> Value:
    return node.build.reshape(node.value(), node.shape)


@Converter
def transpose(node: Node) -> Value:
    return node.build.transpose(node.value(), node.ints("permutation"))


@Converter
def concatenate(node: Node) -> Value:
    made: Value = node.build.apply("concatenate", *node.operands, axis=node.ints("dimension")[0])
    return made if len(node.operands) > 1 else node.value()


@Converter
def slice(node: Node) -> Value:
    begin, end, steps = (node.ints(key) for key in ("start_indices", "limit_indices", "strides"))
    return node.build.slice(node.value(), begin, end, steps or [1] * len(begin))


@Converter
def reverse(node: Node) -> Value:
    x = node.value()
    for axis in node.ints("dimensions"):
        x = node.build.apply("flip", x, axis=axis)
    return x


@Converter
def pad(node: Node) -> Value:
    low, high = node.ints("edge_padding_low"), node.ints("edge_padding_high")
    between = node.ints("interior_padding", [0] * len(low))
    return padded(node.build, node.value(0), pad_value(node.value(1)), low, high, between)


@Converter
def dynamic_slice(node: Node) -> Value:
    x, starts, sizes = node.value(), node.operands[1:], node.ints("slice_sizes")
    places = _known(starts)
    if places is not None:
        begin = [min(max(p, 0), n - s) for p, n, s in zip(places, x.shape, sizes, strict=True)]
        end = [b + s for b, s in zip(begin, sizes, strict=True)]
        return node.build.slice(x, begin, end, [1] * len(begin))
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if size != x.shape[axis]:
            x = taken(node.build, x, _window(node, start, x.shape[axis], size), axis)
    return x


def _known(starts: Sequence[Value]) -> list[int] | None:
    try:
        return [int(known_values(s, "a place").reshape(())) for s in starts]
    except UnsupportedOperation:
        return None


def _window(node: Node, start: Value, extent: int, size: int) -> Value:
    """Return the places of a window, which is moved inside: start .. start + size."""
    build = node.build
    place = build.cast(start, "int32")
    place = build.elementwise("minimum", place, build.like(extent - size, place))
    place = build.elementwise("maximum", place, build.like(0, place))
    return build.elementwise("add", place, build.constant(np.arange(size, dtype="int32")))


@Converter
def dynamic_update_slice(node: Node) -> Value:
    x, update, starts, build = node.value(0), node.value(1), node.operands[2:], node.build
    inside: Value | None = None
    for axis, start in enumerate(starts):
        extent, size = x.shape[axis], update.shape[axis]
        if size == extent:
            continue
        first = build.cast(start, "int32")
        first = build.elementwise("minimum", first, build.like(extent - size, first))
        first = build.elementwise("maximum", first, build.like(0, first))
        place = build.elementwise("subtract", build.constant(np.arange(extent, dtype="int32")), first)
        here = build.elementwise(
            "logical_and",
            build.elementwise("greater_equal", place, build.like(0, place)),
            build.elementwise("less", place, build.like(size, place)),
        )
        here = build.reshape(here, (extent, *(1,) * (len(x.shape) - axis - 1)))
        inside = here if inside is None else build.elementwise("logical_and", inside, here)
        update = taken(build, update, place, axis)
    return update if inside is None else build.elementwise("where", inside, update, x)
