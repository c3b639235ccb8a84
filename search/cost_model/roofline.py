"""The estimates that features hold already, taken for the truth: the baseline of a search without learning."""

from __future__ import annotations

import numpy as np

from ..features.catalogue import PRIOR, names
from .protocol import Floats, Tasks
from .saved import SavedCostModel


class Roofline(SavedCostModel):
    """Ranks by the seconds that a sketch's rules estimate, where they do not by the sum of the stages' lower bounds.

    It is ready from the start, and learns nothing. ValueError for features that are not those of a sketch.
    """

    kind = "roofline"
    ready = True

    def __init__(self) -> None:
        columns = [*names(), PRIOR.name]
        self._width = len(columns)
        self._bound = columns.index("bound.total")
        self._prior = columns.index(PRIOR.name)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Learn nothing."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return minus the base-2 logarithm of the estimated seconds, with no spread."""
        if features.shape[1] != self._width:
            raise ValueError(
                f"cost model 'roofline' reads estimates from the {self._width} features of sketches, got features of "
                f"width {features.shape[1]}; use trees, rank, linear or random here"
            )
        prior, bound = features[:, self._prior], features[:, self._bound]
        return -np.where(np.isfinite(prior), prior, bound).astype(np.float64), np.zeros(len(features))
