"""Quantised tensors: integers with a scale and a zero point, of a tensor, of each slice of an axis, or of blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, axis_of
from ..types import type_name
from .convolution import Conv
from .matrix import MatMul

INTEGERS = ("int8", "uint8", "int16", "uint16")
"""Element types of quantised numbers."""


def QuantizeLinear(node: Node) -> Value:
    x = node.value()
    dtype = node.dtype(2) if node.has(2) else type_name(int(node.get("output_dtype", 0)) or 2)
    scale = _spread(node, node.value(1), x)
    zero = _spread(node, node.value(2), x) if node.has(2) else None
    if x.dtype not in ("float16", "bfloat16", "float32"):
        x = node.net.cast(x, dtype="float32")
    divided = node.net.divide(node.net.cast(x, dtype=scale.dtype) if x.dtype != scale.dtype else x, scale)
    return _quantised(node, divided, zero, dtype)


def DynamicQuantizeLinear(node: Node) -> list[Value]:
    """Bytes over the range of the input and zero, the scale and the zero point; a scale of 1 where that is empty.

    The standard's function would divide by zero there; this is what onnxruntime does.
    """
    x, net = node.value(), node.net
    zero, one = node.number_like(0, x), node.number_like(1, x)
    low, high = net.minimum(net.min(x), zero), net.maximum(net.max(x), zero)
    extent = net.subtract(high, low)
    scale = net.where(net.greater(extent, zero), extent / 255.0, one)
    point = _quantised(node, net.divide(net.negative(low), scale), None, "uint8")
    return [_quantised(node, net.divide(x, scale), point, "uint8"), scale, point]


def DequantizeLinear(node: Node) -> Value:
    x, net = node.value(), node.net
    scale = _spread(node, node.value(1), x)
    whole = net.cast(x, dtype="int32") if x.dtype != "int32" else x
    if node.has(2):
        whole = net.subtract(whole, net.cast(_spread(node, node.value(2), x), dtype="int32"))
    wide = net.multiply(net.cast(whole, dtype="float32"), net.cast(scale, dtype="float32"))
    wanted = int(node.get("output_dtype", 0))
    dtype = type_name(wanted) if wanted else scale.dtype
    return wide if dtype == "float32" else node.apply("cast", wide, dtype=dtype)


def ConvInteger(node: Node) -> Value:
    return Conv(_with(node, _less(node, _whole(node, 0), 2), _filters(node, 1, 3)))


def MatMulInteger(node: Node) -> Value:
    return MatMul(_with(node, _less(node, _whole(node, 0), 2, rows=True), _less(node, _whole(node, 1), 3)))


def QLinearMatMul(node: Node) -> Value:
    net = node.net
    a, b = _less(node, _whole(node, 0), 2, rows=True), _less(node, _whole(node, 3), 5)
    sums = net.cast(MatMul(_with(node, a, b)), dtype="float32")
    scale_a, scale_b, scale_y = (net.cast(node.value(k), dtype="float32") for k in (1, 4, 6))
    scale = net.divide(net.multiply(_rows(node, scale_a), scale_b), scale_y)
    return _quantised(node, net.multiply(sums, scale), node.value(7), node.dtype(7))


def QLinearConv(node: Node) -> Value:
    net, rank = node.net, len(node.shape())
    bias = [node.value(8)] if node.has(8) else []
    sums = net.cast(Conv(_with(node, _less(node, _whole(node, 0), 2), _filters(node, 3, 5), *bias)), dtype="float32")
    channels = _along(node, node.value(4), rank, 1)
    scale = net.divide(net.multiply(node.value(1), channels), node.value(6))
    return _quantised(node, net.multiply(sums, scale), node.value(7), node.dtype(7))


def _quantised(node: Node, x: Value, zero: Value | None, dtype: str) -> Value:
    """Numbers rounded to the nearest even integer, with the zero point added, at most the range of the type."""
    if dtype not in INTEGERS:
        raise UnsupportedNode(f"numbers are quantised to {', '.join(INTEGERS)}, not to {dtype}")
    net, limits = node.net, np.iinfo(dtype)
    whole = net.cast(net.round(x), dtype="float32")
    if zero is not None:
        whole = net.add(whole, net.cast(zero, dtype="float32"))
    return node.apply("cast", net.clip(whole, low=float(limits.min), high=float(limits.max)), dtype=dtype)


def _spread(node: Node, value: Value, x: Value) -> Value:
    """A scale or zero point in a shape that broadcasts with `x`."""
    if len(value.shape) == 0:
        return value
    axis = axis_of(int(node.get("axis", 1)), len(x.shape)) if len(x.shape) > 1 or value.shape != (1,) else 0
    if len(value.shape) == 1:
        return _along(node, value, len(x.shape), axis)
    block = int(node.get("block_size", 0))
    wide: Value = node.net.repeat(value, repeats=block, axis=axis) if block > 1 else value
    if wide.shape[axis] > x.shape[axis]:
        wide = node.net.strided_slice(wide, begin=[0], end=[x.shape[axis]], axes=[axis])
    return wide


def _along(node: Node, value: Value, rank: int, axis: int) -> Value:
    """Shape one number, or one for each slice of an axis, so that it broadcasts."""
    if value.shape in ((), (1,)):
        return node.net.reshape(value, shape=())
    shape = [1] * rank
    shape[axis] = value.shape[0]
    return node.net.reshape(value, shape=shape)


def _rows(node: Node, value: Value) -> Value:
    """Numbers of the rows of a matrix as a column."""
    return node.net.expand_dims(value, axis=1) if len(value.shape) == 1 and value.shape != (1,) else value


def _whole(node: Node, position: int) -> Value:
    """An input as int32."""
    whole: Value = node.net.cast(node.value(position), dtype="int32")
    return whole


def _less(node: Node, x: Value, zero: int, rows: bool = False) -> Value:
    """`x` less a zero point that may be missing, of a tensor, or one of each of its columns or rows."""
    if not node.has(zero):
        return x
    value = _whole(node, zero)
    less: Value = node.net.subtract(x, _rows(node, value) if rows else value)
    return less


def _filters(node: Node, position: int, zero: int) -> Value:
    """Filters as int32, less their zero point, one number or one of each output channel."""
    w = _whole(node, position)
    return node.net.subtract(w, _along(node, _whole(node, zero), len(w.shape), 0)) if node.has(zero) else w


def _with(node: Node, *values: Value) -> Node:
    """The node with other inputs."""
    return replace(node, operands=values, names=[""] * len(values))
