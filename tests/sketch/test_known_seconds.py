"""Estimates that are kept are those that would be made again, and none is made twice."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from loopwright.search.sketch.known_seconds import KnownSeconds

Rows = npt.NDArray[np.int64]


@given(st.lists(hnp.arrays(np.int64, st.tuples(st.integers(0, 6), st.just(3)), elements=st.integers(0, 2)), max_size=5))
def test_each_row_is_estimated_once(asked: list[Rows]) -> None:
    made: list[tuple[int, ...]] = []

    def estimate(rows: Rows) -> npt.NDArray[np.float64]:
        made.extend(map(tuple, rows.tolist()))
        return np.asarray(rows @ np.array([1.5, 0.25, 7.0]))

    seconds = KnownSeconds(estimate)
    for rows in asked:
        np.testing.assert_array_equal(seconds(rows[:, ::-1]), rows[:, ::-1] @ np.array([1.5, 0.25, 7.0]))
    assert len(made) == len(set(made))


def test_rows_without_holes_are_alike() -> None:
    assert KnownSeconds(lambda rows: np.full(len(rows), 2.0))(np.zeros((3, 0), dtype=np.int64)).tolist() == [2.0] * 3


def test_a_single_row_may_be_a_part_of_anything() -> None:
    seconds, rows = KnownSeconds(lambda rows: rows @ np.array([1.5, 0.25, 7.0])), np.arange(12).reshape(4, 3)
    for row in (rows[::4], rows[0][None], rows[3:], np.asfortranarray(rows)[1:2]):
        assert seconds(row).tolist() == (row @ np.array([1.5, 0.25, 7.0])).tolist()
