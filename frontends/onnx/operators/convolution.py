"""Convolutions over one, two or three spatial axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node
from ._windows import Window, halves, short, window


def Conv(node: Node) -> Value:
    x, w = node.value(0), node.value(1)
    spatial = len(x.shape) - 2
    if spatial not in (1, 2, 3):
        raise UnsupportedNode(f"convolutions go over 1, 2 or 3 spatial axes, the data has {spatial}")
    win = window(node, x.shape[2:], node.ints("kernel_shape") or w.shape[2:])
    y = convolve(node, x, w, win, int(node.get("group", 1)))
    return node.apply("bias_add", y, node.value(2), axis=1) if node.has(2) else y


def convolve(node: Node, x: Value, w: Value, win: Window, groups: int) -> Value:
    """x (N, C, ...) with w (CO, C / groups, ...); one spatial axis is made two."""
    if len(x.shape) == 3:
        flat = convolve(node, _with_row(node, x), _with_row(node, w), _row_window(win), groups)
        return node.net.squeeze(flat, axis=2)
    options = {"stride": short(win.strides), "padding": win.padding, "dilation": short(win.dilations)}
    if len(x.shape) == 5:
        return node.apply("conv3d", x, w, groups=groups, **options)
    if groups == x.shape[1] and w.shape[1] == 1 and groups > 1:
        filters = node.net.reshape(w, shape=(groups, w.shape[0] // groups, *w.shape[2:]))
        return node.apply("depthwise_conv2d", x, filters, **options)
    return node.apply("conv2d", x, w, groups=groups, **options)


def ConvTranspose(node: Node) -> Value:
    x, w = node.value(0), node.value(1)
    spatial = len(x.shape) - 2
    if spatial not in (1, 2, 3):
        raise UnsupportedNode(f"convolutions go over 1, 2 or 3 spatial axes, the data has {spatial}")
    groups = int(node.get("group", 1))
    plain = Window(
        tuple(node.ints("kernel_shape") or w.shape[2:]),
        tuple(node.ints("strides") or [1] * spatial),
        tuple(node.ints("dilations") or [1] * spatial),
        (0,) * spatial,
        (0,) * spatial,
    )
    extra = tuple(node.ints("output_padding") or [0] * spatial)
    win = _transposed_padding(node, x, plain, extra)
    y = _transposed(node, x, w, win, extra, groups)
    return node.apply("bias_add", y, node.value(2), axis=1) if node.has(2) else y


def Col2Im(node: Node) -> Value:
    """Windows (N, C * K, L) added up to an image: a transposed convolution, by filters with a single one each."""
    x, image, kernel = node.value(), node.ints("image_shape", 1) or [], node.ints("block_shape", 2) or []
    count, size = len(kernel), prod(kernel)
    plain = Window(
        tuple(kernel),
        tuple(node.ints("strides") or [1] * count),
        tuple(node.ints("dilations") or [1] * count),
        *(tuple((node.ints("pads") or [0] * 2 * count)[k : k + count]) for k in (0, count)),
    )
    padded = [n + b + a for n, b, a in zip(image, plain.before, plain.after, strict=True)]
    steps = [(n - e) // s + 1 for n, e, s in zip(padded, plain.extents, plain.strides, strict=True)]
    extra = [n - (k - 1) * s - e for n, k, s, e in zip(padded, steps, plain.strides, plain.extents, strict=True)]
    channels = x.shape[1] // size
    ones = np.tile(np.eye(size), (channels, 1)).reshape(channels * size, 1, *kernel).astype(x.dtype)
    windows = node.net.reshape(x, shape=(x.shape[0], x.shape[1], *steps))
    attributes = {**node.attributes, "group": channels, "output_padding": extra}
    operands = [windows, node.net.constant(ones, "windows")]
    return ConvTranspose(replace(node, attributes=attributes, operands=operands, names=[""] * 2))


def _transposed_padding(node: Node, x: Value, win: Window, extra: tuple[int, ...]) -> Window:
    """The window with what is cut off before and after; an asked-for output shape decides it."""
    count = len(win.kernel)
    full = [(n - 1) * s + w + e for n, s, w, e in zip(x.shape[2:], win.strides, win.extents, extra, strict=True)]
    wanted, automatic = node.ints("output_shape"), node.get("auto_pad", "NOTSET")
    if wanted is None and automatic.startswith("SAME"):
        wanted = [n * s for n, s in zip(x.shape[2:], win.strides, strict=True)]
    if wanted is not None:
        totals = [f - o for f, o in zip(full, wanted[-count:], strict=True)]
        before, after = halves(totals, automatic if automatic.startswith("SAME") else "SAME_LOWER")
    else:
        pads = node.ints("pads") if automatic == "NOTSET" else None
        pads = pads or [0] * 2 * count
        before, after = tuple(pads[:count]), tuple(pads[count:])
    return Window(win.kernel, win.strides, win.dilations, before, after)


def _transposed(node: Node, x: Value, w: Value, win: Window, extra: tuple[int, ...], groups: int) -> Value:
    if len(x.shape) == 3:
        flat = _transposed(node, _with_row(node, x), _with_row(node, w), _row_window(win), (0, *extra), groups)
        return node.net.squeeze(flat, axis=2)
    simple = len(x.shape) == 4 and set(win.dilations) == {1} and min(*win.before, *win.after) >= 0
    if simple and all(e < s for e, s in zip(extra, win.strides, strict=True)):
        return node.apply(
            "conv2d_transpose",
            x,
            w,
            stride=short(win.strides),
            padding=win.padding,
            output_padding=extra,
            groups=groups,
        )
    return _by_convolution(node, x, w, win, extra, groups)


def _by_convolution(node: Node, x: Value, w: Value, win: Window, extra: tuple[int, ...], groups: int) -> Value:
    """Convolve the data, dilated with zeros, with flipped filters (a transposed convolution)."""
    net, count = node.net, len(win.kernel)
    spread = _zeros_between(node, x, win.strides)
    before = [e - 1 - b for e, b in zip(win.extents, win.before, strict=True)]
    after = [e - 1 - a + o for e, a, o in zip(win.extents, win.after, extra, strict=True)]
    padded = padded_or_cut(node, spread, [0, 0, *before], [0, 0, *after])
    turned = w
    for d in range(count):
        turned = net.flip(turned, axis=2 + d)
    per_group, made = w.shape[0] // groups, w.shape[1]
    turned = net.reshape(turned, shape=(groups, per_group, made, *win.kernel))
    turned = net.transpose(turned, axes=(0, 2, 1, *range(3, 3 + count)))
    turned = net.reshape(turned, shape=(groups * made, per_group, *win.kernel))
    still = Window(win.kernel, (1,) * count, win.dilations, (0,) * count, (0,) * count)
    return convolve(node, padded, turned, still, groups)


def _zeros_between(node: Node, x: Value, strides: tuple[int, ...]) -> Value:
    """Element k of each spatial axis at k * stride, zeros elsewhere, none behind the last."""
    net = node.net
    for d, stride in enumerate(strides, start=2):
        if stride == 1:
            continue
        shape = x.shape
        wide = net.reshape(x, shape=(*shape[: d + 1], 1, *shape[d + 1 :]))
        after = [0] * len(wide.shape)
        after[d + 1] = stride - 1
        wide = net.pad(wide, before=[0] * len(after), after=after)
        joined = net.reshape(wide, shape=(*shape[:d], shape[d] * stride, *shape[d + 1 :]))
        x = net.strided_slice(joined, begin=[0], end=[shape[d] * stride - stride + 1], axes=[d])
    return x


def padded_or_cut(node: Node, x: Value, before: list[int], after: list[int], value: float = 0.0) -> Value:
    """Padded where a number is positive, cut off where it is negative, axes that end as padding alone too."""
    net, rank = node.net, len(x.shape)
    left = [n + min(b, 0) + min(a, 0) for n, b, a in zip(x.shape, before, after, strict=True)]
    if min(left, default=1) < 1 and any(n > 0 for n in (*before, *after)):
        wide = net.pad(x, before=[max(b, 0) for b in before], after=[max(a, 0) for a in after], value=value)
        ends = [n + min(a, 0) for n, a in zip(wide.shape, after, strict=True)]
        begins = [max(-b, 0) for b in before]
        return net.strided_slice(wide, begin=begins, end=ends, axes=list(range(rank)))
    cut = [d for d in range(rank) if before[d] < 0 or after[d] < 0]
    if cut:
        begin = [max(-before[d], 0) for d in cut]
        end = [x.shape[d] - max(-after[d], 0) for d in cut]
        x = net.strided_slice(x, begin=begin, end=end, axes=cut)
    grown = [max(b, 0) for b in before], [max(a, 0) for a in after]
    return net.pad(x, before=grown[0], after=grown[1], value=value) if any(map(any, grown)) else x


def _with_row(node: Node, x: Value) -> Value:
    return node.net.reshape(x, shape=(*x.shape[:2], 1, prod(x.shape[2:])))


def _row_window(win: Window) -> Window:
    return Window((1, *win.kernel), (1, *win.strides), (1, *win.dilations), (0, *win.before), (0, *win.after))
