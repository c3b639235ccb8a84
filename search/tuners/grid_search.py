"""All configs, one after the other."""

from __future__ import annotations

import numpy as np

from ..template.task import TemplateTask
from .tuner import Tuner

_BLOCK = 256


class GridSearchTuner(Tuner):
    """Goes through the space in the order of the index; configs that are not legal are passed over."""

    def __init__(self, task: TemplateTask, seed: int = 0) -> None:
        super().__init__(task, seed)
        self._next = 0

    def propose(self, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count and self._next < self.space.size:
            end = min(self._next + _BLOCK, self.space.size)
            block = np.arange(self._next, end, dtype=np.int64)
            fresh = self.fresh(block, count - len(found), self.visited)
            found += fresh
            self._next = fresh[-1] + 1 if len(found) == count else end
        return found
