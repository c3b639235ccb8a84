"""A search task as a tuner sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .cost_model import CostModel
from .cost_model.grounded import Grounded
from .sketch.sketch import Sketch
from .tune.in_search import InSearch, Searched


class SketchedTask(Searched, Protocol):
    """A searched task that has sketches, as a SearchTask does."""

    @property
    def sketches(self) -> list[Sketch]: ...

    @property
    def compared_sketches(self) -> list[Sketch]: ...

    @property
    def default_schedule(self) -> str: ...

    @property
    def default_candidate(self) -> tuple[int, tuple[int, ...]]: ...


@dataclass(frozen=True)
class TaskInSearch(InSearch[SketchedTask]):
    """A SearchTask as a tuner sees it: sketches are made when it is first searched.

    Where the cost model starts from one that ships (`grounded`), candidates are described as that one knows them.
    """

    grounded: bool = False

    @property
    def spaces(self) -> Sequence[Sketch]:
        sketches = self.task.sketches
        return self.task.compared_sketches if self.grounded else sketches

    @property
    def default_schedule(self) -> str:
        return self.task.default_schedule

    @property
    def default_candidate(self) -> tuple[int, tuple[int, ...]] | None:
        """The candidate that a search on a CPU begins from; on GPUs, where nobody has measured it, from none."""
        return None if self.task.target.is_gpu else self.task.default_candidate


def in_search(task: SketchedTask, model: str | CostModel) -> TaskInSearch:
    """Return a task as a tuner with some cost model sees it."""
    return TaskInSearch(task, grounded=isinstance(model, Grounded))
