"""Convolution of NCHW data with 3x3 windows by Winograd's transforms: fewer multiplications, less exact."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._winograd import require_window, winograd


@winograd(channels_last=False)
def conv2d_nchw_winograd(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int = 3,
    kw: int = 3,
    stride: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    dtype: str = "float32",
    tile_size: int = 4,
    pre_computed: bool = False,
) -> list[te.Tensor]:
    """The arguments of `conv2d_nchw`, and the extent of the output's tiles, 2 or 4.

    With `pre_computed` the filters are `(tile, tile, ci, co)`, as `topi.nn.winograd_weight_transform` makes them.
    """
    require_window("conv2d_nchw_winograd", kh, kw, stride, dilation)
    data = te.placeholder((n, ci, h, w), dtype=dtype, name="data")
    tile = tile_size + 2
    kernel = te.placeholder((tile, tile, ci, co) if pre_computed else (co, ci, 3, 3), dtype=dtype, name="kernel")
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, padding, tile_size, pre_computed=pre_computed)]
