"""The cost model of the package: the mean speed of the candidates whose features are nearest."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

import loopwright as lw

_NEIGHBOURS = 3
_FEWEST = 4
"""Samples before predictions mean anything."""
Floats = npt.NDArray[np.floating[Any]]


class Nearest(lw.SavedCostModel):
    """The speed of a candidate is the mean of its neighbours', and how far apart theirs are is how unsure that is."""

    kind = "nearest"

    def __init__(self) -> None:
        self._features: Floats = np.zeros((0, 0), np.float32)
        self._scores: Floats = np.zeros(0)

    @property
    def ready(self) -> bool:
        return len(self._scores) >= _FEWEST

    def fit(self, features: Floats, scores: Floats, tasks: npt.NDArray[np.integer[Any]] | None = None) -> None:
        self._features, self._scores = _comparable(features), np.asarray(scores, np.float64)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        if not self.ready:
            return np.zeros(len(features)), np.ones(len(features))
        apart = np.abs(_comparable(features)[:, None] - self._features[None]).sum(axis=2)
        near = self._scores[np.argsort(apart, axis=1, kind="stable")[:, :_NEIGHBOURS]]
        return near.mean(axis=1), near.std(axis=1)

    def state(self) -> dict[str, Any]:
        return {"features": self._features, "scores": self._scores}

    @classmethod
    def read(cls, fields: Any) -> Self:
        model = cls()
        model._features = fields.array("features", "<f4", (-1, -1))
        model._scores = fields.array("scores", "<f8", (len(model._features),))
        return model


def _comparable(features: Floats) -> npt.NDArray[np.float32]:
    """Features by their orders of magnitude, which numbers of bytes and of operations can be compared by."""
    finite = np.nan_to_num(features, nan=0.0, posinf=1e30, neginf=-1e30)
    return (np.sign(finite) * np.log1p(np.abs(finite))).astype(np.float32)
