"""No model: the baseline of a search without learning."""

from __future__ import annotations

import numpy as np

from .protocol import Floats, Tasks
from .saved import SavedCostModel


class RandomModel(SavedCostModel):
    """Never ready: candidates are drawn at random."""

    kind = "random"
    ready = False

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Learn nothing."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return that everything is possible."""
        return np.zeros(len(features)), np.ones(len(features))
