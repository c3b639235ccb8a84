"""Cost models: from the features of candidates to how fast they will be, learned from what was measured."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

_MANY = 2000


class CostModel(Protocol):
    """Learns from scores (a candidate's speed as a share of its task's best; failed: 0) to rank other candidates."""

    @property
    def ready(self) -> bool:
        """Whether predictions mean anything yet."""

    def fit(self, features: Floats, scores: Floats) -> None:
        """Learn from all there is: features `(n, f)`, scores `(n,)`; replaces what was learned before."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return predictions `(n,)` for features `(n, f)`, larger for faster, and their spread `(n,)` (how unsure)."""


def relative_speed(times_s: Floats, tasks: npt.NDArray[np.integer[Any]] | None = None) -> Floats:
    """Return best / time within each task, `(n,)`; infinite times (failures) score 0, also where all failed."""
    times_s = np.asarray(times_s, dtype=np.float64)
    tasks = np.zeros(len(times_s), dtype=np.int64) if tasks is None else tasks
    scores = np.zeros(len(times_s))
    for task in np.unique(tasks):
        right = (tasks == task) & np.isfinite(times_s)
        if right.any():
            scores[right] = times_s[right].min() / times_s[right]
    return scores


class BoostedTrees:
    """An ensemble of gradient-boosted trees on bootstrap samples; the spread is their disagreement.

    It learns `1 + log2(score) / 8`, 1 for the best, 0 for 256 times slower or more, and a little less for failures:
    times of random schedules spread over orders of magnitude, and on the plain scale all but a few look alike.
    `threads` bounds scikit-learn's OpenMP threads: on few cores and few samples more of them only cost time.
    """

    def __init__(self, seed: int = 0, members: int = 4, fewest: int = 8, threads: int = 1) -> None:
        self._seed = seed
        self._count = members
        self._fewest = fewest
        self._threads = threads
        self._members: list[Any] = []

    @property
    def ready(self) -> bool:
        """Whether it has been fitted to enough samples, of which some worked."""
        return bool(self._members)

    def fit(self, features: Floats, scores: Floats) -> None:
        """Fit all members anew; with too few samples, or none that worked, it is not ready."""
        self._members = []
        samples = len(scores)
        if samples < self._fewest or not np.any(scores > 0):
            return
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

        rng = np.random.default_rng(self._seed)
        many = samples > _MANY
        settings = {
            "max_iter": 50,
            "learning_rate": 0.2 if many else 0.14,
            "max_leaf_nodes": 31 if many else 15,
            "min_samples_leaf": int(np.clip(samples // 64, 1, 20)),
            "l2_regularization": 0.01,
            "max_bins": 255 if many else 63,  # most of the time on few samples goes into their histograms
            "early_stopping": False,
        }
        features, values = _finite(features), _log_scale(scores)
        with threadpool_limits(self._threads):
            for member in range(self._count):
                chosen = np.arange(samples) if member == 0 else rng.integers(samples, size=min(samples, _MANY))
                model = HistGradientBoostingRegressor(random_state=self._seed + member, **settings)
                self._members.append(model.fit(features[chosen], values[chosen]))

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the members' mean and standard deviation."""
        if not self._members:
            return np.zeros(len(features)), np.ones(len(features))
        if not len(features):
            return np.zeros(0), np.zeros(0)
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

        with threadpool_limits(self._threads):
            each = np.stack([member.predict(_finite(features)) for member in self._members])
        return each.mean(axis=0), each.std(axis=0)


def _finite(features: Floats) -> Floats:
    """Return features that scikit-learn takes: no infinity, and no column of NaN alone."""
    return np.nan_to_num(features, nan=0.0, posinf=1e30, neginf=-1e30)


def _log_scale(scores: Floats) -> Floats:
    right = scores > 0
    return np.where(right, np.maximum(0.0, 1.0 + np.log2(np.where(right, scores, 1.0)) / 8.0), -0.1)


class Linear:
    """Ridge regression on standardised features: the baseline that trees have to beat."""

    def __init__(self, penalty: float = 1.0, fewest: int = 8) -> None:
        self._penalty = penalty
        self._fewest = fewest
        self._fitted: tuple[Floats, Floats, Floats, float] | None = None

    @property
    def ready(self) -> bool:
        """Whether it has been fitted."""
        return self._fitted is not None

    def fit(self, features: Floats, scores: Floats) -> None:
        """Solve the normal equations."""
        self._fitted = None
        if len(scores) < self._fewest or not np.any(scores > 0):
            return
        features = _finite(features).astype(np.float64)
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        design = (features - mean) / scale
        gram = design.T @ design + self._penalty * np.eye(design.shape[1])
        values = _log_scale(scores)
        offset = float(values.mean())
        self._fitted = mean, scale, np.linalg.solve(gram, design.T @ (values - offset)), offset

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the linear prediction, with no spread."""
        if self._fitted is None:
            return np.zeros(len(features)), np.ones(len(features))
        mean, scale, weights, offset = self._fitted
        return ((_finite(features) - mean) / scale) @ weights + offset, np.zeros(len(features))


class Unknowing:
    """Never ready: candidates are drawn at random."""

    ready = False

    def fit(self, features: Floats, scores: Floats) -> None:
        """Learn nothing."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return that everything is possible."""
        return np.zeros(len(features)), np.ones(len(features))


def make_model(name: str, seed: int = 0) -> CostModel:
    """Return the cost model `name`: `trees`, `linear` or `random`."""
    match name:
        case "trees":
            return BoostedTrees(seed)
        case "linear":
            return Linear()
        case "random":
            return Unknowing()
    raise ValueError(f"unknown cost model {name!r}; there are: trees, linear, random")
