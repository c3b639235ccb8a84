"""Tasks of a measurer by number: the one that is measured, and one whose candidates are built ahead of that."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from . import wire
from .measurement import MeasureTask


class TaskOrders:
    """The current task, and the messages by which workers take over the task of a job."""

    def __init__(self) -> None:
        self.task: MeasureTask | None = None
        self.number = 0
        self._numbers = itertools.count(1)
        self._ahead: tuple[str, int] | None = None
        """The workload of candidates that are built ahead, and its number."""
        self._runner: wire.Message = {}

    def begin(self, workload: str) -> int:
        """The number of a task that will be used later, for builders to begin with."""
        if self._ahead is None or not self.is_ahead(workload):
            self._ahead = workload, next(self._numbers)
        return self._ahead[1]

    def is_ahead(self, workload: str) -> bool:
        """True for the workload of the task that was begun."""
        return self._ahead is not None and self._ahead[0] == workload

    def forget_ahead(self) -> None:
        """Let what was begun be the current task, or none."""
        self._ahead = None

    def use(self, task: MeasureTask, runner: wire.Message) -> None:
        """Measure a task from now on, which runners take over by the message `runner`."""
        begun = self._ahead if self.is_ahead(task.workload) else None
        self.task, self._runner = task, runner
        self.number = next(self._numbers) if begun is None else begun[1]

    def require_task(self) -> MeasureTask:
        """Return the task; ValueError where there is none."""
        if self.task is None:
            raise ValueError("no task to measure: call use() first")
        return self.task

    def message(self, role: str, number: int, versions: Mapping[str, str]) -> wire.Message:
        """Return the message by which a worker takes over the task of a number."""
        if role == "runner":
            return self._runner
        if self._ahead is not None and number == self._ahead[1]:
            return {"op": "task", "workload": self._ahead[0], "versions": versions}
        return {"op": "task", "workload": self.require_task().workload, "versions": versions}
