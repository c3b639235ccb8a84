"""Operators that write at places which other tensors give."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, axis_of
from .indexing import from_start, joined_places


def ScatterElements(node: Node) -> Value:
    x = node.value()
    axis = axis_of(int(node.get("axis", 0)), len(x.shape))
    return _scattered(node, x, from_start(node, node.value(1), x.shape[axis]), node.value(2), axis)


def Scatter(node: Node) -> Value:
    return ScatterElements(node)


def ScatterND(node: Node) -> Value:
    """Scatter whole slices at places of several axes, as one place of those axes joined."""
    x, updates, net = node.value(), node.value(2), node.net
    width = node.shape(1)[-1]
    rows, row = prod(x.shape[:width]), prod(x.shape[width:])
    places = joined_places(node, x.shape[:width])
    count = prod(places.shape)
    flat, slices = net.reshape(x, shape=(rows, row)), net.reshape(updates, shape=(count, row))
    if node.get("reduction", "none") == "none" and x.dtype != "bool":
        y = node.apply("scatter_slices", flat, net.reshape(places, shape=(count,)), slices, axis=0)
    else:
        wide = net.broadcast_to(net.reshape(places, shape=(count, 1)), shape=(count, row))
        y = _scattered(node, flat, wide, slices, 0)
    return net.reshape(y, shape=x.shape)


def TensorScatter(node: Node) -> Value:
    """A cache (B, ..., T, ...) with an update (B, ..., S, ...) written from a place of each sample on.

    Each entry of the cache looks at the one of the update that can be its own: a step an entry, whatever S is.
    """
    past, net = node.value(), node.net
    axis, mode = axis_of(int(node.get("axis", -2)), len(past.shape)), str(node.get("mode", "linear"))
    length, steps = past.shape[axis], node.shape(1)[axis]
    if mode not in ("linear", "circular") or not axis:
        raise UnsupportedNode(f"mode {mode} along axis {axis} is not supported; modes are linear and circular")
    shape = [1] * len(past.shape)
    shape[axis] = length
    step = net.constant(np.arange(length).reshape(shape), "places")
    if node.has(2):
        first = net.cast(node.value(2), dtype="int64")
        step = net.subtract(step, net.reshape(first, shape=(*first.shape, *[1] * (len(shape) - 1))))
    if mode == "circular":
        step = net.mod(step, np.int64(length))
    new = net.logical_and(net.greater_equal(step, np.int64(0)), net.less(step, np.int64(steps)))
    written = node.value(1)
    if steps > 1:
        inside = net.clip(step, low=0, high=steps - 1)
        written = net.take_along_axis(written, net.broadcast_to(inside, shape=past.shape), axis=axis)
    return node.apply("where", new, written, past)


def _scattered(node: Node, x: Value, places: Value, updates: Value, axis: int) -> Value:
    reduction = node.get("reduction", "none")
    if x.dtype != "bool":
        return node.apply("scatter_elements", x, places, updates, axis=axis, reduction=reduction)
    if reduction != "none":
        raise UnsupportedNode(f"truth values are not joined by {reduction}")
    data, given = (node.net.cast(value, dtype="int8") for value in (x, updates))
    return node.net.cast(node.apply("scatter_elements", data, places, given, axis=axis), dtype="bool")
