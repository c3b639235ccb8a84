"""Elements that are repeated or interleaved are loaded in stretches and put in their places by shuffles."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.kernel_function import Kernel


def kernel_of(out: te.Tensor, *inputs: te.Tensor) -> tuple[str, Kernel]:
    task = lw.SearchTask([*inputs, out], target="llvm cores=1 vector_bytes=64 vector_registers=32")
    return task.default_schedule, task.build(task.default_schedule)


@pytest.mark.parametrize(("width", "times", "lanes"), [(32, 2, 16), (20, 2, 8), (12, 4, 16), (5, 2, 1), (10, 3, 1)])
def test_pixels_that_are_repeated(width: int, times: int, lanes: int) -> None:
    x = te.placeholder((3, 4, width))
    out = te.compute((3, 4 * times, width * times), lambda c, i, j: x[c, i // times, j // times], name="wide")
    schedule, kernel = kernel_of(out, x)
    assert re.search(rf'loop="j" factors=0,\d+,{lanes}}}', schedule)
    a = np.random.default_rng(0).standard_normal((3, 4, width)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a.repeat(times, 1).repeat(times, 2))
    assert "masked.gather" not in kernel.source


@pytest.mark.parametrize(("width", "phases", "lanes"), [(28, 2, 8), (32, 2, 16), (16, 3, 48), (20, 3, 12), (13, 2, 1)])
def test_phases_that_are_interleaved(width: int, phases: int, lanes: int) -> None:
    x = te.placeholder((5, phases, width))
    out = te.compute((5, phases * width), lambda i, j: x[i, j % phases, j // phases], name="joined")
    schedule, kernel = kernel_of(out, x)
    assert re.search(rf'loop="j" factors=0,\d+,{lanes}}}', schedule)
    a = np.random.default_rng(0).standard_normal((5, phases, width)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a.transpose(0, 2, 1).reshape(5, -1))
    assert "masked.gather" not in kernel.source


def test_pixels_beside_padding_are_read_one_by_one() -> None:
    x = te.placeholder((4, 32))
    out = topi.nn.pad(te.compute((4, 64), lambda i, j: x[i, j // 2], name="wide"), (0, 1), (0, 1))
    _, kernel = kernel_of(out, x)
    a = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), np.pad(a.repeat(2, 1), ((0, 0), (1, 1))))


@pytest.mark.parametrize(("width", "to", "lanes"), [(9, 33, 16), (13, 61, 40), (17, 33, 16), (21, 41, 16)])
def test_lanes_may_end_beyond_rows_of_what_another_block_writes(width: int, to: int, lanes: int) -> None:
    x = te.placeholder((1, 3, width, width))
    out = topi.resize2d(x, (to, to), coordinate_mode="align_corners")
    task = lw.SearchTask([x, out], target="llvm cores=1 vector_bytes=64 vector_registers=32")
    assert re.search(rf'block="resize" loop="i3" factors=0,\d+,{lanes}}}', task.default_schedule)
    found = task.build(task.default_schedule)(*task.reference.inputs)
    np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-5, atol=1e-5)
