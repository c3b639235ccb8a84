"""Transposed two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Sequence

from ...te import ShapeError, Tensor, all, compute, reduce_axis, select, sum
from ...te.errors import format_shape
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..arguments import Ints, Padding, padding_of, require_rank, spread
from .convolution import accumulator_type, named_output


def conv2d_transpose_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints | tuple[int, int] = (0, 0),
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """data (N, CI, H, W), kernel (CI, CO / groups, KH, KW) -> (N, CO, OH, OW).

    OH = (H - 1) * stride - padding (before and after) + KH + output_padding: the gradient of a convolution.
    """
    operator = "conv2d_transpose_nchw"
    return _transposed(operator, data, kernel, stride, padding, output_padding, groups, out_dtype, False)


def conv2d_transpose_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints | tuple[int, int] = (0, 0),
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """data (N, H, W, CI), kernel (KH, KW, CI, CO / groups) -> (N, OH, OW, CO), as `conv2d_transpose_nchw`."""
    operator = "conv2d_transpose_nhwc"
    return _transposed(operator, data, kernel, stride, padding, output_padding, groups, out_dtype, True)


def _transposed(
    operator: str,
    data: Tensor,
    kernel: Tensor,
    stride: Ints,
    padding: Padding,
    output_padding: Ints | tuple[int, int],
    groups: int,
    out_dtype: str | None,
    channels_last: bool,
) -> Tensor:
    require_rank(operator, 4, data=data, kernel=kernel)
    batch, channels = data.shape[0], data.shape[-1 if channels_last else 1]
    extents = data.shape[1:-1] if channels_last else data.shape[2:]
    depth, per_group = kernel.shape[2:] if channels_last else kernel.shape[:2]
    window = kernel.shape[:2] if channels_last else kernel.shape[2:]
    if channels != depth or groups < 1 or channels % groups:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit with "
            f"groups={groups}: {channels} input channels, kernel for {depth}"
        )
    strides = spread(operator, "stride", stride, 2)
    if isinstance(padding, str):
        raise ShapeError(f"{operator}: padding is given as integers, got '{padding}'")
    before, after = padding_of(operator, padding, extents, window, strides)
    extra = _extra_rows(operator, output_padding, strides)
    output = tuple(
        (n - 1) * s - b - a + k + e
        for n, s, b, a, k, e in zip(extents, strides, before, after, window, extra, strict=True)
    )
    if min(output) < 1:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)}, kernel {format_shape(kernel.shape)}, stride {strides} and "
            f"padding {(*before, *after)} leave no output"
        )
    spread_out = _dilate_and_pad(data, 1 if channels_last else 2, output, window, strides, before)
    dtype = accumulator_type(data.dtype, out_dtype)
    depth = channels // groups
    rc, ry, rx = reduce_axis((0, depth), "rc"), reduce_axis((0, window[0]), "ry"), reduce_axis((0, window[1]), "rx")
    flipped = (window[0] - 1 - ry, window[1] - 1 - rx)

    def product(n: Expr, f: Expr, position: Sequence[Expr]) -> Reduce:
        at = (position[0] + ry, position[1] + rx)
        channel, filter_ = (rc, f) if groups == 1 else (f // per_group * depth + rc, f % per_group)
        source = (n, *at, channel) if channels_last else (n, channel, *at)
        weight = (*flipped, channel, filter_) if channels_last else (channel, filter_, *flipped)
        axes = (ry, rx, rc) if channels_last else (rc, ry, rx)
        return sum(spread_out[source].astype(dtype) * kernel[weight].astype(dtype), axis=axes)

    return named_output(batch, per_group * groups, output, product, channels_last)


def _extra_rows(operator: str, output_padding: Ints | tuple[int, int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return what is added to each output extent; ShapeError where a stride would skip it."""
    extra = (output_padding,) * 2 if isinstance(output_padding, int) else tuple(output_padding)
    if len(extra) != 2 or any(not 0 <= e < s for e, s in zip(extra, strides, strict=True)):
        raise ShapeError(f"{operator}: output_padding {output_padding} must be at least 0 and below stride {strides}")
    return extra


def _dilate_and_pad(
    data: Tensor,
    first: int,
    output: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    before: Sequence[int],
) -> Tensor:
    """`data` with stride - 1 zeros between elements along the spatial axes, `first` and the next.

    Shifted so that a plain convolution gives `output`.
    """
    spatial = slice(first, first + 2)
    shape = list(data.shape)
    shape[spatial] = [o + k - 1 for o, k in zip(output, window, strict=True)]
    starts = tuple(k - 1 - b for k, b in zip(window, before, strict=True))

    def element(*indices: Expr) -> Expr:
        conditions: list[Expr] = []
        source = list(indices)
        for d, (p, f, s) in enumerate(zip(indices[spatial], starts, strides, strict=True), first):
            offset = p - f if f else p
            conditions += [offset >= 0, offset <= (data.shape[d] - 1) * s]
            conditions += [offset % s == 0] if s > 1 else []
            source[d] = offset // s if s > 1 else offset
        return select(all(*conditions), data[tuple(source)], 0)

    result: Tensor = compute(tuple(shape), element, "pad_temp", ("i0", "i1", "i2", "i3"))
    return result
