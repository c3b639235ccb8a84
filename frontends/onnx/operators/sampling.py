"""Sampling of images at given places."""

from __future__ import annotations

from math import prod

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node

_METHODS = {"bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic", "nearest": "nearest"}


def GridSample(node: Node) -> Value:
    """Elements (N, C, ...) at places (N, ..., axes), which name the last axis of the data first."""
    x, grid, net = node.value(0), node.value(1), node.net
    axes = len(x.shape) - 2
    mode = str(node.get("mode", "linear"))
    if axes < 1 or grid.shape[-1] != axes or mode not in _METHODS:
        raise UnsupportedNode(f"mode {mode} of data {x.shape} at places {grid.shape} is not supported")
    flat = net.reshape(grid, shape=(x.shape[0], prod(grid.shape[1:-1]), axes))
    options = {
        "extents": x.shape[:1:-1],
        "method": _METHODS[mode],
        "padding": node.get("padding_mode", "zeros"),
        "align_corners": bool(node.get("align_corners", 0)),
    }
    y = node.apply("sample", x, net.sampling_places(flat, **options), net.sampling_weights(flat, **options))
    return net.reshape(y, shape=(*x.shape[:2], *grid.shape[1:-1]))
