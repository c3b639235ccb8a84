"""Strides of row-major arrays, beside NumPy's."""

import numpy as np
import pytest

from loopwright.dialects.strides import row_major


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (1, 7, 1), (3, 0, 2)])
def test_strides_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    array = np.empty(shape, np.int8)
    have, want = row_major(shape), array.strides
    assert len(have) == len(want) and (not array.size or have == list(want))


def test_rows_are_padded_to_an_offset() -> None:
    assert row_major((4, 64, 30), (1, 32, 1)) == [64 * 33, 33, 1]
    assert row_major((4, 64, 33), (1, 32, 1)) == [64 * 33, 33, 1]
    assert row_major((4, 64, 30), (0, 32, 0)) == [60 * 32, 30, 1]
