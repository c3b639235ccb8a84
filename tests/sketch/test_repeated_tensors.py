"""Tensors that are repeated as a whole: a loop over repeats around one that runs through the tensor."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi


@pytest.mark.parametrize(
    ("shape", "times"),
    [
        ((5, 9, 9), (2, 4, 2)),
        ((7, 31), (4, 4)),
        ((130,), (3,)),
        ((3, 11, 62), (3, 3, 1)),
        ((3, 21, 8), (1, 4, 1)),
        ((6, 5), (1, 7)),
        ((81, 131), (3, 4)),
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_repeats_are_numpys(shape: tuple[int, ...], times: tuple[int, ...], cores: int) -> None:
    x = te.placeholder(shape, name="x")
    task = lw.SearchTask([x, topi.tile(x, times)], target=f"llvm cores={cores} vector_bytes=64 vector_registers=32")
    kernel = task.build(task.default_schedule, check=True)
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(kernel(data), np.tile(data, times))
    assert "masked.gather" not in kernel.source


def test_tails_of_repeats_have_no_remainders() -> None:
    """Rows of 131 end in vectors of which lanes are off, where places would reach the next row."""
    x = te.placeholder((81, 131), name="x")
    task = lw.SearchTask([x, topi.tile(x, (1, 4))], target="llvm cores=1 vector_bytes=64 vector_registers=32")
    assert re.search(r'loop="ax1" factors=0,131}', task.default_schedule)
    assert "rem " not in task.build(task.default_schedule).source


def test_what_is_read_beside_the_repeats_may_be_of_all_of_a_row() -> None:
    x, y = te.placeholder((4, 24), name="x"), te.placeholder((8, 72), name="y")
    task = lw.SearchTask([x, y, topi.add(topi.tile(x, (2, 3)), y)], target="llvm cores=1 vector_bytes=64")
    a, b = (np.random.default_rng(n).standard_normal(s).astype(np.float32) for n, s in enumerate([(4, 24), (8, 72)]))
    found = task.build(task.default_schedule, check=True)(a, b)
    np.testing.assert_allclose(found, np.tile(a, (2, 3)) + b, rtol=1e-6)
