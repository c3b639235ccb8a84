"""Ranking by gradient-boosted trees: what is learned is which of two candidates of a task is faster.

LambdaRank (Burges, From RankNet to LambdaRank to LambdaMART, 2010) with the difference of the two scores as the gain:
trees are fitted to the sum of the pushes of a candidate's pairs over the sum of their curvatures.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from .forest import Forest
from .protocol import Floats, Tasks
from .trees import BoostedTrees, grow, trend_of
from .trend import Trend

RENEWED = 5
"""Trees after which pushes are computed anew; those between follow the slope and the curvature of the last ones. As
often as when a member was ten fits of five trees, with the same rank correlation (0.965 after 200 samples of a
convolution)."""
PARTNERS = 32
"""Candidates that each one is compared with at a time. A choice: pairs of all are the square of the samples."""
STEEPNESS = 8.0
"""Rate at which a pair's push fades as its order becomes right: in a unit of the scores, e to that. A choice."""


class RankTrees(BoostedTrees):
    """Pairs of gradient-boosted rankers, however few samples; candidates are compared with others of their task only.

    Predictions are on the scale of the scores that it was taught, of which only the order and the distances mean
    something.
    """

    kind = "rank"
    few = 0

    def _member(
        self, number: int, features: Floats, values: Floats, tasks: Tasks, pool: Executor
    ) -> tuple[Trend, Forest]:
        assert self._scale is not None
        standardised = self._scale.apply(features)
        trend = _trend_within(number, standardised, values, tasks)
        rng = np.random.default_rng([self._seed, number])
        loss = _pairwise(_Pairs(rng, trend.at(standardised), values, tasks))
        return trend, Forest.of(grow(features, values, self._seed + number, loss))


class _Pairs:
    """The slope and the curvature, for each sample, of how wrong the order of its pairs is."""

    def __init__(self, rng: np.random.Generator, ranks: Floats, values: Floats, tasks: Tasks) -> None:
        self._rng, self._ranks, self._values, self._tasks = rng, ranks, values, tasks
        self._calls = 0
        self._start: Floats = np.zeros(0)
        self._push: Floats = self._start
        self._weight: Floats = self._start

    def gradient_hessian(
        self, y_true: Floats, raw_prediction: Floats, gradient_out: Floats, hessian_out: Floats, **others: Any
    ) -> tuple[Floats, Floats]:
        """Fill in both for the sum of the trees so far."""
        reached = raw_prediction.reshape(-1)
        if self._calls % RENEWED == 0:
            self._start = reached.copy()
            self._push, curvature = _pushes(self._rng, self._ranks + reached, self._values, self._tasks)
            self._weight = np.maximum(curvature, 1e-3 * curvature.max() + 1e-12)
        self._calls += 1
        gradient_out[:] = self._weight * (reached - self._start) - self._push
        hessian_out[:] = self._weight
        return gradient_out, hessian_out


def _pairwise(pairs: _Pairs) -> Any:
    """A loss of scikit-learn's that asks the pairs, where squared errors would be asked, and begins at 0."""
    from sklearn._loss.loss import HalfSquaredError  # type: ignore[import-untyped, unused-ignore]

    loss = HalfSquaredError()
    loss.constant_hessian = False
    loss.gradient_hessian = pairs.gradient_hessian
    loss.fit_intercept_only = lambda y_true, sample_weight=None: np.zeros(())
    return loss


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
