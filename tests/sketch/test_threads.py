"""Threads are for what takes longer than to start them, on this target and with its vectors."""

from collections.abc import Callable

import pytest

from loopwright import SearchTask, te, topi
from loopwright.te import Tensor


def product(extent: int) -> list[Tensor]:
    a, b = te.placeholder((extent, extent), name="a"), te.placeholder((extent, extent), name="b")
    return [a, b, topi.matmul(a, b)]


def dots(extent: int) -> list[Tensor]:
    a, b = te.placeholder((1, extent), name="a"), te.placeholder((extent, extent), name="b")
    return [a, b, topi.nn.dense(a, b)]


def elements(extent: int) -> list[Tensor]:
    data = te.placeholder((extent, extent), name="data")
    return [data, topi.nn.relu(data)]


def rows(extent: int) -> list[Tensor]:
    data = te.placeholder((extent, extent), name="data")
    return [data, topi.nn.softmax(data)]


def has_threads(tensors: list[Tensor], target: str) -> bool:
    sketches = SearchTask(lambda: tensors, target=target).sketches
    found = {"lw-parallel" in sketch.schedule(sketch.default) for sketch in sketches}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("make", [product, elements, rows])
def test_small_kernels_are_sequential_and_large_ones_are_not(make: Callable[[int], list[Tensor]]) -> None:
    assert not has_threads(make(24), "llvm cores=2")
    assert has_threads(make(512), "llvm cores=2")
    assert not has_threads(make(512), "llvm cores=1")


def test_dot_products_of_one_row_are_sequential_where_they_are_few() -> None:
    small, large = (SearchTask(dots, args=(extent,), target="llvm cores=2").sketches for extent in (96, 1024))
    assert not any("lw-parallel" in sketch.schedule(sketch.default) for sketch in small)
    assert all("lw-parallel" in sketch.schedule(sketch.default) for sketch in large)


def test_wide_vectors_have_more_to_do_before_threads_pay() -> None:
    assert has_threads(elements(200), "llvm cores=2 vector_bytes=32")
    assert not has_threads(elements(200), "llvm cores=2 vector_bytes=64 vector_registers=32")
