"""Grouped convolution of NCHW data: on a CPU, a vector of pixels of some rows."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, grouped, operator


@operator(
    "nn ff yy xx rc ry rx",
    Cpu(outer=("nn", "ff"), row="yy", column="xx", reduce=("rc", "ry", "rx")),
    Gpu(spatial=("ff", "yy", "xx"), reduce=("rc", "ry", "rx"), outer=("nn",)),
    grouped,
)
def group_conv2d_nchw(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int,
    kw: int,
    groups: int,
    stride: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
) -> list[te.Tensor]:
    """`(n, ci, h, w)` data, `(co, ci / groups, kh, kw)` filters."""
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((co, ci // groups, kh, kw), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation, groups)]
