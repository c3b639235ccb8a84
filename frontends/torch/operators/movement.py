"""Operators that move elements: views, pieces, joins, padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ....graph.network import Value
from ....graph.operators.formula import number
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
    """Elements at a step of memory an axis; the data is contiguous, as all tensors of networks are."""
    x, strides = node.value(), node.ints("stride")
    order, offset = memory_order(node.shape, strides), int(node["storage_offset"] or 0)
    if "self" not in node.dense:
        raise UnsupportedNode("as_strided of a tensor that is not contiguous stays PyTorch's")
    if order is None or prod(node.shape) != prod(x.shape) or offset:
        return _read(node, node.reshaped(x, [prod(x.shape)]), [_Affine(offset, tuple(enumerate(strides)))])
    physical = node.reshaped(x, [node.shape[d] for d in order])
    return node.apply("transpose", physical, axes=[order.index(d) for d in range(len(order))])


@dataclass(frozen=True)
class _Affine:
    """A place `start + sum of step * i` of axes `i` of the result."""

    start: int
    steps: tuple[tuple[int, int], ...]

    def token(self, lines: list[str]) -> str:
        """Add lines of a formula; returns the token of the place."""
        place = number(self.start, "int32")
        for axis, step in self.steps:
            lines.append(f"multiply i{axis} {number(step, 'int32')}")
            lines.append(f"add {place} t{len(lines) - 1}")
            place = f"t{len(lines) - 1}"
        return place


def _read(node: Node, x: Value, places: Sequence[_Affine]) -> Value:
    """Read each element at places, one an axis of the data."""
    lines: list[str] = []
    tokens = [place.token(lines) for place in places]
    lines.append(" ".join(["read:0", *tokens]))
    made: Value = node.apply("map_formula", x, shape=node.shape, lines=tuple(lines))
    return made


@aten("unfold.default")
def unfold(node: Node) -> Any:
    """Windows of an axis, whose elements are a new last axis."""
    x, axis = node.value(), node.axis("dimension")
    if not x.shape:
        return node.reshaped(x, node.shape)
    places = [_Affine(0, ((d, 1),)) for d in range(len(x.shape))]
    places[axis] = _Affine(0, ((axis, int(node["step"])), (len(x.shape), 1)))
    return _read(node, x, places)


@aten("diagonal.default")
def diagonal(node: Node) -> Any:
    """The elements whose places along two axes differ by an offset, as a new last axis."""
    x, offset, last = node.value(), int(node["offset"]), len(node.shape) - 1
    first, second = node.axis("dim1"), node.axis("dim2")
    others = iter(range(last))
    starts = {first: max(-offset, 0), second: max(offset, 0)}
    return _read(node, x, [
        _Affine(starts[d], ((last, 1),)) if d in starts else _Affine(0, ((next(others), 1),))
        for d in range(len(x.shape))
    ])  # fmt: skip


@aten("roll.default")
def roll(node: Node) -> Any:
    """The end of each axis before its beginning."""
    x, shifts, axes = node.value(), node.ints("shifts"), node.ints("dims")
    if not axes:
        x, axes = node.reshaped(x, [prod(x.shape)]), [0]
    for shift, axis in zip(shifts, axes, strict=True):
        extent = x.shape[axis]
        cut = -shift % extent
        if cut:
            x = node.apply(
                "concatenate", *(_slice(node, x, axis % len(x.shape), *b) for b in ((cut, extent), (0, cut))), axis=axis
            )
    return node.reshaped(x, node.shape)


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
    """Pieces along an axis, of which those that nobody reads are left out."""
    x, axis = node.value(), node.axis()
    extent = x.shape[axis]
    sizes = (
        node.ints("split_sizes") if "split_sizes" in node.arguments else [int(node["split_size"])] * len(node.results)
    )
    found: list[Any] = []
    begin = 0
    for kind, size in zip(node.results, sizes, strict=True):
        end = min(begin + size, extent)
        found.append(None if kind is None else _slice(node, x, axis, begin, end))
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
        return _put_with_gaps(node, x, source, axis, begin, end, step)
    parts = [_slice(node, x, axis, 0, begin)] if begin else []
    parts.append(source)
    parts += [_slice(node, x, axis, end, extent)] if end < extent else []
    return node.apply("concatenate", *parts, axis=axis) if len(parts) > 1 else node.apply("identity", source)


def _put_with_gaps(node: Node, x: Value, source: Value, axis: int, begin: int, end: int, step: int) -> Value:
    """The piece with each element as often as the step is long, where a mask of the places holds."""
    extent, count = x.shape[axis], source.shape[axis]
    wide = _slice(node, node.net.repeat(source, repeats=step, axis=axis), axis, 0, min(count * step, extent - begin))
    before, after = ([0] * len(x.shape) for _ in range(2))
    before[axis], after[axis] = begin, extent - begin - wide.shape[axis]
    moved = node.net.pad(wide, before=before, after=after) if any((*before, *after)) else wide
    shape = [1] * len(x.shape)
    shape[axis] = extent
    places = np.arange(extent)
    mask = (places >= begin) & (places < end) & ((places - begin) % step == 0)
    made: Value = node.apply("where", node.net.constant(mask.reshape(shape), "places"), moved, x)
    return made


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
    given, pads = node.value(), node.ints("pad")
    x, rank = given, len(given.shape)
    low, high = [0] * rank, [0] * rank
    for k in range(len(pads) // 2):
        low[rank - 1 - k], high[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    if max((*low, *high), default=0) > 0:
        before, after = ([max(n, 0) for n in side] for side in (low, high))
        value = float(node["value"])
        value = float(value != 0.0) if x.dtype == "bool" else value  # of truth values a half is true
        x = node.apply("pad", x, before=before, after=after, value=value)
    for axis in range(rank):  # after padding: of one element nothing but padding may be left
        if min(low[axis], high[axis]) < 0:
            x = _slice(node, x, axis, max(-low[axis], 0), x.shape[axis] - max(-high[axis], 0))
    return node.apply("identity", x) if x is given else x
