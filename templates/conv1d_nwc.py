"""Convolution of NWC data: on a CPU, a vector of filters for some elements of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn xx ff rx rc",
    Cpu(outer=("nn",), row="xx", column="ff", reduce=("rc", "rx")),
    Gpu(spatial=("xx", "ff"), reduce=("rc", "rx"), outer=("nn",)),
)
def conv1d_nwc(
    n: int, w: int, co: int, ci: int, kw: int, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1
) -> list[te.Tensor]:
    """`(n, w, ci)` data, `(kw, ci, co)` filters."""
    data = te.placeholder((n, w, ci), name="data")
    kernel = te.placeholder((kw, ci, co), name="kernel")
    return [data, kernel, topi.nn.conv1d_nwc(data, kernel, stride, padding, dilation)]
