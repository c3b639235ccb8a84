"""Cumulative sums beside the last axis on CPUs: parts of strips of columns in one nest, beside NumPy."""

from functools import partial

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

SHAPES = [((70, 33), 0), ((3, 50, 100), 1), ((40, 3, 130), 0), ((500, 32), 0), ((2, 3, 64, 40), 2), ((2, 45, 5, 9), 1)]


def sums(shape: tuple[int, ...], axis: int, then: bool = False, before: bool = False) -> list[te.Tensor]:
    x = te.placeholder(shape, name="x")
    found = topi.cumsum(topi.nn.relu(x) if before else x, axis)
    return [x, topi.nn.relu(found) if then else found]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("then", "before"), [(False, False), (True, True)], ids=["alone", "around"])
def test_strips_are_numpys(shape: tuple[int, ...], axis: int, cores: int, then: bool, before: bool) -> None:
    task = lw.SearchTask(partial(sums, shape, axis, then, before), target=f"llvm cores={cores} vector_bytes=64")
    assert [sketch.name for sketch in task.sketches] == ["strips"]
    assert "lw-clone" in task.default_schedule
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = np.cumsum(np.maximum(data.astype(np.float64), 0) if before else data.astype(np.float64), axis)
    wanted = np.maximum(wanted, 0) if then else wanted
    (sketch,) = task.sketches
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 1)]:
        found = task.build(sketch.schedule(row), check=True)(data)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_axes_behind_the_scanned_one_are_walked_as_one() -> None:
    """Lanes of the last axis alone would be half idle, and there would be no strips."""
    task = lw.SearchTask(partial(sums, (129, 6, 12), 0), target="llvm cores=1 vector_bytes=64")
    assert 'lw-collapse{block="T_cumsum1" axes="i1","i2"}' in task.default_schedule
    data = np.random.default_rng(4).standard_normal((129, 6, 12)).astype(np.float32)
    found = task.build(task.default_schedule, check=True)(data)
    np.testing.assert_allclose(found, np.cumsum(data, 0), rtol=1e-4, atol=1e-4)


def test_threads_share_strips_of_what_is_large() -> None:
    task = lw.SearchTask(partial(sums, (300, 700), 0), target="llvm cores=2 vector_bytes=64")
    assert "lw-parallel" in task.default_schedule
    data = np.random.default_rng(1).standard_normal((300, 700)).astype(np.float32)
    np.testing.assert_allclose(task.build(task.default_schedule)(data), np.cumsum(data, 0), rtol=1e-3, atol=1e-3)


def exclusive(reverse: bool) -> list[te.Tensor]:
    x = te.placeholder((50, 40), name="x")
    return [x, topi.cumsum(x, 0, exclusive=True, reverse=reverse)]


@pytest.mark.parametrize("reverse", [False, True])
def test_sums_from_the_end_are_right_and_exclusive_ones_are_left_to_other_rules(reverse: bool) -> None:
    data = np.random.default_rng(2).standard_normal((50, 40)).astype(np.float32)
    task = lw.SearchTask(partial(exclusive, reverse), target="llvm cores=1 vector_bytes=64")
    assert "strips" not in task.sketches[0].name
    turned = data[::-1] if reverse else data
    wanted = np.cumsum(turned, 0) - turned
    found = task.build(task.default_schedule)(data)
    np.testing.assert_allclose(found, wanted[::-1] if reverse else wanted, rtol=1e-4, atol=1e-4)


def from_the_end() -> list[te.Tensor]:
    x = te.placeholder((50, 40), name="x")
    return [x, topi.cumprod(x, 0, reverse=True)]


def test_products_from_the_end() -> None:
    task = lw.SearchTask(from_the_end, target="llvm cores=1 vector_bytes=64")
    assert task.sketches[0].name == "strips"
    data = np.random.default_rng(3).uniform(0.9, 1.1, (50, 40)).astype(np.float32)
    found = task.build(task.default_schedule)(data)
    np.testing.assert_allclose(found, np.cumprod(data[::-1], 0)[::-1], rtol=1e-4)
