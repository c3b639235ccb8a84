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
    require_rank(operator, 4, data=data, kernel=kernel)
    batch, channels, *extents = data.shape
    per_group, window = kernel.shape[1], kernel.shape[2:]
    if channels != kernel.shape[0] or groups < 1 or channels % groups:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} and kernel {format_shape(kernel.shape)} do not fit with "
            f"groups={groups}: {channels} input channels, kernel for {kernel.shape[0]}"
        )
    strides = spread(operator, "stride", stride, 2)
    if isinstance(padding, str):
        raise ShapeError(f"{operator}: padding is given as integers, got '{padding}'")
    before, after = padding_of(operator, padding, extents, window, strides)
    extra = (output_padding,) * 2 if isinstance(output_padding, int) else tuple(output_padding)
    if len(extra) != 2 or any(not 0 <= e < s for e, s in zip(extra, strides, strict=True)):
        raise ShapeError(f"{operator}: output_padding {output_padding} must be at least 0 and below stride {strides}")
    output = tuple(
        (n - 1) * s - b - a + k + e
        for n, s, b, a, k, e in zip(extents, strides, before, after, window, extra, strict=True)
    )
    if min(output) < 1:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)}, kernel {format_shape(kernel.shape)}, stride {strides} and "
            f"padding {(*before, *after)} leave no output"
        )
    spread_out = _dilate_and_pad(data, output, window, strides, before)
    dtype = accumulator_type(data.dtype, out_dtype)
    depth = channels // groups
    rc, ry, rx = reduce_axis((0, depth), "rc"), reduce_axis((0, window[0]), "ry"), reduce_axis((0, window[1]), "rx")

    def product(n: Expr, f: Expr, position: Sequence[Expr]) -> Reduce:
        y, x = position
        channel, filter_ = (rc, f) if groups == 1 else (f // per_group * depth + rc, f % per_group)
        weight = kernel[channel, filter_, window[0] - 1 - ry, window[1] - 1 - rx]
        return sum(spread_out[n, channel, y + ry, x + rx].astype(dtype) * weight.astype(dtype), axis=(rc, ry, rx))

    return named_output(batch, per_group * groups, output, product, False)


def _dilate_and_pad(
    data: Tensor, output: Sequence[int], window: Sequence[int], strides: Sequence[int], before: Sequence[int]
) -> Tensor:
    """`data` with stride - 1 zeros between elements, shifted so that a plain convolution gives `output`."""
    shape = (*data.shape[:2], *(o + k - 1 for o, k in zip(output, window, strict=True)))
    first = tuple(k - 1 - b for k, b in zip(window, before, strict=True))

    def element(n: Expr, c: Expr, *position: Expr) -> Expr:
        conditions: list[Expr] = []
        source: list[Expr] = []
        for p, f, s, extent in zip(position, first, strides, data.shape[2:], strict=True):
            offset = p - f if f else p
            conditions += [offset >= 0, offset <= (extent - 1) * s]
            conditions += [offset % s == 0] if s > 1 else []
            source.append(offset // s if s > 1 else offset)
        return select(all(*conditions), data[(n, c, *source)], 0)

    result: Tensor = compute(shape, element, "pad_temp", ("i0", "i1", "i2", "i3"))
    return result
