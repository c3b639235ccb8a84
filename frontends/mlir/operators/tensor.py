"""The tensor dialect: views, slices, padding, and tensors of elements."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Builder, Node, known_values
from ._movement import pad_value, padded, taken
from ._packing import packed, unpacked

_DYNAMIC = -(2**63)


@Converter
def empty(node: Node) -> Value:
    """Make zeros, as nothing reads the values."""
    return node.build.broadcast(node.build.number(0, node.dtype), node.shape)


@Converter
def cast(node: Node) -> Value:
    if node.shape != node.value().shape:
        raise UnsupportedOperation(f"it makes {list(node.value().shape)} {list(node.shape)}")
    return node.value()


@Converter
def _view(node: Node) -> Value:
    return node.build.reshape(node.value(), node.shape)


expand_shape = collapse_shape = reshape = _view


@Converter
def dim(node: Node) -> Value:
    axis = int(node.constant(1, "the axis").reshape(()))
    return node.build.number(node.value().shape[axis], "int64")


@Converter
def concat(node: Node) -> Value:
    if len(node.operands) == 1:
        return node.value()
    made: Value = node.build.apply("concatenate", *node.operands, axis=node.ints("dim")[0])
    return made


@Converter
def splat(node: Node) -> Value:
    return node.build.broadcast(node.value(), node.shape)


@Converter
def from_elements(node: Node) -> Value:
    if len(node.operands) == 1:
        return node.build.reshape(node.value(), node.shape)
    made = node.build.apply("concatenate", *(node.build.reshape(v, (1,)) for v in node.operands), axis=0)
    return node.build.reshape(made, node.shape)


@Converter
def generate(node: Node) -> Value:
    block = node.region()
    axes = [node.build.iota(node.shape, d) for d in range(len(block.args))]
    return node.build.broadcast(node.with_indices(node.shape).inline(block, axes)[0], node.shape)


@Converter
def extract(node: Node) -> Value:
    """Return the elements at places, which may be tensors where this is within an operation on tensors."""
    x, places, build = node.value(), node.operands[1:], node.build
    if not places:
        return x
    flat = build.cast(places[0], "int32")
    for place, extent in zip(places[1:], x.shape[1:], strict=True):
        moved = build.elementwise("multiply", flat, build.like(extent, flat))
        flat = build.elementwise("add", moved, build.cast(place, "int32"))
    return taken(build, build.reshape(x, (int(np.prod(x.shape)),)), flat, 0)


pack = Converter(packed)
unpack = Converter(unpacked)


@Converter
def gather(node: Node) -> Value:
    """Return the slices at places, whose last axis numbers the axes that they are along."""
    x, places, build = node.value(0), node.value(1), node.build
    axes = node.ints("gather_dims")
    rest = [d for d in range(len(x.shape)) if d not in axes]
    columns = [build.reshape(_column(build, places, k), places.shape[:-1]) for k in range(len(axes))]
    flat = build.cast(columns[0], "int32")
    for column, axis in zip(columns[1:], axes[1:], strict=True):
        moved = build.elementwise("multiply", flat, build.like(x.shape[axis], flat))
        flat = build.elementwise("add", moved, build.cast(column, "int32"))
    front = build.transpose(x, [*axes, *rest])
    front = build.reshape(front, (prod(front.shape[: len(axes)]), *front.shape[len(axes) :]))
    return build.reshape(taken(build, front, flat, 0), node.shape)


def _column(build: Builder, places: Value, k: int) -> Value:
    begin, end = [0] * len(places.shape), list(places.shape)
    begin[-1], end[-1] = k, k + 1
    return build.slice(places, begin, end, [1] * len(begin))


@Converter
def insert(node: Node) -> Value:
    """Replace the element at one place."""
    scalar, x, places, build = node.value(0), node.value(1), node.operands[2:], node.build
    here: Value | None = None
    for axis, place in enumerate(places):
        own = build.elementwise("equal", build.iota(x.shape, axis), build.cast(place, "int64"))
        here = own if here is None else build.elementwise("logical_and", here, own)
    return scalar if here is None else build.elementwise("where", here, scalar, x)


@Converter
def pad(node: Node) -> Value:
    x, block = node.value(), node.region()
    low, high = _numbers(node, "low", 1), _numbers(node, "high", 1)
    value = node.inline(block, [node.build.iota(node.shape, d) for d in range(len(node.shape))])[0]
    thin = node.build.thin(value)
    if thin.shape != ():
        raise UnsupportedOperation("what it pads with depends on the place")
    return padded(node.build, x, pad_value(thin), low, high)


def _numbers(node: Node, key: str, first: int) -> list[int]:
    """Return offsets, sizes or strides: numbers, and constants among the operands from `first` on."""
    static = [int(n) for n in node.get(f"static_{key}") or ()]
    given = iter(node.operands[first + _before(node, key) :])
    return [int(known_values(next(given), key).reshape(())) if n == _DYNAMIC else n for n in static]


def _before(node: Node, key: str) -> int:
    """Count the operands that stand for numbers of earlier lists."""
    order = ["offsets", "sizes", "strides"] if key in ("offsets", "sizes", "strides") else ["low", "high"]
    earlier = order[: order.index(key)]
    return sum(int(n) == _DYNAMIC for other in earlier for n in node.get(f"static_{other}") or ())


@Converter
def extract_slice(node: Node) -> Value:
    x = node.value()
    begin, sizes, strides = _slice(node, 1)
    end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, sizes, strides, strict=True)]
    if any(b < 0 or e > n for b, e, n in zip(begin, end, x.shape, strict=True)):
        raise UnsupportedOperation(f"the slice from {begin} to {end} is outside of {list(x.shape)}")
    return node.build.reshape(node.build.slice(x, begin, end, strides), node.shape)


def _slice(node: Node, first: int) -> tuple[list[int], list[int], list[int]]:
    return _numbers(node, "offsets", first), _numbers(node, "sizes", first), _numbers(node, "strides", first)


@Converter
def insert_slice(node: Node) -> Value:
    source, target, build = node.value(0), node.value(1), node.build
    begin, sizes, strides = _slice(node, 2)
    source = build.reshape(source, sizes)
    if sizes == list(target.shape):
        return source
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, sizes, strides, strict=True)]
    high = [n - e for n, e in zip(target.shape, ends, strict=True)]
    thin = build.thin(target)
    value = pad_value(thin) if thin.shape == () else 0
    wide = padded(build, source, value, begin, high, [s - 1 for s in strides])
    if thin.shape == ():
        return wide
    mask = np.zeros(target.shape, bool)
    mask[tuple(slice(b, e, s) for b, e, s in zip(begin, ends, strides, strict=True))] = True
    return build.elementwise("where", build.constant(mask), wide, target)
