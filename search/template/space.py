"""The configs of a template: a mixed-radix number whose digits are the choices of its knobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .knobs.knob import ConfigError, Knob
from .symbolic import POSITION, Columns

Rows = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]

MOST_POINTS = 1 << 62
"""Spaces are counted in 64-bit integers."""


class KnobSpace:
    """Knobs in the order of their definition; the first one varies fastest along the index.

    A row of a population is a position in each knob's choices, `(n, d)`; an index is the same as one number.
    """

    def __init__(self) -> None:
        self.knobs: dict[str, Knob[Any]] = {}

    def add(self, knob: Knob[Any]) -> None:
        """Append a knob; ConfigError where one of that name is there, or the space becomes too large to count."""
        if knob.name in self.knobs:
            raise ConfigError(f"knob '{knob.name}' is defined twice")
        if self.size * len(knob) > MOST_POINTS:
            raise ConfigError(f"knob '{knob.name}' makes the space larger than 2^62 points")
        self.knobs[knob.name] = knob

    # -- size ---------------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The knobs' names, in order."""
        return list(self.knobs)

    @property
    def n_decisions(self) -> int:
        """Number of knobs: the width of a row."""
        return len(self.knobs)

    @property
    def sizes(self) -> Rows:
        """The number of choices of each knob, `(d,)`."""
        return np.array([len(knob) for knob in self.knobs.values()], dtype=np.int64)

    @property
    def strides(self) -> Rows:
        """Distance that the index moves with each knob's position, `(d,)`."""
        return np.concatenate([[1], np.cumprod(self.sizes)[:-1]]).astype(np.int64)[: len(self.knobs)]

    @property
    def size(self) -> int:
        """Number of points."""
        total = 1
        for knob in self.knobs.values():
            total *= len(knob)
        return total

    def __len__(self) -> int:
        return self.size

    # -- index <-> row ------------------------------------------------------------------------------------------------

    def rows(self, indices: Sequence[int] | Indices) -> Rows:
        """The rows `(n, d)` of indices `(n,)`; IndexError where one is out of range."""
        given = np.asarray(indices, dtype=np.int64).reshape(-1)
        if len(given) and (given.min() < 0 or given.max() >= self.size):
            wrong = next(int(i) for i in given if not 0 <= i < self.size)
            raise IndexError(out_of_range(wrong, self.size))
        return np.asarray(given[:, None] // self.strides % self.sizes, dtype=np.int64)

    def indices(self, rows: Rows) -> Indices:
        """The indices `(n,)` of rows `(n, d)`."""
        return np.asarray(np.asarray(rows, dtype=np.int64) @ self.strides, dtype=np.int64)

    def checked_row(self, row: Sequence[int] | Rows) -> Rows:
        """A row as an array `(d,)`; ConfigError where it is not a position in each knob's choices."""
        if len(row) != self.n_decisions:
            raise ConfigError(f"a row has a position for each of {self.n_decisions} knobs, got {len(row)}")
        for (name, knob), given in zip(self.knobs.items(), row, strict=True):
            if not isinstance(given, int | np.integer) or not 0 <= given < len(knob):
                raise ConfigError(f"a position of knob '{name}' is a number in [0, {len(knob)}), got {given!r}")
        return np.array(row, dtype=np.int64)

    def row_of(self, values: Mapping[str, Any]) -> Rows:
        """The row `(d,)` of a value for each knob; ConfigError where one is missing, unknown or no choice."""
        if unknown := [name for name in values if name not in self.knobs]:
            raise ConfigError(f"there is no knob '{unknown[0]}'; knobs are {', '.join(self.knobs)}")
        if missing := [name for name in self.knobs if name not in values]:
            raise ConfigError(f"a config needs a value for each knob, '{missing[0]}' has none")
        return np.array([knob.position_of(values[name]) for name, knob in self.knobs.items()], dtype=np.int64)

    def values(self, row: Sequence[int] | Rows) -> dict[str, Any]:
        """The value of each knob in a row, as JSON holds it."""
        return {name: knob.value(int(p)) for (name, knob), p in zip(self.knobs.items(), row, strict=True)}

    # -- populations --------------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Random rows `(n, d)`, with repetition."""
        return rng.integers(0, self.sizes, size=(n, self.n_decisions), dtype=np.int64)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        """Each row with one knob, of those that have a choice, at another position."""
        free = np.flatnonzero(self.sizes > 1)
        rows = rows.copy()
        if not len(free) or not len(rows):
            return rows
        which = free[rng.integers(len(free), size=len(rows))]
        everyone = np.arange(len(rows))
        step = rng.integers(1, self.sizes[which])
        rows[everyone, which] = (rows[everyone, which] + step) % self.sizes[which]
        return rows

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The knobs' numbers `(n, f)`: logarithms of the parts of splits, places in orders, marks, values."""
        parts = [knob.features[rows[:, i]] for i, knob in enumerate(self.knobs.values())]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 0), dtype=np.float32)

    def columns(self, rows: Rows) -> Columns:
        """The numbers of each knob for each row, by (name, part); part POSITION is the position of the choice."""
        found: dict[tuple[str, int], npt.NDArray[np.int64]] = {}
        for i, (name, knob) in enumerate(self.knobs.items()):
            found[name, POSITION] = rows[:, i]
            for part, values in enumerate(knob.parts()):
                found[name, part] = values[rows[:, i]]
        return found

    # -- text ---------------------------------------------------------------------------------------------------------

    def describe(self, row: Sequence[int] | Rows) -> str:
        """A config as text: `[('tile_f', [8, 1, 64, 1]), ('unroll_explicit', 0)]`."""
        chosen = zip(self.knobs.items(), row, strict=True)
        return "[" + ", ".join(f"({name!r}, {knob.entity(int(p))})" for (name, knob), p in chosen) + "]"

    def _lines(self) -> Iterator[str]:
        yield f"ConfigSpace (len={self.size}, space_map="
        for number, (name, knob) in enumerate(self.knobs.items()):
            yield f"{number:4d} {name}: {knob}"
        yield ")"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__


def out_of_range(index: int, size: int) -> str:
    return f"a config index is in [0, {size}), got {index}"
