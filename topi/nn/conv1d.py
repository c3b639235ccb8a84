"""One-dimensional convolution."""

from __future__ import annotations

from ...te import Tensor
from ..arguments import Ints, Padding
from .convolution import convolve


def conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, CI, W), kernel (CO, CI / groups, KW) -> (N, CO, OW).

    Options are those of `topi.nn.conv2d_nchw`.
    """
    return convolve("conv1d_ncw", data, kernel, 1, stride, padding, dilation, groups, out_dtype, False, pad_value)


def conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, W, CI), kernel (KW, CI / groups, CO) -> (N, OW, CO).

    Options are those of `topi.nn.conv2d_nchw`.
    """
    return convolve("conv1d_nwc", data, kernel, 1, stride, padding, dilation, groups, out_dtype, True, pad_value)
