"""The legal rows of a space one after the other: along an index, or at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..sketch.space import GuardedSpace, Rows

LARGEST_INDEX = (1 << 62) - 1
"""Spaces are counted in 64-bit integers with a sign."""
_SHUFFLED = 1 << 16
"""Spaces of up to so many rows are shuffled as a whole: each row comes up once, to the last one. A choice: half a
megabyte of numbers."""
_FEWEST, _MOST = 16, 4096
"""Rows whose legality is asked at once: few at first, as few may be wanted."""
_DRAWN = 64
"""Rows drawn at a time. A choice: a call for one takes nearly as long."""
_FRUITLESS = 64
"""Draws in a row without a new legal row after which a space counts as used up. A choice: 4,096 rows without one."""


def in_order(space: GuardedSpace) -> Iterator[tuple[int, ...]]:
    """Legal rows by their index: the first decision varies fastest."""
    sizes = space.sizes
    size = size_of(sizes)
    start, step = 0, _FEWEST
    while start < size:
        yield from _legal(space, rows_at(np.arange(start, min(start + step, size), dtype=np.int64), sizes))
        start, step = start + step, min(2 * step, _MOST)


def in_random_order(space: GuardedSpace, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Distinct legal rows at random: all of a small space, of others until drawing brings nothing new for long."""
    if space.is_listed and (size := size_of(space.sizes)) <= _SHUFFLED:
        indices = rng.permutation(size)
        start, step = 0, _FEWEST
        while start < size:
            yield from _legal(space, rows_at(indices[start : start + step], space.sizes))
            start, step = start + step, min(2 * step, _MOST)
        return
    known: set[tuple[int, ...]] = set()
    fruitless = 0
    while fruitless < _FRUITLESS:
        before = len(known)
        for row in _legal(space, space.sample(rng, _DRAWN)):
            if row not in known:
                known.add(row)
                yield row
        fruitless = 0 if len(known) > before else fruitless + 1


def size_of(sizes: Rows) -> int:
    """The number of rows, legal or not, of a space whose decisions have so many positions `(d,)` each."""
    size = 1
    for number in sizes.tolist():
        size *= number
    return size


def rows_at(indices: Rows, sizes: Rows) -> Rows:
    """The rows `(n, d)` at indices `(n,)`."""
    strides = [1]
    for number in sizes.tolist()[:-1]:
        strides.append(min(strides[-1] * number, LARGEST_INDEX))
    return np.asarray(indices[:, None] // np.array(strides[: len(sizes)], dtype=np.int64) % sizes, dtype=np.int64)


def _legal(space: GuardedSpace, rows: Rows) -> list[tuple[int, ...]]:
    if not len(rows):
        return []
    return [tuple(row) for row in rows[space.legal(rows)].tolist()]
