"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable

from ... import te, topi
from ...dialects.numpy_types import working_type
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.expr import Expr
from ...te.reduce import Reduce
from ..operator import anchor, product
from ._sums import rounded_once


def _dense(data: Tensor, weight: Tensor) -> Tensor:
    return rounded_once(topi.nn.dense)(data, weight)


def _matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return rounded_once(topi.matmul)(a, b, transpose_a, transpose_b)


def _batch_matmul(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return rounded_once(topi.batch_matmul)(a, b, transpose_a, transpose_b)


def _dense_parts(data: Tensor, weight: Tensor, *, parts: int) -> list[Tensor]:
    """The columns of data (M, K) times weight (parts * N, K), as so many products (M, N), one behind the other."""
    columns = weight.shape[0] // parts
    if columns * parts != weight.shape[0]:
        raise ShapeError(f"dense_parts: {weight.shape[0]} columns do not make {parts} equal parts")

    def part(number: int) -> Tensor:
        made = _rows_by(data, columns, lambda i, j, k: weight[j + number * columns, k], f"T_part{number}")
        return made if made.dtype == data.dtype else topi.cast(made, data.dtype)

    return [part(number) for number in range(parts)]


def _chosen_dense(data: Tensor, weight: Tensor, which: Tensor) -> Tensor:
    """Each row of data (M, K) times the matrix, of weight (E, N, K), whose number is in which (M,), transposed."""
    (rows, depth), (_, columns, other) = data.shape, weight.shape
    if depth != other or which.shape != (rows,):
        given = f"data {data.shape}, weight {weight.shape} and the numbers of rows {which.shape}"
        raise ShapeError(f"chosen_dense: {given} do not fit")
    made = _rows_by(data, columns, lambda i, j, k: weight[which[i], j, k], "T_chosen")
    return made if made.dtype == data.dtype else topi.cast(made, data.dtype)


def _rms_dense(data: Tensor, *weights: Tensor, epsilon: float = 1e-5) -> list[Tensor]:
    """The rows of data (M, K), each over its root mean square, times each of the weights, (N, K).

    The products are divided instead, so that no normalised row is stored: 16-bit floats are rounded once, at the end.
    """
    (rows, depth), kind, r = data.shape, working_type(data.dtype), reduce_axis((0, data.shape[1]), "r")

    def square(i: Expr) -> Reduce:
        return te.sum(data[i, r].astype(kind) * data[i, r].astype(kind), axis=r)

    squares: Tensor = compute((rows,), square, "T_squares")

    def product(weight: Tensor, number: int) -> Tensor:
        made = _rows_by(data, weight.shape[0], lambda i, j, k: weight[j, k], f"T_dense{number}")

        def divided(i: Expr, j: Expr) -> Expr:
            return (te.rsqrt(squares[i] * (1.0 / depth) + epsilon) * made[i, j]).astype(data.dtype)

        result: Tensor = compute(made.shape, divided, f"T_rms_dense{number}")
        return result

    return [product(weight, number) for number, weight in enumerate(weights)]


def _rows_by(data: Tensor, columns: int, factor: Callable[[Expr, Expr, Expr], Expr], name: str) -> Tensor:
    """Rows of data (M, K) times what `factor` gives for a row, a column and a term, (M, N), in the type of sums."""
    kind, k = working_type(data.dtype), reduce_axis((0, data.shape[1]), "k")

    def element(i: Expr, j: Expr) -> Reduce:
        return te.sum(data[i, k].astype(kind) * factor(i, j, k).astype(kind), axis=k)

    made: Tensor = compute((data.shape[0], columns), element, name)
    return made


dense = product(_dense)
chosen_dense = product(_chosen_dense)
rms_dense = anchor(_rms_dense)
dense_parts = product(_dense_parts)
matmul = product(_matmul)
batch_matmul = product(_batch_matmul)
