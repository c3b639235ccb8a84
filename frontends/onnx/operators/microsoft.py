"""Quantised operators of the domain com.microsoft, which onnxruntime's quantiser writes beside ONNX's own.

Each is its operator between `dequantize` and `quantize`, from which `lw-graph-integer-products` makes integers again.
"""

from __future__ import annotations

from dataclasses import replace

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, axis_of
from .matrix import MatMul
from .normalization import Softmax
from .pooling import AveragePool
from .quantization import MatMulInteger, as_bytes, bytes_of

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


def QLinearAveragePool(node: Node) -> Value:
    if node.get("channels_last", 0):
        raise UnsupportedNode("pooling in channels-last is not supported")
    return _requantized(node, AveragePool(node.of(bytes_of(node, 0))), 3)


def QLinearSoftmax(node: Node) -> Value:
    """The attribute `opset` is the version of Softmax that it stands for."""
    return _requantized(node, Softmax(replace(node.of(bytes_of(node, 0)), version=int(node.get("opset", 13)))), 3)


def QLinearWhere(node: Node) -> Value:
    chosen = node.net.where(node.value(0), bytes_of(node, 1), bytes_of(node, 4))
    return as_bytes(node, chosen, 7, node.dtype(1))


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
    if node.value(2).constant is None:  # of data made bytes in each run: integers, and their scale
        integers = [moved.operands[k] for k in (0, 3, 2, 5)], [moved.names[k] for k in (0, 3, 2, 5)]
        sums = MatMulInteger(replace(node, operands=integers[0], names=integers[1]))
        scale = node.net.multiply(node.value(2), node.value(3))
        product = node.net.multiply(node.net.cast(sums, dtype="float32"), scale)
    else:
        product = MatMul(node.of(bytes_of(moved, 0), bytes_of(moved, 3, axis=-1)))
    return node.net.add(product, node.value(6)) if node.has(6) else product


def _requantized(node: Node, x: Value, scale: int) -> Value:
    """Numbers as bytes of the scale at an input, and the zero point behind it, or of the type of input 0."""
    dtype = node.dtype(scale + 1) if node.has(scale + 1) else node.dtype(0)
    return as_bytes(node, x, scale, dtype)
