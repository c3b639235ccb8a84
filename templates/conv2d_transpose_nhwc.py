"""Transposed convolution of NHWC data: on a CPU, a vector of filters for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import PHASES, Cpu, Gpu, operator, transposed


@operator(
    "nn py px yy xx ff ry rx rc",
    Cpu(outer=("nn", *PHASES, "yy"), row="xx", column="ff", reduce=("rc", "ry", "rx")),
    Gpu(spatial=("yy", "xx", "ff"), reduce=("rc", "ry", "rx"), outer=("nn", *PHASES)),
    transposed,
    PHASES,
)
def conv2d_transpose_nhwc(
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
    """`(n, h, w, ci)` data, `(kh, kw, ci, co)` filters."""
    data = te.placeholder((n, h, w, ci), name="data")
    kernel = te.placeholder((kh, kw, ci, co), name="kernel")
    return [data, kernel, topi.nn.conv2d_transpose_nhwc(data, kernel, stride, padding, output_padding)]
