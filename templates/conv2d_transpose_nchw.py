"""Transposed convolution of NCHW data: on a CPU, a vector of filters, which are packed, for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import PHASES, Cpu, Gpu, operator, transposed


@operator(
    "nn ff py px yy xx rc ry rx",
    Cpu(
        outer=("nn", *PHASES, "yy"),
        row="xx",
        column="ff",
        reduce=("rc", "ry", "rx"),
        packed=("ff/<width>", *PHASES, "rc", "ry", "rx", "ff%<width>"),
    ),
    Gpu(spatial=("ff", "yy", "xx"), reduce=("rc", "ry", "rx"), outer=("nn", *PHASES)),
    transposed,
    PHASES,
)
def conv2d_transpose_nchw(
    n: int,
    h: int,
    w: int,
    co: int,
    ci: int,
    kh: int,
    kw: int,
    stride: Ints = (1, 1),
    padding: Ints = (0, 0),
    output_padding: Ints = (0, 0),
) -> list[te.Tensor]:
    """`(n, ci, h, w)` data, `(ci, co, kh, kw)` filters."""
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((ci, co, kh, kw), name="kernel")
    return [data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, stride, padding, output_padding)]
