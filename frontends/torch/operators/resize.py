"""Resizing of images, and sampling of them at places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....graph.network import Value
from ...onnx.operators.resize import Resize
from ...onnx.operators.sampling import GridSample
from ..errors import UnsupportedNode
from ..node import Node, aten
from ..onnx_form import as_onnx


def _image(node: Node) -> Value:
    return node.value("input" if "input" in node.arguments else "self")


def _resized(node: Node, method: str, mode: str) -> Any:
    x, size = _image(node), node.shape[2:]
    if method != "cubic" and len(size) == 2 and _is_exact(node):
        return node.apply(
            "resize2d", x, size=size, method={"linear": "bilinear"}.get(method, method), coordinate_mode=mode
        )
    return _by_matrices(node, method, mode, {})


def _scales(node: Node) -> list[float] | None:
    """The factors that say where elements are looked for; None where extents do."""
    if "scale_factors" in node.arguments:
        found = node["scale_factors"]
    else:
        found = [node[name] for name in ("scales", "scales_d", "scales_h", "scales_w") if name in node.arguments]
    return [float(f) for f in found] if found and all(f is not None for f in found) else None


def _is_exact(node: Node) -> bool:
    extents = zip(_scales(node) or (), _image(node).shape[2:], node.shape[2:], strict=False)
    return all(factor * n == made for factor, n, made in extents)


def _by_matrices(node: Node, method: str, mode: str, more: dict[str, Any]) -> Any:
    x, size = _image(node), node.shape[2:]
    if "float" not in x.dtype:
        raise UnsupportedNode(f"resizing of {x.dtype} stays PyTorch's")
    scales = _scales(node) if mode != "align_corners" else None
    attributes = {
        "mode": method,
        "coordinate_transformation_mode": mode,
        "cubic_coeff_a": -0.75,
        "nearest_mode": "floor" if mode == "asymmetric" else "round_prefer_ceil",
        "axes": list(range(2, len(x.shape))),
        **more,
    }
    if scales is not None and not more:
        return as_onnx(node, Resize, [x, None, np.asarray(scales, np.float32)], attributes)
    return as_onnx(node, Resize, [x, None, None, np.asarray(size, np.int64)], attributes)


def _nearest(node: Node, mode: str, offset: float) -> Any:
    """Elements at places as single precision rounds them: PyTorch's, which by extents alone are at times others."""
    x, extents = _image(node), node.shape[2:]
    factors: Sequence[float | None] = _scales(node) or [None] * len(extents)
    found = [_places(*axis, offset) for axis in zip(x.shape[2:], extents, factors, strict=True)]
    exact = [_exact_places(*axis, offset) for axis in zip(x.shape[2:], extents, strict=True)]
    if _is_exact(node) and all(map(np.array_equal, found, exact)):
        return _resized(node, "nearest", mode)
    for axis, places in enumerate(found, 2):
        if not np.array_equal(places, np.arange(x.shape[axis])):
            x = node.apply("take", x, node.net.constant(places, "places"), axis=axis)
    return x


def _places(extent: int, made: int, factor: float | None, offset: float) -> Any:
    """The elements of an axis that results are, by the factor that was asked for, or else by the extents.

    Of factors such as 1.05 and 2.05, where results are as many or twice as many as elements, PyTorch has two answers,
    by the image's size and layout: this one, and that of 1 and 2.
    """
    step = np.float32(1 / factor) if factor else np.float32(extent) / np.float32(made)
    places = (np.arange(made, dtype=np.float32) + np.float32(offset)) * step
    return np.minimum(places.astype(np.int64), extent - 1)


def _exact_places(extent: int, made: int, offset: float) -> Any:
    """The same by the extents, without rounding."""
    doubled = 2 * np.arange(made) + int(2 * offset)
    return doubled * extent // (2 * made)


def _linear(node: Node) -> Any:
    return _resized(node, "linear", "align_corners" if node["align_corners"] else "half_pixel")


linear = aten(
    *(f"upsample_{name}.{form}" for name in ("linear1d", "bilinear2d", "trilinear3d") for form in ("vec", "default"))
)(_linear)


@aten("upsample_bicubic2d.vec", "upsample_bicubic2d.default")
def bicubic(node: Node) -> Any:
    return _resized(node, "cubic", "align_corners" if node["align_corners"] else "half_pixel")


@aten(
    *(f"_upsample_{name}2d_aa.{form}" for name in ("bilinear", "bicubic") for form in ("vec", "default")),
)
def smoothed(node: Node) -> Any:
    """Averages over so much of the image as one pixel of the result covers."""
    if node["align_corners"]:
        raise UnsupportedNode("smooth resizing with aligned corners stays PyTorch's")
    cubic = "bicubic" in node.operator
    more = {"antialias": 1, "cubic_coeff_a": -0.5, "exclude_outside": 1}
    return _by_matrices(node, "cubic" if cubic else "linear", "half_pixel", more)


@aten(*(f"upsample_nearest{axes}d.{form}" for axes in (1, 2, 3) for form in ("vec", "default")))
def nearest(node: Node) -> Any:
    return _nearest(node, "asymmetric", 0.0)


@aten(*(f"_upsample_nearest_exact{axes}d.{form}" for axes in (1, 2, 3) for form in ("vec", "default")))
def nearest_exact(node: Node) -> Any:
    return _nearest(node, "half_pixel", 0.5)


@aten("grid_sampler_2d.default", "grid_sampler_3d.default")
def grid_sampler(node: Node) -> Any:
    """Elements at places that a tensor gives, by products with the weights of each row and column."""
    x, grid = node.value("input"), node.value("grid")
    attributes = {
        "mode": ("linear", "nearest", "cubic")[node["interpolation_mode"]],
        "padding_mode": ("zeros", "border", "reflection")[node["padding_mode"]],
        "align_corners": int(node["align_corners"]),
    }
    return as_onnx(node, GridSample, [x, grid], attributes)
