"""A cost model of a kind of target: trained once on many workloads, it compares candidates before any is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ..features.catalogue import MATRIX_UNIT, PRIOR, STAGES, WORK
from .forest import BINS, Forest
from .plain_file import Fields, Plain, PlainFileError
from .protocol import MOST_COLUMNS, Floats, Tasks, finite, relative_speed
from .saved import SavedCostModel, known_features
from .threads import at_most

BAGGED = 0.7
"""Part of the workloads that each of several forests is grown on. A choice."""
PENALTY = 100.0
"""Of the linear part, in samples. A choice."""
SEEN_PERCENT = 95
"""Percent of the workloads it learned from that are as large at most as what it is believed of. A choice: more would
let a few very large ones vouch for what lies between."""
LIKED = 3
"""Power of a workload's least estimate over a candidate's by which it counts, where its speed is not more. A choice."""
UNSEEN: Mapping[str, float] = {WORK: -1.0, STAGES: -1.0}
"""Less than any candidate has, by the column's name."""


@dataclass(frozen=True)
class Growth:
    """The trees of a model: so many forests, each grown on some of the workloads where there are several.

    Of 3,737 candidates of 344 workloads (H200), what the usual one picks of a held-out workload takes 1.23x the best
    one's time; 400 slower trees, or half the rate with twice the trees, gave nothing more, 10 or 48 leaves the same. Of
    measured candidates on CPUs, eight forests of 60 trees with 12 leaves pick as well as one of 200 with 24 (1.25 and
    1.24 of the best of 140 workloads on a Xeon); in whole choices on a Zen 3 they gain less (1.09 and 1.14 times the
    speed).
    """

    forests: int = 1
    trees: int = 200
    leaves: int = 24
    rate: float = 0.08


@dataclass(frozen=True)
class Slope:
    """A linear function of features, each kept within the range that it was fitted to."""

    weights: Floats
    low: Floats
    high: Floats

    @classmethod
    def fitted(cls, features: Floats, values: Floats, tasks: Tasks, shares: Floats) -> Slope:
        """Ridge regression on what differs within workloads: both sides are less the workload's mean.

        `shares` are the samples' weights, 1 in the mean.
        """
        apart = features - workload_means(features, tasks, shares)
        deviation = np.sqrt(shares @ apart**2 / len(apart)) + 1e-6
        standardised = apart / deviation
        gram = (standardised.T * shares) @ standardised + PENALTY * np.eye(features.shape[1])
        weights = np.linalg.solve(gram, (standardised.T * shares) @ values) / deviation
        return cls(weights, features.min(axis=0), features.max(axis=0))

    def at(self, features: Floats) -> Floats:
        """The function's values `(n,)`."""
        return np.asarray(np.clip(features, self.low, self.high) @ self.weights)

    def state(self) -> dict[str, Plain]:
        """For a file."""
        return {"weights": self.weights, "low": self.low, "high": self.high}

    @classmethod
    def read(cls, fields: Fields, columns: int) -> Slope:
        """The function in a file, of so many columns."""
        return cls(*(fields.array(name, "<f8", (columns,)) for name in ("weights", "low", "high")))


USUAL_GROWTH = Growth()


@dataclass(frozen=True)
class Correction:
    """The mean of boosted trees and of a linear function, in log2 of seconds."""

    forest: Forest
    slope: Slope

    @classmethod
    def fitted(cls, features: Floats, values: Floats, tasks: Tasks, shares: Floats, growth: Growth, seed: int) -> Self:
        """Fit both to what differs within workloads; `shares` are the samples' weights, 1 in the mean."""
        apart = values - workload_means(values[:, None], tasks, shares)[:, 0]
        forest = _grown(features, apart, tasks, shares, growth, seed)
        return cls(forest, Slope.fitted(features, apart, tasks, shares))

    def at(self, features: Floats) -> Floats:
        """The corrections `(n,)`."""
        return np.asarray(0.5 * (self.forest.predict(features) + self.slope.at(features)))

    def state(self) -> dict[str, Plain]:
        """For a file."""
        return {"forest": self.forest.state(), "slope": self.slope.state()}

    @classmethod
    def read(cls, fields: Fields, columns: int) -> Self:
        """The correction in a file, of so many columns."""
        return cls(Forest.read(fields.part("forest"), columns), Slope.read(fields.part("slope"), columns))


class General(SavedCostModel):
    """The rules' estimates, corrected by the mean of boosted trees and of a linear function over named features.

    It learns nothing in a search. Both parts learn log2 of a candidate's time less its estimate, less the workload's
    mean: where little was measured the correction is small, and the estimates decide. A sample's weight is its speed
    relative to the workload's fastest: the choice is among the fast ones, and the errors of slow ones are the largest.
    Of 10,730 candidates of 701 random workloads on an H200, folds of workloads held out, what is predicted best takes
    1.19 times the best one's time in geometric mean; the estimates alone give 1.56. So it was without weights (1.20),
    but what is picked of all candidates, untuned, is not: 43 operators that it has not seen took PyTorch's time / 1.87
    with weights, / 1.81 without. Weights of half that power gave 1.87, of twice that 1.83; of 43 others the three gave
    1.73, 1.67 and 1.66. Of 8,435 of these, learning log2 of the time itself gave 1.21 and this 1.19; in searches of
    seven large products in fp32, rank correlation rose from 0.43 to 0.52 in the mean. Of 3,737, trees alone gave 1.26,
    the linear function alone 1.25, both 1.22.
    With `liked`, slow candidates of little estimate count too, since it is such that are chosen where their times are
    not learned: of 480 workloads in four folds, what is picked takes 1.103 times the best one's time, 1.107 without.
    Those on matrix units may have a correction of their own, `units`, of another model. The one that ships is of
    all samples there were before estimates of lanes were fitted anew: the networks ResNet-50, BERT-base and ViT-B/16 in
    fp16 take 0.257, 0.407 and 0.482 ms by its choices on an H200, and 0.266, 0.420 and 0.493 by those of the model
    without the samples that were dropped then; 1,492 more on matrix units, a third of them with weights from memory,
    gave 0.264, 0.425 and 0.491.
    Features are found by their names, so that a catalogue that has grown does no harm; PlainFileError where one is
    gone. Candidates on matrix units are unseen to a model that was trained without any, and so are those of much larger
    workloads, or of more stages, than its own: for them it goes by the rules' estimates. `seen` is what those that it
    was trained on do not exceed in some columns, in the units of these.
    With a `ground`, another such model, it corrects what that one predicts, as one that is calibrated for a CPU. Of
    4,366 samples of 225 workloads on a Zen 4, folds held out, what it picks takes 1.091 times the best one's time so,
    1.094 on the estimates alone; the model that ships 1.173, the estimates 1.150.
    `doubt` is how much better than the rules' choice, in scores, a candidate must be for the choice to change: of 85
    random workloads on a Zen 3, 0.1 gave 1.10 times the speed with 4 of 24 changes for the worse, none 1.08 with 18 of
    69.
    """

    kind = "general"
    ready = True

    def __init__(
        self,
        columns: tuple[str, ...],
        correction: Correction,
        unestimated: float,
        seen: Mapping[str, float] = UNSEEN,
        doubt: float = 0.0,
        units: Correction | None = None,
        ground: General | None = None,
    ) -> None:
        known = known_features()
        missing = [name for name in columns if name not in known]
        if missing:
            raise PlainFileError(f"it asks for features that there are not: {', '.join(missing[:5])}")
        self.columns = columns
        self._correction = correction
        self._units = units
        self.ground = ground
        self._unestimated = unestimated
        self._seen = dict(seen)
        self.doubt = doubt
        self._at = np.array([known.index(name) for name in columns], dtype=np.int64)

    @classmethod
    def trained(
        cls,
        columns: tuple[str, ...],
        features: Floats,
        times_s: Floats,
        tasks: Tasks,
        seed: int = 0,
        growth: Growth = USUAL_GROWTH,
        doubt: float = 0.0,
        liked: bool = False,
        ground: General | None = None,
    ) -> Self:
        """Train on right candidates: features `(n, len(columns))`, seconds `(n,)`, workloads `(n,)`.

        With a `ground` the model learns what that one misses, of all features that there are.
        """
        if ground is not None and columns != tuple(known_features()):
            raise ValueError("a model on another one's ground is trained on all features that there are")
        known = finite(features).astype(np.float64)
        estimates = features[:, columns.index(PRIOR.name)]
        there = np.isfinite(estimates)
        unestimated = float(np.median(estimates[there])) if there.any() else 0.0
        start = _known(estimates, unestimated) if ground is None else -ground.predict(features)[0]
        values = np.log2(np.asarray(times_s, dtype=np.float64)) - start
        shares = relative_speed(times_s, tasks)
        if liked:
            shares = np.maximum(shares, _least_estimate(estimates, tasks) ** LIKED)
        correction = Correction.fitted(known, values, tasks, shares / shares.mean(), growth, seed)
        return cls(columns, correction, unestimated, _seen(columns, features), doubt, ground=ground)

    def with_units_of(self, other: General) -> General:
        """The model with another one's correction of candidates on matrix units, and what that has seen of them."""
        if other.columns != self.columns:
            raise ValueError("a correction is of the same features: train both models on samples of one catalogue")
        own = (self.columns, self._correction, self._unestimated, other._seen, self.doubt)
        return General(*own, units=other._units or other._correction)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Learn nothing."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return minus the predicted log2, with no spread."""
        known = finite(features[:, self._at]).astype(np.float64)
        prior = features[:, known_features().index(PRIOR.name)]
        corrections, on_units = self._correction.at(known), features[:, known_features().index(MATRIX_UNIT)] > 0
        if self._units is not None and on_units.any():
            corrections[on_units] = self._units.at(known[on_units])
        unseen = self._unseen(features)
        # what lanes would run is what features are of: on matrix units, the model would say what is not so
        corrections[unseen] = corrections[~unseen].mean() if not unseen.all() else 0.0
        start = _known(prior, self._unestimated) if self.ground is None else -self.ground.predict(features)[0]
        return -(start + corrections), np.zeros(len(features))

    def knows(self, features: Floats) -> bool:
        """True where some candidates are not unseen to it."""
        return not bool(self._unseen(features).all())

    def _unseen(self, features: Floats) -> npt.NDArray[np.bool_]:
        """The candidates on matrix units that go by their estimates alone."""
        columns = known_features()
        beyond = np.any([features[:, columns.index(name)] > most for name, most in self._seen.items()], axis=0)
        return np.asarray(beyond & (features[:, columns.index(MATRIX_UNIT)] > 0))

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        return {
            "columns": list(self.columns),
            **self._correction.state(),
            **({"units": self._units.state()} if self._units is not None else {}),
            **({"ground": self.ground.state()} if self.ground is not None else {}),
            "unestimated": self._unestimated,
            "seen": np.array([self._seen[name] for name in UNSEEN]),
            **({"doubt": self.doubt} if self.doubt else {}),
        }

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        columns = fields.texts("columns")
        if not 0 < len(columns) <= MOST_COLUMNS:
            raise PlainFileError(f"'columns' must be names of features, {MOST_COLUMNS} at most")
        width = len(columns)
        correction = Correction.read(fields, width)
        units = Correction.read(fields.part("units"), width) if fields.has("units") else None
        ground = General.read(_bare(fields.part("ground"))) if fields.has("ground") else None
        if not fields.has("unestimated"):
            raise PlainFileError("an older version made it, which learned no corrections of estimates: train it again")
        unestimated = fields.number("unestimated")
        doubt = fields.number("doubt") if fields.has("doubt") else 0.0
        if not fields.has("seen"):
            return cls(columns, correction, unestimated, doubt=doubt, units=units, ground=ground)
        found = fields.array("seen", "<f8", (len(UNSEEN),))
        seen = {name: float(most) for name, most in zip(UNSEEN, found, strict=True)}
        return cls(columns, correction, unestimated, seen, doubt, units, ground)


def _bare(ground: Fields) -> Fields:
    """The ground of a model, which stands on no other: however deep a file is nested, reading it ends."""
    if ground.has("ground"):
        raise PlainFileError("the ground of a model has one itself")
    return ground


def _least_estimate(estimates: Floats, tasks: Tasks) -> Floats:
    """A workload's least estimate over each one, from columns in log2; 0 where there is none."""
    return relative_speed(np.where(np.isfinite(estimates), 2.0**estimates, np.inf), tasks)


def _grown(known: Floats, values: Floats, tasks: Tasks, shares: Floats, growth: Growth, seed: int) -> Forest:
    """Boosted trees for values; the mean of several forests where the growth says so."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped, unused-ignore]

    rng, numbers, forests = np.random.default_rng(seed), np.unique(tasks), []
    for number in range(growth.forests):
        trees = HistGradientBoostingRegressor(
            max_iter=growth.trees,
            learning_rate=growth.rate,
            max_leaf_nodes=growth.leaves,
            min_samples_leaf=8,
            l2_regularization=1.0,
            max_features=0.3,
            max_bins=BINS,
            early_stopping=False,
            random_state=seed + number,
        )
        own = slice(None) if growth.forests == 1 else np.isin(tasks, rng.permutation(numbers)[: _bag(len(numbers))])
        with at_most(1):  # on so few samples, threads that wait for each other take longer than one
            trees.fit(known[own], values[own], sample_weight=shares[own])
        forests.append(Forest.of(trees))
    return forests[0] if growth.forests == 1 else Forest.mean(forests)


def _bag(workloads: int) -> int:
    return max(1, round(BAGGED * workloads))


def _known(estimates: Floats, unestimated: float) -> Floats:
    """The estimates, log2, and for candidates without one what stands for it."""
    return np.where(np.isfinite(estimates), estimates, unestimated).astype(np.float64)


def _seen(columns: tuple[str, ...], features: Floats) -> Mapping[str, float]:
    """The work that 95% of the candidates on matrix units do not exceed, and the stages that none does."""
    if not {MATRIX_UNIT, *UNSEEN} <= {*columns}:
        return UNSEEN
    known = features[features[:, columns.index(MATRIX_UNIT)] > 0]
    if not len(known):
        return UNSEEN
    work, stages = (known[:, columns.index(name)] for name in (WORK, STAGES))
    return {WORK: float(np.percentile(work, SEEN_PERCENT)), STAGES: float(stages.max())}


def workload_means(values: Floats, tasks: Tasks, shares: Floats) -> npt.NDArray[np.float64]:
    """Return for each row of `values` `(n, f)` the mean of the rows of its workload, weighted by `shares` `(n,)`."""
    _, number = np.unique(tasks, return_inverse=True)
    sums = np.zeros((number.max() + 1, values.shape[1]))
    np.add.at(sums, number, values * shares[:, None])
    return np.asarray((sums / np.bincount(number, shares)[:, None])[number])
