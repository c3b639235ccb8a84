"""Operators of the domain com.microsoft that onnxruntime's optimizer writes, and weights of blocks of few bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Array, Node, numpy_type
from . import elementwise
from .convolution import Conv
from .matrix import Gemm, MatMul
from .microsoft import MatMulIntegerToFloat
from .normalization import LayerNormalization, RMSNormalization
from .quantization import DynamicQuantizeLinear
from .recurrent import LSTM

DOMAIN = "com.microsoft"
_BYTE = 8


def FusedConv(node: Node) -> Value:
    """A convolution, a tensor that is added to it, and an activation."""
    y = Conv(node)
    return _activated(node, node.net.add(y, node.value(3)) if node.has(3) else y)


def FusedGemm(node: Node) -> Value:
    return _activated(node, Gemm(node))


def FusedMatMul(node: Node) -> Value:
    """alpha * A * B, with the last two axes of either turned."""
    if node.get("transBatchA", 0) or node.get("transBatchB", 0):
        raise UnsupportedNode("batches that are turned are not supported")
    factors = [_turned(node, node.value(k)) if node.get(f"trans{x}", 0) else node.value(k) for k, x in enumerate("AB")]
    y = MatMul(node.of(*factors))
    alpha = float(node.get("alpha", 1.0))
    return y if alpha == 1.0 else node.net.multiply(y, node.number_like(alpha, y))


def _turned(node: Node, x: Value) -> Value:
    rank = len(x.shape)
    return node.net.transpose(x, axes=[*range(rank - 2), rank - 1, rank - 2]) if rank > 1 else x


def BiasGelu(node: Node) -> Value:
    return node.apply("gelu", node.net.add(node.value(0), node.value(1)))


def FastGelu(node: Node) -> Value:
    x = node.net.add(node.value(0), node.value(1)) if node.has(1) else node.value(0)
    return node.apply("gelu", x, approximate="tanh")


def QuickGelu(node: Node) -> Value:
    x = node.value()
    return node.apply("multiply", x, node.net.sigmoid(x * float(node.get("alpha", 1.702))))


def SkipLayerNormalization(node: Node) -> list[Value | None]:
    """The normalised sum of two tensors and a bias, and that sum as the fourth result."""
    return _skipped(node, 4, [2, 3], LayerNormalization)


def SkipSimplifiedLayerNormalization(node: Node) -> list[Value | None]:
    return _skipped(node, 3, [2], RMSNormalization)


def _skipped(node: Node, bias: int, scales: list[int], norm: Callable[[Node], Any]) -> list[Value | None]:
    if any(node.results[1:3]):
        raise UnsupportedNode("means and variances as results are not supported")
    total = node.net.add(node.value(0), node.value(1))
    total = node.net.add(total, node.value(bias)) if node.has(bias) else total
    given = [total, *(node.value(k) for k in scales if node.has(k))]
    options = {"epsilon": node.get("epsilon", 1e-12 if norm is LayerNormalization else 1e-5)}
    made: Value = norm(replace(node.of(*given), attributes=options, results=node.results[:1]))
    return [made, None, None, total][: len(node.results)] if len(node.results) > 3 else [made]


def DynamicQuantizeMatMul(node: Node) -> Value:
    """Data made bytes over its range times weights of bytes; inputs are A, B, B's scale and zero point, a bias."""
    data, scale, zero = DynamicQuantizeLinear(node.of(node.value(0)))
    b, b_scale, b_zero, bias = (node.operands[k] if node.has(k) else None for k in (1, 2, 3, 4))
    names = [node.names[k] if node.has(k) else "" for k in (1, 2, 3, 4)]
    given = [data, b, scale, b_scale, zero, b_zero, bias]
    named = ["", names[0], "", names[1], "", names[2], names[3]]
    return MatMulIntegerToFloat(replace(node, operands=given, names=named))


def DynamicQuantizeLSTM(node: Node) -> list[Value]:
    """An LSTM whose weights (directions, inputs, 4 * hidden) are bytes; data, which would be rounded, stays float32."""
    weights: list[Any] = []
    for weight, scale in ((1, 8), (2, 10)):
        w, s = node.constant(weight, "weights"), node.constant(scale, "scale")
        z = node.constant(scale + 1, "zero point") if node.has(scale + 1) else np.zeros_like(s)
        s, z = (v.astype(np.float32).reshape(len(w) if v.size > 1 else 1, 1, -1) for v in (s, z))
        weights.append(np.ascontiguousarray(((w.astype(np.float32) - z) * s).transpose(0, 2, 1)))
    operands = [node.operands[0], *weights, *node.operands[3:8]]
    return LSTM(replace(node, operands=operands, names=list(node.names[: len(operands)])))


def MatMulNBits(node: Node) -> Value:
    """Data times weights (N, K) of few bits, blocks of which have a scale and a zero point; they become floats."""
    if node.has(4):
        raise UnsupportedNode("weights in an order of their own (g_idx) are not supported")
    columns, depth, block = (int(node.get(name)) for name in ("N", "K", "block_size"))
    bits, x = int(node.get("bits", 4)), node.value(0)
    if bits not in (2, 4, 8):
        raise UnsupportedNode(f"weights of {bits} bits are not supported; those of 2, 4 and 8 are")
    blocks = -(-depth // block)
    packed = node.constant(1, "weights").reshape(columns, blocks, -1)
    scales = node.constant(2, "scales").astype(np.float32).reshape(columns, blocks, 1)
    zeros: Any = np.float32(1 << (bits - 1))
    if node.has(3):
        given = node.constant(3, "zero points").reshape(columns, -1)
        given = _unpacked(given, bits)[:, :blocks] if given.dtype == np.uint8 else given
        zeros = given.astype(np.float32).reshape(columns, blocks, 1)
    numbers = (_unpacked(packed, bits)[:, :, :block].astype(np.float32) - zeros) * scales
    weight = np.ascontiguousarray(numbers.reshape(columns, -1)[:, :depth]).astype(numpy_type(x.dtype))
    flat = node.net.reshape(x, shape=(-1, depth))
    y = node.apply("dense", flat, node.lift(weight, node.names[1]))
    y = node.net.add(y, node.value(5)) if node.has(5) else y
    return node.net.reshape(y, shape=(*x.shape[:-1], columns))


def _unpacked(packed: Array, bits: int) -> Array:
    """Numbers of few bits, the lowest of a byte first, along the last axis."""
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*packed.shape[:-1], -1)


def _activated(node: Node, x: Value) -> Value:
    """An activation by its name, with the numbers that it takes."""
    name = str(node.get("activation", ""))
    if not name:
        return x
    keys = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}.get(name, ())
    given = [node.get(f"activation_{key}") for key in keys]
    numbers = dict(zip(keys, node.get("activation_params", given), strict=False))
    if name not in ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip"):
        raise UnsupportedNode(f"activation {name} is not supported")
    options = {key: number for key, number in numbers.items() if number is not None}
    made: Value = getattr(elementwise, name)(replace(node.of(x), attributes=options))
    return made
