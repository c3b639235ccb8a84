"""Products of a batch of matrices: on a CPU, a vector of columns, which are packed, for some rows."""

from __future__ import annotations

from .. import te, topi
from ._operator import Cpu, Gpu, operator


@operator(
    "b i j k",
    Cpu(outer=("b",), row="i", column="j", reduce=("k",), packed=("b", "j/<width>", "k", "j%<width>")),
    Gpu(spatial=("i", "j"), reduce=("k",), outer=("b",)),
)
def batch_matmul(batch: int, m: int, n: int, k: int) -> list[te.Tensor]:
    """`(batch, m, k)` times `(batch, n, k)`, the second one transposed."""
    x = te.placeholder((batch, m, k), name="x")
    y = te.placeholder((batch, n, k), name="y")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=True)]
