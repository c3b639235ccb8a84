"""Search strategies: they remember what was measured, and propose what was not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from ...dialects.cached_property import cached_property
from ..cost_model import CostModel, Floats, relative_speed
from ..cost_model.protocol import has_learned, log_scale
from ..sketch.space import GuardedSpace, Rows, Space, SpaceError, SpaceFailure
from .order import in_random_order

T = TypeVar("T")
_LATEST = 128
"""Candidates whose times tell the error of models. A choice: earlier ones were of models that knew less."""
_USUAL_ERROR, _AS_SURE = 0.04, 16
"""The error before it is known, 25% of a time, and the candidates that this is as sure as. That of first batches of
seven products and convolutions on an H200."""
Note = Callable[[str], None]


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure."""

    space: int
    row: tuple[int, ...]
    schedule: str


class StrategyMaker(Protocol):
    """A factory of strategies, from spaces to search, a seed, and whom to tell of spaces that fail."""

    def __call__(self, spaces: Sequence[Space], *, seed: int, note: Note) -> Strategy: ...


class Strategy(ABC):
    """Proposes candidates of some spaces, each once; the same seed and history give the same proposals.

    A space that raises is left out from then on, which `note` is told; `propose` raises SpaceError when none is left.
    """

    learns = True
    """True where proposals follow a cost model, which is to be fitted to `training_set` then."""

    def __init__(self, spaces: Sequence[Space], seed: int = 0, note: Note = lambda text: None) -> None:
        self.spaces = [GuardedSpace(space, number) for number, space in enumerate(spaces)]
        self._seed = seed
        self._note = note
        self._failures: list[str] = []
        self._seen: set[tuple[int, tuple[int, ...]]] = set()
        self._schedules: set[str] = set()
        self._measured: list[tuple[int, tuple[int, ...], float]] = []
        self._features: list[Floats | None] = []
        self._described: dict[tuple[int, tuple[int, ...]], Floats] = {}
        """Features of what is being measured."""
        self._foreseen: dict[tuple[int, tuple[int, ...]], tuple[float, float]] = {}
        """Predictions for candidates that are being measured, and the seconds of the best that each was fitted to."""
        self._missed: list[float] = []
        """By how much models expected more than was measured, on their scale."""
        self._left: list[Proposal] = []
        self._begun: list[tuple[int, tuple[int, ...]]] = []

    @abstractmethod
    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        """Up to `count` candidates made by `_take`, best first; fewer only where there are no others.

        May raise SpaceFailure before anything was taken: it is asked again then, without that space.
        """

    # -- what was measured --------------------------------------------------------------------------------------------

    def skip(self, schedule: str) -> None:
        """Never propose a candidate with this schedule."""
        self._schedules.add(schedule)

    def begin_from(self, space: int, row: tuple[int, ...]) -> None:
        """Take a candidate for one of the fastest before it is measured; who asks has it measured."""
        self._begun.append((space, row))
        self._seen.add((space, row))

    def observe(self, space: int, row: Sequence[int], time_s: float) -> None:
        """Take in a measured candidate; an infinite time is a failure."""
        key = tuple(int(d) for d in row)
        self._seen.add((space, key))
        self._measured.append((space, key, time_s))
        if (foreseen := self._foreseen.pop((space, key), None)) is not None and np.isfinite(time_s):
            value, best_s = foreseen
            self._missed.append(value - float(log_scale(np.array([best_s / time_s]))[0]))

    def _error_of_models(self) -> float | None:
        """The deviation of what models expected of the latest candidates from what was measured, on their scale.

        None before anything was both.
        """
        latest = self._missed[-_LATEST:]
        if not latest:
            return None
        squares = np.var(latest) * len(latest)
        return float(np.sqrt((_AS_SURE * _USUAL_ERROR**2 + squares) / (_AS_SURE + len(latest))))

    @property
    def measured(self) -> list[tuple[int, ...]]:
        """The rows that were measured, of all spaces."""
        return [row for _, row, _ in self._measured]

    def means(self, space: int, row: Rows, schedule: str) -> bool:
        """True where a row of a space is a candidate with this schedule.

        A space that cannot answer stays: the row, which may be of another version or damaged, is more likely at fault.
        """
        asked = self.spaces[space]
        try:
            return not asked.left_out and bool((row >= 0).all()) and asked.schedule(row) == schedule
        except SpaceFailure:
            return False

    def training_set(self) -> tuple[Floats, Floats]:
        """Return the features `(n, f)` and times `(n,)` in seconds of all that was measured."""
        self._describe()
        pairs = zip(self._features, self._measured, strict=True)
        known = [(found, time_s) for found, (_, _, time_s) in pairs if found is not None]
        if not known:
            return np.zeros((0, 0), dtype=np.float32), np.zeros(0)
        return np.stack([found for found, _ in known]), np.array([time_s for _, time_s in known])

    def _describe(self) -> None:
        """Compute the features of what was measured since the last call; None where the space fails."""
        first = len(self._features)
        new: dict[int, list[int]] = {}
        for n, (space, row, _) in enumerate(self._measured[first:], first):
            self._features.append(self._described.pop((space, row), None))
            if self._features[n] is None:
                new.setdefault(space, []).append(n)
        for space, at in new.items():
            rows = matrix([self._measured[n][1] for n in at])
            found = self._asked(space, partial(self.spaces[space].features, rows))
            for n, features in zip(at, () if found is None else found, strict=found is not None):
                self._features[n] = np.asarray(features, dtype=np.float32)

    def _fastest(self, space: int, most: int) -> Rows:
        """The fastest measured rows of a space, at most so many, and those that a search began from."""
        right = [(time_s, row) for s, row, time_s in self._measured if s == space and np.isfinite(time_s)]
        begun = [row for s, row in self._begun if s == space]
        if not (right or begun) or self.spaces[space].left_out:
            return self._none(space)
        return matrix([*dict.fromkeys([row for _, row in sorted(right)[:most]] + begun)])

    def _none(self, space: int) -> Rows:
        """No rows of a space."""
        return np.zeros((0, self.spaces[space].n_decisions), dtype=np.int64)

    def _shares(self) -> Floats:
        """Share of a population for each space: more, the faster its best measured candidate."""
        scores = relative_speed(np.array([time_s for _, _, time_s in self._measured]))
        best = np.full(len(self.spaces), 0.1)
        for (space, _, _), score in zip(self._measured, scores, strict=True):
            best[space] = max(best[space], score)
        return np.asarray(best / best.sum())

    # -- proposing ----------------------------------------------------------------------------------------------------

    def propose(self, model: CostModel, count: int) -> list[Proposal]:
        """Return up to `count` distinct unseen candidates, best first; fewer or none when the spaces are used up.

        They count as seen from now on. What was put back comes first.
        """
        if self.learns:
            self._describe()
        taken, self._left = self._left[:count], self._left[count:]
        while len(taken) < count and len(self._failures) < max(1, len(self.spaces)):
            try:
                return taken + self._propose(model, count - len(taken))
            except SpaceFailure as failure:
                self._leave_out(failure)
        if taken or not count:
            return taken
        raise SpaceError(f"no sketch is left to search: {'; '.join(self._failures)}")

    def longest_first(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """The same proposals, those first that take long to be built, as far as their spaces know."""
        seconds = [0.0] * len(proposals)
        for n, proposal in enumerate(proposals):
            space = self.spaces[proposal.space]
            found = self._asked(space.number, partial(space.build_seconds, matrix([proposal.row])))
            seconds[n] = 0.0 if found is None else float(found[0])
        return [proposals[n] for n in sorted(range(len(proposals)), key=lambda n: -seconds[n])]

    def put_back(self, proposals: Sequence[Proposal]) -> None:
        """Propose these again before all others: they were not measured."""
        self._left = [*proposals, *self._left]

    @property
    def put_aside(self) -> int:
        """The number of candidates that were put back, which the next proposals are."""
        return len(self._left)

    def expected(self, model: CostModel, proposals: Sequence[Proposal | None]) -> list[float | None]:
        """Return what the model says of each proposal; None for no proposal, and while it knows nothing."""
        found: list[float | None] = [None] * len(proposals)
        best_s = min((time_s for _, _, time_s in self._measured), default=np.inf)
        compares = np.isfinite(best_s) and has_learned(model)
        for space in self.spaces if self.learns and model.ready else ():
            rows = {n: p.row for n, p in enumerate(proposals) if p is not None and p.space == space.number}
            features = self._asked(space.number, partial(space.features, matrix([*rows.values()]))) if rows else None
            if features is not None:
                kept = np.asarray(features, dtype=np.float32)
                for n, value, own in zip(rows, model.predict(features)[0].tolist(), kept, strict=True):
                    found[n] = value
                    self._described[space.number, rows[n]] = own
                    if compares:
                        self._foreseen[space.number, rows[n]] = value, best_s
        return found

    def _take(self, proposals: list[Proposal], space: int, row: tuple[int, ...]) -> bool:
        """Append a candidate, unless it was seen, is built to the code of one that was, or has no room."""
        if (space, row) in self._seen:
            return False
        self._seen.add((space, row))
        texts = self._asked(space, partial(self._texts, self.spaces[space], matrix([row])[0]))
        if texts is None or not self._schedules.isdisjoint(texts):
            return False  # its space failed or has no room for it, or another row says the same, or comes to that code
        schedule, _ = texts
        self._schedules |= {*texts}
        proposals.append(Proposal(space, row, schedule))
        return True

    @staticmethod
    def _texts(space: GuardedSpace, row: Rows) -> tuple[str, str] | None:
        """The schedule of a row, and a text that is the same for rows of the same code; None where it has no room."""
        schedule = space.schedule(row)
        if not space.has_room(row, schedule):
            return None
        return schedule, space.code(row, schedule)

    def _fill(self, proposals: list[Proposal], count: int) -> list[Proposal]:
        """Append candidates in the spaces' orders, from one space after the other, until there are `count`."""
        left = [space for space in self.spaces if not space.left_out]
        while len(proposals) < count and left:
            space = left[len(self._seen) % len(left)]
            row = self._asked(space.number, partial(next, self._orders[space.number], None))
            if row is None:
                left.remove(space)
            else:
                self._take(proposals, space.number, row)
        return proposals

    @cached_property
    def _orders(self) -> list[Iterator[tuple[int, ...]]]:
        return [self._order(space) for space in self.spaces]

    def _order(self, space: GuardedSpace) -> Iterator[tuple[int, ...]]:
        """The legal rows of a space, one after the other: at random, and the same for the same seed."""
        return in_random_order(space, np.random.default_rng([self._seed, space.number]))

    # -- spaces that fail ---------------------------------------------------------------------------------------------

    def _asked(self, space: int, question: Callable[[], T]) -> T | None:
        """The answer of a space; None where it is left out."""
        if self.spaces[space].left_out:
            return None
        try:
            return question()
        except SpaceFailure as failure:
            self._leave_out(failure)
            return None

    def _leave_out(self, failure: SpaceFailure) -> None:
        """Search without a space from now on."""
        failure.space.left_out = True
        self._failures.append(failure.sentence)
        self._note(failure.sentence)


def matrix(rows: Sequence[Sequence[int]]) -> Rows:
    """Rows `(n, d)` from tuples."""
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def padded(pool: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[Rows, Rows]:
    """Return the spaces `(n,)` and the rows `(n, widest)` of a pool, narrower ones filled up with -1."""
    rows = np.full((len(pool), max(len(row) for _, row in pool)), -1, dtype=np.int64)
    for index, (_, row) in enumerate(pool):
        rows[index, : len(row)] = row
    return np.array([space for space, _ in pool], dtype=np.int64), rows
