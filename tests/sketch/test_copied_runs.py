"""Gathers on CPUs: long runs are copied by memcpy, places along rows are gathered in lanes; beside NumPy."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

SMALL_CACHES = "llvm vector_bytes=64 l1_bytes=1024 l2_bytes=4096"


def taken(shape: tuple[int, ...], count: int, axis: int, dtype: str = "float32") -> list[te.Tensor]:
    data, places = (
        te.placeholder(shape, name="data", dtype=dtype),
        te.placeholder((count,), name="places", dtype="int64"),
    )
    return [data, places, topi.take(data, places, axis)]


def part() -> list[te.Tensor]:
    x = te.placeholder((9, 20, 40), name="x")
    return [x, topi.strided_slice(x, (2, 0, 0), (9, 15, 40), (1, 1, 1))]


def both() -> list[te.Tensor]:
    parts = [te.placeholder((rows, 20, 40), name=f"part{rows}") for rows in (4, 8)]
    return [*parts, topi.concatenate(parts, 0)]


LONG: list[tuple[Callable[[], list[te.Tensor]], Callable[..., np.ndarray]]] = [
    (lambda: taken((7, 30, 40), 11, 0), lambda x, places: x[places]),
    (part, lambda x: x[2:, :15]),
    (both, lambda *parts: np.concatenate(parts)),
]


@pytest.mark.parametrize(("tensors", "wanted"), LONG, ids=["take", "slice", "concatenate"])
@pytest.mark.parametrize("cores", [1, 2])
def test_runs_that_no_near_cache_holds_are_copied_by_memcpy(
    tensors: Callable[[], list[te.Tensor]], wanted: Callable[..., np.ndarray], cores: int
) -> None:
    task = lw.SearchTask(tensors, target=f"{SMALL_CACHES} cores={cores}")
    kernel = task.build(task.default_schedule)
    assert "memcpy" in kernel.assembly
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(a.shape).astype(a.dtype) if a.dtype == "float32" else rng.integers(0, 7, a.shape)
        for a in kernel.arguments
        if not a.is_output
    ]
    np.testing.assert_array_equal(kernel(*arrays), wanted(*arrays))


def test_shorter_runs_are_copied_in_vectors() -> None:
    task = lw.SearchTask(taken((7, 200), 11, 0), target=f"{SMALL_CACHES} cores=1")
    assert "lw-vectorize" in task.default_schedule


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("count", [64, 33, 9])
def test_places_along_rows_are_gathered_in_lanes(dtype: str, count: int) -> None:
    task = lw.SearchTask(taken((13, 43), count, 1, dtype), target="llvm cores=1 vector_bytes=64")
    data = np.random.default_rng(1).integers(-9, 9, (13, 43)).astype(dtype)
    places = np.random.default_rng(2).integers(0, 43, count)
    kernel = task.build(task.default_schedule, check=True)
    np.testing.assert_array_equal(kernel(data, places), data[:, places])
    lanes = [part for part in task.default_schedule.split("},") if "lw-split" in part]
    assert not lanes[0].rstrip("}").endswith(",1")


def test_bytes_are_read_one_by_one() -> None:
    task = lw.SearchTask(taken((13, 43), 64, 1, "int8"), target="llvm cores=1 vector_bytes=64")
    assert "factors=0,4,1}" in task.default_schedule


def spread() -> list[te.Tensor]:
    x = te.placeholder((9, 1), name="x")
    return [x, topi.broadcast_to(x, (9, 800))]


def two_parts() -> list[te.Tensor]:
    x, y = (te.placeholder((9, 800), name=name) for name in "xy")
    return [x, y, te.compute((9, 800), lambda i, j: te.if_then_else(j < 300, x[i, j], y[i, j]), name="parts")]


@pytest.mark.parametrize("tensors", [spread, two_parts])
def test_runs_of_one_element_or_of_two_sources_are_written_in_vectors(tensors: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(tensors, target=f"{SMALL_CACHES} cores=1")
    assert "lw-vectorize" in task.default_schedule
