"""Resizing: along one axis after the other, as the product with a matrix, or as a move where it is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..folding import evaluate
from ..node import Array, Node, axis_of
from ..sizes import TensorSize, require_memory
from .movement import gathered

_LETTERS = "abcdefghijklmnop"
_ROUNDINGS = 1e-6
"""By how much, relative to the extent of an axis, parts of it may be off: they are given in single precision."""


@dataclass(frozen=True)
class _Axis:
    """An axis to resize: from `extent` to `output` elements, `scale` as it was asked for."""

    axis: int
    extent: int
    output: int
    scale: float
    roi: tuple[float, float]
    sized: bool = False
    """True where its extent was asked for, and the scale follows from it."""
    beside: _Beside | None = None
    """The axis that decides the scale of all, where the aspect is kept."""


@dataclass(frozen=True)
class _Beside:
    """An axis whose scale is that of others: a policy, the scale, and what was asked for the other axis."""

    policy: str
    scale: float
    asked: int


def Resize(node: Node) -> Value:
    if node.version < 11:
        return _resized(node, _by_scales(node, 1), {"coordinate_transformation_mode": "asymmetric"}, "floor")
    axes = _by_sizes(node) if node.has(3) else _by_scales(node, 2)
    attributes = {k: v for k, v in node.attributes.items() if k not in ("axes", "keep_aspect_ratio_policy")}
    return _resized(node, axes, attributes, str(node.get("nearest_mode", "round_prefer_floor")))


def Upsample(node: Node) -> Value:
    return _resized(node, _by_scales(node, 1), {"coordinate_transformation_mode": "asymmetric"}, "floor")


def _chosen(node: Node) -> list[int]:
    rank = len(node.shape())
    return [axis_of(a, rank) for a in node.ints("axes") or range(rank)]


def _roi(node: Node, count: int) -> list[tuple[float, float]]:
    wanted = node.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if not wanted or not node.has(1):
        return [(0.0, 1.0)] * count
    flat = node.constant(1, "roi").reshape(-1).tolist()
    return list(zip(flat[:count], flat[count:], strict=True))


def _by_scales(node: Node, position: int) -> list[_Axis]:
    axes = _chosen(node)
    scales = node.get("scales") or node.constant(position, "scales").reshape(-1).tolist()
    if len(scales) != len(axes):
        raise UnsupportedNode(f"{len(scales)} scales do not fit {len(axes)} axes")
    shape, rois = node.shape(), _roi(node, len(axes))
    return [_Axis(a, shape[a], int(shape[a] * s), s, r) for a, s, r in zip(axes, scales, rois, strict=True)]


def _by_sizes(node: Node) -> list[_Axis]:
    axes, shape = _chosen(node), node.shape()
    sizes = [int(n) for n in node.constant(3, "sizes").reshape(-1)]
    if len(sizes) != len(axes):
        raise UnsupportedNode(f"{len(sizes)} sizes do not fit {len(axes)} axes")
    scales = [n / shape[a] for n, a in zip(sizes, axes, strict=True)]
    policy, rois = str(node.get("keep_aspect_ratio_policy", "stretch")), _roi(node, len(axes))
    if policy == "stretch":
        return [_Axis(a, shape[a], n, s, r, True) for a, n, s, r in zip(axes, sizes, scales, rois, strict=True)]
    common = min(scales) if policy == "not_larger" else max(scales)
    return [
        _Axis(a, shape[a], int(common * shape[a] + 0.5), common, r, s == common, _Beside(policy, common, n))
        for a, n, s, r in zip(axes, sizes, scales, rois, strict=True)
    ]


def _resized(node: Node, axes: Sequence[_Axis], attributes: dict[str, Any], nearest: str) -> Value:
    x, mode = node.value(), str(node.get("mode", "nearest"))
    if mode != "nearest" and "float" not in x.dtype:
        return _of_whole_numbers(node, axes, attributes, nearest)
    moved = [a for a in axes if a.output != a.extent or not math.isclose(a.scale, 1.0) or a.roi != (0.0, 1.0)]
    if any(a.output < 1 for a in moved):
        raise UnsupportedNode("the result has no elements")
    if mode == "linear" and (plain := _bilinear(node, x, moved, attributes)) is not None:
        return plain
    outside = np.ones((), dtype=x.dtype)
    for a in moved:
        matrix, inside = _matrix(node, a, mode, {**attributes, "nearest_mode": nearest})
        if mode == "nearest":
            x = gathered(node, x, a.axis, matrix.argmax(axis=1))
        else:
            x = _multiplied(node, x, a.axis, matrix.astype(x.dtype))
        shape = [1] * len(x.shape)
        shape[a.axis] = a.output
        outside = outside * inside.astype(outside.dtype).reshape(shape)
    value = float(attributes.get("extrapolation_value", 0.0))
    if (outside == 1).all():
        return x
    if mode == "nearest":
        return node.net.where(outside == 1, x, node.number_like(value, x))
    return node.net.add(x, ((1 - outside) * value).astype(x.dtype)) if value else x


def _of_whole_numbers(node: Node, axes: Sequence[_Axis], attributes: dict[str, Any], nearest: str) -> Value:
    """Between whole numbers, cut to whole ones; those that are whole but for rounding stay, and none overflows."""
    x, net = node.value(), node.net
    wide = replace(node, operands=[net.cast(x, dtype="float64"), *node.operands[1:]])
    y = _resized(wide, axes, attributes, nearest)
    y = net.add(y, net.multiply(net.sign(y), 1e-6))
    if x.dtype != "int64":
        y = net.clip(y, low=float(np.iinfo(x.dtype).min), high=float(np.iinfo(x.dtype).max))
    return node.apply("cast", y, dtype=x.dtype)


def _bilinear(node: Node, x: Value, axes: Sequence[_Axis], attributes: dict[str, Any]) -> Value | None:
    """The network's own operator, where it means the same."""
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    if mode == "pytorch_half_pixel" and all(a.output > 1 for a in axes):
        mode = "half_pixel"
    special = attributes.get("antialias") or attributes.get("exclude_outside")
    if special or mode not in ("half_pixel", "asymmetric", "align_corners") or "float" not in x.dtype:
        return None
    if len(x.shape) != 4 or {a.axis for a in axes} - {2, 3}:
        return None
    if any(a.output < 1 or not math.isclose(a.scale * a.extent, a.output, rel_tol=1e-9) for a in axes):
        return None
    size = list(x.shape[2:])
    for a in axes:
        size[a.axis - 2] = a.output
    return node.apply("resize2d", x, size=size, method="bilinear", coordinate_mode=mode)


def _matrix(node: Node, axis: _Axis, mode: str, attributes: dict[str, Any]) -> tuple[Array, Array]:
    """Build a resize matrix, `(output, extent)`, from unit vectors, and a mask of the outputs that are inside."""
    from onnx import helper

    crops = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    for shape in ((axis.extent, axis.extent), (axis.output, axis.extent)):
        require_memory(f"the matrix that resizes axis {axis.axis}", TensorSize("float64", shape), constant=True)
    kept = {k: v for k, v in attributes.items() if k not in ("mode", "extrapolation_value")}
    if axis.beside is not None and not axis.sized:
        matrix, length = _matrix_beside(axis, axis.beside, mode, kept), axis.scale * axis.extent
        return _cropped(axis, matrix, length) if crops else (matrix, np.ones(axis.output, dtype=bool))
    by_scale = int(float(np.float32(axis.scale)) * axis.extent)  # as the reference implementation rounds
    exact = axis.output == by_scale and not axis.sized
    names = ["x", "roi" if crops else "", "scales" if exact else "", "" if exact else "sizes"]
    resize = helper.make_node("Resize", names, ["y"], mode=mode, extrapolation_value=0.0, **kept)
    given: dict[str, Array] = {"x": np.eye(axis.extent)}
    if crops:
        given["roi"] = np.array([0.0, axis.roi[0], 1.0, axis.roi[1]], dtype=np.float32)
    if exact:
        given["scales"] = np.array([1.0, axis.scale], dtype=np.float32)
    else:
        given["sizes"] = np.array([axis.extent, axis.output], dtype=np.int64)
    (made,) = evaluate(resize, given, {"": 19})
    matrix = np.asarray(made).T
    assert matrix.shape == (axis.output, axis.extent)
    if not crops:
        return matrix, np.ones(axis.output, dtype=bool)
    return _cropped(axis, matrix, axis.scale * axis.extent if exact else axis.output)


def _matrix_beside(axis: _Axis, beside: _Beside, mode: str, attributes: dict[str, Any]) -> Array:
    """Build a resize matrix for a scale that is not that of its own extents: beside an axis that has it.

    That is as long as a power of two, so that the quotient of its sizes is the scale in double precision, though its
    new one is no whole number: the reference implementation divides it before it rounds. What it rounds is no 0.
    """
    from onnx import helper

    extent = 2 ** max(0, math.ceil(math.log2(0.5 / beside.scale)))
    shape = axis.extent, axis.extent, extent
    require_memory(f"what resizes axis {axis.axis}", TensorSize("float64", shape), constant=True)
    options = {**attributes, "axes": [1, 2], "keep_aspect_ratio_policy": beside.policy}
    resize = helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], mode=mode, extrapolation_value=0.0, **options)
    given: dict[str, Array] = {
        "x": np.ascontiguousarray(np.broadcast_to(np.eye(axis.extent)[..., None], shape)),
        "roi": np.array([axis.roi[0], 0.0, axis.roi[1], 1.0], dtype=np.float32),
        "sizes": np.array([beside.asked, beside.scale * extent]),
    }
    (made,) = evaluate(resize, given, {"": 19})
    return np.asarray(made)[..., 0].T


def _cropped(axis: _Axis, matrix: Array, length: float) -> tuple[Array, Array]:
    """The matrix of a crop and a mask of the outputs that are inside; `length` is the new one before it is rounded.

    Places that roundings alone put out of an axis read its first or last element.
    """
    first, end, last = *axis.roi, axis.extent - 1
    steps = np.arange(axis.output) / (length - 1) if length != 1 else 0.5
    places = np.broadcast_to((first + steps * (end - first)) * last, axis.output)
    outside = (matrix == 0).all(axis=1)
    edges: Array = np.eye(axis.extent)[[0, last]]
    for edge, place in zip(edges, (0, last), strict=True):
        near = outside & (np.abs(places - place) < _ROUNDINGS * axis.extent)
        matrix = np.where(near[:, None], edge, matrix)
    return matrix, (matrix != 0).any(axis=1)


def _multiplied(node: Node, x: Value, axis: int, matrix: Array) -> Value:
    letters = _LETTERS[: len(x.shape)]
    equation = f"{letters},z{letters[axis]}->{letters.replace(letters[axis], 'z')}"
    return node.apply("einsum", x, matrix, equation=equation)
