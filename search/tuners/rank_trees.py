"""A cost model that learns which of two configs is faster, not how fast each one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model import Floats

_FEWEST = 8
_MOST = 384
_ALIKE = 0.02


class RankTrees:
    """Gradient-boosted trees on the pairwise logistic loss (RankNet, Burges et al. 2005), with Newton steps.

    With `binary`, pairs are of one config that has more than half of the best speed and one that has not. Of many
    samples the fastest and some of the others are learned from, as the pairs are many more.
    """

    def __init__(self, seed: int = 0, binary: bool = False, rounds: int = 60, rate: float = 0.2) -> None:
        self._seed = seed
        self._binary = binary
        self._rounds = rounds
        self._rate = rate
        self._trees: list[Any] = []
        self._columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._scale = 1.0

    @property
    def ready(self) -> bool:
        """Whether it has been fitted to enough samples, of which some are faster than others."""
        return bool(self._trees)

    def fit(self, features: Floats, scores: Floats) -> None:
        """Learn from features `(n, f)` and scores `(n,)`, larger for faster."""
        self._trees = []
        if len(scores) < _FEWEST or not np.any(scores > 0):
            return
        from sklearn.tree import ExtraTreeRegressor

        rng = np.random.default_rng(self._seed)
        kept = self._kept(rng, np.asarray(scores, dtype=np.float64))
        features, scores = features[kept], np.asarray(scores, dtype=np.float64)[kept]
        self._columns = np.flatnonzero(np.ptp(features, axis=0) > 0)
        better = self._pairs(scores)
        if not len(self._columns) or not better.any():
            return
        design = self._design(features)
        found = np.zeros(len(scores))
        weight = better / better.sum()
        for number in range(self._rounds):
            chance = 1.0 / (1.0 + np.exp(np.clip(found[:, None] - found[None, :], -30.0, 30.0)))
            pull = weight * chance
            slope = pull.sum(axis=1) - pull.sum(axis=0)
            bend = pull * (1.0 - chance)
            bend_sum = np.maximum(bend.sum(axis=1) + bend.sum(axis=0), 1e-9)
            tree = ExtraTreeRegressor(max_leaf_nodes=16, min_samples_leaf=2, random_state=self._seed + number)
            tree.fit(design, np.clip(slope / bend_sum, -4.0, 4.0), sample_weight=bend_sum)
            self._trees.append(tree.tree_)
            found += self._rate * tree.tree_.predict(design)[:, 0]
        self._scale = float(found.std()) or 1.0

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return scores `(n,)`, of which only the order and the distances mean something, and no spread."""
        total = np.zeros(len(features))
        if not self._trees or not len(features):
            return total, np.zeros(len(features))
        design = self._design(features)
        for tree in self._trees:
            total += tree.predict(design)[:, 0]
        return self._rate * total / self._scale, np.zeros(len(features))

    def _design(self, features: Floats) -> npt.NDArray[np.float32]:
        return np.ascontiguousarray(np.nan_to_num(features[:, self._columns]), dtype=np.float32)

    def _kept(self, rng: np.random.Generator, scores: Floats) -> npt.NDArray[np.int64]:
        if len(scores) <= _MOST:
            return np.arange(len(scores))
        order = np.argsort(-scores)
        rest = rng.choice(order[_MOST // 2 :], _MOST - _MOST // 2, replace=False)
        return np.concatenate([order[: _MOST // 2], rest])

    def _pairs(self, scores: Floats) -> npt.NDArray[np.float64]:
        """1 where the row is faster than the column."""
        if self._binary and np.any(scores <= 0.5):
            good = scores > 0.5
            return (good[:, None] & ~good[None, :]).astype(np.float64)
        return (scores[:, None] > scores[None, :] * (1.0 + _ALIKE)).astype(np.float64)
