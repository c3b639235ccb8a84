"""Softmax and normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten


@aten("_softmax.default", "_log_softmax.default")
def softmax(node: Node) -> Any:
    if node["half_to_float"] or not node.value().shape:
        raise UnsupportedNode("softmax to another type stays PyTorch's")
    name = "log_softmax" if node.operator.startswith("_log") else "softmax"
    return node.apply(name, node.value(), axis=node.axis())


@aten("native_layer_norm.default")
def layer_norm(node: Node) -> list[Any]:
    x = node.value("input")
    axes = tuple(range(len(x.shape) - len(node.ints("normalized_shape")), len(x.shape)))
    options = {"axis": axes if len(axes) > 1 else axes[0], "epsilon": float(node["eps"])}
    gamma, beta = node["weight"], node["bias"]
    given = () if gamma is None else (gamma,) if beta is None else (gamma, beta)
    made = node.apply("layer_norm", x, *given, **options)
    if gamma is None and beta is not None:
        made = node.net.add(made, beta)
    return [made, *_statistics(node, x, axes, float(node["eps"]))]


def _statistics(node: Node, x: Value, axes: tuple[int, ...], epsilon: float) -> list[Value | None]:
    """The mean and the reciprocal of the standard deviation, where they are used."""
    net = node.net
    if not node.used & {1, 2}:
        return [None, None]
    wide = node.cast(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    mean = net.mean(wide, axis=axes, keepdims=True)
    variance = net.mean(net.square(net.subtract(wide, mean)), axis=axes, keepdims=True)
    both = zip((mean, net.rsqrt(net.add(variance, epsilon))), node.results[1:], strict=True)
    return [None if kind is None else node.cast(made, kind.dtype) for made, kind in both]


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm(node: Node) -> list[Any]:
    x, mean, variance = node.value("input"), node.value("running_mean"), node.value("running_var")
    kept, x = x.dtype, node.cast(x, mean.dtype)
    gamma, beta = (_channels(node, node[name], mean, number) for name, number in (("weight", 1.0), ("bias", 0.0)))
    made = node.apply("batch_norm", x, gamma, beta, mean, variance, axis=1, epsilon=float(node["eps"]))
    return [node.cast(made, kept), None, None]


def _channels(node: Node, given: Value | None, like: Value, number: float) -> Value:
    return node.net.constant(np.full(like.shape, number, dtype=like.dtype), "channels") if given is None else given


@aten("_native_batch_norm_legit.no_stats")
def instance_norm(node: Node) -> list[Any]:
    """Over all axes but that of channels, with the statistics of the data itself."""
    x = node.value("input")
    if node.used & {1, 2}:
        raise UnsupportedNode("statistics of the data stay PyTorch's")
    axes = (0, *range(2, len(x.shape)))
    if x.shape[0] == 1:
        rows = node.reshaped(x, [x.shape[1], prod(x.shape[2:])])
        made = node.reshaped(node.apply("layer_norm", rows, axis=-1, epsilon=float(node["eps"])), x.shape)
    else:
        made = node.apply("layer_norm", x, axis=axes, epsilon=float(node["eps"]))
    return [_scaled(node, made), None, None]


@aten("native_group_norm.default")
def group_norm(node: Node) -> list[Any]:
    """Under autocast data of 16-bit floats have weights of float32, by which they are scaled."""
    x, groups = node.value("input"), int(node["group"])
    kept, own = x.dtype, node["weight"] if node["weight"] is not None else node["bias"]
    x = x if own is None else node.cast(x, own.dtype)
    rows = node.reshaped(x, [x.shape[0], groups, prod(x.shape[1:]) // groups])
    made = node.reshaped(node.apply("layer_norm", rows, axis=-1, epsilon=float(node["eps"])), x.shape)
    statistics = _statistics(node, rows, (2,), float(node["eps"]))
    found = [None if s is None else node.reshaped(s, [x.shape[0], groups]) for s in statistics]
    return [node.cast(_scaled(node, made), kept), *found]


def _scaled(node: Node, x: Value) -> Value:
    """Each channel, the second axis, by its weight and bias."""
    shape = [x.shape[1], *[1] * (len(x.shape) - 2)]
    for name, operator in (("weight", "multiply"), ("bias", "add")):
        if node[name] is not None:
            x = node.apply(operator, x, node.reshaped(node[name], shape))
    return x
