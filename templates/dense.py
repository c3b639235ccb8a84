"""Matrix product with a transposed weight: on a CPU, a vector of columns, whose weights are packed, for some rows."""

from __future__ import annotations

from .. import te, topi
from ._operator import Cpu, Gpu, operator


@operator(
    "i j k",
    Cpu(outer=(), row="i", column="j", reduce=("k",), packed=("j/<width>", "k", "j%<width>")),
    Gpu(spatial=("i", "j"), reduce=("k",), outer=()),
)
def dense(batch: int, out_dim: int, in_dim: int, dtype: str = "float32") -> list[te.Tensor]:
    """`(batch, in_dim)` data, `(out_dim, in_dim)` weight, integers of 8 bits with sums of 32."""
    data = te.placeholder((batch, in_dim), dtype=dtype, name="data")
    weight = te.placeholder((out_dim, in_dim), dtype=dtype, name="weight")
    return [data, weight, topi.nn.dense(data, weight)]
