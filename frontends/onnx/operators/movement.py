"""Operators that give tensors another shape or move their elements to known places."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import NeedsConstantError, TooLargeError, UnsupportedNode
from ..node import Array, Node, Operand, axis_of, numpy_type
from ..sizes import TensorSize, range_length, require_memory
from ..types import type_name
from .convolution import padded_or_cut

_FAR = 2**31 - 1
_MOST_PLACES = 1 << 24
"""So many elements may be moved along an axis by a list of their places: 8 s and 1 GB of Python numbers."""


def Shape(node: Node) -> Array:
    start, end = int(node.get("start", 0)), node.get("end")
    return np.asarray(node.shape()[start : None if end is None else int(end)], dtype=np.int64)


def Size(node: Node) -> Array:
    return np.asarray(prod(node.shape()), dtype=np.int64)


def ConstantOfShape(node: Node) -> Operand:
    raise NeedsConstantError(node.names[0], "shape")  # with a known one it is evaluated


def Range(node: Node) -> Operand:
    start, limit, step = (node.constant(k, "bound") for k in range(3))
    count = range_length(start, limit, step)
    require_memory("its result", TensorSize(start.dtype.name, (count,)), constant=True)
    found: Array = np.arange(count).astype(start.dtype) * step.reshape(()) + start.reshape(())
    return found.astype(start.dtype)


def Reshape(node: Node) -> Value:
    x = node.value()
    wanted = node.ints("shape", 1) or []
    if not node.get("allowzero", 0):
        wanted = [x.shape[d] if n == 0 else n for d, n in enumerate(wanted)]
    return node.apply("reshape", x, shape=wanted)


def Flatten(node: Node) -> Value:
    x = node.value()
    rank, axis = len(x.shape), int(node.get("axis", 1))
    place = axis + rank if axis < 0 else axis
    return node.apply("reshape", x, shape=(prod(x.shape[:place]), prod(x.shape[place:])))


def Transpose(node: Node) -> Value:
    axes = node.ints("perm")
    return node.apply("transpose", node.value(), axes=axes if axes is not None else None)


def Squeeze(node: Node) -> Value:
    x, axes = node.value(), node.ints("axes", 1)
    rank = len(x.shape)
    dropped = {axis_of(a, rank) for a in axes} if axes is not None else {d for d in range(rank) if x.shape[d] == 1}
    if any(x.shape[d] != 1 for d in dropped):
        raise UnsupportedNode(f"axes {sorted(dropped)} of shape {x.shape} have extents other than 1")
    return node.apply("reshape", x, shape=[n for d, n in enumerate(x.shape) if d not in dropped])


def Unsqueeze(node: Node) -> Operand:
    axes = node.ints("axes", 1) or []
    rank = len(node.shape()) + len(axes)
    places = {axis_of(a, rank) for a in axes}
    extents = iter(node.shape())
    shape = [1 if d in places else next(extents) for d in range(rank)]
    x = node.operand(0)
    return x.reshape(shape) if isinstance(x, np.ndarray) else node.apply("reshape", node.value(), shape=shape)


def Concat(node: Node) -> Value:
    axis = axis_of(int(node.get("axis")), len(node.shape()))
    parts = [node.value(k) for k in range(len(node.operands)) if node.shape(k)[axis] > 0]
    return parts[0] if len(parts) == 1 else node.apply("concatenate", *parts, axis=axis)


def Split(node: Node) -> list[Operand]:
    x = node.value()
    axis, count = axis_of(int(node.get("axis", 0)), len(x.shape)), len(node.results)
    extent = x.shape[axis]
    sizes = node.ints("split", 1)
    if sizes is None:
        each = -(-extent // int(node.get("num_outputs", count)))
        sizes = [min(each, extent - k * each) for k in range(count)]
    if min(sizes) < 0 or sum(sizes) != extent:
        raise UnsupportedNode(f"parts of {sizes} do not make up axis {axis} of shape {x.shape}")
    full = [n for n in sizes if n]
    cuts = np.cumsum(full)[:-1].tolist()
    made: Any = x if len(full) == 1 else node.apply("split", x, sections=cuts, axis=axis)
    parts = iter(made if isinstance(made, tuple) else [made])
    return [next(parts) if n else _empty(x, axis) for n in sizes]


def _empty(x: Value, axis: int) -> Array:
    """A tensor like another, without elements along an axis."""
    return np.zeros((*x.shape[:axis], 0, *x.shape[axis + 1 :]), numpy_type(x.dtype))


def Slice(node: Node) -> Operand:
    x = node.value()
    begin, end = node.ints("starts", 1) or [], node.ints("ends", 2) or []
    axes = node.ints("axes", 3) or list(range(len(begin)))
    steps = node.ints("steps", 4) or [1] * len(begin)
    near = [[max(-_FAR, min(_FAR, v)) for v in values] for values in (begin, end, steps)]
    places = [axis_of(a, len(x.shape)) for a in axes]
    for d, b, e, s in zip(places, *near, strict=True):
        if not range(x.shape[d])[b:e:s]:
            return _empty(x, d)
    return node.apply("strided_slice", x, begin=near[0], end=near[1], strides=near[2], axes=places)


def Expand(node: Node) -> Value:
    x = node.value()
    wanted = tuple(int(n) for n in node.constant(1, "shape").reshape(-1))
    shape = np.broadcast_shapes(x.shape, wanted)
    return x if shape == x.shape else node.apply("broadcast_to", x, shape=shape)


def Tile(node: Node) -> Value:
    return node.apply("tile", node.value(), repeats=node.ints("repeats", 1))


def Pad(node: Node) -> Value:
    x, rank, mode = node.value(), len(node.shape()), node.get("mode", "constant")
    pads = node.ints("pads", 1) or []
    axes = [axis_of(int(a), rank) for a in node.constant(3, "axes").reshape(-1)] if node.has(3) else range(rank)
    if len(pads) != 2 * len(axes):
        raise UnsupportedNode(f"{len(pads)} pads, {2 * len(axes)} are needed, two for each of {len(axes)} axes")
    before, after = [0] * rank, [0] * rank
    for k, d in enumerate(axes):
        before[d], after[d] = pads[k], pads[k + len(pads) // 2]
    if mode == "constant":
        value = node.constant(2, "value").reshape(()).item() if node.has(2) else node.get("value", 0)
        return padded_or_cut(node, x, before, after, value)
    if mode not in ("reflect", "edge", "wrap"):
        raise UnsupportedNode(f"mode {mode} is not supported")
    for d in range(rank):
        x = _bordered(node, x, d, before[d], after[d], mode)
    return x


def _bordered(node: Node, x: Value, axis: int, before: int, after: int, mode: str) -> Value:
    """Pad along an axis by elements of the data: the place that each new element comes from, in runs."""
    extent = x.shape[axis]
    places = np.arange(-before, extent + after)
    if mode == "edge":
        places = np.clip(places, 0, extent - 1)
    elif mode == "wrap":
        places = places % extent
    else:
        period = max(2 * (extent - 1), 1)
        places = np.abs((places + extent - 1) % period - (extent - 1)) if extent > 1 else np.zeros_like(places)
    return gathered(node, x, axis, places)


def gathered(node: Node, x: Value, axis: int, places: Array) -> Value:
    """Take the slices at known places along an axis: of runs with one step, one slice each."""
    if len(places) > _MOST_PLACES:
        raise TooLargeError(f"{len(places):,} places along axis {axis} are more than are looked at one by one")
    runs: list[list[int]] = []
    for place in places.tolist():
        run = runs[-1] if runs else None
        if run is not None and (len(run) == 1 or run[-1] + (run[1] - run[0]) == place):
            run.append(place)
        else:
            runs.append([place])
    if runs == [list(range(x.shape[axis]))]:
        return x
    times = len(places) // x.shape[axis]
    if times * x.shape[axis] == len(places) and (places == np.arange(len(places)) // times).all():
        return node.apply("repeat", x, repeats=times, axis=axis)
    if len(runs) > 8:
        return node.apply("take", x, places.astype(np.int32), axis=axis)
    parts = [_run(node, x, axis, run) for run in runs]
    return parts[0] if len(parts) == 1 else node.apply("concatenate", *parts, axis=axis)


def _run(node: Node, x: Value, axis: int, run: list[int]) -> Value:
    step = run[1] - run[0] if len(run) > 1 else 1
    if step == 0:
        one = _run(node, x, axis, run[:1])
        return node.net.repeat(one, repeats=len(run), axis=axis)
    last = run[-1] + (1 if step > 0 else -1)
    end = last if last >= 0 else -_FAR
    return node.net.strided_slice(x, begin=[run[0]], end=[end], strides=[step], axes=[axis])


def DepthToSpace(node: Node) -> Value:
    x, net, b = node.value(), node.net, int(node.get("blocksize"))
    n, c, h, w = x.shape
    if node.get("mode", "DCR") == "DCR":
        cells, order = (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        cells, order = (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3)
    moved = node.apply("transpose", net.reshape(x, shape=cells), axes=order)
    return net.reshape(moved, shape=(n, c // b**2, h * b, w * b))


def SpaceToDepth(node: Node) -> Value:
    x, net, b = node.value(), node.net, int(node.get("blocksize"))
    n, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = node.apply("transpose", net.reshape(x, shape=(n, c, h // b, b, w // b, b)), axes=order)
    return net.reshape(moved, shape=(n, c * b**2, h // b, w // b))


def Trilu(node: Node) -> Value:
    x = node.value()
    k = int(node.constant(1, "k").reshape(-1)[0]) if node.has(1) else 0
    ones = np.ones(x.shape[-2:], dtype=bool)
    mask = np.triu(ones, k) if node.get("upper", 1) else np.tril(ones, k)
    return node.apply("where", mask, x, node.number_like(0, x))


def EyeLike(node: Node) -> Operand:
    dtype = type_name(int(node.get("dtype"))) if "dtype" in node.attributes else node.dtype()
    rows, columns = node.shape()
    return np.eye(rows, columns, k=int(node.get("k", 0)), dtype=np.dtype(dtype))
