"""Convolutions and pools over one, two or three spatial axes, by the converters of their ONNX forms."""

from __future__ import annotations

from typing import Any

from ....graph.network import Value
from ...onnx.errors import UnsupportedNode as UnsupportedOnnxNode
from ...onnx.node import Node as OnnxNode
from ...onnx.operators.convolution import Conv, ConvTranspose
from ...onnx.operators.pooling import AveragePool, MaxPool
from ..errors import UnsupportedNode
from ..node import Converter, Node, aten

_VERSION = 22
"""The operator set whose words are used."""


def _as_onnx(node: Node, convert: Any, operands: list[Value], attributes: dict[str, Any], results: int = 1) -> Any:
    onnx = OnnxNode(
        net=node.net,
        operator=convert.__name__,
        version=_VERSION,
        label=node.label,
        names=[operand.name for operand in operands],
        operands=operands,
        attributes=attributes,
        results=[node.label] * results,
        lift=node.net.constant,
    )
    try:
        return convert(onnx)
    except UnsupportedOnnxNode as error:
        raise UnsupportedNode(str(error)) from None


@aten("convolution.default")
def convolution(node: Node) -> Any:
    x, weight = node.value("input"), node.value("weight")
    if x.dtype in ("float16", "bfloat16") or "float" not in x.dtype:
        raise UnsupportedNode(f"convolutions of {x.dtype} stay PyTorch's")
    count = len(x.shape) - 2
    pads = node.spatial("padding", count)
    attributes: dict[str, Any] = {
        "strides": list(node.spatial("stride", count)),
        "dilations": list(node.spatial("dilation", count)),
        "pads": [*pads, *pads],
        "group": int(node["groups"]),
    }
    operands = [x, weight, *([node["bias"]] if node["bias"] is not None else [])]
    if not node["transposed"]:
        return _as_onnx(node, Conv, operands, attributes)
    attributes["output_padding"] = list(node.spatial("output_padding", count))
    return _as_onnx(node, ConvTranspose, operands, attributes)


def _batched(convert: Converter, count: int) -> Converter:
    """Convert a pool whose data may lack the axis of samples."""

    def converted(node: Node) -> Any:
        if len(node.value().shape) != count + 2:
            raise UnsupportedNode("data without an axis of samples stays PyTorch's")
        return convert(node)

    return converted


def _window(node: Node, count: int) -> dict[str, Any]:
    kernel = node.spatial("kernel_size", count)
    pads = node.spatial("padding", count, [0])
    return {
        "kernel_shape": list(kernel),
        "strides": list(node.spatial("stride", count, kernel)),
        "pads": [*pads, *pads],
        "ceil_mode": int(node["ceil_mode"]),
    }


def _max_pool(node: Node) -> list[Any]:
    count = len(node.value().shape) - 2
    attributes = {**_window(node, count), "dilations": list(node.spatial("dilation", count, [1]))}
    if 1 in node.used:
        raise UnsupportedNode("places of the largest elements stay PyTorch's")
    return [_as_onnx(node, MaxPool, [node.value()], attributes), None]


def _average_pool(node: Node) -> Any:
    count = len(node.value().shape) - 2
    if node["divisor_override"] is not None:
        raise UnsupportedNode("a divisor of one's own stays PyTorch's")
    attributes = {**_window(node, count), "count_include_pad": int(node["count_include_pad"])}
    return _as_onnx(node, AveragePool, [node.value()], attributes)


max_pool2d = aten("max_pool2d_with_indices.default")(_batched(_max_pool, 2))
max_pool3d = aten("max_pool3d_with_indices.default")(_batched(_max_pool, 3))
average_pool2d = aten("avg_pool2d.default")(_batched(_average_pool, 2))
average_pool3d = aten("avg_pool3d.default")(_batched(_average_pool, 3))


@aten("avg_pool1d.default")
def average_pool1d(node: Node) -> Any:
    if len(node.value().shape) != 3:
        raise UnsupportedNode("data without an axis of samples stays PyTorch's")
    attributes = {**_window(node, 1), "count_include_pad": int(node["count_include_pad"])}
    return _as_onnx(node, AveragePool, [node.value()], attributes)


@aten("_adaptive_avg_pool2d.default")
def adaptive_average(node: Node) -> Any:
    if len(node.value().shape) != 4:
        raise UnsupportedNode("data without an axis of samples stays PyTorch's")
    return node.apply("adaptive_avg_pool", node.value(), output_size=node.ints("output_size"))
