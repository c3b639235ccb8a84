"""Depthwise convolution of NCHW data: on a CPU, a vector of pixels of some rows."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn ff yy xx ry rx",
    Cpu(outer=("nn", "ff"), row="yy", column="xx", reduce=("ry", "rx")),
    Gpu(spatial=("ff", "yy", "xx"), reduce=("ry", "rx"), outer=("nn",)),
)
def depthwise_conv2d_nchw(
    n: int,
    c: int,
    h: int,
    w: int,
    kh: int,
    kw: int,
    stride: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
) -> list[te.Tensor]:
    """`(n, c, h, w)` data, `(c, 1, kh, kw)` filters."""
    data = te.placeholder((n, c, h, w), name="data")
    kernel = te.placeholder((c, 1, kh, kw), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, stride, padding, dilation)]
