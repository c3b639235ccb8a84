"""Operators that move elements: views, pieces, joins, padding."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten
from ..types import memory_order


@aten("view.default", "_unsafe_view.default", "reshape.default", "_reshape_copy.default", "view_copy.default")
def view(node: Node) -> Any:
    return node.apply("reshape", node.value(), shape=node.shape)


@aten("squeeze.dim", "squeeze.dims", "squeeze.default", "unsqueeze.default")
def extent_one(node: Node) -> Any:
    return node.apply("reshape", node.value(), shape=node.shape)


@aten("permute.default")
def permute(node: Node) -> Any:
    rank = len(node.value().shape)
    return node.apply("transpose", node.value(), axes=[d % rank for d in node.ints("dims")])


@aten("t.default")
def t(node: Node) -> Any:
    x = node.value()
    return node.apply("transpose", x, axes=(1, 0)) if len(x.shape) == 2 else node.apply("identity", x)


@aten("transpose.int")
def transpose(node: Node) -> Any:
    axes = list(range(len(node.shape)))
    if axes:
        first, second = node.axis("dim0"), node.axis("dim1")
        axes[first], axes[second] = axes[second], axes[first]
    return node.apply("transpose", node.value(), axes=axes)


@aten("expand.default")
def expand(node: Node) -> Any:
    x = node.value()
    return node.apply("identity", x) if x.shape == node.shape else node.stretched(x, node.shape)


@aten("as_strided.default")
def as_strided(node: Node) -> Any:
    """A view of all elements in another order of axes; the data is contiguous, as all tensors of networks are."""
    x, strides = node.value(), node.ints("stride")
    order = memory_order(node.shape, strides)
    if order is None or prod(node.shape) != prod(x.shape) or node["storage_offset"]:
        raise UnsupportedNode("as_strided that is no view of all elements stays PyTorch's")
    if "self" not in node.dense:
        raise UnsupportedNode("as_strided of a tensor that is not contiguous stays PyTorch's")
    physical = node.reshaped(x, [node.shape[d] for d in order])
    return node.apply("transpose", physical, axes=[order.index(d) for d in range(len(order))])


def _slice(node: Node, x: Value, axis: int, begin: int, end: int, step: int = 1) -> Value:
    made: Value = node.apply("strided_slice", x, begin=[begin], end=[end], strides=[step], axes=[axis])
    return made


def _within(place: int | None, extent: int, default: int) -> int:
    if place is None:
        return default
    return max(0, min(extent, place + extent if place < 0 else place))


@aten("slice.Tensor")
def piece(node: Node) -> Any:
    x, axis = node.value(), node.axis()
    extent = x.shape[axis]
    begin, end = _within(node["start"], extent, 0), _within(node["end"], extent, extent)
    if (begin, end, node["step"]) == (0, extent, 1):
        return node.apply("identity", x)
    return _slice(node, x, axis, begin, end, int(node["step"]))


@aten("select.int")
def select(node: Node) -> Any:
    x, axis = node.value(), node.axis()
    place = int(node["index"]) % x.shape[axis]
    return node.reshaped(_slice(node, x, axis, place, place + 1), node.shape)


@aten("split.Tensor", "split_with_sizes.default")
def split(node: Node) -> list[Any]:
    x, axis = node.value(), node.axis()
    found, begin = [], 0
    for kind in node.results:
        end = begin + (0 if kind is None else kind.shape[axis])
        found.append(_slice(node, x, axis, begin, end))
        begin = end
    return found


@aten("unbind.int")
def unbind(node: Node) -> list[Any]:
    x, axis = node.value(), node.axis()
    shape = [n for d, n in enumerate(x.shape) if d != axis]
    return [node.reshaped(_slice(node, x, axis, k, k + 1), shape) for k in range(x.shape[axis])]


@aten("slice_scatter.default", "select_scatter.default")
def put(node: Node) -> Any:
    """The data before the piece, the piece, and the data behind it."""
    x, axis = node.value(), node.axis()
    extent, source = x.shape[axis], node.cast(node.value("src"), x.dtype)
    if "index" in node.arguments:
        begin = int(node["index"]) % extent
        end, step = begin + 1, 1
        source = node.reshaped(source, [1 if d == axis else n for d, n in enumerate(x.shape)])
    else:
        begin, end = _within(node["start"], extent, 0), _within(node["end"], extent, extent)
        step = int(node["step"])
    if step != 1:
        raise UnsupportedNode("a piece with gaps stays PyTorch's")
    parts = [_slice(node, x, axis, 0, begin)] if begin else []
    parts.append(source)
    parts += [_slice(node, x, axis, end, extent)] if end < extent else []
    return node.apply("concatenate", *parts, axis=axis) if len(parts) > 1 else node.apply("identity", source)


@aten("copy.default")
def copy(node: Node) -> Any:
    source = node.cast(node.value("src"), node.dtype)
    return node.apply("identity", source) if source.shape == node.shape else node.stretched(source, node.shape)


@aten("cat.default")
def concatenate(node: Node) -> Any:
    parts = [node.cast(part, node.dtype) for part in node["tensors"]]
    axis = node.axis(rank=len(node.shape))
    return node.apply("concatenate", *parts, axis=axis) if len(parts) > 1 else node.apply("identity", parts[0])


@aten("stack.default")
def stack(node: Node) -> Any:
    parts = [node.cast(part, node.dtype) for part in node["tensors"]]
    return node.apply("stack", *parts, axis=node.axis(rank=len(node.shape)))


@aten("flip.default")
def flip(node: Node) -> Any:
    x = node.value()
    for axis in node.axes("dims"):
        x = node.apply("flip", x, axis=axis)
    return x


@aten("repeat.default")
def repeat(node: Node) -> Any:
    x, repeats = node.value(), node.ints("repeats")
    wide = node.reshaped(x, [1] * (len(repeats) - len(x.shape)) + list(x.shape))
    return node.apply("tile", wide, repeats=repeats)


@aten("constant_pad_nd.default")
def pad(node: Node) -> Any:
    x, pads = node.value(), node.ints("pad")
    before, after = [0] * len(x.shape), [0] * len(x.shape)
    for k in range(len(pads) // 2):
        axis = len(x.shape) - 1 - k
        low, high = pads[2 * k], pads[2 * k + 1]
        if min(low, high) < 0:
            x = _slice(node, x, axis, max(-low, 0), x.shape[axis] - max(-high, 0))
        before[axis], after[axis] = max(low, 0), max(high, 0)
    if not any(before) and not any(after):
        return node.apply("identity", x)
    value = node["value"]
    return node.apply("pad", x, before=before, after=after, value=float(value))


@aten("embedding.default")
def embedding(node: Node) -> Any:
    return node.apply("take", node.value("weight"), _places(node, node.value("indices")), axis=0)


@aten("index_select.default")
def index_select(node: Node) -> Any:
    return node.apply("take", node.value(), _places(node, node.value("index")), axis=node.axis())


def _places(node: Node, indices: Value) -> Value:
    if indices.dtype not in ("int32", "int64"):
        raise UnsupportedNode(f"indices of type {indices.dtype} stay PyTorch's")
    return indices


@aten("index.Tensor")
def index(node: Node) -> Any:
    """Elements at places along neighbouring axes, as one axis."""
    x, given = node.value(), node["indices"]
    axes = [d for d, found in enumerate(given) if found is not None]
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise UnsupportedNode("indices of axes that are no neighbours stay PyTorch's")
    first, extents = axes[0], [x.shape[d] for d in axes]
    flat: Value | None = None
    for axis in axes:
        places, extent = _places(node, given[axis]), x.shape[axis]
        from_end = node.net.less(places, np.asarray(0, places.dtype))
        from_start = node.net.where(from_end, node.net.add(places, np.asarray(extent, places.dtype)), places)
        scaled = from_start if flat is None else node.net.multiply(flat, np.asarray(extent, places.dtype))
        flat = scaled if flat is None else node.net.add(scaled, from_start)
    merged = node.reshaped(x, [*x.shape[:first], prod(extents), *x.shape[axes[-1] + 1 :]])
    return node.apply("take", merged, flat, axis=first)


@aten("gather.default")
def gather(node: Node) -> Any:
    x, indices, axis = node.value(), node.value("index"), node.axis()
    if x.shape[axis] > _MOST_GATHERED:
        raise UnsupportedNode(f"gather along more than {_MOST_GATHERED} elements is faster in PyTorch")
    shapes = [[n for d, n in enumerate(v.shape) if d != axis] for v in (x, indices)]
    if not x.shape or shapes[0] != shapes[1]:
        raise UnsupportedNode("gather of a part of the data stays PyTorch's")
    return node.apply("take_along_axis", x, indices, axis=axis)


_MOST_GATHERED = 16
"""Each element of `take_along_axis` looks at all of its row."""
