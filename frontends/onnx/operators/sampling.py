"""Sampling of images at given places: grids, boxes, and places that a convolution is told to read at."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node
from ._windows import Window, window
from .convolution import convolve

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


def RoiAlign(node: Node) -> Value:
    """Boxes of feature maps (N, C, H, W), pooled to one size; how many places a bin has must be known."""
    samples = int(node.get("sampling_ratio", 0))
    if samples < 1:
        raise UnsupportedNode("sampling_ratio is 0, so that boxes say how many places are read; give a number of them")
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    return node.apply(
        "roi_align",
        node.value(0),
        node.value(1),
        node.value(2),
        size=(int(node.get("output_height", 1)), int(node.get("output_width", 1))),
        samples=samples,
        scale=float(node.get("spatial_scale", 1.0)),
        half_pixel=node.get("coordinate_transformation_mode", default) == "half_pixel",
        mode=str(node.get("mode", "avg")).lower(),
    )


def DeformConv(node: Node) -> Value:
    """A convolution whose filters read where offsets say, between elements: a convolution of what is sampled there."""
    x, w, net = node.value(0), node.value(1), node.net
    if len(x.shape) != 4:
        raise UnsupportedNode(f"deformable convolutions go over 2 spatial axes, the data has {len(x.shape) - 2}")
    win = window(node, x.shape[2:], node.ints("kernel_shape") or w.shape[2:])
    groups, size, made = int(node.get("offset_group", 1)), prod(win.kernel), node.shape(2)[2:]
    samples, channels, places = x.shape[0] * groups, x.shape[1] // groups, size * prod(made)
    grid = _deformed_grid(node, win, samples, made)
    images = net.reshape(x, shape=(samples, channels, *x.shape[2:]))
    extents = x.shape[:1:-1]
    read = net.sample(images, net.sampling_places(grid, extents=extents), net.sampling_weights(grid, extents=extents))
    if node.has(4):
        read = net.multiply(read, net.reshape(node.value(4), shape=(samples, 1, places)))
    read = net.reshape(read, shape=(*x.shape[:2], size, prod(made)))
    filters = net.reshape(w, shape=(*w.shape[:2], size, 1))
    column = Window((size, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    y = net.reshape(
        convolve(node, read, filters, column, int(node.get("group", 1))), shape=(x.shape[0], w.shape[0], *made)
    )
    return node.apply("bias_add", y, node.value(3), axis=1) if node.has(3) else y


def _deformed_grid(node: Node, win: Window, samples: int, made: tuple[int, ...]) -> Value:
    """Places of the elements of each window, moved by offsets (N, groups * size * 2, ...), as a grid (N, P, 2)."""
    net, size, count = node.net, prod(win.kernel), prod(made)
    moved = net.reshape(node.value(2), shape=(samples, size, 2, count))
    moved = net.flip(net.transpose(moved, axes=(0, 1, 3, 2)), axis=3)
    axes = []
    for d, extent in enumerate(node.shape()[2:]):
        starts = np.arange(made[d]) * win.strides[d] - win.before[d]
        steps = np.arange(win.kernel[d]) * win.dilations[d]
        place = np.empty((*win.kernel, *made))
        place[...] = steps.reshape([-1 if k == d else 1 for k in range(4)]) + starts.reshape(
            [-1 if k == 2 + d else 1 for k in range(4)]
        )
        axes.append((2 * place.reshape(size, count) + 1) / extent - 1)
    start = np.stack(axes[::-1], axis=-1).astype(moved.dtype)
    step = (2 / np.array(node.shape()[:1:-1])).astype(moved.dtype)
    grid = net.add(net.multiply(moved, step), start)
    return net.reshape(grid, shape=(samples, size * count, 2))
