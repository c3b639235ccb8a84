"""Resizing of images."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedNode
from ..node import Node, aten


def _resized(node: Node, method: str, mode: str) -> Any:
    x, size = node.value("input"), node.shape[2:]
    factors = node.arguments.get("scale_factors")
    exact = factors is None or all(f * n == o for f, n, o in zip(factors, x.shape[2:], size, strict=True))
    if not exact:
        raise UnsupportedNode("factors that do not give whole extents stay PyTorch's")
    return node.apply("resize2d", x, size=size, method=method, coordinate_mode=mode)


@aten("upsample_bilinear2d.vec")
def bilinear(node: Node) -> Any:
    return _resized(node, "bilinear", "align_corners" if node["align_corners"] else "half_pixel")


@aten("upsample_nearest2d.vec")
def nearest(node: Node) -> Any:
    return _resized(node, "nearest", "asymmetric")
