"""Ridge regression: the baseline that trees have to beat."""

from __future__ import annotations

import numpy as np

from .protocol import Floats, Tasks, enough, finite, log_scale
from .store import Saved
from .trend import Scale, Trend


class Linear(Saved):
    """Ridge regression on standardised features."""

    def __init__(self, penalty: float = 10.0, fewest: int = 8) -> None:
        self._penalty = penalty
        self._fewest = fewest
        self._fitted: tuple[Scale, Trend] | None = None

    @property
    def ready(self) -> bool:
        """Whether it has been fitted."""
        return self._fitted is not None

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Solve the normal equations."""
        self._fitted = None
        if not enough(scores, self._fewest):
            return
        features = finite(features).astype(np.float64)
        scale = Scale.of(features)
        self._fitted = scale, Trend.fitted(scale.apply(features), log_scale(scores), self._penalty)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the linear prediction, with no spread."""
        if self._fitted is None:
            return np.zeros(len(features)), np.ones(len(features))
        scale, trend = self._fitted
        return trend.at(scale.apply(finite(features))), np.zeros(len(features))
