"""Ranking by gradient-boosted trees: what is learned is which of two candidates of a task is faster.

LambdaRank (Burges, From RankNet to LambdaRank to LambdaMART, 2010) with the difference of the two scores as the gain:
each stage of trees is fitted to the sum of the pushes of a candidate's pairs over the sum of their curvatures.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .columns import distinct_columns, snapped
from .plain_file import Fields, Plain
from .protocol import Floats, Tasks, check_width, enough, finite, log_scale
from .saved import Saved
from .trees import BINS, by_column, drawn, ensemble_state, grow, made_with, read_ensemble, spread_of, trend_of
from .trend import Scale, Trend

STAGES = 10
TREES = 5
"""Trees of a stage: pushes are renewed from stage to stage."""
PARTNERS = 32
"""Candidates that each one is compared with in a stage."""
STEEPNESS = 8.0
"""How fast a pair's push fades as its order becomes right: in a unit of the scores, e to that."""


class RankTrees(Saved):
    """Pairs of gradient-boosted rankers on bootstrap samples, with trends and a spread as those of `BoostedTrees`."""

    kind = "rank"

    def __init__(self, seed: int = 0, members: int = 4, fewest: int = 8, threads: int = 1) -> None:
        self._seed = seed
        self._count = members
        self._fewest = fewest
        self._threads = threads
        self._width = 0
        self._columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._scale: Scale | None = None
        self._members: list[tuple[Trend, list[Any]]] = []

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """A model that draws its samples by a seed."""
        return cls(seed)

    @property
    def ready(self) -> bool:
        """Whether it has been fitted to enough samples, of which some worked."""
        return bool(self._members)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit all members anew; candidates are compared with others of their task only."""
        self._members = []
        if not enough(scores, self._fewest):
            return
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

        tasks = np.zeros(len(scores), dtype=np.int64) if tasks is None else np.asarray(tasks)
        features, values = finite(features), log_scale(scores)
        self._width = features.shape[1]
        self._columns = distinct_columns(features)
        if not len(self._columns):
            return
        features = features[:, self._columns].astype(np.float64)
        self._scale = Scale.of(features)
        with threadpool_limits(self._threads):
            for member in range(self._count):
                rng = np.random.default_rng([self._seed, member])
                chosen = drawn(rng, len(values), whole=member == 0)
                trend = _trend_within(member, self._scale.apply(features[chosen]), values[chosen], tasks[chosen])
                stages = self._stages(rng, trend, features[chosen], values[chosen], tasks[chosen])
                self._members.append((trend, stages))

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        made: dict[str, Plain] = {"seed": self._seed, "count": self._count, "fewest": self._fewest}
        fitted = ensemble_state(self._width, self._columns, self._scale, self._members) if self._members else None
        return {**made, "threads": self._threads, "fitted": fitted}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        model = cls(*made_with(fields))
        if fields.has("fitted"):
            model._width, model._columns, model._scale, members = read_ensemble(fields.part("fitted"))
            model._members = [(trend, list[Any](stages)) for trend, stages in members]
        return model

    def _stages(
        self, rng: np.random.Generator, trend: Trend, features: Floats, values: Floats, tasks: Tasks
    ) -> list[Any]:
        assert self._scale is not None
        ranks = trend.at(self._scale.apply(features))
        features = snapped(features, BINS)
        stages: list[Any] = []
        for _ in range(STAGES):
            push, curvature = _pushes(rng, ranks, values, tasks)
            weight = np.maximum(curvature, 1e-3 * curvature.max() + 1e-12)
            stage = grow(features, push / weight, TREES, int(rng.integers(1 << 31)), weight)
            ranks = ranks + stage.predict(features)
            stages.append(stage)
        return stages

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the members' mean and their spread, on the scale of the scores that they were taught."""
        if not self._members:
            return np.zeros(len(features)), np.ones(len(features))
        if not len(features):
            return np.zeros(0), np.zeros(0)
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

        assert self._scale is not None
        check_width(self._width, features)
        chosen = by_column(features, self._columns)
        standardised = self._scale.apply(chosen)
        with threadpool_limits(self._threads):
            each = [
                np.sum([trend.at(standardised), *(s.predict(chosen) for s in stages)], axis=0)
                for trend, stages in self._members
            ]
        return np.mean(each, axis=0), spread_of(np.stack(each))


def _trend_within(member: int, standardised: Floats, values: Floats, tasks: Tasks) -> Trend:
    """The trend that a member begins from: of the differences of what worked within tasks."""
    right = values >= 0
    standardised, values, tasks = standardised[right], values[right], tasks[right]
    _, number, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(number, column) for column in standardised.T], axis=1) / counts[:, None]
    level = np.bincount(number, values) / counts
    return trend_of(member, standardised - means[number], values - level[number])


def _pushes(rng: np.random.Generator, ranks: Floats, values: Floats, tasks: Tasks) -> tuple[Floats, Floats]:
    """The sum of each candidate's pushes up, and of their curvatures, over pairs with candidates of its task."""
    order = np.argsort(tasks, kind="stable")
    starts = np.searchsorted(tasks[order], tasks, side="left")
    sizes = np.searchsorted(tasks[order], tasks, side="right") - starts
    partners = order[starts[:, None] + rng.integers(0, sizes[:, None], size=(len(values), PARTNERS))]
    gain = values[:, None] - values[partners]
    margin = STEEPNESS * (ranks[:, None] - ranks[partners]) * np.sign(gain)
    doubt = 1.0 / (1.0 + np.exp(np.clip(margin, -60.0, 60.0)))
    # What matters is the order near the top: pairs count by their better candidate.
    weight = np.abs(gain) * np.exp2(4.0 * (np.maximum(values[:, None], values[partners]) - 1.0))
    push = STEEPNESS * weight * doubt * np.sign(gain)
    curvature = STEEPNESS**2 * weight * doubt * (1.0 - doubt)
    total = push.sum(axis=1)
    bend = curvature.sum(axis=1)
    # Pairs push both of their candidates.
    total -= np.bincount(partners.ravel(), push.ravel(), len(values))
    bend += np.bincount(partners.ravel(), curvature.ravel(), len(values))
    return total, bend
