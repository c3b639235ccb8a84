"""Convolution of NCW data: on a CPU, a vector of filters, which are packed, for some elements of a row."""

from __future__ import annotations

from .. import te, topi
from ..topi.arguments import Ints
from ._operator import Cpu, Gpu, operator


@operator(
    "nn ff xx rc rx",
    Cpu(outer=("nn",), row="xx", column="ff", reduce=("rc", "rx"), packed=("ff/<width>", "rc", "rx", "ff%<width>")),
    Gpu(spatial=("ff", "xx"), reduce=("rc", "rx"), outer=("nn",)),
)
def conv1d_ncw(
    n: int, w: int, co: int, ci: int, kw: int, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1
) -> list[te.Tensor]:
    """`(n, ci, w)` data, `(co, ci, kw)` filters."""
    data = te.placeholder((n, ci, w), name="data")
    kernel = te.placeholder((co, ci, kw), name="kernel")
    return [data, kernel, topi.nn.conv1d_ncw(data, kernel, stride, padding, dilation)]
