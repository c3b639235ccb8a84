"""Evolutionary search over integer matrices: proposes the next candidates to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from ..cost_model import CostModel, Floats, relative_speed
from ..sketch.space import GuardedSpace, Rows, Space, SpaceError, SpaceFailure

T = TypeVar("T")


_FEWEST_FRESH = 256
"""Rows drawn anew in each round from a space, however slow it has been."""


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure."""

    space: int
    row: tuple[int, ...]
    schedule: str


@dataclass(frozen=True, slots=True)
class _Scored:
    space: int
    row: tuple[int, ...]
    mean: float
    spread: float


@dataclass(frozen=True)
class EvolutionSettings:
    """Sizes and rates. Scores are `mean + explore * spread`; `epsilon` is the share of proposals drawn at random.

    Of a generation, the share `crossover` mixes two parents, `fresh` was just drawn, `migrants` come from the best rows
    of another space; the rest are mutants. Before the model knows anything, the share `estimated` of a batch are the
    best by the spaces' own estimates.
    Proposals of one batch differ from each other in at least the share `apart` of their decisions while there are
    such: a model fitted to few samples is wrong about whole neighbourhoods, and a batch should not sit in one.
    """

    population: int = 768
    generations: int = 4
    from_measured: float = 0.25
    crossover: float = 0.25
    fresh: float = 0.1
    migrants: float = 0.05
    tournament: int = 3
    explore: float = 0.5
    epsilon: float = 0.06
    estimated: float = 0.6
    apart: float = 0.3


class Evolution:
    """Remembers what was measured, and proposes what was not; the same seed and history give the same proposals.

    A space that raises is left out from then on, which `note` is told; `propose` raises SpaceError when none is left.
    """

    def __init__(
        self,
        spaces: Sequence[Space],
        seed: int = 0,
        settings: EvolutionSettings | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.spaces = [GuardedSpace(space, number) for number, space in enumerate(spaces)]
        self._note = note
        self._failures: list[str] = []
        self._seed = seed
        self._settings = settings or EvolutionSettings()
        self._seen: set[tuple[int, tuple[int, ...]]] = set()
        self._schedules: set[str] = set()
        self._measured: list[tuple[int, tuple[int, ...], float]] = []
        self._features: list[Floats] = []

    def skip(self, schedule: str) -> None:
        """Never propose a candidate with this schedule."""
        self._schedules.add(schedule)

    def observe(self, space: int, row: Sequence[int], time_s: float) -> None:
        """Take in a measured candidate; an infinite time is a failure."""
        key = tuple(int(d) for d in row)
        self._seen.add((space, key))
        features = self._asked(space, lambda: self.spaces[space].features(_matrix([key]))[0])
        if features is not None:
            self._measured.append((space, key, time_s))
            self._features.append(np.asarray(features, dtype=np.float32))

    def means(self, space: int, row: Rows, schedule: str) -> bool:
        """Whether a row of a space is a candidate with this schedule.

        A space that cannot answer stays: the row, which may be of another version or damaged, is more likely at fault.
        """
        asked = self.spaces[space]
        try:
            return not asked.left_out and bool(asked.legal(row[None])[0]) and asked.schedule(row) == schedule
        except SpaceFailure:
            return False

    def training_set(self) -> tuple[Floats, Floats]:
        """Return the features `(n, f)` and times `(n,)` in seconds of all that was measured."""
        if not self._features:
            return np.zeros((0, 0), dtype=np.float32), np.zeros(0)
        return np.stack(self._features), np.array([time_s for _, _, time_s in self._measured])

    def propose(self, model: CostModel, count: int) -> list[Proposal]:
        """Return up to `count` distinct unseen candidates, best first; fewer or none when the spaces are used up.

        They count as seen from now on.
        """
        while len(self._failures) < max(1, len(self.spaces)):
            try:
                return self._propose(model, count)
            except SpaceFailure as failure:
                self._leave_out(failure)
        raise SpaceError(f"no sketch is left to search: {'; '.join(self._failures)}")

    def expected(self, model: CostModel, proposals: Sequence[Proposal | None]) -> list[float | None]:
        """Return what the model says of each proposal; None for no proposal, and while it knows nothing."""
        found: list[float | None] = [None] * len(proposals)
        for space in self.spaces if model.ready else ():
            rows = {n: p.row for n, p in enumerate(proposals) if p is not None and p.space == space.number}
            features = self._asked(space.number, partial(space.features, _matrix([*rows.values()]))) if rows else None
            if features is not None:
                for n, value in zip(rows, model.predict(features)[0].tolist(), strict=True):
                    found[n] = value
        return found

    def _asked(self, space: int, question: Callable[[], T]) -> T | None:
        """What a space answers; None where it is left out."""
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

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        rng = np.random.default_rng([self._seed, len(self._seen)])
        if not self.spaces:
            return []
        shares = self._shares() if model.ready else np.ones(len(self.spaces))
        counts = np.maximum(_FEWEST_FRESH, shares * self._settings.population).astype(int)
        fresh = [self._sample(rng, space, int(n)) for space, n in enumerate(counts)]
        proposals: list[Proposal] = []
        if model.ready:
            at_random = max(1, round(self._settings.epsilon * count)) if count > 4 else 0
            self._take_best(proposals, self._evolve(rng, model, fresh, shares), count - at_random)
        else:
            self._take_best(proposals, self._estimated(fresh), round(self._settings.estimated * count))
        self._take_random(proposals, rng, fresh, count)
        return proposals

    def _sample(self, rng: np.random.Generator, space: int, count: int) -> Rows:
        rows = self.spaces[space].sample(rng, count)
        return self._clean(space, rows)

    def _clean(self, space: int, rows: Rows) -> Rows:
        """Return the distinct legal rows, in their order."""
        if not len(rows):
            return rows
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
        return rows[self.spaces[space].legal(rows)]

    def _estimated(self, fresh: Sequence[Rows]) -> list[_Scored]:
        """Return rows that were just drawn, scored by their spaces' own estimates."""
        pool = []
        for index, (space, rows) in enumerate(zip(self.spaces, fresh, strict=True)):
            seconds = space.estimate(rows)
            if seconds is not None:
                scores = (-np.log2(seconds)).tolist()
                pool += [
                    _Scored(index, tuple(row), score, 0.0) for row, score in zip(rows.tolist(), scores, strict=True)
                ]
        return [scored for scored in pool if (scored.space, scored.row) not in self._seen]

    def _take_random(
        self, proposals: list[Proposal], rng: np.random.Generator, fresh: Sequence[Rows], count: int
    ) -> None:
        """Fill up with random candidates, from one space after the other."""
        queues = [[tuple(map(int, row)) for row in rows[rng.permutation(len(rows))]] for rows in fresh]
        first = int(rng.integers(len(queues)))
        while len(proposals) < count and any(queues):
            for offset in range(len(queues)):
                space = (first + offset) % len(queues)
                while queues[space] and len(proposals) < count:
                    if self._take(proposals, space, queues[space].pop()):
                        break

    def _take_best(self, proposals: list[Proposal], pool: Sequence[_Scored], count: int) -> None:
        """Take the highest scores: the first proposal by expectation, later ones more and more by what may be."""
        if not pool:
            return
        mean, spread = np.array([p.mean for p in pool]), np.array([p.spread for p in pool])
        spaces, rows = _padded(pool)
        near = np.zeros(len(pool), dtype=bool)
        left = np.ones(len(pool), dtype=bool)
        for eagerness in np.linspace(0.0, 2.0 * self._settings.explore, count):
            for chosen in np.lexsort((-(mean + eagerness * spread), near)):
                if not left[chosen]:
                    continue
                left[chosen] = False
                if self._take(proposals, pool[chosen].space, pool[chosen].row):
                    differing = (rows != rows[chosen]).sum(axis=1)
                    near |= (spaces == spaces[chosen]) & (differing < self._settings.apart * len(pool[chosen].row))
                    break

    def _take(self, proposals: list[Proposal], space: int, row: tuple[int, ...]) -> bool:
        if (space, row) in self._seen:
            return False
        self._seen.add((space, row))
        schedule = self._asked(space, partial(self.spaces[space].schedule, _matrix([row])[0]))
        if schedule is None or schedule in self._schedules:  # its space failed, or another row says the same
            return False
        self._schedules.add(schedule)
        proposals.append(Proposal(space, row, schedule))
        return True

    def _evolve(
        self, rng: np.random.Generator, model: CostModel, fresh: Sequence[Rows], shares: Floats
    ) -> list[_Scored]:
        """Return everything unseen that was scored on the way."""
        rows = [self._clean(s, np.concatenate([self._parents(s), fresh[s]])) for s in range(len(self.spaces))]
        rows = [r[: max(8, int(share * self._settings.population))] for r, share in zip(rows, shares, strict=True)]
        pool: dict[tuple[int, tuple[int, ...]], _Scored] = {}
        for generation in range(self._settings.generations + 1):
            scores = []
            for space, (mean, spread) in enumerate(self._predict(model, rows)):
                scores.append(mean + self._settings.explore * spread)
                for row, m, s in zip(rows[space].tolist(), mean.tolist(), spread.tolist(), strict=True):
                    pool[space, tuple(row)] = _Scored(space, tuple(row), m, s)
            if generation < self._settings.generations:
                migrants = self._migrants(rng, rows, scores)
                newcomers = [np.concatenate(pair) for pair in zip(migrants, self._some(rng, rows, fresh), strict=True)]
                rows = [self._breed(rng, s, rows[s], scores[s], newcomers[s]) for s in range(len(self.spaces))]
        return [scored for key, scored in pool.items() if key not in self._seen]

    def _shares(self) -> Floats:
        """Return how much of the population each space gets: more, the faster its best measured candidate."""
        scores = relative_speed(np.array([time_s for _, _, time_s in self._measured]))
        best = np.full(len(self.spaces), 0.1)
        for (space, _, _), score in zip(self._measured, scores, strict=True):
            best[space] = max(best[space], score)
        return np.asarray(best / best.sum())

    def _parents(self, space: int) -> Rows:
        """Return the best measured rows of a space."""
        most = int(self._settings.from_measured * self._settings.population)
        right = [(time_s, row) for s, row, time_s in self._measured if s == space and np.isfinite(time_s)]
        if not right or self.spaces[space].left_out:
            return np.zeros((0, self.spaces[space].n_decisions), dtype=np.int64)
        return _matrix([row for _, row in sorted(right)[:most]])

    def _predict(self, model: CostModel, rows: Sequence[Rows]) -> list[tuple[Floats, Floats]]:
        """Return mean and spread of each space's rows, from one prediction for all."""
        features = [self.spaces[s].features(r) for s, r in enumerate(rows) if len(r)]
        if not features:
            return [(np.zeros(0), np.zeros(0)) for _ in rows]
        bounds = np.cumsum([len(r) for r in rows])[:-1]
        means, spreads = (np.split(part, bounds) for part in model.predict(np.concatenate(features)))
        return list(zip(means, spreads, strict=True))

    def _migrants(self, rng: np.random.Generator, rows: Sequence[Rows], scores: Sequence[Floats]) -> list[Rows]:
        """Return for each space a few of the best rows of some other space, as rows of its own."""
        none = [r[:0] for r in rows]
        ranked = [s for s, space in enumerate(self.spaces) if space.adopts and len(rows[s]) > 1]
        if len(ranked) < 2:
            return none
        for space in ranked:
            others = [s for s in ranked if s != space]
            best = np.array([scores[s].max() for s in others])
            source = others[int(np.argmax(best + rng.gumbel(size=len(best)) * 0.1))]
            count = max(1, int(self._settings.migrants * len(rows[space])))
            chosen = rows[source][np.argsort(-scores[source])[:count]]
            none[space] = self.spaces[space].adopt(rng, self.spaces[source], chosen)
        return none

    def _some(self, rng: np.random.Generator, rows: Sequence[Rows], fresh: Sequence[Rows]) -> list[Rows]:
        """Return for each space some of the rows that were just drawn."""
        counts = [int(self._settings.fresh * len(r)) if len(f) else 0 for r, f in zip(rows, fresh, strict=True)]
        return [f[rng.integers(max(1, len(f)), size=n)] for f, n in zip(fresh, counts, strict=True)]

    def _breed(self, rng: np.random.Generator, space: int, rows: Rows, scores: Floats, newcomers: Rows) -> Rows:
        """Return the next generation: the fittest, children of tournament winners, and newcomers."""
        size = len(rows)
        if size < 2:
            return rows
        settings, sketch = self._settings, self.spaces[space]
        entrants = rng.integers(size, size=(2, size, settings.tournament))
        winners = np.take_along_axis(entrants, scores[entrants].argmax(axis=2)[..., None], axis=2)[..., 0]
        crossed = rng.random(size) < settings.crossover
        parents = rows[winners[0]]
        children = parents.copy()
        if crossed.any():
            children[crossed] = sketch.crossover(rng, parents[crossed], rows[winners[1][crossed]])
        if not crossed.all():
            children[~crossed] = sketch.mutate(rng, parents[~crossed])
        illegal = ~sketch.legal(children)
        if illegal.any():  # once more, from the same parents
            children[illegal] = sketch.mutate(rng, parents[illegal])
        elite = rows[np.argsort(-scores)[: max(1, size // 10)]]
        return self._clean(space, np.concatenate([elite, newcomers, children]))[: size + size // 10]


def _padded(pool: Sequence[_Scored]) -> tuple[Rows, Rows]:
    """Return the spaces `(n,)` and the rows `(n, widest)`, narrower ones filled up with -1."""
    rows = np.full((len(pool), max(len(p.row) for p in pool)), -1, dtype=np.int64)
    for index, scored in enumerate(pool):
        rows[index, : len(scored.row)] = scored.row
    return np.array([p.space for p in pool], dtype=np.int64), rows


def _matrix(rows: Sequence[Sequence[int]]) -> Rows:
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)
