"""Cumulative sums on CPUs: all terms of a part written out, whichever axis they are along, beside NumPy."""

from functools import partial

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

TARGET = "llvm cores=1 vector_bytes=64"
SHAPES = [((37, 32), 1), ((5, 20, 50), 1), ((3, 21, 6, 7), 1), ((60, 20), 0), ((9, 70), 1), ((4, 32), 1)]
"""Lanes along the sums, beside them, along two axes as one with a tail, and sums in parts along either."""


def sums(shape: tuple[int, ...], axis: int, then: bool = False) -> list[te.Tensor]:
    x = te.placeholder(shape, name="x")
    found = topi.cumsum(x, axis)
    return [x, topi.nn.relu(found) if then else found]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("then", [False, True], ids=["alone", "relu"])
def test_terms_are_written_out_and_sums_are_numpys(shape: tuple[int, ...], axis: int, then: bool) -> None:
    task = lw.SearchTask(partial(sums, shape, axis, then), target=TARGET)
    assert "triangle" in task.sketches[0].name
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = np.cumsum(data.astype(np.float64), axis)
    wanted = np.maximum(wanted, 0) if then else wanted
    schedules = {
        task.default_schedule,
        *map(task.sketches[0].schedule, task.sketches[0].sample(np.random.default_rng(0), 3)),
    }
    for schedule in sorted(schedules):
        found = task.build(schedule, check=True)(data)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_several_threads_share_what_is_large() -> None:
    task = lw.SearchTask(partial(sums, (400, 16, 300), 1), target="llvm cores=2 vector_bytes=64")
    assert "lw-parallel" in task.default_schedule
    data = np.random.default_rng(1).standard_normal((400, 16, 300)).astype(np.float32)
    np.testing.assert_allclose(task.build(task.default_schedule)(data), np.cumsum(data, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "axis"), [((33,), 0), ((40, 3), 0)])
def test_rows_without_any_beside_them_and_few_lanes_are_left_to_other_rules(shape: tuple[int, ...], axis: int) -> None:
    task = lw.SearchTask(partial(sums, shape, axis), target=TARGET)
    data = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(task.build(task.default_schedule)(data), np.cumsum(data, axis), rtol=1e-4, atol=1e-4)
