"""Convolutions; weights are channels-first (CO, CI, *window) or, in layouts with C last, (*window, CI, CO).

Those of transposed ones are (CI, CO, *window), or (*window, CI, CO), those of Winograd's as `winograd_weight_transform`
makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ... import topi
from ...te import ShapeError, Tensor
from ...topi.arguments import Ints, Padding
from ..operator import anchor, opaque, product
from ._sums import rounded_once


def _conv1d(
    data: Tensor,
    weight: Tensor,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NCW",
    pad_value: float = 0,
) -> Tensor:
    convolve = _of_layout("conv1d", layout, {"NCW": topi.nn.conv1d_ncw, "NWC": topi.nn.conv1d_nwc})
    return convolve(data, weight, stride, padding, dilation, groups, pad_value=pad_value)


def _conv2d(
    data: Tensor,
    weight: Tensor,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NCHW",
    pad_value: float = 0,
) -> Tensor:
    convolve = _of_layout("conv2d", layout, {"NCHW": topi.nn.conv2d_nchw, "NHWC": topi.nn.conv2d_nhwc})
    return convolve(data, weight, stride, padding, dilation, groups, pad_value=pad_value)


def _depthwise_conv2d(
    data: Tensor,
    weight: Tensor,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    layout: str = "NCHW",
    pad_value: float = 0,
) -> Tensor:
    known = {"NCHW": topi.nn.depthwise_conv2d_nchw, "NHWC": topi.nn.depthwise_conv2d_nhwc}
    convolve = _of_layout("depthwise_conv2d", layout, known)
    return convolve(data, weight, stride, padding, dilation, pad_value=pad_value)


def _conv3d(
    data: Tensor,
    weight: Tensor,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NCDHW",
    pad_value: float = 0,
) -> Tensor:
    convolve = _of_layout("conv3d", layout, {"NCDHW": topi.nn.conv3d_ncdhw, "NDHWC": topi.nn.conv3d_ndhwc})
    return convolve(data, weight, stride, padding, dilation, groups, pad_value=pad_value)


def _conv2d_transpose(
    data: Tensor,
    weight: Tensor,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = (0, 0),
    groups: int = 1,
    layout: str = "NCHW",
) -> Tensor:
    known = {"NCHW": topi.nn.conv2d_transpose_nchw, "NHWC": topi.nn.conv2d_transpose_nhwc}
    return _of_layout("conv2d_transpose", layout, known)(data, weight, stride, padding, output_padding, groups)


def _conv2d_winograd(
    data: Tensor,
    weight: Tensor,
    *,
    padding: Padding = 0,
    dilation: Ints = 1,
    tile_size: int = 4,
    layout: str = "NCHW",
) -> Tensor:
    known = {"NCHW": topi.nn.conv2d_winograd_nchw, "NHWC": topi.nn.conv2d_winograd_nhwc}
    convolve = _of_layout("conv2d_winograd", layout, known)
    return convolve(data, weight, padding, tile_size, pre_computed=True, dilation=dilation)


def _conv3d_winograd(
    data: Tensor,
    weight: Tensor,
    *,
    padding: Padding = 0,
    dilation: Ints = 1,
    tile_size: int = 4,
    layout: str = "NCDHW",
) -> Tensor:
    known = {"NCDHW": topi.nn.conv3d_winograd_ncdhw, "NDHWC": topi.nn.conv3d_winograd_ndhwc}
    convolve = _of_layout("conv3d_winograd", layout, known)
    return convolve(data, weight, padding, tile_size, pre_computed=True, dilation=dilation)


def _winograd_weight_transform(weight: Tensor, *, tile_size: int = 4, layout: str = "OIHW") -> Tensor:
    return rounded_once(topi.nn.winograd_weight_transform)(weight, tile_size, layout)


def _of_layout(operator: str, layout: str, known: Mapping[str, Callable[..., Tensor]]) -> Callable[..., Tensor]:
    if layout not in known:
        raise ShapeError(f"{operator}: layout is one of {', '.join(known)}, got {layout}")
    return rounded_once(known[layout])


conv1d = product(_conv1d)
conv2d = product(_conv2d)
depthwise_conv2d = anchor(_depthwise_conv2d)
conv3d = product(_conv3d)
conv2d_transpose = product(_conv2d_transpose)
conv2d_winograd = anchor(_conv2d_winograd)
conv3d_winograd = anchor(_conv3d_winograd)
winograd_weight_transform = opaque(_winograd_weight_transform)
