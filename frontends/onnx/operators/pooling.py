"""Pools over one, two or three spatial axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ....dialects.graph import ApplyOp
from ....graph.network import Value
from ....graph.types import shape_of
from ..errors import UnsupportedNode
from ..node import Node
from ._windows import Window, short, window
from .convolution import convolve, padded_or_cut

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


def MaxUnpool(node: Node) -> Value:
    """Elements (N, C, ...) at the places, counted over all of the data, that a MaxPool took them from; zeros elsewhere.

    Where windows of that pool do not overlap, each element of the result has one that can be its own. Otherwise each
    looks at all of its channel.
    """
    x, places, net = node.value(), node.value(1), node.net
    kernel = tuple(node.ints("kernel_shape") or ())
    count = len(kernel)
    strides, pads = tuple(node.ints("strides") or [1] * count), node.ints("pads") or [0] * 2 * count
    made = [
        (n - 1) * s - pads[d] - pads[count + d] + k
        for d, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    planes, plane = prod(x.shape[:2]), prod(made)
    first = (np.arange(planes, dtype=places.dtype) * plane).reshape(*x.shape[:2], *[1] * count)
    within = net.subtract(places, first)
    if _is_of(places, made, {"kernel": short(kernel), "stride": short(strides)}) and not any(pads):
        y = _spread(node, x, within, made, strides)
    else:
        rows, zeros = prod(x.shape[2:]), net.constant(np.zeros((planes, plane), x.dtype), "zeros")
        flat = [net.reshape(value, shape=(planes, rows)) for value in (within, x)]
        y = net.reshape(net.scatter_elements(zeros, *flat, axis=1), shape=(*x.shape[:2], *made))
    wanted = node.ints("output_shape", 2)
    after = [0] * len(x.shape) if wanted is None else [w - n for w, n in zip(wanted, y.shape, strict=True)]
    return padded_or_cut(node, y, [0] * len(x.shape), after)


def _is_of(places: Value, extents: Sequence[int], options: Mapping[str, Any]) -> bool:
    """True where places are those of a max pool of such options, without padding, whose windows do not overlap."""
    owner = places.ssa.owner
    while isinstance(owner, ApplyOp) and owner.operator.data == "cast":
        owner = owner.inputs[0].owner
    if not isinstance(owner, ApplyOp) or owner.operator.data != "max_pool_places":
        return False
    given = {"stride": owner.options.values.get("kernel"), **owner.options.values}
    apart = np.all(np.asarray(options["stride"]) >= np.asarray(options["kernel"]))
    return bool(apart) and given == dict(options) and tuple(shape_of(owner.inputs[0])[2:]) == tuple(extents)


def _spread(node: Node, x: Value, within: Value, extents: Sequence[int], strides: Sequence[int]) -> Value:
    """Elements at places of their own blocks of `strides`, zeros elsewhere; cut to extents."""
    net = node.net
    wide = [n for size in zip(x.shape[2:], [1] * len(strides), strict=True) for n in size]
    blocks = [n for size in zip(x.shape[2:], strides, strict=True) for n in size]
    full = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    own = np.full(full, -1, dtype=within.dtype)
    cut = tuple(slice(0, min(n, e)) for n, e in zip(full, extents, strict=True))
    own[cut] = np.arange(prod(extents)).reshape(*extents)
    shape = (*x.shape[:2], *wide)
    is_own = net.equal(net.reshape(within, shape=shape), own.reshape(blocks))
    y = net.where(is_own, net.reshape(x, shape=shape), np.zeros((), x.dtype))
    y = net.reshape(y, shape=(*x.shape[:2], *full))
    return padded_or_cut(node, y, [0] * len(y.shape), [0, 0, *(e - n for e, n in zip(extents, full, strict=True))])


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
