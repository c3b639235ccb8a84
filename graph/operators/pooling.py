"""Pooling over the spatial axes of any layout that names N, C and D, H, W."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ...topi.arguments import Ints, Padding
from ..operator import anchor


def _max_pool(
    data: Tensor,
    *,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    return topi.nn.max_pool(data, kernel, stride, padding, dilation, ceil_mode, layout)


def _avg_pool(
    data: Tensor,
    *,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
) -> Tensor:
    return topi.nn.avg_pool(data, kernel, stride, padding, ceil_mode, count_include_pad, layout)


def _global_max_pool(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    return topi.nn.global_max_pool(data, layout)


def _global_avg_pool(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    return topi.nn.global_avg_pool(data, layout)


def _adaptive_max_pool(data: Tensor, *, output_size: Ints, layout: str = "NCHW") -> Tensor:
    return topi.nn.adaptive_max_pool(data, output_size, layout)


def _adaptive_avg_pool(data: Tensor, *, output_size: Ints, layout: str = "NCHW") -> Tensor:
    return topi.nn.adaptive_avg_pool(data, output_size, layout)


max_pool = anchor(_max_pool)
avg_pool = anchor(_avg_pool)
global_max_pool = anchor(_global_max_pool)
global_avg_pool = anchor(_global_avg_pool)
adaptive_max_pool = anchor(_adaptive_max_pool)
adaptive_avg_pool = anchor(_adaptive_avg_pool)
