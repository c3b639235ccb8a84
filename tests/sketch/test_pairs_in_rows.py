"""Places of the largest elements of rows on a CPU: lanes keep a pair each, which are joined in halves of vectors."""

import numpy as np
import pytest
from gpu_programs import opencl_device

import loopwright as lw
from loopwright import te, topi


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("rows", "width"), [(3, 65), (5, 91), (1, 128), (2, 200), (40, 333)])
@pytest.mark.parametrize("target", ["llvm cores=1 vector_bytes=64", "llvm cores=2 vector_bytes=32"])
@pytest.mark.few(6)
def test_the_first_of_equal_elements_is_found(name: str, rows: int, width: int, target: str) -> None:
    x = te.placeholder((rows, width), name="x")
    task = lw.SearchTask([x, getattr(topi, name)(x, 1)], target=target)
    assert task.default_schedule.count("lw-rfactor") >= 3
    data = np.random.default_rng(width).integers(-3, 4, (rows, width)).astype(np.float32)
    data[0] = -np.inf if name == "argmax" else np.inf
    found = task.build(task.default_schedule, check=True)(data)
    np.testing.assert_array_equal(found, getattr(np, name)(data, 1))


def test_every_width_of_lanes_is_right() -> None:
    x = te.placeholder((600, 300), name="x")
    task = lw.SearchTask([x, topi.argmax(x, 1)], target="llvm cores=2 vector_bytes=64")
    data = np.random.default_rng(0).integers(-9, 9, (600, 300)).astype(np.float32)
    for sketch in task.sketches:
        for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 3)]:
            np.testing.assert_array_equal(task.build(sketch.schedule(row))(data), data.argmax(1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("target", ["llvm cores=2 vector_bytes=32", "opencl"])
def test_every_schedule_finds_the_first_nan(name: str, target: str) -> None:
    if target == "opencl":
        opencl_device()
    x = te.placeholder((7, 300), name="x")
    task = lw.SearchTask([x, getattr(topi, name)(x, 1)], target=target)
    rng = np.random.default_rng(1)
    data = rng.integers(-3, 4, (7, 300)).astype(np.float32)
    data[rng.random(data.shape) < 0.02] = np.nan
    data[rng.random(data.shape) < 0.02] = np.inf if name == "argmax" else -np.inf
    data[5, 3:] = -np.nan
    for sketch in task.sketches:
        for row in [sketch.default, *sketch.sample(rng, 2)]:
            np.testing.assert_array_equal(task.build(sketch.schedule(row))(data), getattr(np, name)(data, 1))
