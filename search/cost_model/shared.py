"""One cost model for many tasks: each task's view adds its samples to a common training set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import CostModel, Floats, Tasks
from .protocol import has_learned


@dataclass
class SharedModel:
    """A cost model that learns from all tasks whose features are equally wide, and so mean the same."""

    model: CostModel
    _samples: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    _width: int = 0

    def view(self, task: int) -> CostModel:
        """The model as task number `task` sees it."""
        return _View(self, task)

    def fit(self, task: int, features: Floats, scores: Floats) -> None:
        """Replace the samples of `task`, and learn from those of all tasks."""
        self._samples[task] = features, scores
        self._learn(features.shape[1])

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Predict, having learned anew if the last to learn had features of another width."""
        width = features.shape[1]
        if width != self._width:
            self._learn(width)
        if width != self._width:
            return np.zeros(len(features)), np.ones(len(features))
        return self.model.predict(features)

    def _learn(self, width: int) -> None:
        alike = [(t, f, s) for t, (f, s) in sorted(self._samples.items()) if f.shape[1] == width]
        if alike:
            tasks = np.repeat([t for t, _, _ in alike], [len(s) for _, _, s in alike])
            self.model.fit(np.concatenate([f for _, f, _ in alike]), np.concatenate([s for _, _, s in alike]), tasks)
            self._width = width


@dataclass(frozen=True)
class _View:
    shared: SharedModel
    task: int

    @property
    def ready(self) -> bool:
        return self.shared.model.ready

    @property
    def learned(self) -> bool:
        return has_learned(self.shared.model)

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        self.shared.fit(self.task, features, scores)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        return self.shared.predict(features)
