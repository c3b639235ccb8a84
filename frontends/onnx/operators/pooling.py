"""Pools over one, two or three spatial axes."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node
from ._windows import Window, window

_LAYOUTS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


def _layout(node: Node) -> str:
    rank = len(node.shape())
    if rank not in _LAYOUTS:
        raise UnsupportedNode(f"pools go over 1, 2 or 3 spatial axes, the data has {rank - 2}")
    return _LAYOUTS[rank]


def _window(node: Node) -> Window:
    kernel = node.ints("kernel_shape")
    if kernel is None:
        raise UnsupportedNode("kernel_shape is missing")
    return window(node, node.shape()[2:], kernel)


def MaxPool(node: Node) -> Value | list[Value]:
    layout, win = _layout(node), _window(node)
    options = {
        "kernel": win.kernel,
        "stride": win.strides,
        "padding": win.padding,
        "dilation": win.dilations,
        "ceil_mode": bool(node.get("ceil_mode", 0)),
    }
    pooled = node.apply("max_pool", node.value(), layout=layout, **options)
    if len(node.results) < 2 or not node.results[1]:
        return pooled
    places = node.apply("max_pool_places", node.value(), column_major=bool(node.get("storage_order", 0)), **options)
    return [pooled, node.net.cast(places, dtype="int64")]


def AveragePool(node: Node) -> Value:
    layout, win = _layout(node), _window(node)
    count_padding, ceil_mode = bool(node.get("count_include_pad", 0)), bool(node.get("ceil_mode", 0))
    if set(win.dilations) != {1}:
        return _dilated_average(node, win, count_padding, ceil_mode)
    return node.apply(
        "avg_pool",
        node.value(),
        kernel=win.kernel,
        stride=win.strides,
        padding=win.padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_padding,
        layout=layout,
    )


def _dilated_average(node: Node, win: Window, count_padding: bool, ceil_mode: bool) -> Value:
    """Sums of windows, as a convolution with ones of each channel, divided by how many elements each has."""
    from .convolution import convolve

    x = node.value()
    if ceil_mode:
        raise UnsupportedNode("ceil_mode with dilations is not supported")
    channels = x.shape[1]
    ones = np.ones((channels, 1, *win.kernel), dtype=x.dtype)
    total = convolve(node, x, node.lift(ones, f"{node.label}_ones"), win, channels)
    if count_padding:
        return total * (1.0 / prod(win.kernel))
    counts = np.ones((), dtype=x.dtype)
    for d, n in enumerate(x.shape[2:]):
        starts = np.arange(total.shape[2 + d]) * win.strides[d] - win.before[d]
        places = starts[:, None] + np.arange(win.kernel[d]) * win.dilations[d]
        inside = ((places >= 0) & (places < n)).sum(axis=1).astype(x.dtype)
        counts = counts[..., None] * inside
    return node.apply("multiply", total, 1.0 / counts)


def GlobalMaxPool(node: Node) -> Value:
    return node.apply("global_max_pool", node.value(), layout=_layout(node))


def GlobalAveragePool(node: Node) -> Value:
    return node.apply("global_avg_pool", node.value(), layout=_layout(node))


def LpPool(node: Node) -> Value:
    """The p-norm of each window, from the mean of powers, padding counted as zeros."""
    layout, win, p = _layout(node), _window(node), float(node.get("p", 2))
    if set(win.dilations) != {1}:
        raise UnsupportedNode("dilations are not supported")
    powers = node.net.power(node.net.abs(node.value()), p)
    mean = node.net.avg_pool(
        powers,
        kernel=win.kernel,
        stride=win.strides,
        padding=win.padding,
        ceil_mode=bool(node.get("ceil_mode", 0)),
        count_include_pad=True,
        layout=layout,
    )
    return node.apply("power", mean * float(prod(win.kernel)), 1.0 / p)


def GlobalLpPool(node: Node) -> Value:
    p, axes = float(node.get("p", 2)), tuple(range(2, len(node.shape())))
    powers = node.net.power(node.net.abs(node.value()), p)
    return node.apply("power", node.net.sum(powers, axis=axes, keepdims=True), 1.0 / p)
