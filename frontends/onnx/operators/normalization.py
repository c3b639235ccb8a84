"""Softmax and its kin, and normalisations."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..node import Node, axis_of


def Softmax(node: Node) -> Value:
    return _along(node, "softmax")


def LogSoftmax(node: Node) -> Value:
    return _along(node, "log_softmax")


def _along(node: Node, operator: str) -> Value:
    """Along one axis; before version 13 along all from `axis` on, joined."""
    x, rank = node.value(), len(node.shape())
    axis = axis_of(int(node.get("axis", -1 if node.version >= 13 else 1)), rank)
    if node.version >= 13 or axis == rank - 1:
        return node.apply(operator, x, axis=axis)
    flat = node.net.reshape(x, shape=(prod(x.shape[:axis]), prod(x.shape[axis:])))
    return node.net.reshape(node.apply(operator, flat, axis=1), shape=x.shape)


def Hardmax(node: Node) -> Value:
    """One at the first largest element along an axis, zero elsewhere."""
    x, net, rank = node.value(), node.net, len(node.shape())
    axis = axis_of(int(node.get("axis", -1 if node.version >= 13 else 1)), rank)
    flat = x if node.version >= 13 else net.reshape(x, shape=(prod(x.shape[:axis]), prod(x.shape[axis:])))
    along = axis if node.version >= 13 else 1
    place = net.argmax(flat, axis=along, keepdims=True)
    shape = [1] * len(flat.shape)
    shape[along] = flat.shape[along]
    every = net.constant(np.arange(flat.shape[along], dtype="int32").reshape(shape), "positions")
    chosen = net.cast(net.equal(every, place), dtype=x.dtype)
    return net.reshape(chosen, shape=x.shape) if chosen.shape != x.shape else chosen


def BatchNormalization(node: Node) -> Value | list[Value]:
    epsilon = float(node.get("epsilon", 1e-5))
    x, scale, shift, mean, variance = (node.value(k) for k in range(5))
    if not node.get("training_mode", 0):
        return node.apply("batch_norm", x, scale, shift, mean, variance, axis=1, epsilon=epsilon)
    net, momentum = node.net, float(node.get("momentum", 0.9))
    axes = [d for d in range(len(x.shape)) if d != 1]
    now = net.mean(x, axis=axes)
    spread = net.mean(net.square(net.subtract(x, net.mean(x, axis=axes, keepdims=True))), axis=axes)
    normal = node.apply("batch_norm", x, scale, shift, now, spread, axis=1, epsilon=epsilon)
    running = [
        net.add(
            net.multiply(old, node.number_like(momentum, old)), net.multiply(new, node.number_like(1 - momentum, new))
        )
        for old, new in ((mean, now), (variance, spread))
    ]
    return [normal, *running]


def MeanVarianceNormalization(node: Node) -> Value:
    """(x - mean) / (standard deviation + 1e-9)."""
    x, net, axes = node.value(), node.net, node.ints("axes") or [0, 2, 3]
    deviation = net.subtract(x, net.mean(x, axis=axes, keepdims=True))
    spread = net.sqrt(net.mean(net.square(deviation), axis=axes, keepdims=True))
    return node.apply("divide", deviation, spread + 1e-9)


def InstanceNormalization(node: Node) -> Value:
    x = node.value()
    return _channels(node, _normal(node, x, tuple(range(2, len(x.shape))), float(node.get("epsilon", 1e-5))))


def GroupNormalization(node: Node) -> Value:
    """Over groups of channels; scale and shift are per channel, before version 21 per group."""
    x, net, groups = node.value(), node.net, int(node.get("num_groups"))
    rows = net.reshape(x, shape=(x.shape[0], groups, prod(x.shape[1:]) // groups))
    normal = _normal(node, rows, (2,), float(node.get("epsilon", 1e-5)))
    if node.shape(1) == (x.shape[1],):
        return _channels(node, net.reshape(normal, shape=x.shape))
    return net.reshape(_channels(node, normal), shape=x.shape)


def _normal(node: Node, x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    return node.apply("layer_norm", x, axis=axes, epsilon=epsilon)


def _channels(node: Node, x: Value) -> Value:
    """Scaled and shifted by the second and third input, along axis 1, or along axes 1 and 2, joined.

    A shift by nothing, which exporters of PyTorch's group normalisation write, is left out.
    """
    net, (count,) = node.net, node.shape(1)
    shape = (1, *x.shape[1 : 2 if count == x.shape[1] else 3], *(1,) * len(x.shape))[: len(x.shape)]
    scale, shift = (net.reshape(node.value(k), shape=shape) for k in (1, 2))
    scaled, known = net.multiply(x, scale), node.value(2).constant
    return scaled if known is not None and not known.any() else net.add(scaled, shift)


def LayerNormalization(node: Node) -> Value | list[Value]:
    x, net = node.value(), node.net
    first = axis_of(int(node.get("axis", -1)), len(x.shape))
    axes, epsilon = tuple(range(first, len(x.shape))), float(node.get("epsilon", 1e-5))
    y = _scaled(node, "layer_norm", axes, epsilon)
    if len(node.results) == 1:
        return y
    mean = net.mean(x, axis=axes, keepdims=True)
    variance = net.mean(net.square(net.subtract(x, mean)), axis=axes, keepdims=True)
    return [y, mean, net.rsqrt(variance + epsilon)]


def RMSNormalization(node: Node) -> Value:
    x = node.value()
    first = axis_of(int(node.get("axis", -1)), len(x.shape))
    axes, epsilon = tuple(range(first, len(x.shape))), float(node.get("epsilon", 1e-5))
    return _scaled(node, "rms_norm", axes, epsilon)


def _scaled(node: Node, operator: str, axes: tuple[int, ...], epsilon: float) -> Value:
    """A normalisation over the last axes, scaled by the second input and shifted by the third, if there is one.

    They are the operator's own where they have the extents of the axes; ONNX lets them be of any shape that broadcasts.
    """
    x, given = node.value(), [node.value(k) for k in (1, 2) if node.has(k)]
    extents = x.shape[axes[0] :]
    own = 0
    while own < len(given) and prod(given[own].shape) == prod(extents) and given[own].shape[-len(extents) :] == extents:
        own += 1
    scales = [g if g.shape == extents else node.net.reshape(g, shape=extents) for g in given[:own]]
    y: Value = node.apply(operator, x, *scales, axis=axes, epsilon=epsilon)
    for value, then in list(zip(given, ("multiply", "add"), strict=False))[own:]:
        y = node.net.apply(then, y, value)
    return y


def LpNormalization(node: Node) -> Value:
    x, net, axis = node.value(), node.net, int(node.get("axis", -1))
    if int(node.get("p", 2)) == 1:
        norm = net.sum(net.abs(x), axis=axis, keepdims=True)
    else:
        norm = net.sqrt(net.sum(net.square(x), axis=axis, keepdims=True))
    zero = net.equal(norm, node.number_like(0, norm))
    return node.apply("divide", x, net.where(zero, node.number_like(1, norm), norm))


def LRN(node: Node) -> Value:
    return node.apply(
        "lrn",
        node.value(),
        size=int(node.get("size")),
        axis=1,
        alpha=float(node.get("alpha", 1e-4)),
        beta=float(node.get("beta", 0.75)),
        bias=float(node.get("bias", 1.0)),
    )
