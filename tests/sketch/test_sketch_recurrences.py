"""Recurrences, whose terms each read the two before them: code grows with their number, not by the golden ratio."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.dialects.loop import blocks_in


def chebyshev(terms: int) -> list[te.Tensor]:
    x = te.placeholder((4, 50), name="x")

    def term(number: int, last: te.Tensor, before: te.Tensor) -> te.Tensor:
        return te.compute((4, 50), lambda i, j: 2.0 * x[i, j] * last[i, j] - before[i, j], name=f"t{number}")

    before, last = x, te.compute((4, 50), lambda i, j: 2.0 * x[i, j] * x[i, j] - 1.0, name="t2")
    for number in range(3, terms + 1):
        before, last = last, term(number, last, before)
    return [x, last]


@pytest.mark.parametrize("target", ["llvm cores=1", "cuda model=h200"])
def test_code_grows_with_the_terms(target: str) -> None:
    task = lw.SearchTask(lambda: chebyshev(24), target=target)
    module = task.schedule_module(task.default_schedule)
    operations = sum(len(list(block.body.block.ops)) for block in blocks_in(module))
    assert operations < 24 * 60


def test_values_are_those_of_the_polynomial() -> None:
    kernel = lw.SearchTask(lambda: chebyshev(24), target="llvm cores=1").build()
    x = np.linspace(-1, 1, 200, dtype="float32").reshape(4, 50)
    np.testing.assert_allclose(kernel(x), np.cos(24 * np.arccos(x.astype("float64"))), atol=2e-4)
