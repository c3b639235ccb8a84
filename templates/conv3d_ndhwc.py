"""Convolution of NDHWC data: on a CPU, a vector of filters for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn zz yy xx ff rz ry rx rc",
    Cpu(outer=("nn", "zz", "yy"), row="xx", column="ff", reduce=("rc", "rz", "ry", "rx")),
    Gpu(spatial=("yy", "xx", "ff"), reduce=("rc", "rz", "ry", "rx"), outer=("nn", "zz")),
)
def conv3d_ndhwc(
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
    """`(n, d, h, w, ci)` data, `(kd, kh, kw, ci, co)` filters."""
    data = te.placeholder((n, d, h, w, ci), name="data")
    kernel = te.placeholder((kd, kh, kw, ci, co), name="kernel")
    return [data, kernel, topi.nn.conv3d_ndhwc(data, kernel, stride, padding, dilation)]
