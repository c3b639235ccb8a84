"""Ridge regression: the baseline that trees have to beat."""

from __future__ import annotations

from typing import Self

import numpy as np

from .plain_file import Fields, Plain
from .protocol import MOST_COLUMNS, Floats, Tasks, check_width, enough, finite, log_scale
from .saved import SavedCostModel
from .trend import Scale, Trend


class Linear(SavedCostModel):
    """Ridge regression on standardised features."""

    kind = "linear"

    def __init__(self, penalty: float = 10.0, fewest: int = 8) -> None:
        self._penalty = penalty
        self._fewest = fewest
        self._fitted: tuple[Scale, Trend] | None = None

    @property
    def ready(self) -> bool:
        """True where it has been fitted."""
        return self._fitted is not None

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Solve the normal equations."""
        self._fitted = None
        if not enough(scores, self._fewest):
            return
        features = finite(features).astype(np.float64)
        scale = Scale.of(features)
        self._fitted = scale, Trend.fitted(scale.apply(features), log_scale(scores), self._penalty)

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        kept: dict[str, Plain] = {"penalty": self._penalty, "fewest": self._fewest}
        if self._fitted is None:
            return kept
        scale, trend = self._fitted
        return {**kept, "fitted": {"columns": len(scale.mean), "scale": scale.state(), "trend": trend.state()}}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        model = cls(fields.number("penalty"), fields.whole("fewest"))
        if fields.has("fitted"):
            fitted = fields.part("fitted")
            columns = fitted.whole("columns", 1, MOST_COLUMNS)
            scale = Scale.read(fitted.part("scale"), columns)
            model._fitted = scale, Trend.read(fitted.part("trend"), columns)
        return model

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the linear prediction, with no spread."""
        if self._fitted is None:
            return np.zeros(len(features)), np.ones(len(features))
        scale, trend = self._fitted
        check_width(len(scale.mean), features)
        return trend.at(scale.apply(finite(features))), np.zeros(len(features))
