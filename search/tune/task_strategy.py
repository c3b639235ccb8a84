"""Strategies of the task scheduler: given how far every task has come, the one that is tuned next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Objective = Callable[[Sequence[float]], float]
"""From the latency of each task, in seconds, to what is to become small."""

_LEAST = 0.01
"""Part of its latency that no round is expected to bring a task below. A choice: what no measurement tells from
noise."""

_MORE_ROUNDS = 5
"""Rounds that a task must have had beyond all others of its group before it may be found unlike them. A choice."""


FAR_BEHIND = 1.5
"""Times the latency of the fastest way to compute the same from which on a way is not tuned on. A choice: on CPUs,
whose first trial is the untuned schedule, a search seldom gains more."""


@dataclass
class TaskHistory:
    """Progress of a task: the best latency in seconds after each round (infinity: none was right yet).

    Tasks with the same `group` (None: alone) are expected to reach a similar speed. A task that is not `alive` gets no
    more rounds.
    """

    flop: float = 0.0
    group: str | None = None
    latencies_s: list[float] = field(default_factory=list)
    alive: bool = True

    @property
    def rounds(self) -> int:
        """Rounds it had."""
        return len(self.latencies_s)

    @property
    def latency_s(self) -> float:
        """Its best latency yet, in seconds."""
        return self.latencies_s[-1] if self.latencies_s else math.inf

    @property
    def flop_per_s(self) -> float:
        """Its best speed yet; 0 when unknown."""
        return self.flop / self.latency_s if self.latencies_s else 0.0


class TaskStrategy(Protocol):
    """Chooses tasks."""

    def choose(self, tasks: Sequence[TaskHistory], objective: Objective) -> int | None:
        """Return the index of the task to tune next; None when none is alive."""


class RoundRobin:
    """One task after the other: always one of those with the fewest rounds."""

    def choose(self, tasks: Sequence[TaskHistory], objective: Objective) -> int | None:
        """Return the first of the alive tasks with the fewest rounds."""
        alive = [index for index, task in enumerate(tasks) if task.alive]
        return min(alive, key=lambda index: tasks[index].rounds, default=None)


@dataclass(frozen=True)
class Gradient:
    """The task whose next round is expected to lower the objective most, once each has had one (after Ansor, OSDI'20).

    A round is expected to lower a task's latency g by `alpha` times its mean gain over the last `window` rounds, plus
    `1 - alpha` times what it may hope for: `g / rounds ** (1 + gamma)` or, where that is more, what it is slower than
    at 1 / `beta` of the best speed in its group. Ansor has gamma 0 and beta 2; with 0.5 and 1.25 fewer trials go to
    tasks that are done (simulated networks: 0.55 to 0.9 of round robin's trials instead of 0.68 to 0.96).
    """

    alpha: float = 0.2
    beta: float = 1.25
    gamma: float = 0.5
    window: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1 or self.beta < 1 or self.gamma < 0 or self.window < 1:
            raise ValueError(f"needs 0 <= alpha <= 1, beta >= 1, gamma >= 0 and window >= 1, got {self}")

    def choose(self, tasks: Sequence[TaskHistory], objective: Objective) -> int | None:
        """Return the next task without a round, else the one of the largest gain, the first of equals."""
        alive = [index for index, task in enumerate(tasks) if task.alive]
        unknown = [index for index in alive if not tasks[index].rounds]
        if unknown:
            return unknown[0]
        failing = [index for index in alive if math.isinf(tasks[index].latency_s)]
        if failing and not math.isfinite(objective([task.latency_s for task in tasks])):
            return min(failing, key=lambda index: tasks[index].rounds)
        gains = self.gains(tasks, objective)
        return max(alive, key=lambda index: gains[index], default=None)

    def gains(self, tasks: Sequence[TaskHistory], objective: Objective) -> list[float]:
        """Return by how much a round of each task is expected to lower the objective; tasks without latency count 0."""
        latencies_s = [task.latency_s if math.isfinite(task.latency_s) else 0.0 for task in tasks]
        here = objective(latencies_s)
        gains = []
        for index, task in enumerate(tasks):
            latency_s = latencies_s[index]
            if not latency_s or not task.alive:
                gains.append(0.0)
                continue
            after_s = max(latency_s - self._expected_gain_s(tasks, index), _LEAST * latency_s)
            gains.append(here - objective([*latencies_s[:index], after_s, *latencies_s[index + 1 :]]))
        return gains

    def _expected_gain_s(self, tasks: Sequence[TaskHistory], index: int) -> float:
        task = tasks[index]
        past_s = 0.0
        if task.rounds > self.window and math.isfinite(task.latencies_s[-1 - self.window]):
            past_s = (task.latencies_s[-1 - self.window] - task.latency_s) / self.window
        hoped_s = task.latency_s / task.rounds ** (1 + self.gamma)
        best = max((t.flop_per_s for t in self._alike(tasks, index)), default=0.0)
        if best:
            hoped_s = max(hoped_s, task.latency_s - self.beta * task.flop / best)
        return float(self.alpha * past_s + (1 - self.alpha) * hoped_s)

    def _alike(self, tasks: Sequence[TaskHistory], index: int) -> list[TaskHistory]:
        """Return the others of a task's group, unless it has proved slower by nature."""
        task = tasks[index]
        if task.group is None or not task.flop:
            return []
        others = [other for j, other in enumerate(tasks) if j != index and other.group == task.group]
        best = max((other.flop_per_s for other in others), default=0.0)
        many = max((other.rounds for other in others), default=0) + _MORE_ROUNDS
        if task.flop_per_s < best / self.beta and task.rounds > many:
            return []
        return others


def far_behind(tasks: Sequence[TaskHistory], ways: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of tasks that take far longer than another way to compute the same, each of which had a round.

    `ways` are numbers of tasks, together where they compute the same.
    """
    tried = [way for way in ways if all(tasks[number].rounds for number in way)]
    least_s = [min(tasks[number].latency_s for number in way) for way in tried]
    pairs = zip(tried, least_s, strict=True)
    return [n for way, best_s in pairs for n in way if tasks[n].latency_s > FAR_BEHIND * best_s]


def make_strategy(name: str) -> TaskStrategy:
    """Return the strategy `name`, `gradient` (with its default constants) or `round-robin`; ValueError for another."""
    match name:
        case "gradient":
            return Gradient()
        case "round-robin":
            return RoundRobin()
    raise ValueError(f"unknown strategy {name!r}; there are: gradient, round-robin")
