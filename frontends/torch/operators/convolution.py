"""Convolutions and pools over one, two or three spatial axes, by the converters of their ONNX forms."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...onnx.operators.convolution import Conv, ConvTranspose
from ...onnx.operators.pooling import AveragePool, MaxPool
from ..errors import UnsupportedNode
from ..node import CONVOLUTIONS, UPWARD, Converter, Node, aten
from ..onnx_form import as_onnx


@aten("convolution.default")
def convolution(node: Node) -> Any:
    x, weight = node.value("input"), node.value("weight")
    moved = x if node["transposed"] else node  # what each filter is read for
    terms = prod(moved.shape) // moved.shape[1] * prod(weight.shape)
    count = len(x.shape) - 2
    node.require_products(UPWARD if node["transposed"] or count == 3 else CONVOLUTIONS, x.dtype, terms)
    pads = node.spatial("padding", count)
    attributes: dict[str, Any] = {
        "strides": list(node.spatial("stride", count)),
        "dilations": list(node.spatial("dilation", count)),
        "pads": [*pads, *pads],
        "group": int(node["groups"]),
    }
    operands = [x, weight, *([node["bias"]] if node["bias"] is not None else [])]
    if not node["transposed"]:
        return as_onnx(node, Conv, operands, attributes)
    attributes["output_padding"] = list(node.spatial("output_padding", count))
    return as_onnx(node, ConvTranspose, operands, attributes)


def _batched(convert: Converter, count: int) -> Converter:
    """Convert a pool whose data may lack the axis of samples."""

    def converted(node: Node) -> Any:
        x = node.value()
        if len(x.shape) == count + 2:
            return convert(node)
        made = convert(replace(node, arguments={**node.arguments, "self": node.reshaped(x, [1, *x.shape])}))
        found = (
            [None if each is None else node.reshaped(each, each.shape[1:]) for each in made]
            if (isinstance(made, list))
            else node.reshaped(made, made.shape[1:])
        )
        return found

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
    if 1 not in node.used:
        return [as_onnx(node, MaxPool, [node.value()], attributes), None]
    made, places = as_onnx(node, MaxPool, [node.value()], attributes, results=2)
    plane = np.asarray(prod(node.value().shape[2:]), places.dtype)
    return [made, node.net.mod(places, plane)]  # ONNX counts through all samples and channels


def _average_pool(node: Node) -> Any:
    count = len(node.value().shape) - 2
    attributes = {**_window(node, count), "count_include_pad": int(node["count_include_pad"])}
    divisor = node.arguments.get("divisor_override")
    if divisor is None:
        return as_onnx(node, AveragePool, [node.value()], attributes)
    if node["ceil_mode"]:
        raise UnsupportedNode("a divisor of one's own for windows that are cut off stays PyTorch's")
    mean = as_onnx(node, AveragePool, [node.value()], {**attributes, "count_include_pad": 1})
    scale = prod(attributes["kernel_shape"]) / divisor
    return node.net.multiply(mean, np.asarray(scale, mean.dtype))


max_pool2d = aten("max_pool2d_with_indices.default")(_batched(_max_pool, 2))
max_pool3d = aten("max_pool3d_with_indices.default")(_batched(_max_pool, 3))
average_pool2d = aten("avg_pool2d.default")(_batched(_average_pool, 2))
average_pool3d = aten("avg_pool3d.default")(_batched(_average_pool, 3))


average_pool1d = aten("avg_pool1d.default")(_batched(_average_pool, 1))


def _adaptive(node: Node, name: str) -> Any:
    count = len(node.value().shape) - 2
    return node.apply(
        name, node.value(), output_size=node.spatial("output_size", count), layout="NCDHW"[:2] + "DHW"[-count:]
    )


def _adaptive_average(node: Node) -> Any:
    return _adaptive(node, "adaptive_avg_pool")


def _adaptive_max(node: Node) -> list[Any]:
    if 1 in node.used:
        raise UnsupportedNode("places of the largest elements stay PyTorch's")
    return [_adaptive(node, "adaptive_max_pool"), None]


adaptive_average2d = aten("_adaptive_avg_pool2d.default")(_batched(_adaptive_average, 2))
adaptive_average3d = aten("_adaptive_avg_pool3d.default")(_batched(_adaptive_average, 3))
adaptive_max2d = aten("adaptive_max_pool2d.default")(_batched(_adaptive_max, 2))
adaptive_max3d = aten("adaptive_max_pool3d.default")(_batched(_adaptive_max, 3))
