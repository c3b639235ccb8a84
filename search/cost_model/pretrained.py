"""A cost model that starts from what is known of other tasks, and keeps it in mind."""

from __future__ import annotations

import numpy as np

from .protocol import CostModel, Floats, Tasks
from .store import Saved


class Pretrained(Saved):
    """Fits a model to known samples of other tasks together with what a search measures.

    Scores are relative to the best of each task, so tasks of any size teach alike. It is ready from the start, if the
    model is with the known samples alone; without `alone`, when it has seen samples of the task itself.
    """

    def __init__(self, model: CostModel, features: Floats, scores: Floats, tasks: Tasks, alone: bool = True) -> None:
        self.model = model
        self._features = np.asarray(features, dtype=np.float32)
        self._scores = np.asarray(scores, dtype=np.float64)
        self._tasks = np.asarray(tasks, dtype=np.int64)
        if alone:
            model.fit(self._features, self._scores, self._tasks)

    @property
    def samples(self) -> int:
        """Known samples of other tasks."""
        return len(self._scores)

    @property
    def ready(self) -> bool:
        """Whether the model is."""
        return self.model.ready

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit the model to the known samples and these; ValueError where the features are of another width."""
        if not len(scores):
            return
        if features.shape[1] != self._features.shape[1]:
            raise ValueError(
                f"this cost model was trained on {self._features.shape[1]} features, these are {features.shape[1]}; "
                "candidates of templates and of sketches need models of their own"
            )
        own = np.zeros(len(scores), dtype=np.int64) if tasks is None else np.asarray(tasks, dtype=np.int64)
        first = int(self._tasks.max()) + 1 if len(self._tasks) else 0
        self.model.fit(
            np.concatenate([self._features, features]),
            np.concatenate([self._scores, scores]),
            np.concatenate([self._tasks, own - own.min() + first]),
        )

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the model's prediction and spread."""
        return self.model.predict(features)
