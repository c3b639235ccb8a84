"""Quantised tensors: integers with a scale and a zero point, of a tensor, of each slice of an axis, or of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....graph.network import Value
from ....graph.operators.quantization import QUANTISED
from ..errors import UnsupportedNode
from ..node import Node, axis_of
from ..types import type_name
from .convolution import Conv
from .matrix import MatMul


def QuantizeLinear(node: Node) -> Value:
    x = node.value()
    dtype = node.dtype(2) if node.has(2) else type_name(int(node.get("output_dtype", 0)) or 2)
    scale = _spread(node, node.value(1), x)
    if x.dtype not in ("float16", "bfloat16", "float32"):
        x = node.net.cast(x, dtype="float32")
    x = node.net.cast(x, dtype=scale.dtype) if x.dtype != scale.dtype else x
    return _quantised(node, x, scale, _zeros(node, 2, x), dtype)


def DynamicQuantizeLinear(node: Node) -> list[Value]:
    """Bytes over the range of the input and zero, the scale and the zero point; a scale of 1 where that is empty.

    The standard's function would divide by zero there; this is what onnxruntime does.
    """
    x, net = node.value(), node.net
    zero, one = node.number_like(0, x), node.number_like(1, x)
    low, high = net.minimum(net.min(x), zero), net.maximum(net.max(x), zero)
    extent = net.subtract(high, low)
    scale = net.where(net.greater(extent, zero), extent / 255.0, one)
    point = _quantised(node, net.negative(low), scale, [], "uint8")
    return [_quantised(node, x, scale, [point], "uint8"), scale, point]


def DequantizeLinear(node: Node) -> Value:
    x = node.value()
    scale = _spread(node, node.value(1), x)
    wide = node.apply("dequantize", x, scale, *_zeros(node, 2, x))
    wanted = int(node.get("output_dtype", 0))
    dtype = type_name(wanted) if wanted else scale.dtype
    return wide if dtype == "float32" else node.apply("cast", wide, dtype=dtype)


def ConvInteger(node: Node) -> Value:
    return Conv(node.of(_centred(node, 0, 2), _filters(node, 1, 3)))


def MatMulInteger(node: Node) -> Value:
    return MatMul(node.of(_centred(node, 0, 2, rows=True), _centred(node, 1, 3)))


def QLinearMatMul(node: Node) -> Value:
    net = node.net
    sums = net.cast(MatMul(node.of(_centred(node, 0, 2, rows=True), _centred(node, 3, 5))), dtype="float32")
    scale_a, scale_b, scale_y = (net.cast(node.value(k), dtype="float32") for k in (1, 4, 6))
    scale = net.divide(net.multiply(_rows(node, scale_a), scale_b), scale_y)
    return _quantised(node, net.multiply(sums, scale), 1.0, [node.value(7)], node.dtype(7))


def QLinearConv(node: Node) -> Value:
    net, rank = node.net, len(node.shape())
    bias = [node.value(8)] if node.has(8) else []
    sums = net.cast(Conv(node.of(_centred(node, 0, 2), _filters(node, 3, 5), *bias)), dtype="float32")
    channels = _along(node, node.value(4), rank, 1)
    scale = net.divide(net.multiply(node.value(1), channels), node.value(6))
    return _quantised(node, net.multiply(sums, scale), 1.0, [node.value(7)], node.dtype(7))


def bytes_of(node: Node, position: int, axis: int = 1) -> Value:
    """Bytes as numbers; scale and zero point are the next inputs, of a tensor or of each slice of `axis`."""
    x = node.value(position)
    seen = replace(node, attributes={"axis": axis})
    return node.apply("dequantize", x, _spread(seen, node.value(position + 1), x), *_zeros(seen, position + 2, x))


def as_bytes(node: Node, x: Value, scale: int, dtype: str) -> Value:
    """Numbers as bytes of the scale at an input, and of the zero point behind it, which may be missing."""
    return _quantised(node, x, node.value(scale), _zeros(node, scale + 1, x), dtype)


def _quantised(node: Node, x: Value, scale: Value | float, zero: Sequence[Value], dtype: str) -> Value:
    """Numbers as integers; UnsupportedNode for a type that numbers are not quantised to."""
    if dtype not in QUANTISED:
        raise UnsupportedNode(f"numbers are quantised to {', '.join(QUANTISED)}, not to {dtype}")
    return node.apply("quantize", x, scale, *zero, dtype=dtype)


def _zeros(node: Node, position: int, x: Value) -> list[Value]:
    """The zero point that `x` has, if any: one number where all are equal, and none where they are 0."""
    if not node.has(position):
        return []
    known = node.operand(position)
    if isinstance(known, np.ndarray) and (known == known.flat[0]).all():
        return [node.net.constant(known.flat[0], "zero")] if known.flat[0] else []
    return [_spread(node, node.value(position), x)]


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


def _centred(node: Node, position: int, zero: int, rows: bool = False) -> Value:
    """An input less a zero point that may be missing, of a tensor, or one of each of its columns or rows."""
    x, points = node.value(position), _zeros(node, zero, node.value(position)) if _is_uniform(node, zero) else None
    if points is None:
        points = [_rows(node, node.value(zero)) if rows else node.value(zero)]
    return node.apply("center", x, *points)


def _filters(node: Node, position: int, zero: int) -> Value:
    """Filters less their zero point, one number or one of each output channel."""
    w = node.value(position)
    if _is_uniform(node, zero):
        return node.apply("center", w, *_zeros(node, zero, w))
    return node.apply("center", w, _along(node, node.value(zero), len(w.shape), 0))


def _is_uniform(node: Node, zero: int) -> bool:
    """True where a zero point is missing, or known and the same everywhere."""
    known = node.operand(zero) if node.has(zero) else np.zeros(1)
    return isinstance(known, np.ndarray) and bool((known == known.flat[0]).all())
