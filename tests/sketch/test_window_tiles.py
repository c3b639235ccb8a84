"""Pools of channels first on CPUs: tiles of padded rows, windows reduced axis by axis; beside NumPy."""

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

import loopwright as lw
from loopwright import te, topi

Pool = tuple[tuple[int, ...], int, int, int, int]
"""A shape, a window, a stride, padding, and a dilation, which means have not."""
SHAPES: list[Pool] = [
    ((2, 5, 20, 21), 5, 1, 2, 1),
    ((1, 3, 40, 33), 7, 2, 3, 1),
    ((2, 2, 9, 17, 18), 3, 1, 1, 1),
    ((3, 30, 19), 5, 1, 0, 1),
    ((1, 4, 37, 20), 3, 1, 2, 2),
    ((1, 2, 300, 18), 9, 1, 4, 1),
]
"""Of the last but one, means stay as they lie."""


def pooled(mean: bool, case: Pool, around: bool = False) -> list[te.Tensor]:
    shape, k, stride, pad, dilation = case
    data, layout = te.placeholder(shape, name="data"), {3: "NHW", 4: "NCHW", 5: "NCDHW"}[len(shape)]
    x = topi.nn.relu(data) if around else data
    made = (
        topi.nn.avg_pool(x, k, stride, min(pad, k // 2), False, True, layout)
        if mean
        else topi.nn.max_pool(x, k, stride, pad, dilation, False, layout)
    )
    return [data, topi.tanh(made) if around else made]


def windows(data: npt.NDArray[np.float64], mean: bool, case: Pool) -> npt.NDArray[np.float64]:
    shape, k, stride, pad, dilation = case
    spatial = tuple(range(1 if len(shape) == 3 else 2, len(shape)))
    pad, dilation, fill = (min(pad, k // 2), 1, 0.0) if mean else (pad, dilation, -np.inf)
    padded = np.pad(data, [(pad, pad) if d in spatial else (0, 0) for d in range(len(shape))], constant_values=fill)
    reach = dilation * (k - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(padded, (reach,) * len(spatial), spatial)
    steps = [slice(None, None, stride) if d in spatial else slice(None) for d in range(len(shape))]
    view = view[(*steps, *[slice(None, None, dilation)] * len(spatial))]
    last = tuple(range(len(shape), view.ndim))
    found: npt.NDArray[np.float64] = view.mean(last) if mean else view.max(last)
    return found


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("target", ["llvm cores=1 vector_bytes=64", "llvm cores=2 vector_bytes=32"])
def test_pools_are_numpys(mean: bool, case: Pool, target: str) -> None:
    task = lw.SearchTask(partial(pooled, mean, case), target=target)
    (sketch,) = task.sketches
    assert sketch.name == ("plain" if mean and case[4] > 1 else "windows")
    data = np.random.default_rng(0).standard_normal(case[0]).astype(np.float32)
    if not mean:
        data.flat[50] = np.nan
    wanted = windows(data.astype(np.float64), mean, case)
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 2)]:
        found = task.build(sketch.schedule(row), check=True)(data)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mean", [False, True])
def test_what_is_around_a_pool_stays_around_it(mean: bool) -> None:
    case = SHAPES[0]
    task = lw.SearchTask(partial(pooled, mean, case, True), target="llvm cores=1 vector_bytes=64")
    assert "lw-separate" in task.default_schedule
    data = np.random.default_rng(1).standard_normal(case[0]).astype(np.float32)
    wanted = np.tanh(windows(np.maximum(data.astype(np.float64), 0), mean, case))
    np.testing.assert_allclose(task.build(task.default_schedule)(data), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("window", [(1, 3, 3), (1, 5, 5)])
def test_volumes_with_windows_of_one_plane_are_reduced_axis_by_axis(mean: bool, window: tuple[int, ...]) -> None:
    data = te.placeholder((1, 3, 6, 20, 21), name="data")
    made = (topi.nn.avg_pool if mean else topi.nn.max_pool)(data, window, 1, layout="NCDHW")
    task = lw.SearchTask([data, made], target="llvm cores=1 vector_bytes=64")
    assert "lw-separate" in task.default_schedule
    values = np.random.default_rng(3).standard_normal(data.shape).astype(np.float32)
    view = np.lib.stride_tricks.sliding_window_view(values, window, (2, 3, 4))
    wanted = view.mean((5, 6, 7)) if mean else view.max((5, 6, 7))
    found = task.build(task.default_schedule, check=True)(values)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "case",
    [
        ((1, 8, 40, 40), 2, 2, 0, 1),
        ((1, 8, 40, 40), 3, 3, 0, 1),
        ((1, 2, 8, 40000), 3, 1, 1, 1),
        ((8, 500), 5, 1, 2, 1),
    ],
    ids=["shares nothing", "nor with three", "too long for a stack", "one axis"],
)
def test_others_are_read_as_they_lie(case: Pool) -> None:
    shape, k, stride, pad, _ = case
    data = te.placeholder(shape, name="data")
    layout = "NW" if len(shape) == 2 else "NCHW"
    task = lw.SearchTask([data, topi.nn.max_pool(data, k, stride, pad, layout=layout)], target="llvm cores=1")
    assert "lw-separate" not in task.default_schedule


def test_means_along_one_axis_have_windows_in_lanes() -> None:
    """Terms are next to each other, as windows are: a vector of partial sums each took 8 times as long."""
    case: Pool = ((4, 200), 13, 1, 6, 1)
    data = te.placeholder(case[0], name="data")
    task = lw.SearchTask(
        [data, topi.nn.avg_pool(data, 13, 1, 6, False, True, "NW")], target="llvm cores=1 vector_bytes=64"
    )
    assert "lw-rfactor" not in task.default_schedule
    values = np.random.default_rng(2).standard_normal(case[0]).astype(np.float32)
    view = np.lib.stride_tricks.sliding_window_view(np.pad(values, [(0, 0), (6, 6)]), 13, 1)
    found = task.build(task.default_schedule)(values)
    np.testing.assert_allclose(found, view.mean(-1), rtol=1e-5, atol=1e-5)
