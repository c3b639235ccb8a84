"""Candidates on their way through the measurer: to build, to run, done."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from typing import Any

from ..records.file import ErrorCode
from . import wire
from .measurement import MeasureError, Measurement
from .timing import TimingSettings

_MOST_LOST_IN_A_ROW = 5
"""Workers that may end one after the other without an answer. A choice: one candidate in ten that ends its worker does
so five times in a row once in 100,000."""
_MOST_KNOWN = 4096
"""Artifacts whose results are remembered, at some 0.5 KB each, so that memory does not grow with a search."""


class State(Enum):
    """The stage that a candidate is at, of those that are built ahead of who submits them, and of those submitted."""

    AHEAD = auto()
    """To be built, or being built, and not submitted yet."""
    READY = auto()
    """Not submitted yet, and no builder is needed any more: it compiled, or has its `result` as it does not."""
    SUBMITTED = auto()
    """To be built, to be run, or at a worker; its result is waited for."""
    WITHDRAWN = auto()
    """Submitted and called off: what a runner is at ends, and nothing follows it."""
    FORGOTTEN = auto()
    """At a builder, and of no use to anyone: it ends without a result."""


@dataclass(eq=False)
class Job:
    """A candidate on its way; `fresh` ones are timed to the end even when slow or known."""

    number: int
    schedule: str
    fresh: bool
    laps: int
    turn: int = 0
    """Its place among those that were submitted."""
    laps_done: int = 0
    retried: bool = False
    times_s: list[float] = field(default_factory=list)
    build_s: float = 0.0
    run_s: float = 0.0
    artifact: str = ""
    resources: tuple[Mapping[str, Any], ...] = ()
    blob: bytes = b""
    timing: TimingSettings | None = None
    fleet: Mapping[str, Any] = field(default_factory=dict)
    task: int = 0
    state: State = State.SUBMITTED
    result: Measurement | None = None
    """Of one that could not be built before it was submitted."""

    def build_order(self) -> wire.Message:
        """The message by which a builder makes it."""
        return {"op": "build", "id": self.number, "schedule": self.schedule}

    def run_order(self, usual: TimingSettings, best_s: float | None) -> wire.Message:
        """The message by which a runner times it, a repeat where it is one lap of several."""
        timing, is_race = self.timing or usual, self.laps > 1
        given = asdict(replace(timing, repeat=1) if is_race else timing)
        best_s = None if self.fresh else best_s
        return {"op": "run", "id": self.number, "timing": given, "best_s": best_s, "alone": is_race}

    def made(self, message: wire.Message, artifact: bytes) -> None:
        """Take in what a builder answered."""
        self.artifact, self.blob = message.get("artifact", ""), artifact
        self.resources = tuple(message.get("resources", ()))

    def spent(self, role: str, seconds: float) -> None:
        """Add the seconds that a worker took for it."""
        if role == "builder":
            self.build_s = seconds
        else:
            self.run_s += seconds


class Jobs:
    """The candidates of a task in the order in which they were submitted, and their results as they finish.

    Builds finish in any order; of what is built the first submitted runs next, and one lap of all before the next lap.
    Candidates that compile to a known artifact get its result without running, unless they are `fresh`.
    """

    def __init__(self) -> None:
        self.best_s: float | None = None
        """The shortest time of those done, in seconds per run."""
        self.done: deque[Measurement] = deque()
        """Results that nobody has taken yet."""
        self._numbers, self._turns = itertools.count(), itertools.count()
        self._pending: dict[int, Job] = {}
        self._to_build: deque[Job] = deque()
        self._to_run: list[Job] = []
        self._ahead: dict[str, Job] = {}
        """Those that nobody has submitted yet, by their schedules."""
        self._ahead_to_build: deque[Job] = deque()
        self._known: dict[str, Measurement] = {}
        self._lost_in_a_row = 0

    def __len__(self) -> int:
        """Candidates that were submitted and have no result yet."""
        return len(self._submitted())

    def __getitem__(self, number: int) -> Job:
        return self._pending[number]

    def _submitted(self) -> list[Job]:
        return [job for job in self._pending.values() if job.state in (State.SUBMITTED, State.WITHDRAWN)]

    @property
    def waiting_for_builder(self) -> int:
        """Candidates that no builder has begun with."""
        return len(self._to_build) + len(self._ahead_to_build)

    def are_enough_for(self, builders: int) -> bool:
        """True where builders have work until another batch has been thought of, were all equally long in the making.

        That takes about as long as building one: of two waiting for each, one is for those that are made in less.
        """
        return self.waiting_for_builder > 2 * builders

    @property
    def waiting_for_device(self) -> int:
        """Candidates that are built, and that no device has begun with."""
        return len(self._to_run)

    def forget(self) -> None:
        """Begin with another task, of which nothing is known."""
        self.best_s = None
        self._known.clear()

    def remember(self, known: Measurement) -> None:
        """Give candidates that compile to the artifact of `known` its result."""
        if known.artifact:
            self._known[known.artifact] = replace(known, schedule="")
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def begin(self, schedules: Sequence[str], task: int) -> None:
        """Queue schedules to be built when no others are, and to wait until they are submitted, all of one task."""
        new = {
            schedule: Job(next(self._numbers), schedule, False, 1, task=task, state=State.AHEAD)
            for schedule in schedules
            if schedule not in self._ahead
        }
        self._ahead |= new
        self._pending |= {job.number: job for job in new.values()}
        self._ahead_to_build.extend(new.values())

    def forget_ahead(self) -> None:
        """Leave out what nobody has submitted; what a builder is at is of no use to anyone."""
        for job in self._ahead.values():
            if job.state is State.READY or job in self._ahead_to_build:
                del self._pending[job.number]
            job.state = State.FORGOTTEN
        self._ahead_to_build.clear()
        self._ahead.clear()

    def submit(
        self, schedules: Sequence[str], fresh: bool, laps: int, timing: TimingSettings | None, task: int = 0
    ) -> list[int]:
        """Queue schedules and return their numbers; `timing` is their own, in the place of the usual one."""
        return [self._submit(schedule, fresh, laps, timing, task) for schedule in schedules]

    def _submit(self, schedule: str, fresh: bool, laps: int, timing: TimingSettings | None, task: int) -> int:
        job = self._ahead.get(schedule)
        if job is None or job.task != task:
            job = Job(next(self._numbers), schedule, fresh, laps, next(self._turns), timing=timing, task=task)
            self._pending[job.number] = job
            self._to_build.append(job)
            return job.number
        del self._ahead[schedule]
        job.turn = next(self._turns)
        self._pending[job.number] = self._pending.pop(job.number)  # in the order in which they are submitted
        was, job.state = job.state, State.SUBMITTED
        job.fresh, job.laps, job.timing = fresh, laps, timing
        if job.result is not None:
            del self._pending[job.number]
            self.done.append(job.result)
        elif was is State.READY:
            self._to_run.append(job)
        elif job in self._ahead_to_build:
            self._ahead_to_build.remove(job)
            self._to_build.append(job)
        return job.number

    def submit_built(self, artifact: bytes, timing: TimingSettings, task: int) -> int:
        """Queue a built artifact, of which nothing else is known, and return its number."""
        job = Job(next(self._numbers), "", False, 1, next(self._turns), timing=timing, blob=artifact, task=task)
        self._pending[job.number] = job
        self._to_run.append(job)
        return job.number

    def withdraw(self, keep: int, under_way: Mapping[int | None, str]) -> None:
        """Begin nothing more of what is pending, but the `keep` submitted first; `under_way` are workers' roles by job.

        One that a runner is at, or that has laps done, ends with the laps that it has. Nobody waits for one that a
        builder is at.
        """
        for job in self._submitted()[keep:]:
            job.state = State.WITHDRAWN
            match under_way.get(job.number):
                case "runner":
                    job.laps = job.laps_done + 1
                case None if job.laps_done:
                    self.finish(job, ErrorCode.OK)
                case None:
                    del self._pending[job.number]
                case _:
                    job.state = State.FORGOTTEN
        self._to_build = deque(job for job in self._to_build if job.state is State.SUBMITTED)
        self._to_run = [job for job in self._to_run if job.state is State.SUBMITTED]

    def next_to_build(self) -> Job:
        """Take the next one to build."""
        return (self._to_build or self._ahead_to_build).popleft()

    def next_to_run(self) -> Job | None:
        """Take the next one to run; those of a known artifact before it are done with that. None where none is left."""
        while self._to_run:
            job = min(self._to_run, key=lambda job: (job.laps_done, job.turn))
            self._to_run.remove(job)
            known = None if job.fresh else self._known.get(job.artifact)
            if known is None:
                return job
            del self._pending[job.number]
            again = replace(known, job=job.number, schedule=job.schedule, build_s=job.build_s, run_s=0.0, reused=True)
            self.done.append(again)
        return None

    def again(self, job: Job, role: str) -> None:
        """Put back what a worker took and did not do; what was called off meanwhile need not be built."""
        if role == "runner":
            self._to_run.append(job)
        elif job.state is State.SUBMITTED:
            self._to_build.appendleft(job)
        elif job.state is State.AHEAD:
            self._ahead_to_build.appendleft(job)
        else:
            del self._pending[job.number]

    def built(self, job: Job) -> None:
        """Have a candidate run that compiles, unless it was called off meanwhile."""
        if job.state is State.SUBMITTED:
            self._to_run.append(job)
        elif job.state is State.AHEAD:
            job.state = State.READY
        else:
            del self._pending[job.number]

    def ran(self, job: Job, times_s: Sequence[float], stopped_early: bool, fleet: Mapping[str, Any]) -> None:
        """Take in a lap of a candidate that was right; `fleet` is of the device of a fleet that ran it.

        Laps on another device are no laps of the same race: they count from the first one on this.
        """
        if job.laps_done and job.fleet.get("device") != fleet.get("device"):
            job.times_s.clear()
            job.laps_done = 0
        job.fleet = fleet
        job.times_s += times_s
        job.laps_done += 1
        if job.laps_done < job.laps:
            self._to_run.append(job)
        else:
            self.finish(job, ErrorCode.OK, stopped_early=stopped_early)

    def finish(self, job: Job, error: ErrorCode, message: str = "", stopped_early: bool = False) -> None:
        """Make the result of a candidate; MeasureError where the device was lost too often in a row."""
        times_s = tuple(job.times_s) if error is ErrorCode.OK else ()
        done = Measurement(
            job.number,
            job.schedule,
            error,
            message,
            times_s,
            job.build_s,
            job.run_s,
            job.artifact,
            stopped_early,
            resources=job.resources,
            fleet=job.fleet,
        )
        if job.state is State.AHEAD:
            job.state, job.result = State.READY, done
            return
        del self._pending[job.number]
        if job.state is State.FORGOTTEN:
            return
        self.done.append(done)
        if error is ErrorCode.DEVICE_LOST:
            self._lost_in_a_row += 1
            if self._lost_in_a_row >= _MOST_LOST_IN_A_ROW:
                raise MeasureError(
                    f"the device was lost {self._lost_in_a_row} times in a row; the last time: {message}"
                )
            return
        self._lost_in_a_row = 0
        if not job.fresh:
            self.remember(done)
        if done.ok and not stopped_early:
            self.best_s = min(*times_s, self.best_s or float("inf"))
