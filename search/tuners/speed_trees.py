"""A cost model that learns how fast configs are, on a logarithmic scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model import Floats
from .rank_trees import Integers, varying, well_chosen

_FEWEST = 8
"""Samples that are learned from, as of `rank_trees`."""
_MOST = 512
"""Samples that are learned from, at most: see `rank_trees`; trees without pairs may have more."""
_MEMBERS = 2
"""Ensembles, whose disagreement is the spread: the fewest that have one."""
_DOUBLINGS = 8.0
"""Configs that are 2^8 times slower than the best, or more, are all alike."""


class SpeedTrees:
    """Two gradient-boosted ensembles, the second one on a bootstrap sample; the spread is their disagreement.

    It bounds no threads: whoever calls it does.
    """

    def __init__(self, seed: int = 0, last: int | None = None) -> None:
        self._seed = seed
        self._last = last
        self._members: list[Any] = []
        self._columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def ready(self) -> bool:
        """True where it has been fitted to enough samples, of which some worked."""
        return bool(self._members)

    def fit(self, features: Floats, scores: Floats, tasks: Integers, weights: Floats) -> None:
        """Learn from features `(n, f)`, scores `(n,)`, shares of the best speed of their task, and their weights.

        A weight, 1 at most, is the chance that a member sees a sample: given weights, the trees would take several
        times as long. Of many samples the fastest, the last and some others are learned from.
        """
        self._members = []
        if len(scores) < _FEWEST or not np.any(scores > 0):
            return
        from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped, unused-ignore]

        rng = np.random.default_rng(self._seed)
        kept = well_chosen(rng, scores, tasks, _MOST)
        features, scores, weights = np.nan_to_num(features[kept]), scores[kept], weights[kept]
        self._columns = varying(features, self._last)
        if not len(self._columns):
            return
        design = features[:, self._columns]
        right = scores > 0
        values = np.where(right, np.maximum(0.0, 1 + np.log2(np.where(right, scores, 1.0)) / _DOUBLINGS), -0.1)
        for member in range(_MEMBERS):
            chosen = np.arange(len(scores)) if not member else rng.integers(len(scores), size=len(scores))
            chosen = chosen[rng.random(len(chosen)) < weights[chosen]]
            if len(chosen) < _FEWEST:
                continue
            model = HistGradientBoostingRegressor(
                random_state=self._seed + member,
                max_iter=40,
                learning_rate=0.2,
                max_leaf_nodes=15,
                min_samples_leaf=int(np.clip(len(scores) // 64, 1, 20)),
                l2_regularization=0.01,
                max_bins=63,
                max_features=0.6,
                early_stopping=False,
            )
            self._members.append(model.fit(design[chosen], values[chosen]))

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the mean of the members and their spread, each `(n,)`."""
        if not self._members or not len(features):
            return np.zeros(len(features)), np.zeros(len(features))
        design = np.nan_to_num(features)[:, self._columns]
        each = np.stack([member.predict(design) for member in self._members])
        return each.mean(axis=0), each.std(axis=0)
