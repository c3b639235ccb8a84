"""Two-dimensional convolution."""

from __future__ import annotations

from ...te import Tensor
from ..arguments import Ints, Padding
from .convolution import convolve


def conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, CI, H, W), kernel (CO, CI / groups, KH, KW) -> (N, CO, OH, OW).

    `stride` and `dilation` are one number, or one for each spatial axis. `padding` is one number, one for each axis,
    or all before and then all after (top, left, bottom, right); "VALID" is none, and with "SAME" outputs are extents
    / stride, rounded up. It is of `pad_value`. Sums are of `out_dtype`: where it is not given, int32 for integers of 8
    and 16 bits, else the data's type. ShapeError where channels, groups or the window do not fit.
    """
    return convolve("conv2d_nchw", data, kernel, 2, stride, padding, dilation, groups, out_dtype, False, pad_value)


def conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, H, W, CI), kernel (KH, KW, CI / groups, CO) -> (N, OH, OW, CO).

    Options are those of `topi.nn.conv2d_nchw`.
    """
    return convolve("conv2d_nhwc", data, kernel, 2, stride, padding, dilation, groups, out_dtype, True, pad_value)
