"""Convolution of NCHW data: on a CPU, a vector of filters, which are packed, for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn ff yy xx rc ry rx",
    Cpu(
        outer=("nn", "yy"),
        row="xx",
        column="ff",
        reduce=("rc", "ry", "rx"),
        packed=("ff/<width>", "rc", "ry", "rx", "ff%<width>"),
    ),
    Gpu(spatial=("ff", "yy", "xx"), reduce=("rc", "ry", "rx"), outer=("nn",)),
)
def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int,
    kw: int,
    stride: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    dtype: str = "float32",
) -> list[te.Tensor]:
    """`(n, ci, h, w)` data, `(co, ci, kh, kw)` filters, integers of 8 bits with sums of 32."""
    data = te.placeholder((n, ci, h, w), dtype=dtype, name="data")
    kernel = te.placeholder((co, ci, kh, kw), dtype=dtype, name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation)]
