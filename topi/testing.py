"""Operators in plain NumPy, in double precision and with loops where they are clearest: what tests compare against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, floor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def _wide(array: Array) -> Array:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def convolve_python(
    data: Array,
    kernel: Array,
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """data (N, CI, *spatial), kernel (CO, CI / groups, *window) -> (N, CO, *output), any number of spatial axes."""
    padded = np.pad(_wide(data), [(0, 0), (0, 0), *zip(before, after, strict=True)])
    weights = _wide(kernel)
    window = kernel.shape[2:]
    output = [
        (e - (k - 1) * d - 1) // s + 1 for e, k, d, s in zip(padded.shape[2:], window, dilation, stride, strict=True)
    ]
    result = np.zeros((data.shape[0], kernel.shape[0], *output), dtype=padded.dtype)
    per_group_in, per_group_out = kernel.shape[1], kernel.shape[0] // groups
    for offset in product(*map(range, window)):
        places = tuple(
            slice(r * d, r * d + (o - 1) * s + 1, s)
            for r, d, o, s in zip(offset, dilation, output, stride, strict=True)
        )
        at: tuple[Any, ...] = (..., *offset)
        for g in range(groups):
            source = padded[(slice(None), slice(g * per_group_in, (g + 1) * per_group_in), *places)]
            taps = weights[g * per_group_out : (g + 1) * per_group_out][at]
            result[:, g * per_group_out : (g + 1) * per_group_out] += np.moveaxis(
                np.tensordot(source, taps, axes=(1, 1)), -1, 1
            )
    return result


def conv2d_nchw_python(
    data: Array,
    kernel: Array,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """data (N, CI, H, W), kernel (CO, CI / groups, KH, KW) -> (N, CO, OH, OW); padding is p, (h, w) or four numbers."""
    pads = [padding] * 4 if isinstance(padding, int) else [*padding, *padding][:4]
    steps = [stride] * 2 if isinstance(stride, int) else list(stride)
    dilations = [dilation] * 2 if isinstance(dilation, int) else list(dilation)
    return convolve_python(data, kernel, steps, pads[:2], pads[2:], dilations, groups)


def conv2d_nhwc_python(
    data: Array,
    kernel: Array,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """data (N, H, W, CI), kernel (KH, KW, CI / groups, CO) -> (N, OH, OW, CO)."""
    first = conv2d_nchw_python(
        data.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), stride, padding, dilation, groups
    )
    return first.transpose(0, 2, 3, 1)


def conv2d_transpose_nchw_python(
    data: Array,
    kernel: Array,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int = 1,
) -> Array:
    """data (N, CI, H, W), kernel (CI, CO / groups, KH, KW); padding (top, left, bottom, right); scatters pixels."""
    n, channels, height, width = data.shape
    per_group, kh, kw = kernel.shape[1:]
    full = np.zeros(
        (
            n,
            per_group * groups,
            (height - 1) * stride[0] + kh + output_padding[0],
            (width - 1) * stride[1] + kw + output_padding[1],
        )
    )
    depth = channels // groups
    for c, y, x in product(range(channels), range(height), range(width)):
        g = c // depth
        patch = data[:, c, y, x].astype(np.float64)[:, None, None, None] * kernel[c].astype(np.float64)[None]
        rows, columns = slice(y * stride[0], y * stride[0] + kh), slice(x * stride[1], x * stride[1] + kw)
        full[:, g * per_group : (g + 1) * per_group, rows, columns] += patch
    top, left, bottom, right = padding
    return full[:, :, top : full.shape[2] - bottom, left : full.shape[3] - right]


def pool_python(
    data: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    kind: str,
    dilation: Sequence[int] | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """data (N, C, *spatial) -> (N, C, *output); `kind` is max or avg. Windows are visited one by one."""
    steps = [1] * len(kernel) if dilation is None else list(dilation)
    extents = data.shape[2:]
    output = []
    for e, k, s, b, a, d in zip(extents, kernel, stride, before, after, steps, strict=True):
        count = (e + b + a - (k - 1) * d - 1) / s
        n = (ceil(count) if ceil_mode else floor(count)) + 1
        output.append(n - 1 if ceil_mode and (n - 1) * s >= e + b else n)
    result = np.empty((*data.shape[:2], *output))
    for place in product(*map(range, output)):
        starts = [p * s - b for p, s, b in zip(place, stride, before, strict=True)]
        inside = [
            [q for q in range(t, t + k * d, d) if 0 <= q < e]
            for t, k, d, e in zip(starts, kernel, steps, extents, strict=True)
        ]
        at: tuple[Any, ...] = (..., *place)
        values = data[np.ix_(range(data.shape[0]), range(data.shape[1]), *inside)].astype(np.float64)
        values = values.reshape(*data.shape[:2], -1)
        if kind == "max":
            result[at] = values.max(axis=-1)
            continue
        spans = zip(starts, kernel, extents, after, before, strict=True)
        sizes = [min(t + k, e + a) - max(t, -b) for t, k, e, a, b in spans]
        count = float(np.prod(sizes)) if count_include_pad else values.shape[-1]
        result[at] = values.sum(axis=-1) / count
    return result


def adaptive_pool_python(data: Array, output: Sequence[int], kind: str) -> Array:
    """data (N, C, H, W) -> (N, C, *output), windows from floor(o * E / O) to ceil((o + 1) * E / O)."""
    reduce: Callable[..., Any] = np.max if kind == "max" else np.mean
    result = np.empty((*data.shape[:2], *output))
    for y, x in product(*map(range, output)):
        (h, w), (oh, ow) = data.shape[2:], output
        rows = slice(y * h // oh, -(-(y + 1) * h // oh))
        columns = slice(x * w // ow, -(-(x + 1) * w // ow))
        result[:, :, y, x] = reduce(data[:, :, rows, columns].astype(np.float64), axis=(2, 3))
    return result


def softmax_python(data: Array, axis: int = -1) -> Array:
    """exp(x - max) over its sum along `axis`."""
    shifted = np.exp(_wide(data) - data.max(axis=axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=axis, keepdims=True))


def layer_norm_python(data: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, without scale and shift."""
    x = _wide(data)
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


def lrn_python(data: Array, size: int, axis: int, alpha: float, beta: float, bias: float) -> Array:
    """x / (bias + alpha / size * squares of the neighbours along `axis`) ^ beta."""
    x = np.moveaxis(_wide(data), axis, 0)
    squares = np.zeros_like(x)
    for c in range(x.shape[0]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[0], c + size // 2 + 1)
        squares[c] = (x[low:high] ** 2).sum(axis=0)
    return np.moveaxis(x / (bias + alpha / size * squares) ** beta, 0, axis)


def resize2d_python(data: Array, size: Sequence[int], method: str, mode: str) -> Array:
    """data (N, C, H, W) -> (N, C, *size), pixel by pixel from the coordinate's formula."""
    result = np.empty((*data.shape[:2], *size))
    for y, x in product(*map(range, size)):
        points = [_coordinate(o, e, n, method, mode) for o, e, n in zip((y, x), data.shape[2:], size, strict=True)]
        if method == "nearest":
            row, column = (min(max(int(p), 0), e - 1) for p, e in zip(points, data.shape[2:], strict=True))
            result[:, :, y, x] = data[:, :, row, column]
            continue
        total = np.zeros(data.shape[:2])
        for dy, dx in product((0, 1), (0, 1)):
            weight = 1.0
            at = []
            for p, d, e in zip(points, (dy, dx), data.shape[2:], strict=True):
                low = floor(p)
                weight *= p - low if d else 1 - (p - low)
                at.append(min(max(low + d, 0), e - 1))
            total += weight * data[:, :, at[0], at[1]]
        result[:, :, y, x] = total
    return result


def _coordinate(o: int, extent: int, output: int, method: str, mode: str) -> float:
    if mode == "align_corners":
        point = o * (extent - 1) / (output - 1) if output > 1 else 0.0
        return floor(point + 0.5) if method == "nearest" else point
    if mode == "asymmetric":
        return (o * extent) // output if method == "nearest" else o * extent / output
    if method == "nearest":
        return ((2 * o + 1) * extent) // (2 * output)
    return (o + 0.5) * extent / output - 0.5
