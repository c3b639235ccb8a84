"""Divisions of a softmax, which may become products with the inverse of a row's sum; no others may."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.utils import FastMathFlag

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.walk import operations_in
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop

SHAPE = (5, 6, 7)


def divisions(*tensors: te.Tensor) -> list[bool]:
    """True for each division of an expression that may be by the inverse."""
    module = te.create_module(list(tensors))
    lower_te_to_loop(module)
    found = [op for op in operations_in(module) if isinstance(op, arith.DivfOp)]
    return [FastMathFlag.ALLOW_RECIP in op.fastmath.data for op in found]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_softmax_may_multiply(axis: int, dtype: str) -> None:
    x = te.placeholder(SHAPE, dtype, "x")
    assert divisions(x, topi.nn.softmax(x, axis)) == [True]


def test_one_of_scaled_scores_with_a_mask_may_multiply() -> None:
    x, mask = te.placeholder(SHAPE, name="x"), te.placeholder(SHAPE[2:], name="mask")
    assert divisions(x, mask, topi.nn.softmax(topi.add(topi.multiply(x, 0.125), mask), -1)) == [True]


def _rows(
    power: Callable[..., te.Expr], total: Callable[..., te.Expr], largest_of: Callable[..., te.Expr]
) -> list[te.Tensor]:
    """A quotient of two dimensions, its exponential, its sum and what the maximum is of by functions of (x, i, j)."""
    x = te.placeholder((6, 6), name="x")
    j, k = te.reduce_axis((0, 6), "j"), te.reduce_axis((0, 6), "k")
    largest = te.compute((6,), lambda i: te.max(largest_of(x, i, j), axis=j), "largest")
    exponential = te.compute((6, 6), lambda i, j: power(x, largest, i, j), "exponential")
    added = te.compute((6,), lambda i: te.sum(total(exponential, i, k), axis=k), "added")
    return [x, te.compute((6, 6), lambda i, j: exponential[i, j] / added[i], "quotient")]


def test_what_is_no_softmax_divides() -> None:
    def relative(x: te.Tensor, largest: te.Tensor, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.exp(x[i, j] - largest[i])

    def row(x: te.Tensor, i: te.Expr, j: te.Expr) -> te.Expr:
        return x[i, j]

    assert divisions(*_rows(relative, row, row)) == [True]
    assert divisions(*_rows(lambda x, m, i, j: te.exp(x[i, j]), row, row)) == [False]
    assert divisions(*_rows(lambda x, m, i, j: te.exp(x[i, j] - m[j]), row, row)) == [False]
    assert divisions(*_rows(relative, lambda e, i, k: e[k, i], row)) == [False]
    assert divisions(*_rows(relative, lambda e, i, k: e[i, k] * 0.5, row)) == [False]
    assert divisions(*_rows(relative, row, lambda x, i, j: x[j, i])) == [False]
    assert divisions(*_rows(relative, row, lambda x, i, j: x[i, j] + 1.0)) == [False]


@pytest.mark.parametrize("columns", [1, 3, 16, 64, 100, 197])
def test_a_softmax_of_rows_divides_once_a_row(columns: int) -> None:
    """Beside the same in double precision: rows of large and small numbers, of infinities and with NaN, too."""
    x = te.placeholder((8, columns), name="x")
    task = lw.SearchTask([x, topi.nn.softmax(x)], target="llvm cores=1")
    kernel = task.build(task.default_schedule)
    assert columns < 16 or "fdiv <" not in kernel.source
    rows = np.random.default_rng(0).standard_normal((8, columns)).astype(np.float32)
    rows[1] *= 100
    rows[2] += 1e30
    rows[3, 0] = -np.inf
    rows[4] = -np.inf
    rows[5, -1] = np.nan
    rows[6, -1] = np.inf
    rows[7] = 3
    with np.errstate(invalid="ignore"):
        powers = np.exp(rows.astype(np.float64) - rows.max(1, keepdims=True))
    got = kernel(rows)
    np.testing.assert_allclose(got, powers / powers.sum(1, keepdims=True), rtol=1e-6, atol=1e-38)
