"""Progress of tuning a network, task by task."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .progress import TuningState
from .task_strategy import Objective, TaskHistory


def weighted_sum(weights: Sequence[float], ways: Sequence[Sequence[int]] | None = None) -> Objective:
    """The objective of a network whose tasks appear as often as the weights say: its latency from end to end.

    `ways` are the numbers of tasks, together where they compute the same (`ways_of`), of which the fastest counts.
    """
    together = ways or [[number] for number in range(len(weights))]

    def latency_s(latencies_s: Sequence[float]) -> float:
        known = ([weights[k] * latencies_s[k] for k in one if latencies_s[k]] for one in together)
        return sum(min(each, default=0.0) for each in known)  # a strategy's 0 is a latency that is not known

    return latency_s


def ways_of(tasks: Sequence[tuple[str | None, str | None]]) -> list[list[int]]:
    """The numbers of tasks, together where they compute the same, so that a network takes one of them.

    Each task is the hash of its workload, None where it has none, and that of the workload that it stands for, if any.
    """
    first: dict[str, int] = {}
    for number, (digest, instead_of) in enumerate(tasks):
        if digest is not None and instead_of is None:
            first.setdefault(digest, number)
    ways: dict[int | str, list[int]] = {}
    for number, (_, instead_of) in enumerate(tasks):
        ways.setdefault(number if instead_of is None else first.get(instead_of, instead_of), []).append(number)
    return list(ways.values())


@dataclass
class TaskRow:
    """A task of a network: its number, how often it appears, and what tuning it has given.

    `is_another_way` where it computes what another task does, so that the network takes one of them.
    """

    number: int
    weight: float
    tuning: TuningState
    history: TaskHistory
    is_another_way: bool = False

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
    """Progress of all tasks, and the task that is tuned next (None: none, tuning ends). Times are in seconds."""

    rows: Sequence[TaskRow]
    total: int
    objective: Objective
    ways: Sequence[Sequence[int]] = ()
    """Numbers of tasks, together where they compute the same (`ways_of`); none: each computes what no other does."""
    next_task: int | None = None
    phase: str = "starting"
    build_s: float = 0.0
    run_s: float = 0.0
    started_s: float = field(default_factory=time.monotonic)
    best_s: float = math.inf
    """The least objective so far."""
    best_trial: int = 0
    """Trials of all tasks after which it was reached."""

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
        """The objective at the best latencies; infinity while a task that it needs has none."""
        total_s = self.objective([row.latency_s for row in self.rows])
        return math.inf if math.isnan(total_s) else total_s

    @property
    def trials_since_best(self) -> int:
        """Trials since the objective last fell."""
        return self.done - self.best_trial

    def is_taken(self, row: TaskRow) -> bool:
        """True for a task that the network takes as things are: the fastest of those that compute the same."""
        others = next((way for way in self.ways if row.number in way), [row.number])
        return row.number == min(others, key=lambda number: self.rows[number].latency_s)

    def share(self, row: TaskRow) -> float:
        """The part of a task in the latencies of those that are taken, by weight; NaN while it has none.

        The shares of these are 1 together.
        """
        total_s = sum(r.weight * r.latency_s for r in self.rows if math.isfinite(r.latency_s) and self.is_taken(r))
        return row.weight * row.latency_s / total_s if math.isfinite(row.latency_s) and total_s else math.nan

    def cells(self, row: TaskRow) -> tuple[str, ...]:
        """A task's row of the table: what it has reached, its weight and share, and its failures.

        The share of one that is not taken is in parentheses.
        """
        share = self.share(row)
        shown = "-" if math.isnan(share) else f"{share:.0%}" if self.is_taken(row) else f"({share:.0%})"
        errors = row.tuning.error_counts() if row.tuning.errors else ""
        return *row.cells(), f"{row.weight:g}", shown, row.tuning.task, errors

    @property
    def left_s(self) -> float:
        """Seconds for the trials that are left, if they take as long as those so far; NaN before the first."""
        made = self.done - self.resumed
        return self.used_s / made * (self.total - self.done) if made > 0 else math.nan

    @property
    def used_s(self) -> float:
        """Seconds since tuning began."""
        return time.monotonic() - self.started_s

    @property
    def summary(self) -> str:
        """The line below the table."""
        latency = f"{self.latency_s * 1e3:.4g} ms" if math.isfinite(self.latency_s) else "-"
        following = "-" if self.next_task is None else str(self.next_task)
        left = "" if self.next_task is None or math.isnan(self.left_s) else f"  ETA: {self.left_s:.0f} s"
        return (
            f"Estimated total latency: {latency}  Trials: {self.done}  Used time: {self.used_s:.0f} s  "
            f"Next ID: {following}{left}"
        )
