"""Three-dimensional convolution."""

from __future__ import annotations

from ...te import Tensor
from ..arguments import Ints, Padding
from .convolution import convolve


def conv3d_ncdhw(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, CI, D, H, W), kernel (CO, CI / groups, KD, KH, KW) -> (N, CO, OD, OH, OW).

    Options are those of `topi.nn.conv2d_nchw`.
    """
    return convolve("conv3d_ncdhw", data, kernel, 3, stride, padding, dilation, groups, out_dtype, False, pad_value)


def conv3d_ndhwc(
    data: Tensor,
    kernel: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    out_dtype: str | None = None,
    pad_value: float = 0,
) -> Tensor:
    """data (N, D, H, W, CI), kernel (KD, KH, KW, CI / groups, CO) -> (N, OD, OH, OW, CO).

    Options are those of `topi.nn.conv2d_nchw`.
    """
    return convolve("conv3d_ndhwc", data, kernel, 3, stride, padding, dilation, groups, out_dtype, True, pad_value)
