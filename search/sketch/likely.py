"""The candidate that is thought best before any is measured, for who has no time to measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...passes.collector import collector_paused
from ..cost_model import CostModel, Floats
from ..cost_model.general import General
from .distinct import first_places, next_rows, sorted_rows
from .sketch import Sketch

CANDIDATES = 4096
"""Random candidates of a sketch that are looked at, where they are not changed by their estimates. With 1,024 operators
take PyTorch's time / 1.70, with these / 1.73 (see `CLIMBS`)."""
CHANGED_CANDIDATES = 1024
"""Those that rounds begin from: of 16 random workloads the least estimates are 0.5% higher than from 4,096, and what
the model predicts of the best 0.7% better, in two thirds of the time."""
KEPT = 128
"""Of those, by the rules' estimate, the ones that a cost model compares: it takes 0.1 ms for each."""
FEW = 512
"""Candidates that are all looked at, of a sketch that has no more: 5 ms. A choice: spaces of rows and moves have some
hundred, and those of products thousands of millions."""
STEPS, STEPPED = 8, 512
"""Rounds in which candidates of the least estimate are changed a little, and those that a round makes of them: 6 ms
each, where drawing takes 40 to 150. Of 2048 cubed (an H200) the least estimate of 4,096 drawn is 344.4 us, which takes
415; after these rounds it is 340.5, which takes 343.6, cuBLAS 339.6."""
FAR, FAR_DRAWN, FAR_CHANGED = 1.6, 1.6, 1.35
"""Times the least estimate of all sketches from which on a sketch is not looked at: about 0.1 s for its features. Where
rounds change candidates, of those that are drawn, and of what they become: for 5 of 40 random workloads with several
sketches the model chose another one (an H200's) than that of the least estimate, at 1.003 to 1.29 times."""
MOST_COMPARED = 2
"""Sketches of which the model compares candidates, at most, those of the least estimates, where rounds change these:
features of another take 25 to 45 ms. Of 321 workloads with such sketches (an H200) the model took the first 283 times,
the second 34 times, another of up to eight 4 times, which it predicts to be up to 10% faster, 0.05% in the mean of all.
On a core of an Emerald Rapids all are: of at most four three of 292 are chosen otherwise, one predicted 1.4 times as
slow."""
FAR_DEFAULT = 2.0
"""The same of defaults, from which on nothing of a sketch is drawn, where candidates are not changed: on CPUs, whose
defaults the estimates have chosen. Of 264 sketches of 47 workloads (a core of an Emerald Rapids) 116 are beyond it, a
third of the time of drawing, and 21 between 1.6 and it: of none of these 137 was a candidate drawn that was near."""
SURE = 1.05
"""Times the least estimate of all sketches up to which one whose estimates are sure is taken. Of 60 random
convolutions (one core of an Emerald Rapids) those with lanes along channels took 1 / 1.28 of the time of the model's
choice where they were estimated at less than 1.05 of the others (16), 1 / 1.01 up to 1.2 (12), 1 / 0.82 up to 1.5."""
SURE_ON_CPU = 1.35
"""The same on CPUs, where other lanes are estimated at as little as half of what they take. Of 42 convolutions (a core
of an Emerald Rapids, the least of ten turns) lanes along channels took 1 / 1.22 of the time of the model's choice where
they were estimated at less than 1.05 of the others (22, 1 / 0.76 to 1 / 1.92), 1 / 1.08 up to 1.35 (20, 1 / 0.69 to
1 / 1.78)."""
CLIMBS = 4
"""Rounds in which the candidates that the model likes best are changed a little. On an H200, 43 operators untuned took
PyTorch's time / 1.73 without, / 1.76 to 1.81 with them; / 1.70 of 1,024 random candidates a sketch."""
PARENTS, CHANGED = 16, 64
"""Candidates that a round begins from, and those that it makes of them."""
FITTED = 16
"""The best candidates that are asked for their room in shared memory, at most: of thousands one has none. A choice."""


Worth = list[tuple[Sketch, npt.NDArray[np.int64]]]
"""Sketches with the rows of each that are compared, those of the least estimate first."""


@dataclass(frozen=True)
class Estimated:
    """Rows of a sketch, and what is estimated of each, in seconds; zeros where there is no estimate."""

    rows: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]

    def __getitem__(self, part: slice | npt.NDArray[np.int64]) -> Estimated:
        return Estimated(self.rows[part], self.seconds[part])

    @property
    def best_first(self) -> Estimated:
        """The same in the order of the estimates."""
        return self[np.argsort(self.seconds, kind="stable")]

    def beside(self, sketch: Sketch, rows: npt.NDArray[np.int64]) -> Estimated:
        """These and others, all distinct and sorted; none is estimated twice."""
        every = np.concatenate([self.rows, rows])
        places = first_places(every)
        is_new = places >= len(self.rows)
        seconds = np.empty(len(places))
        seconds[~is_new] = self.seconds[places[~is_new]]
        if is_new.any():
            seconds[is_new] = _estimates(sketch, every[places[is_new]])
        return Estimated(every[places], seconds)


def _estimates(sketch: Sketch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    found = sketch.estimate(rows)
    return np.zeros(len(rows)) if found is None else np.asarray(found, dtype=np.float64)


@dataclass
class Compared:
    """Rows of a sketch, and what the model makes of them; none estimated above `most_s` is looked at."""

    sketch: Sketch
    rows: npt.NDArray[np.int64]
    scores: Floats
    most_s: float

    @classmethod
    def of(cls, sketch: Sketch, rows: npt.NDArray[np.int64], model: CostModel) -> Compared:
        """The best rows by the estimates, these first, compared by the model."""
        most_s = _seconds(sketch, rows[-1]) if sketch.prior is not None else math.inf
        return cls(sketch, rows, model.predict(sketch.features(rows))[0], most_s)

    def climb(self, rng: np.random.Generator, parents: npt.NDArray[np.int64], model: CostModel) -> None:
        """Add what becomes of rows when some of their holes are filled otherwise."""
        count = -(-CHANGED // PARENTS)
        self._add(sorted_rows(self.sketch.mutate(rng, np.repeat(self.rows[parents], count, axis=0))), model)

    def step(self, model: CostModel) -> None:
        """Add all rows that differ from the best one in the next choice of one hole, up or down.

        Changes at random leave some of them out. Of 86 operators 26 are chosen otherwise so, and take 1 / 1.012 of the
        time in geometric mean, seven of them 1 / 1.02 to 1 / 1.15 and one 1 / 0.91; a convolution of 512x7x7 takes 11.7
        us for 14.1 (an H200).
        """
        self._add(next_rows(self.rows[int(np.argmax(self.scores))], self.sketch.sizes), model)

    def _add(self, rows: npt.NDArray[np.int64], model: CostModel) -> None:
        """Compare more rows, of which some may be known, not legal, or estimated above all others."""
        known = {row.tobytes() for row in self.rows}
        rows = rows[np.array([row.tobytes() not in known for row in rows], dtype=bool) & self.sketch.legal(rows)]
        if self.sketch.prior is not None:
            rows = rows[_estimates(self.sketch, rows) <= self.most_s]
        if len(rows):
            self.rows = np.concatenate([self.rows, rows])
            self.scores = np.concatenate([self.scores, model.predict(self.sketch.features(rows))[0]])


@collector_paused()
def likeliest_candidate(
    sketches: Sequence[Sketch],
    model: CostModel | None = None,
    doubt: float = 0.0,
    rounds: int = STEPS,
    near: float = SURE,
) -> tuple[Sketch, npt.NDArray[np.int64]]:
    """Return the candidate that a model predicts to be the fastest, of all sketches, as its sketch and row.

    With a `doubt` the first sketch's defaults stay unless it is predicted to be faster by more than that, in the
    model's scores, and where the rules give no estimate for the model to correct. The defaults of a sketch whose
    estimates are sure are taken where they are estimated at no more than `near` times those of the first.
    Without a model it is the one with the least estimated seconds among the first sketch's defaults and random
    candidates, and the defaults where it has no estimate. The same sketches and model give the same candidate.
    """
    if model is None:
        first = sketches[0]
        rows = _drawn(first, CANDIDATES // 8) if first.prior is not None else first.default[None]
        return first, _by_estimate(first, rows).rows[0]
    sketches, worth = _seen(sketches, rounds)
    first = sketches[0]
    if (sure := sure_near_the_least(sketches, near)) is not None:
        return sure, sure.default
    if doubt and first.prior is None:
        return first, first.default
    found = compared(sketches, model, rounds=rounds) if worth is None else _compare(worth, model, rounds)
    best = max(float(each.scores.max()) for each in found)
    if doubt and best <= model.predict(first.features(first.default[None]))[0][0] + doubt:
        return first, first.default
    return best_with_room(found)


def best_with_room(found: Sequence[Compared]) -> tuple[Sketch, npt.NDArray[np.int64]]:
    """The candidate with the highest score, of the first few that have room; the first of all where none has."""
    scores = np.concatenate([each.scores for each in found])
    listed = [(each.sketch, row) for each in found for row in each.rows]
    best = [listed[place] for place in np.argsort(-scores, kind="stable")[:FITTED]]
    return next(((sketch, row) for sketch, row in best if sketch.has_room(row)), best[0])


def _seen(sketches: Sequence[Sketch], rounds: int) -> tuple[Sequence[Sketch], Worth | None]:
    """The sketches that a model is to compare, with their rows where they are known, or the one without a rival.

    That is the one of the least estimate among those that the model has seen none like, where its defaults are
    estimated at no more than the least of all candidates of the others; all others are left out.
    """
    unseen = [sketch for sketch in sketches if sketch.unseen]
    seen = [sketch for sketch in sketches if not sketch.unseen]
    if not unseen or not seen:
        return sketches, None
    worth = _worth_comparing(seen, None, rounds)
    if unseen[0].default_seconds <= min(_seconds(sketch, rows[0]) for sketch, rows in worth):
        return unseen[:1], None
    return seen, worth


def _seconds(sketch: Sketch, row: npt.NDArray[np.int64]) -> float:
    """The estimate of a row, in seconds; zero where there is none."""
    return float(_estimates(sketch, row[None])[0])


def sure_near_the_least(sketches: Sequence[Sketch], near: float) -> Sketch | None:
    """The first sketch, in the order of estimates, whose estimates are sure; None where it is far from the least."""
    first, found = sketches[0], next((sketch for sketch in sketches if sketch.sure), None)
    if found is None or found is first or found.prior is None or first.prior is None:
        return found if found is first else None
    return found if found.default_seconds <= near * first.default_seconds else None


@collector_paused()
def compared(
    sketches: Sequence[Sketch], model: CostModel, far: float | None = None, rounds: int = STEPS
) -> list[Compared]:
    """Return what a model makes of likely candidates of sketches, and of what they become when they are changed.

    Sketches whose best estimate is `far` times the least, or more, are left out; by default as `FAR` says.
    """
    return _compare(_worth_comparing(sketches, far, rounds), model, rounds)


def _compare(worth: Worth, model: CostModel, rounds: int) -> list[Compared]:
    """The rows of sketches that are worth comparing, as a model sees them."""
    if (estimated := _by_estimates_alone(worth, model)) is not None:
        return estimated
    found = [Compared.of(sketch, rows, model) for sketch, rows in worth]
    rng = np.random.default_rng(0)
    for _ in range(CLIMBS):
        least = np.sort(np.concatenate([each.scores for each in found]))[-PARENTS:][0]
        for each in found:
            if each.sketch.holes and len(parents := np.flatnonzero(each.scores >= least)):
                each.climb(rng, parents, model)
    for each in found:
        if _is_changed(each.sketch, rounds):
            each.step(model)
    return found


def _by_estimates_alone(worth: Worth, model: CostModel) -> list[Compared] | None:
    """Rows with their estimates, where a model has seen none like them, all on matrix units; else None.

    What it is told of an estimate is relative to a candidate's own arithmetic. Parts that are added up have more of it,
    so that attention of a token was divided into too many.
    """
    if not isinstance(model, General) or not all(sketch.prior and sketch.tensorized for sketch, _ in worth):
        return None
    if any(model.knows(sketch.features(rows)) for sketch, rows in worth):
        return None
    return [
        Compared(sketch, rows, -np.log2(_estimates(sketch, rows)), math.inf)
        for sketch, rows in worth
        if sketch.prior is not None
    ]


def _worth_comparing(sketches: Sequence[Sketch], far: float | None, rounds: int) -> Worth:
    """Sketches and the rows of each to compare: all sketches but those whose best estimate is far from the least."""
    rng, changed = np.random.default_rng(0), rounds > 0 and not any(sketch.tensorized for sketch in sketches)
    some = _some if rounds else _drawn
    if not rounds and far is None:
        sketches = _with_near_defaults(sketches)
    drawn = [(sketch, some(sketch, CHANGED_CANDIDATES if changed else CANDIDATES)) for sketch in sketches]
    found = [(sketch, _by_estimate(sketch, rows)) for sketch, rows in drawn]
    if changed:
        found = _near(found, FAR_DRAWN if far is None else far)
    likely = [(sketch, _likely(rng, sketch, each, KEPT, rounds)) for sketch, each in found]
    near = _near(likely, far if far is not None else FAR_CHANGED if changed else FAR)
    if far is None and changed:
        near = _first(near, MOST_COMPARED)
    return [(sketch, each.rows) for sketch, each in near]


def _with_near_defaults(sketches: Sequence[Sketch]) -> list[Sketch]:
    """Those of the sketches whose defaults are not far from the least of all; all where one has no estimate."""
    if any(sketch.prior is None for sketch in sketches):
        return [*sketches]
    most_s = FAR_DEFAULT * min(sketch.default_seconds for sketch in sketches)
    return [sketch for sketch in sketches if sketch.default_seconds <= most_s]


def _near(found: list[tuple[Sketch, Estimated]], far: float) -> list[tuple[Sketch, Estimated]]:
    """Those of the sketches whose least estimate is not far from the least of all."""
    if far == math.inf or any(sketch.prior is None for sketch, _ in found):
        return found
    most_s = far * min(each.seconds[0] for _, each in found)
    return [(sketch, each) for sketch, each in found if each.seconds[0] <= most_s]


def _first(found: list[tuple[Sketch, Estimated]], most: int) -> list[tuple[Sketch, Estimated]]:
    """So many of the sketches, at most, whose least estimates are the least, in their order; all without estimates."""
    if len(found) <= most or any(sketch.prior is None for sketch, _ in found):
        return found
    least_s = sorted(float(each.seconds[0]) for _, each in found)[most - 1]
    return [(sketch, each) for sketch, each in found if each.seconds[0] <= least_s][:most]


def _some(sketch: Sketch, count: int) -> npt.NDArray[np.int64]:
    """Drawn candidates of a sketch; of few, all."""
    if not sketch.holes or sketch.prior is None or sketch.size > FEW:
        return _drawn(sketch, count)
    every = sketch.population.every
    return every[sketch.legal(every)]


def _is_changed(sketch: Sketch, rounds: int) -> bool:
    """True where rounds change its candidates by their estimates: not all are known, nor are they on matrix units."""
    return bool(sketch.prior is not None and sketch.size > FEW and rounds and not sketch.tensorized)


def likely_rows(
    rng: np.random.Generator, sketch: Sketch, drawn: npt.NDArray[np.int64], count: int, rounds: int = STEPS
) -> npt.NDArray[np.int64]:
    """Return `count` rows, those of the least estimate first: of the drawn ones, and of what these become in rounds.

    In each of them rows are changed a little, and the best are kept; half of the drawn ones that would be without
    rounds are there beside. Of equal estimates the largest decisions come first: more stages, wider vectors. Rows are
    as they were drawn where there is no estimate, and on matrix units, where nobody has measured what rounds choose:
    with them and a model trained anew ResNet-50 in fp16 took 249.0 us (an H200), 242.8 before both.
    """
    return _likely(rng, sketch, _by_estimate(sketch, drawn), count, rounds).rows


def _likely(rng: np.random.Generator, sketch: Sketch, drawn: Estimated, count: int, rounds: int) -> Estimated:
    """The rows of `likely_rows`, of drawn ones in the order of their estimates."""
    if not _is_changed(sketch, rounds):
        return drawn[:count]
    best = drawn = drawn[: count // 2]
    for _ in range(rounds):
        changed = sketch.mutate(rng, np.repeat(best.rows, -(-STEPPED // len(best.rows)), axis=0))
        best = best.beside(sketch, changed[sketch.legal(changed)]).best_first[:count]
    return drawn.beside(sketch, best.rows)[::-1].best_first


def _drawn(sketch: Sketch, count: int) -> npt.NDArray[np.int64]:
    """The defaults, and random rows."""
    rows = sketch.default[None]
    return np.concatenate([rows, sketch.population.sample(np.random.default_rng(0), count)]) if sketch.holes else rows


def _by_estimate(sketch: Sketch, rows: npt.NDArray[np.int64]) -> Estimated:
    """The rows, those of the least estimate first; as they are where there is none."""
    return Estimated(rows, _estimates(sketch, rows)).best_first
