"""Depthwise convolution of NHWC data: on a CPU, a vector of channels for some pixels of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn yy xx ff ry rx",
    Cpu(outer=("nn", "yy"), row="xx", column="ff", reduce=("ry", "rx")),
    Gpu(spatial=("yy", "xx", "ff"), reduce=("ry", "rx"), outer=("nn",)),
)
def depthwise_conv2d_nhwc(
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
    """`(n, h, w, c)` data, `(kh, kw, c, 1)` filters."""
    data = te.placeholder((n, h, w, c), name="data")
    kernel = te.placeholder((kh, kw, c, 1), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nhwc(data, kernel, stride, padding, dilation)]
