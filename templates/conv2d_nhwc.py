"""Convolution of NHWC data: on a CPU, a vector of filters for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn yy xx ff ry rx rc",
    Cpu(outer=("nn", "yy"), row="xx", column="ff", reduce=("rc", "ry", "rx")),
    Gpu(spatial=("yy", "xx", "ff"), reduce=("rc", "ry", "rx"), outer=("nn",)),
)
def conv2d_nhwc(
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
    """`(n, h, w, ci)` data, `(kh, kw, ci, co)` filters, integers of 8 bits with sums of 32."""
    data = te.placeholder((n, h, w, ci), dtype=dtype, name="data")
    kernel = te.placeholder((kh, kw, ci, co), dtype=dtype, name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, stride, padding, dilation)]
