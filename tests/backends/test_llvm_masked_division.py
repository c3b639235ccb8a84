"""Integer division in vectors whose last lanes are masked: those lanes hold zeros, and nothing divides by them."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("function", [topi.mod, topi.floor_divide])
def test_the_tail_of_a_vector_divides_by_nothing(
    dtype: str, function: Callable[[te.Tensor, te.Tensor], te.Tensor]
) -> None:
    a, b = te.placeholder((6,), dtype, "a"), te.placeholder((6,), dtype, "b")
    result = function(a, b)
    sch = lw.Schedule([a, b, result], target="llvm cores=1")
    (i,) = sch.get_loops(result)
    _, inner = sch.split(result, i, [None, 8])
    sch.vectorize(result, inner)
    x, y = np.array([-4, 7, 5, 4, -7, 8], dtype), np.array([2, -3, 8, -2, 3, 5], dtype)
    expected = x % y if function is topi.mod else x // y
    assert np.asarray(lw.build(sch)(x, y)).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("function", [topi.mod, topi.floor_divide])
def test_no_quotient_ends_the_process(dtype: str, function: Callable[[te.Tensor, te.Tensor], te.Tensor]) -> None:
    """By 0, and of the least number by -1, which goes around: in vectors, and in a tail of single elements."""
    a, b = te.placeholder((7,), dtype, "a"), te.placeholder((7,), dtype, "b")
    result = function(a, b)
    sch = lw.Schedule([a, b, result], target="llvm cores=1")
    (i,) = sch.get_loops(result)
    sch.split(result, i, [None, 4])
    sch.vectorize(result, sch.get_loops(result)[-1])
    least = np.iinfo(dtype).min
    x, y = np.full(7, least, dtype), np.array([-1, 3, -1, 0, -7, -1, 2], dtype)
    for build in (lw.build(sch), lw.build(lw.Schedule([a, b, result], target="llvm cores=1"))):
        got = np.asarray(build(x, y))
        with np.errstate(all="ignore"):
            expected = x % y if function is topi.mod else x // y
        assert got[y != 0].tolist() == expected[y != 0].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_division_of_zeros_that_is_not_selected(dtype: str) -> None:
    """Lanes that a mask leaves out hold zeros, whose quotient is no zero: the selection of others must stay."""
    a, b = te.placeholder((1, 1), dtype, "a"), te.placeholder((1,), dtype, "b")

    def padded(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(te.all(i >= 2, j >= 1), a[i - 2, j - 1] / b[i - 2], 0.0)

    result = te.compute((3, 2), padded, name="result")
    sch = lw.Schedule([a, b, result], target="llvm cores=1")
    i, j = sch.get_loops(result)
    sch.split(result, i, [None, 2])
    _, lanes = sch.split(result, j, [None, 4])
    sch.vectorize(result, lanes)
    got = lw.build(sch)(np.full((1, 1), 3, dtype), np.full(1, 2, dtype))
    np.testing.assert_array_equal(got, [[0, 0], [0, 0], [0, 1.5]])
