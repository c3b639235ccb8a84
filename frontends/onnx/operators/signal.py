"""Signals: Fourier transforms as products with constant tables, and windows."""

from __future__ import annotations

import numpy as np

from ....graph.network import Value
from ..errors import NeedsConstantError, UnsupportedNode
from ..node import Array, Node, Operand, axis_of, numpy_type
from ..sizes import TensorSize, require_memory
from ..types import type_name
from ._windows import Window
from .convolution import convolve


def DFT(node: Node) -> Value:
    """A discrete Fourier transform: a product of (..., length, 1 or 2) with a table, real parts before imaginary."""
    x, net, rank = node.value(), node.net, len(node.shape())
    axis = _axis(node, rank)
    inverse, onesided = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    given, parts = x.shape[axis], x.shape[-1]
    default = 2 * (given - 1) if inverse and onesided else given
    length = int(node.constant(1, "dft_length").reshape(-1)[0]) if node.has(1) else default
    if length < 1:
        raise UnsupportedNode(f"a transform of length {length} has no numbers")
    if onesided and not inverse and parts == 2:
        raise UnsupportedNode("one half of the transform of complex numbers does not say the other (onesided)")
    read = min(given, length // 2 + 1 if inverse and onesided else length)
    if read < given:
        x = net.strided_slice(x, begin=[0], end=[read], axes=[axis])
    require_memory("the table of the transform", TensorSize("float64", (read * parts, 2 * length)), constant=True)
    table = _table(read, length, parts, inverse, onesided)
    order = [d for d in range(rank) if d not in (axis, rank - 1)] + [axis, rank - 1]
    moved = net.transpose(x, axes=order) if order != list(range(rank)) else x
    lead, (bins, made) = moved.shape[:-2], table.shape[2:]
    flat = net.reshape(moved, shape=(-1, read * parts))
    y = node.apply("matmul", flat, table.reshape(read * parts, bins * made).astype(numpy_type(x.dtype)))
    y = net.reshape(y, shape=(*lead, bins, made))
    back = np.argsort(order).tolist()
    return net.transpose(y, axes=back) if back != list(range(rank)) else y


def _axis(node: Node, rank: int) -> int:
    """An attribute before version 20, then an input; the last axis holds real and imaginary parts."""
    if node.version < 20:
        axis = int(node.get("axis", 1))
    else:
        axis = int(node.constant(2, "axis").reshape(-1)[0]) if node.has(2) else -2
    place = axis_of(axis, rank)
    if place == rank - 1:
        raise UnsupportedNode("the last axis holds real and imaginary parts, there is no transform along it")
    return place


def _table(read: int, length: int, parts: int, inverse: bool, onesided: bool) -> Array:
    """Tabulate a transform, (read, parts, bins, real and imaginary parts that are made), in double precision.

    Of real numbers the parts are 1; an inverse one from one half (onesided) makes real numbers.
    """
    places, bins = np.arange(read), np.arange(length // 2 + 1 if onesided and not inverse else length)
    angle = 2 * np.pi / length * (places[:, None] * bins % length) * (1 if inverse else -1)
    real, imaginary = np.cos(angle), np.sin(angle)
    table = np.empty((read, parts, len(bins), 2))
    table[:, 0, :, 0], table[:, 0, :, 1] = real, imaginary
    if parts == 2:
        table[:, 1, :, 0], table[:, 1, :, 1] = -imaginary, real
    if not inverse:
        return table
    if not onesided:
        return np.asarray(table / length)
    mirrored = np.where((places == 0) | (2 * places == length), 1.0, 2.0)  # each other number stands for two
    return np.asarray(table[..., :1] * mirrored[:, None, None, None] / length)


def STFT(node: Node) -> Value:
    """Transforms of frames of a signal: a convolution by a table, (bins, parts), in the window's shape."""
    signal, net = node.value(0), node.net
    step = int(node.constant(1, "frame_step").reshape(-1)[0])
    length = int(node.constant(3, "frame_length").reshape(-1)[0]) if node.has(3) else 0
    length = length or (node.shape(2)[0] if node.has(2) else signal.shape[1])
    parts = signal.shape[2] if len(signal.shape) == 3 else 1
    onesided = bool(node.get("onesided", 1))
    if onesided and parts == 2:
        raise UnsupportedNode("one half of the transform of complex numbers does not say the other (onesided)")
    if step < 1 or not 1 <= length <= signal.shape[1]:
        raise UnsupportedNode(f"frames of {length} in steps of {step} do not fit a signal of {signal.shape[1]}")
    if node.has(2) and node.shape(2) != (length,):
        raise UnsupportedNode(f"a window of shape {node.shape(2)} does not fit frames of {length}")
    require_memory("the table of the transform", TensorSize("float64", (length * parts, 2 * length)), constant=True)
    table = _table(length, length, parts, False, onesided).transpose(2, 3, 1, 0)  # (bins, made, parts, length)
    bins = table.shape[0]
    filters = net.constant(table.reshape(2 * bins, parts, length).astype(numpy_type(signal.dtype)), "table")
    if node.has(2):
        window = net.reshape(node.value(2), shape=(1, 1, length))
        filters = net.multiply(filters, window)
    rows = net.reshape(signal, shape=(signal.shape[0], signal.shape[1], parts))
    data = net.transpose(rows, axes=(0, 2, 1)) if parts > 1 else net.reshape(rows, shape=(rows.shape[0], 1, -1))
    y = convolve(node, data, filters, Window((length,), (step,), (1,), (0,), (0,)), 1)
    frames = net.reshape(y, shape=(y.shape[0], bins, 2, y.shape[2]))
    return net.transpose(frames, axes=(0, 3, 1, 2))


# -- windows, which ONNX evaluates once their size is known -----------------------------------------------------------


def HannWindow(node: Node) -> Operand:
    return _window(node, 0.5, 0.5, 0.0)


def HammingWindow(node: Node) -> Operand:
    return _window(node, 25 / 46, 21 / 46, 0.0)


def BlackmanWindow(node: Node) -> Operand:
    return _window(node, 0.42, 0.5, 0.08)


def _window(node: Node, middle: float, first: float, second: float) -> Array:
    """A sum of cosines over `size` points, periodic unless told otherwise."""
    size = int(node.constant(0, "size").reshape(()))
    require_memory("a window", TensorSize("float64", (size,)), constant=True)
    angle = 2 * np.pi * np.arange(size) / max(size if node.get("periodic", 1) else size - 1, 1)
    window = middle - first * np.cos(angle) + second * np.cos(2 * angle)
    return np.asarray(window, numpy_type(type_name(int(node.get("output_datatype", 1)))))


def MelWeightMatrix(node: Node) -> Operand:
    wanted = next((k for k in range(5) if isinstance(node.operand(k), Value)), 0)
    raise NeedsConstantError(node.names[wanted], "input")  # with known ones it is evaluated
