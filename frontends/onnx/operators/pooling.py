"""Pools over one, two or three spatial axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node
from ._windows import Window, short, window
from .convolution import convolve

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
        "kernel": short(win.kernel),
        "stride": short(win.strides),
        "padding": win.padding,
        "dilation": short(win.dilations),
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
        kernel=short(win.kernel),
        stride=short(win.strides),
        padding=win.padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_padding,
        layout=layout,
    )


def _dilated_average(node: Node, win: Window, count_padding: bool, ceil_mode: bool) -> Value:
    """Sums of windows divided by how many elements each has, those of the padding included or not."""
    x, counts = node.value(), np.ones(())
    total, steps = _window_sums(node, x, win, ceil_mode)
    for d, n in enumerate(x.shape[2:]):
        starts = np.arange(steps[d]) * win.strides[d] - win.before[d]
        places = starts[:, None] + np.arange(win.kernel[d]) * win.dilations[d]
        low, high = (-win.before[d], n + win.after[d]) if count_padding else (0, n)
        counts = counts[..., None] * ((places >= low) & (places < high)).sum(axis=1)
    return node.apply("multiply", total, (1.0 / counts).astype(x.dtype))


def _window_sums(node: Node, x: Value, win: Window, ceil_mode: bool) -> tuple[Value, list[int]]:
    """Sums of windows with gaps, as a convolution of each channel with ones; and how many windows there are."""
    after, counts = list(win.after), []
    for d, n in enumerate(x.shape[2:]):
        steps, rest = divmod(n + win.before[d] + win.after[d] - win.extents[d], win.strides[d])
        if ceil_mode and rest and (steps + 1) * win.strides[d] < n + win.before[d]:
            steps += 1
            after[d] += win.strides[d] - rest
        counts.append(steps + 1)
    ones = np.ones((x.shape[1], 1, *win.kernel), dtype=x.dtype)
    grown = replace(win, after=tuple(after))
    return convolve(node, x, node.lift(ones, f"{node.label}_ones"), grown, x.shape[1]), counts


def GlobalMaxPool(node: Node) -> Value:
    return node.apply("global_max_pool", node.value(), layout=_layout(node))


def GlobalAveragePool(node: Node) -> Value:
    return node.apply("global_avg_pool", node.value(), layout=_layout(node))


def LpPool(node: Node) -> Value:
    """The p-norm of each window, from the mean of powers, padding counted as zeros."""
    layout, win, p = _layout(node), _window(node), float(node.get("p", 2))
    powers = node.net.power(node.net.abs(node.value()), p)
    if set(win.dilations) != {1}:
        total, _ = _window_sums(node, powers, win, bool(node.get("ceil_mode", 0)))
        return node.apply("power", total, 1.0 / p)
    mean = node.net.avg_pool(
        powers,
        kernel=short(win.kernel),
        stride=short(win.strides),
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
