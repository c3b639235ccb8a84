"""A cost model that learns which of two configs is faster, not how fast each one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model import Floats

_FEWEST = 8
"""Samples that are learned from. A choice: fewer are no better than chance."""
_MOST = 320
"""Samples that are learned from: pairs are their square, and a batch of 64 of ten million configs takes 0.3 to 0.4 s of
a core so, after 1000 trials."""
_ALIKE = 0.02
"""Part of the speed by which two configs may differ without an order. A choice: repeats of a kernel differ as much."""
_ROUNDS, _RATE = 60, 0.2
"""Trees, and the part of its step that each takes. A choice: the time of a fit against what it learns."""


def varying(features: Floats, last: int | None) -> npt.NDArray[np.int64]:
    """The columns that are not the same for all, nor the same as another one; of the `last` ones if given."""
    first = 0 if last is None else features.shape[1] - last
    found = np.flatnonzero(np.ptp(features[:, first:], axis=0) > 0) + first
    _, once = np.unique(np.ascontiguousarray(features[:, found].T), axis=0, return_index=True)
    return found[np.sort(once)]


Integers = npt.NDArray[np.int64]


class PairwiseTrees:
    """Gradient-boosted trees on the pairwise logistic loss (RankNet, Burges et al. 2005), with Newton steps.

    With `binary`, pairs are of one config that has more than half of the best speed and one that has not. Of many
    samples the fastest, the last and some others are learned from, as the pairs are many more. With `last` it looks at
    so many of the last features only.
    """

    def __init__(self, seed: int = 0, binary: bool = False, last: int | None = None) -> None:
        self._seed = seed
        self._binary = binary
        self._last = last
        self._trees: list[Any] = []
        self._columns: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def ready(self) -> bool:
        """True where it has been fitted to enough samples, of which some are faster than others."""
        return bool(self._trees)

    def fit(self, features: Floats, scores: Floats, tasks: Integers, weights: Floats) -> None:
        """Learn from features `(n, f)`, scores `(n,)`, larger for faster, the task of each, and how much each counts.

        Configs are compared within their task.
        """
        self._trees = []
        if len(scores) < _FEWEST or not np.any(scores > 0):
            return
        from sklearn.tree import ExtraTreeRegressor  # type: ignore[import-untyped, unused-ignore]

        scores = np.asarray(scores, dtype=np.float64)
        kept = well_chosen(np.random.default_rng(self._seed), scores, tasks, _MOST)
        features, scores, tasks, weights = features[kept], scores[kept], tasks[kept], weights[kept]
        self._columns = varying(features, self._last)
        pairs = self._pairs(scores) * (tasks[:, None] == tasks[None, :]) * np.sqrt(weights[:, None] * weights[None, :])
        if not len(self._columns) or not pairs.any():
            return
        design = self._design(features)
        found = np.zeros(len(scores))
        pairs /= pairs.sum()
        for number in range(_ROUNDS):
            chance = 1.0 / (1.0 + np.exp(np.clip(found[:, None] - found[None, :], -30.0, 30.0)))
            pull = pairs * chance
            slope = pull.sum(axis=1) - pull.sum(axis=0)
            bend = pull * (1.0 - chance)
            bend_sum = np.maximum(bend.sum(axis=1) + bend.sum(axis=0), 1e-9)
            tree = ExtraTreeRegressor(max_leaf_nodes=16, min_samples_leaf=2, random_state=self._seed + number)
            tree.fit(design, np.clip(slope / bend_sum, -4.0, 4.0), sample_weight=bend_sum, check_input=False)
            self._trees.append(tree.tree_)
            found += _RATE * tree.tree_.predict(design)[:, 0]

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return scores `(n,)`, of which only the order and the distances mean something, and no spread."""
        total = np.zeros(len(features))
        if not self._trees or not len(features):
            return total, np.zeros(len(features))
        design = self._design(features)
        for tree in self._trees:
            total += tree.predict(design)[:, 0]
        return _RATE * total, np.zeros(len(features))

    def _design(self, features: Floats) -> npt.NDArray[np.float32]:
        return np.ascontiguousarray(np.nan_to_num(features[:, self._columns]), dtype=np.float32)

    def _pairs(self, scores: Floats) -> npt.NDArray[np.float64]:
        """1 where the row is faster than the column."""
        if self._binary and np.any(scores <= 0.5):
            good = scores > 0.5
            return (good[:, None] & ~good[None, :]).astype(np.float64)
        return (scores[:, None] > scores[None, :] * (1.0 + _ALIKE)).astype(np.float64)


def well_chosen(rng: np.random.Generator, scores: Floats, tasks: Integers, most: int) -> Integers:
    """Take all of few samples; of many half of the fastest, a quarter of the last and others, by each task's share."""
    if len(scores) <= most:
        return np.arange(len(scores))
    kept: list[Integers] = []
    for task in np.unique(tasks):
        mine = np.flatnonzero(tasks == task)
        room = max(_FEWEST, most * len(mine) // len(scores))
        fastest, rest = np.split(mine[np.argsort(-scores[mine], kind="stable")], [room // 2])
        earlier, last = np.split(np.sort(rest), [-(room // 4)])
        left = min(len(earlier), room - room // 2 - room // 4)
        kept += [fastest, last, rng.choice(earlier, left, replace=False)]
    return np.concatenate(kept)
