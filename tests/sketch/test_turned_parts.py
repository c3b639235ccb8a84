"""Transposes on CPUs: four rows and a vector of lanes change places in registers, also at edges."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

TARGET = "llvm cores=1 vector_bytes=64 vector_registers=32 l1_bytes=49152"


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((33, 21), (1, 0)), ((16, 64), (1, 0)), ((5, 9, 6, 20), (1, 3, 2, 0)), ((7, 40, 3), (2, 0, 1)), ((3, 50), (1, 0))],
)
def test_as_numpy_transposes(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    x = te.placeholder(shape, dtype)
    task = lw.SearchTask([x, topi.transpose(x, axes)], target=TARGET)
    a = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    np.testing.assert_array_equal(task.build(task.default_schedule)(a), a.transpose(axes))


@pytest.mark.parametrize(
    ("shape", "parts", "along_read"),
    [((1023, 517), 2, False), ((1024, 512), 4, False), ((1000, 500), 8, True)],
    ids=["sets", "lines", "anywhere"],
)
def test_tiles_follow_each_other_along_what_is_read_where_rows_begin_anywhere(
    shape: tuple[int, int], parts: int, along_read: bool
) -> None:
    """Rows of results 4092 bytes apart, each in two lines: 16 of them do not fit the 12 ways of two sets."""
    x = te.placeholder(shape)
    schedule = lw.SearchTask([x, topi.transpose(x)], target=TARGET).default_schedule
    (rows,) = re.findall(r'loop="ax0" factors=0,(\d+),4}', schedule)
    assert int(rows) == parts
    assert 'loop="ax1" factors=0,1,1,16}' in schedule
    assert ('loops="ax10","ax00"' in schedule) is along_read
