"""A cost model that starts from what is known of other tasks, and keeps it in mind."""

from __future__ import annotations

from typing import Self

import numpy as np

from .make import model_of
from .plain_file import Fields, Plain, PlainFileError
from .protocol import MOST_COLUMNS, CostModel, Floats, Tasks, check_width
from .saved import SavedCostModel, as_state

_LAST_TASK = (1 << 31) - 1
"""Numbers of tasks are kept in 32 bits."""


class Pretrained(SavedCostModel):
    """Fits a model to known samples of other tasks together with what a search measures.

    Scores are relative to the best of each task, so tasks of any size teach alike. It is ready from the start, if the
    model is with the known samples alone; without `alone`, when it has seen samples of the task itself.
    """

    kind = "pretrained"

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
        """True where the model that was given is."""
        return self.model.ready

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit the model to the known samples and these; ValueError where the features are of another width."""
        if not len(scores):
            return
        check_width(self._features.shape[1], features)
        own = np.zeros(len(scores), dtype=np.int64) if tasks is None else np.asarray(tasks, dtype=np.int64)
        first = int(self._tasks.max()) + 1 if len(self._tasks) else 0
        self.model.fit(
            np.concatenate([self._features, features]),
            np.concatenate([self._scores, scores]),
            np.concatenate([self._tasks, own - own.min() + first]),
        )

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        samples: dict[str, Plain] = {"features": self._features, "scores": self._scores, "tasks": self._tasks}
        return {"model": as_state(self.model), **samples}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        inner = fields.part("model")
        if inner.text("kind") == cls.kind:
            raise PlainFileError("a model that was trained beforehand holds another such one")
        model = model_of(inner)
        features = fields.array("features", "<f4", (-1, -1), finite=False)
        scores = fields.array("scores", "<f8", (len(features),))
        tasks = fields.array("tasks", "<i8", (len(features),))
        if features.shape[1] > MOST_COLUMNS or ((tasks < 0) | (tasks > _LAST_TASK)).any():
            raise PlainFileError(f"samples are of at most {MOST_COLUMNS} features, and of tasks from 0 to {_LAST_TASK}")
        return cls(model, features, scores, tasks, alone=False)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the model's prediction and spread."""
        return self.model.predict(features)
