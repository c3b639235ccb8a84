"""Convolution of NCDHW data: on a CPU, a vector of filters, which are packed, for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn ff zz yy xx rc rz ry rx",
    Cpu(
        outer=("nn", "zz", "yy"),
        row="xx",
        column="ff",
        reduce=("rc", "rz", "ry", "rx"),
        packed=("ff/<width>", "rc", "rz", "ry", "rx", "ff%<width>"),
    ),
    Gpu(spatial=("ff", "yy", "xx"), reduce=("rc", "rz", "ry", "rx"), outer=("nn", "zz")),
)
def conv3d_ncdhw(
    n: int,
    d: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kd: int,
    kh: int,
    kw: int,
    stride: Ints = (1, 1, 1),
    padding: Ints = (0, 0, 0),
    dilation: Ints = (1, 1, 1),
) -> list[te.Tensor]:
    """`(n, ci, d, h, w)` data, `(co, ci, kd, kh, kw)` filters."""
    data = te.placeholder((n, ci, d, h, w), name="data")
    kernel = te.placeholder((co, ci, kd, kh, kw), name="kernel")
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, stride, padding, dilation)]
