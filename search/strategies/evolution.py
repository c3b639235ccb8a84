"""Evolutionary search over integer matrices: proposes the next candidates to measure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..cost_model import CostModel, Floats
from ..cost_model.protocol import has_learned
from ..sketch.distinct import distinct_rows, next_rows
from ..sketch.space import Rows, Space, SpaceFailure
from .best_of import best_of
from .strategy import Note, Proposal, Strategy, matrix, padded

_FEWEST_FRESH = 256
"""Fresh rows of a space in a round, however slow it has been. A choice: a space that has been slow so far is not given
up."""
_DRAWS = 4
"""Draws that the fresh rows of a round are from, all of one size."""
_DRAWN_EACH = 64
"""Trials after which the oldest draw is left out and a new one made. With a model of another day for the device, nine
searches of 256 trials that drew a quarter anew in each round found what they do where all are (0.90 to 1.06 of the
time), for a fifth less CPU."""
_SLOW = 0.5
"""Share of the fastest space's speed below which spaces are bred in turn. A choice: to become the fastest, such a space
would have to hold a candidate of twice the speed of all that was seen of it."""
_KNOWN_AFTER = 64
"""Trials after which spaces are known by their fastest candidate. A choice: short searches breed all each time."""


@dataclass(frozen=True, slots=True)
class _Scored:
    space: int
    row: tuple[int, ...]
    mean: float
    spread: float


Pool = dict[tuple[int, tuple[int, ...]], _Scored]
"""Rows that were scored, by their spaces and themselves."""


@dataclass(frozen=True)
class EvolutionSettings:
    """Sizes and rates. Scores are `mean + explore * spread`; `epsilon` is the share of proposals drawn at random.

    Of a generation, the share `crossover` mixes two parents, `fresh` was just drawn, `migrants` come from the best rows
    of another space; the rest are mutants. Before the model knows anything, the share `estimated` of a batch are the
    best by the spaces' own estimates.
    Proposals of one batch differ from each other in at least the share `apart` of their decisions while there are
    such: a model fitted to few samples is wrong about whole neighbourhoods, and a batch should not sit in one.
    After the last generation come `climbs` rounds, in each of which the best `climbers` that were not yet climbed from
    are changed in each decision by one choice up and down: what a population of random changes leaves out. A model
    fitted to 64 trials of a convolution of 512x7x7 had its best known candidate above all of 9,000 rows that were
    drawn, and breeding did not come to it. With them four searches reach 11.1 to 11.4 us after 128 trials, two without
    11.7 (an H200); 31 simulated ones of seven workloads 0.992 and 0.996 of the time after 128 and 192, for a tenth more
    thinking.
    `thrift` says how much candidates that take long to be built count for less: the share of what the best of those
    that would be built meanwhile is expected to gain, which is taken from their score. It is not all of that, as models
    are wrong about similar candidates alike. Of 27 simulated searches of 256 trials (five products and convolutions)
    builds took 0.80 of their time with a half and the best was 1.003 times as long; 0.73 and 1.014 times with one.
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
    thrift: float = 0.5
    climbs: int = 3
    climbers: int = 16


class Evolution(Strategy):
    """Breeds candidates from the fastest, as mutants and mixtures, for some generations by the cost model alone."""

    def __init__(
        self,
        spaces: Sequence[Space],
        seed: int = 0,
        settings: EvolutionSettings | None = None,
        note: Note = lambda text: None,
    ) -> None:
        super().__init__(spaces, seed, note)
        self._settings = settings or EvolutionSettings()
        self._drawn: list[dict[int, Rows]] = [{} for _ in spaces]
        """The last draws of each space, by their numbers."""
        self._most_liked = (-np.inf, 0.0)
        """The best prediction for a space like those that the model has seen, and what corrects its estimate."""

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        rng = np.random.default_rng([self._seed, len(self._seen)])
        if not self.spaces:
            return []
        shares = self._shares() if model.ready else np.ones(len(self.spaces))
        bred = self._bred(rng, shares)
        proposals = self._bred_from(model, rng, shares, bred, count)
        try:
            if len(proposals) < count and not bred.all():  # there may be more in the others
                proposals += self._bred_from(model, rng, shares, ~bred, count - len(proposals))
            if len(proposals) < count:  # or among rows that were not drawn yet
                rows = [self._sample(rng, space.number, _FEWEST_FRESH) for space in self.spaces]
                self._take_random(proposals, rng, rows, count)
        except SpaceFailure as failure:
            self._leave_out(failure)
        return proposals

    def _bred(self, rng: np.random.Generator, shares: Floats) -> npt.NDArray[np.bool_]:
        """True for each space that is bred in this round: those near the fastest one, and one of the others."""
        fast = shares >= _SLOW * shares.max()
        if len(self._measured) >= _KNOWN_AFTER and not fast.all():
            fast[rng.choice(np.flatnonzero(~fast))] = True
            return np.asarray(fast)
        return np.ones(len(shares), dtype=bool)

    def _bred_from(
        self, model: CostModel, rng: np.random.Generator, shares: Floats, bred: npt.NDArray[np.bool_], count: int
    ) -> list[Proposal]:
        """Propose candidates of some of the spaces."""
        if not bred.all():
            shares = np.where(bred, shares, 0.0) / shares[bred].sum()
        counts = np.where(bred, np.maximum(_FEWEST_FRESH, shares * self._settings.population), 0).astype(int)
        fresh = [self._fresh(space, int(n)) for space, n in enumerate(counts)]
        proposals: list[Proposal] = []
        if model.ready:
            at_random = max(1, round(self._settings.epsilon * count)) if count > 4 else 0
            self._take_best(proposals, self._evolve(rng, model, fresh, shares), count - at_random)
        else:
            self._take_best(proposals, self._estimated(fresh), round(self._settings.estimated * count))
        self._take_random(proposals, rng, fresh, count)
        return proposals

    def _fresh(self, space: int, count: int) -> Rows:
        """Distinct legal rows, `count` at most, of the last draws; which these are the number of trials so far says."""
        if not count or self.spaces[space].left_out:
            return self._none(space)
        newest, known = len(self._seen) // _DRAWN_EACH + _DRAWS, self._drawn[space]
        numbers = range(newest, newest - _DRAWS, -1)
        for number in numbers:
            if number not in known:
                known |= self._draw(space, range(1, _DRAWS + 1) if number <= _DRAWS else [number])
        self._drawn[space] = {number: known[number] for number in numbers}
        return distinct_rows(np.concatenate([*self._drawn[space].values()]))[:count]

    def _draw(self, space: int, numbers: Sequence[int]) -> dict[int, Rows]:
        """Draws by their numbers, the first few at once: many rows take little longer than few."""
        rng = np.random.default_rng([self._seed, space, numbers[0]])
        size = max(_FEWEST_FRESH, self._settings.population) // _DRAWS
        rows = self._sample(rng, space, size * len(numbers))
        return {number: rows[n :: len(numbers)] for n, number in enumerate(numbers)}  # the best rows come first

    def _sample(self, rng: np.random.Generator, space: int, count: int) -> Rows:
        """Distinct legal rows, about `count`."""
        return self._clean(space, self.spaces[space].sample(rng, count))

    def _clean(self, space: int, rows: Rows) -> Rows:
        """Return the distinct legal rows, in their order."""
        return self._legal(space, distinct_rows(rows))

    def _legal(self, space: int, rows: Rows) -> Rows:
        return rows[self.spaces[space].legal(rows)] if len(rows) else rows

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
        spaces, rows = padded([(p.space, p.row) for p in pool])
        mean = mean - self._settings.thrift * self._foregone(spaces, rows)
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

    def _foregone(self, spaces: Rows, rows: Rows) -> Floats:
        """By how much the best of those that would be built in a row's time is expected above one of them, `(n,)`.

        Those are as many as are built in the time of the pool's cheapest, no better and no worse than the model's error
        has it. None are foregone where nobody knows what takes how long, or the model's error.
        """
        error, seconds = self._error_of_models(), np.full(len(rows), np.nan)
        if error is None:
            return np.zeros(len(rows))
        for space in self.spaces:
            own = spaces == space.number
            found = space.build_seconds(rows[own][:, : space.n_decisions]) if own.any() else None
            if found is not None:
                seconds[own] = found
        if np.isnan(seconds).any():
            return np.zeros(len(rows))
        return error * best_of(seconds / seconds.min())

    def _evolve(
        self, rng: np.random.Generator, model: CostModel, fresh: Sequence[Rows], shares: Floats
    ) -> list[_Scored]:
        """Return everything unseen that was scored on the way; a space without a share is left out."""
        parents = int(self._settings.from_measured * self._settings.population)
        rows = list(fresh)
        for space, share in enumerate(shares):
            if share:
                fastest = self._legal(space, self._fastest(space, parents))
                known = distinct_rows(np.concatenate([fastest, fresh[space]]))
                rows[space] = known[: max(8, int(share * self._settings.population))]
        pool: Pool = {}
        for generation in range(self._settings.generations + 1):
            scores = self._score(model, rows, pool)
            if generation < self._settings.generations:
                migrants = self._migrants(rng, rows, scores)
                newcomers = [np.concatenate(pair) for pair in zip(migrants, self._some(rng, rows, fresh), strict=True)]
                rows = [self._breed(rng, s, rows[s], scores[s], newcomers[s]) for s in range(len(self.spaces))]
        self._climb(model, pool)
        return [scored for key, scored in pool.items() if key not in self._seen]

    def _score(self, model: CostModel, rows: Sequence[Rows], pool: Pool) -> list[Floats]:
        """Add each space's rows to a pool, as the model sees them, and return their scores."""
        scores = []
        for space, (mean, spread) in enumerate(self._predict(model, rows)):
            scores.append(mean + self._settings.explore * spread)
            for row, m, s in zip(rows[space].tolist(), mean.tolist(), spread.tolist(), strict=True):
                pool[space, tuple(row)] = _Scored(space, tuple(row), m, s)
        return scores

    def _climb(self, model: CostModel, pool: Pool) -> None:
        """Add the rows next to the best of a pool, and to what becomes the best, measured ones among these."""
        listed = {space.number for space in self.spaces if space.is_listed}
        explore = self._settings.explore
        waiting = {key: each.mean + explore * each.spread for key, each in pool.items() if key[0] in listed}
        for _ in range(self._settings.climbs):
            best = heapq.nlargest(self._settings.climbers, waiting, key=waiting.__getitem__)
            for key in best:
                del waiting[key]
            rows = [self._beside([row for s, row in best if s == n], n, pool) for n in range(len(self.spaces))]
            for space, found in enumerate(self._score(model, rows, pool)):
                waiting |= {(space, tuple(row)): s for row, s in zip(rows[space].tolist(), found.tolist(), strict=True)}

    def _beside(self, rows: Sequence[tuple[int, ...]], space: int, pool: Pool) -> Rows:
        """Legal rows next to some of a space, those of a pool left out."""
        if not rows:
            return self._none(space)
        sizes = self.spaces[space].sizes
        found = self._clean(space, np.concatenate([next_rows(row, sizes) for row in matrix(rows)]))
        return np.asarray(found[[(space, tuple(row)) not in pool for row in found.tolist()]])

    def _predict(self, model: CostModel, rows: Sequence[Rows]) -> list[tuple[Floats, Floats]]:
        """Return mean and spread of each space's rows, from one prediction for all."""
        features = [self.spaces[s].features(r) for s, r in enumerate(rows) if len(r)]
        if not features:
            return [(np.zeros(0), np.zeros(0)) for _ in rows]
        bounds = np.cumsum([len(r) for r in rows])[:-1]
        means, spreads = (np.split(part, bounds) for part in model.predict(np.concatenate(features)))
        if any(space.unseen for space in self.spaces) and not has_learned(model):
            self._without_corrections(rows, means)
        return list(zip(means, spreads, strict=True))

    def _without_corrections(self, rows: Sequence[Rows], means: Sequence[Floats]) -> None:
        """Have rows of spaces that the model has seen none like count by their estimates, as they do untuned.

        These are corrected as the one is that the model likes best of all others so far: climbs may go on from rows of
        such spaces alone. Of 1024 cubed (an H200) products in parts and slices were predicted to take 0.90 of the time
        of others and took 1.08: half of the first 64 trials were theirs.
        """
        estimates = [space.estimate(own) for space, own in zip(self.spaces, rows, strict=True)]
        unseen = [space.unseen and seconds is not None for space, seconds in zip(self.spaces, estimates, strict=True)]
        seen = [
            (float(mean.max()), float(mean.max() + np.log2(seconds[int(np.argmax(mean))])))
            for mean, seconds, is_unseen in zip(means, estimates, unseen, strict=True)
            if seconds is not None and not is_unseen
        ]
        self._most_liked = max([self._most_liked, *seen])
        predicted, gained = self._most_liked
        if predicted > -np.inf:
            for mean, seconds, is_unseen in zip(means, estimates, unseen, strict=True):
                if is_unseen and seconds is not None:
                    mean[:] = gained - np.log2(seconds)

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
            none[space] = self._legal(space, self.spaces[space].adopt(rng, self.spaces[source], chosen))
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
        legal = sketch.legal(children)
        if not legal.all():  # once more, from the same parents
            children[~legal] = again = sketch.mutate(rng, parents[~legal])
            legal[~legal] = sketch.legal(again)
        elite = rows[np.argsort(-scores)[: max(1, size // 10)]]
        return distinct_rows(np.concatenate([elite, newcomers, children[legal]]))[: size + size // 10]
