"""Quantisation as training for it simulates: numbers rounded to the steps of an integer type, and floats again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten


@aten("fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(node: Node) -> list[Any]:
    scale = node.net.constant(np.asarray(node["scale"], node.dtype), "scale")
    zero = node.net.constant(np.asarray(node["zero_point"], node.dtype), "zero_point")
    return _stepped(node, scale, zero)


@aten("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_by_tensors(node: Node) -> list[Any]:
    """With one scale and zero point that are tensors, where a third one says that anything is to be done."""
    net = node.net
    scale, zero, enabled = (
        net.reshape(node.value(name), shape=()) for name in ("scale", "zero_point", "fake_quant_enabled")
    )
    made = _stepped(node, node.cast(scale, node.dtype), node.cast(zero, node.dtype))
    if 1 in node.used:
        raise UnsupportedNode("gradients of quantisation that may be off stay PyTorch's")
    return [node.apply("where", net.not_equal(enabled, 0), made[0], node.value()), None]


@aten("fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_by_channels(node: Node) -> list[Any]:
    shape = [1] * len(node.shape)
    shape[node.axis("axis")] = node.shape[node.axis("axis")]
    scale, zero = (node.reshaped(node.cast(node.value(n), node.dtype), shape) for n in ("scale", "zero_point"))
    return _stepped(node, scale, zero)


def _stepped(node: Node, scale: Value, zero: Value) -> list[Any]:
    """Elements at the nearest step, and where that is one of the type: times the reciprocal, as PyTorch has it."""
    net, low, high = node.net, float(node["quant_min"]), float(node["quant_max"])
    step = net.add(net.round(net.multiply(node.value(), net.reciprocal(scale))), zero)
    made = node.apply("multiply", net.subtract(net.clip(step, low=low, high=high), zero), scale)
    inside = net.logical_and(net.greater_equal(step, low), net.less_equal(step, high)) if 1 in node.used else None
    return [made, inside]
