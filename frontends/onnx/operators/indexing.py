"""Operators that read at places which other tensors give."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....dialects.strides import row_major
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Array, Node, axis_of
from .movement import gathered


def Gather(node: Node) -> Value:
    x, axis = node.value(), axis_of(int(node.get("axis", 0)), len(node.shape()))
    known = _known(node, 1)
    if known is None:
        return node.apply("take", x, from_start(node, node.value(1), x.shape[axis]), axis=axis)
    places = np.where(known < 0, known + x.shape[axis], known)
    if places.size and (places.min() < 0 or places.max() >= x.shape[axis]):
        raise UnsupportedNode(f"an index is out of range for axis {axis} of shape {x.shape}")
    if places.ndim > 1:
        return node.apply("take", x, places.astype(np.int32), axis=axis)
    found = gathered(node, x, axis, places.reshape(-1))
    return found if places.ndim else node.net.squeeze(found, axis=axis)


def GatherElements(node: Node) -> Value:
    x, axis = node.value(), axis_of(int(node.get("axis", 0)), len(node.shape()))
    return node.apply("take_along_axis", x, from_start(node, node.value(1), x.shape[axis]), axis=axis)


def GatherND(node: Node) -> Value:
    """Gather at places of several axes, as one place of those axes joined."""
    x, net = node.value(), node.net
    batch, width = int(node.get("batch_dims", 0)), node.shape(1)[-1]
    if batch > 1:
        raise UnsupportedNode("batch_dims beyond 1 is not supported")
    axes = x.shape[batch : batch + width]
    place = joined_places(node, axes)
    rest = x.shape[batch + width :]
    joined = net.reshape(x, shape=(*x.shape[:batch], prod(axes), *rest))
    if not batch:
        return node.apply("take", joined, place, axis=0)
    samples = x.shape[0]
    offsets = (np.arange(samples) * prod(axes)).astype(place.dtype).reshape(samples, *[1] * (len(place.shape) - 1))
    flat = net.reshape(joined, shape=(samples * prod(axes), *rest))
    return node.apply("take", flat, net.add(place, offsets), axis=0)


def joined_places(node: Node, axes: tuple[int, ...]) -> Value:
    """The second input, places of several axes in its last one, as places of those axes joined."""
    indices, net = node.value(1), node.net
    place: Value | None = None
    for k, (extent, stride) in enumerate(zip(axes, row_major(axes), strict=True)):
        part = net.strided_slice(indices, begin=[k], end=[k + 1], axes=[len(indices.shape) - 1])
        part = from_start(node, net.squeeze(part, axis=len(indices.shape) - 1), extent)
        if stride != 1:
            part = net.multiply(part, node.number_like(stride, part))
        place = part if place is None else net.add(place, part)
    assert place is not None
    return place


def Compress(node: Node) -> Value:
    """The slices where a known condition holds."""
    x, places = node.value(), np.flatnonzero(node.constant(1, "condition"))
    if "axis" in node.attributes:
        return gathered(node, x, axis_of(int(node.get("axis")), len(x.shape)), places)
    return gathered(node, node.net.reshape(x, shape=(prod(x.shape),)), 0, places)


def ReverseSequence(node: Node) -> Value:
    """Reverse the first elements of each sample, as many as a known length says."""
    x, lengths = node.value(), node.constant(1, "sequence_lens").reshape(-1)
    batch, time = int(node.get("batch_axis", 1)), int(node.get("time_axis", 0))
    steps = np.arange(x.shape[time])
    places = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    shape = [1] * len(x.shape)
    shape[batch], shape[time] = x.shape[batch], x.shape[time]
    turned = (places if batch < time else places.T).reshape(shape)
    wide = np.broadcast_to(turned, x.shape).astype(np.int32)
    return node.apply("take_along_axis", x, wide, axis=time)


def OneHot(node: Node) -> Value:
    indices, net = node.value(), node.net
    depth = int(node.constant(1, "depth").reshape(-1)[0])
    rank = len(indices.shape) + 1
    axis = axis_of(int(node.get("axis", -1)), rank)
    if indices.dtype not in ("int32", "int64"):
        indices = net.cast(indices, dtype="int64")
    places = net.expand_dims(from_start(node, indices, depth), axis=axis)
    shape = [1] * rank
    shape[axis] = depth
    every = np.arange(depth, dtype=places.dtype).reshape(shape)
    off, on = (net.reshape(_part(node, k), shape=[1] * rank) for k in (0, 1))
    return node.apply("where", net.equal(places, net.constant(every, "positions")), on, off)


def _part(node: Node, k: int) -> Value:
    """Element `k` of the third input."""
    return node.net.strided_slice(node.value(2), begin=[k], end=[k + 1], axes=[0])


def _known(node: Node, position: int) -> Array | None:
    found = node.operand(position)
    return found.constant if isinstance(found, Value) else found


def from_start(node: Node, places: Value, extent: int) -> Value:
    """Convert places counted from the end, which are negative, to places from the start."""
    net = node.net
    below = net.less(places, node.number_like(0, places))
    return net.where(below, net.add(places, node.number_like(extent, places)), places)


def TopK(node: Node) -> list[Value]:
    """The k largest or smallest elements and their places, in order also where none is asked for."""
    x, net = node.value(), node.net
    axis, count = axis_of(int(node.get("axis", -1)), len(x.shape)), int(node.constant(1, "k").reshape(-1)[0])
    made: Any = node.apply("top_k", x, k=count, axis=axis, largest=bool(node.get("largest", 1)))
    return [made[0], net.cast(made[1], dtype="int64")]
