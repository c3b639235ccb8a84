"""Quantised operators of the domain com.microsoft, which onnxruntime's quantiser writes beside ONNX's own.

Each is its operator between `dequantize` and `quantize`, from which `lw-graph-integer-products` makes integers again.
"""

from __future__ import annotations

from dataclasses import replace

from ....graph.network import Value
from ..node import Node, axis_of
from .matrix import MatMul
from .quantization import as_bytes, bytes_of

DOMAIN = "com.microsoft"


def QLinearAdd(node: Node) -> Value:
    return _requantized(node, node.net.add(bytes_of(node, 0), bytes_of(node, 3)), 6)


def QLinearMul(node: Node) -> Value:
    return _requantized(node, node.net.multiply(bytes_of(node, 0), bytes_of(node, 3)), 6)


def QLinearSigmoid(node: Node) -> Value:
    return _requantized(node, node.net.sigmoid(bytes_of(node, 0)), 3)


def QLinearLeakyRelu(node: Node) -> Value:
    return _requantized(node, node.net.leaky_relu(bytes_of(node, 0), alpha=float(node.get("alpha", 0.01))), 3)


def QLinearGlobalAveragePool(node: Node) -> Value:
    layout = "NHWC" if node.get("channels_last", 0) else "NCHW"
    return _requantized(node, node.net.global_avg_pool(bytes_of(node, 0), layout=layout), 3)


def QLinearConcat(node: Node) -> Value:
    """The result's scale and zero point come first, then each tensor with its own."""
    tensors = [bytes_of(node, k) for k in range(2, len(node.operands), 3)]
    axis = axis_of(int(node.get("axis", 0)), len(tensors[0].shape))
    return _requantized(node, node.net.concatenate(*tensors, axis=axis), 0)


def QGemm(node: Node) -> Value:
    """alpha * A * B + C, with C in int32 of scale alpha * scale_A * scale_B; float32 where no scale is given for it."""
    net, a, b = node.net, bytes_of(node, 0), bytes_of(node, 3, axis=0 if node.get("transB", 0) else 1)
    alpha = float(node.get("alpha", 1.0))
    product = net.matmul(a, b, transpose_a=bool(node.get("transA", 0)), transpose_b=bool(node.get("transB", 0)))
    if alpha != 1.0:
        product = net.multiply(product, alpha)
    if node.has(6):
        scale = net.multiply(net.multiply(node.value(1), node.value(4)), alpha)
        product = net.add(product, net.dequantize(node.value(6), scale))
    return _requantized(node, product, 7) if node.has(7) else product


def MatMulIntegerToFloat(node: Node) -> Value:
    """Inputs are A, B, the scale of each, the zero point of each, a bias."""
    order = (0, 2, 4, 1, 3, 5)
    operands = [node.operands[k] if node.has(k) else None for k in order]
    moved = replace(node, operands=operands, names=[node.names[k] if node.has(k) else "" for k in order])
    factors = (bytes_of(moved, 0), bytes_of(moved, 3, axis=-1))
    product = MatMul(replace(node, operands=factors, names=["", ""]))
    return node.net.add(product, node.value(6)) if node.has(6) else product


def _requantized(node: Node, x: Value, scale: int) -> Value:
    """Numbers as bytes of the scale at an input, and the zero point behind it, or of the type of input 0."""
    dtype = node.dtype(scale + 1) if node.has(scale + 1) else node.dtype(0)
    return as_bytes(node, x, scale, dtype)
