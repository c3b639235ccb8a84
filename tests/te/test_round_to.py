"""Rounding to TF32: the nearest of 10 mantissa bits, ties to even; and products that tensor cores compute so."""

import numpy as np
import pytest
from tensor_programs import CUDA, FORMS, scheduled

from loopwright import te
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.primitive import ScheduleError
from loopwright.te.errors import ExpressionError
from loopwright.te.module import create_module


def rounded(values: np.ndarray, kind: str = "tf32") -> np.ndarray:
    x = te.placeholder(values.shape, "float32", name="x")
    y = te.compute(values.shape, lambda i: te.round_to(x[i], kind), name="y")
    (found,) = run_te(create_module([x, y]), [values])
    return found


def test_the_nearest_of_ten_bits() -> None:
    values = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    values[::5].view(np.int32)[:] &= -1 << 12  # as far from one as from the other
    found = rounded(values)
    assert not np.any(found.view(np.int32) & 0x1FFF)
    scale = 2.0 ** (10 - np.floor(np.log2(np.abs(values.astype(np.float64)))))
    np.testing.assert_array_equal(found, (np.rint(values * scale) / scale).astype(np.float32))


def test_two_numbers_of_ten_bits_are_one_of_twenty_two() -> None:
    """The rest of a number behind the nearest of TF32 is one of TF32 as well: three products of these are exact."""
    found = rounded(np.random.default_rng(0).standard_normal(500).astype(np.float32), "tf32x3")
    assert not np.any(found.view(np.int32) & 1)
    rest = found - rounded(found)
    np.testing.assert_array_equal(rounded(rest), rest)


def test_ties_go_to_even_and_nan_stays() -> None:
    """The NaN that GPUs make has all bits set, and must not become a number."""
    down, up = np.float32(1 + 2.0**-11), np.float32(1 + 3 * 2.0**-11)
    values = np.array([down, -down, up, -up, np.inf, -np.inf, 0.0, 3.5], np.float32)
    near = 1 + 2.0**-9
    np.testing.assert_array_equal(rounded(values), [1, -1, near, -near, np.inf, -np.inf, 0.0, 3.5])
    assert np.isnan(rounded(np.array([0x7FFFFFFF, 0x7FC00000], np.int32).view(np.float32))).all()


def test_other_types_are_refused() -> None:
    x = te.placeholder((4,), "float16", name="x")
    with pytest.raises(ExpressionError, match=r"tf32 has the range of float32, got float16: cast first"):
        te.compute((4,), lambda i: te.round_to(x[i]))
    with pytest.raises(ExpressionError, match=r"numbers are rounded to 'tf32' or 'tf32x3', got 'fp8'"):
        te.compute((4,), lambda i: te.round_to(x[i].astype("float32"), "fp8"))


def test_products_that_are_not_rounded_are_not_rounded() -> None:
    """The instruction changes what is computed, so the program says it."""
    with pytest.raises(ScheduleError, match=r"'mma.m16n8k8.tf32' rounds its factors to tf32.*te.round_to of both"):
        scheduled(FORMS[-1]._replace(rounded=""), (64, 32, 96), CUDA)
