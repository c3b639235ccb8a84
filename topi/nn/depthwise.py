"""Depthwise convolution: every channel has kernels of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ...te import ShapeError, Tensor, sum
from ...te.errors import format_shape
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..arguments import Ints, Padding, require_rank
from .convolution import accumulator_type, named_output, slide


def depthwise_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, C, H, W), kernel (C, M, KH, KW) -> (N, C * M, OH, OW); output channel c * M + m reads channel c.

    Options are those of `topi.nn.conv2d_nchw`.
    """
    require_rank("depthwise_conv2d_nchw", 4, data=data, kernel=kernel)
    _require_channels("depthwise_conv2d_nchw", data, kernel, data.shape[1], kernel.shape[0])
    channels, multiplier = kernel.shape[:2]
    window = slide("depthwise_conv2d_nchw", data, 2, kernel.shape[2:], stride, padding, dilation, pad_value)
    dtype = accumulator_type(data.dtype, out_dtype)

    def product(n: Expr, f: Expr, position: Sequence[Expr]) -> Reduce:
        c, m = channel_of(f, multiplier)
        value = window.data[(n, c, *window.at(position))].astype(dtype)
        return sum(value * kernel[(c, m, *window.axes)].astype(dtype), axis=window.axes)

    return named_output(data.shape[0], channels * multiplier, window.output, product, False, "depthwise_conv2d")


def depthwise_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, H, W, C), kernel (KH, KW, C, M) -> (N, OH, OW, C * M); output channel c * M + m reads channel c.

    Options are those of `topi.nn.conv2d_nchw`.
    """
    require_rank("depthwise_conv2d_nhwc", 4, data=data, kernel=kernel)
    _require_channels("depthwise_conv2d_nhwc", data, kernel, data.shape[3], kernel.shape[2])
    channels, multiplier = kernel.shape[2:]
    window = slide("depthwise_conv2d_nhwc", data, 1, kernel.shape[:2], stride, padding, dilation, pad_value)
    dtype = accumulator_type(data.dtype, out_dtype)

    def product(n: Expr, f: Expr, position: Sequence[Expr]) -> Reduce:
        c, m = channel_of(f, multiplier)
        value = window.data[(n, *window.at(position), c)].astype(dtype)
        return sum(value * kernel[(*window.axes, c, m)].astype(dtype), axis=window.axes)

    return named_output(data.shape[0], channels * multiplier, window.output, product, True, "depthwise_conv2d")


def channel_of(f: Expr, multiplier: int) -> tuple[Expr, Expr | int]:
    """The input channel and the kernel of that channel which output channel `f` uses."""
    return (f, 0) if multiplier == 1 else (f // multiplier, f % multiplier)


def _require_channels(operator: str, data: Tensor, kernel: Tensor, have: int, want: int) -> None:
    if have != want:
        raise ShapeError(
            f"{operator}: data {format_shape(data.shape)} has {have} channels, "
            f"kernel {format_shape(kernel.shape)} is for {want}"
        )
