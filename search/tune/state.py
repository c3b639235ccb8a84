"""How far tuning a network has come, task by task."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .progress import TuningState
from .strategy import Objective, TaskHistory


@dataclass
class TaskRow:
    """A task of a network: its number, how often it appears, and what tuning it has given."""

    number: int
    weight: float
    tuning: TuningState
    history: TaskHistory

    @property
    def latency_s(self) -> float:
        """Its best latency in seconds; infinity when no trial was right yet."""
        return self.tuning.best.time_s if self.tuning.best is not None else math.inf

    @property
    def gflops_per_s(self) -> float:
        """Its best speed; 0 when unknown."""
        return self.history.flop / self.latency_s / 1e9

    def cells(self) -> tuple[str, str, str, str]:
        """ID, latency in ms, GFLOPS and trials as text; `-` for what is unknown."""
        known = math.isfinite(self.latency_s)
        latency = f"{self.latency_s * 1e3:.4g}" if known else "-"
        speed = f"{self.gflops_per_s:.2f}" if known and self.history.flop else "-"
        return str(self.number), latency, speed, str(self.tuning.done)


@dataclass
class SchedulerState:
    """All tasks, and the task that is tuned next (None: none, tuning ends). Times are in seconds."""

    rows: Sequence[TaskRow]
    total: int
    objective: Objective
    next_task: int | None = None
    phase: str = "starting"
    build_s: float = 0.0
    run_s: float = 0.0
    started_s: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Trials of all tasks, resumed ones included."""
        return sum(row.tuning.done for row in self.rows)

    @property
    def resumed(self) -> int:
        """Trials that were taken over from records."""
        return sum(row.tuning.resumed for row in self.rows)

    @property
    def latency_s(self) -> float:
        """The objective at the best latencies; infinity while a task has none."""
        latencies_s = [row.latency_s for row in self.rows]
        return self.objective(latencies_s) if all(map(math.isfinite, latencies_s)) else math.inf

    @property
    def used_s(self) -> float:
        """Seconds since tuning began."""
        return time.monotonic() - self.started_s

    @property
    def summary(self) -> str:
        """The line below the table."""
        latency = f"{self.latency_s * 1e3:.4g} ms" if math.isfinite(self.latency_s) else "-"
        following = "-" if self.next_task is None else str(self.next_task)
        return (
            f"Estimated total latency: {latency}  Trials: {self.done}  Used time: {self.used_s:.0f} s  "
            f"Next ID: {following}"
        )
