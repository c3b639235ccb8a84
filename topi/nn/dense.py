"""Matrix products."""

from __future__ import annotations

from ...te import ShapeError, Tensor, compute, reduce_axis, sum
from ...te.errors import format_shape
from ...te.reduce import Reduce
from ..arguments import require_rank
from ..broadcast import add
from .convolution import accumulator_type


def matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | None = None,
) -> Tensor:
    """a (M, K), b (K, N) -> (M, N); with transpose_a a is (K, M), with transpose_b b is (N, K)."""
    require_rank("matmul", 2, a=a, b=b)
    return _product("matmul", a, b, transpose_a, transpose_b, out_dtype)


def batch_matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | None = None,
) -> Tensor:
    """a (B, M, K), b (B, K, N) -> (B, M, N); transposes swap the last two axes, a batch of 1 is repeated."""
    require_rank("batch_matmul", 3, a=a, b=b)
    if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
        raise ShapeError(
            f"batch_matmul: batches of a {format_shape(a.shape)} and b {format_shape(b.shape)} do not agree"
        )
    return _product("batch_matmul", a, b, transpose_a, transpose_b, out_dtype)


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
) -> Tensor:
    """data (M, K), weight (N, K), bias (N,) -> (M, N)."""
    require_rank("dense", 2, data=data, weight=weight)
    product = _product("dense", data, weight, False, True, out_dtype)
    if bias is None:
        return product
    if bias.shape != (weight.shape[0],):
        raise ShapeError(
            f"dense: bias must have shape {format_shape(weight.shape[:1])}, got {format_shape(bias.shape)}"
        )
    return add(product, bias)


def _product(
    operator: str, a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, out_dtype: str | None
) -> Tensor:
    depth, rows = (a.shape[-2], a.shape[-1]) if transpose_a else (a.shape[-1], a.shape[-2])
    other, columns = (b.shape[-1], b.shape[-2]) if transpose_b else (b.shape[-2], b.shape[-1])
    if depth != other:
        raise ShapeError(
            f"{operator}: a {format_shape(a.shape)}{' transposed' * transpose_a} and "
            f"b {format_shape(b.shape)}{' transposed' * transpose_b} do not fit: {depth} columns against {other} rows"
        )
    dtype = accumulator_type(a.dtype, out_dtype)
    k = reduce_axis((0, depth), "k")
    batched = a.ndim == 3

    def element(*indices: object) -> Reduce:
        *batch, i, j = indices
        left = [0 if a.shape[0] == 1 else x for x in batch]
        right = [0 if b.shape[0] == 1 else x for x in batch]
        x = a[(*left, k, i) if transpose_a else (*left, i, k)]
        y = b[(*right, j, k) if transpose_b else (*right, k, j)]
        return sum(x.astype(dtype) * y.astype(dtype), axis=k)

    shape = (max(a.shape[0], b.shape[0]), rows, columns) if batched else (rows, columns)
    result: Tensor = compute(shape, element, f"T_{operator}", ("b", "i", "j") if batched else ("i", "j"))
    return result
