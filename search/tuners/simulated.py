"""A measurer that asks a function instead of a device, for experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ..measure.measurement import Measurement, MeasureOptions, MeasureTask
from ..records.file import ErrorCode

if TYPE_CHECKING:
    from ..template.config import Config

Simulated = Callable[[Sequence["Config"]], Sequence[float]]
"""Seconds per run of configs, infinity for one that fails."""


class SimulatedMeasurer:
    """Gives candidates the seconds that a function says; `config_of` is the config of a job."""

    devices = builders = 1

    def __init__(self, function: Simulated, config_of: Callable[[int], Config]) -> None:
        self.options = MeasureOptions("simulated")
        self.best_s: float | None = None
        self.device = "simulated"
        self.versions: Mapping[str, str] = {}
        self.building_s = self.running_s = 0.0
        self._function, self._config_of = function, config_of
        self._submitted = 0
        self._waiting: dict[int, str] = {}
        self._done: list[Measurement] = []

    def __enter__(self) -> SimulatedMeasurer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.withdraw()

    @property
    def pending(self) -> int:
        """Number of candidates submitted and not yet given back."""
        return len(self._waiting) + len(self._done)

    @property
    def built(self) -> int:
        """None wait for a device."""
        return 0

    def use(self, task: MeasureTask) -> None:
        """Take over a task, of which nothing is asked."""

    def remember(self, known: Measurement) -> None:
        """Remember nothing: there are no artifacts."""

    def submit(self, schedules: Sequence[str], fresh: bool = False, laps: int = 1) -> list[int]:
        """Queue schedules and return their job numbers."""
        jobs = range(self._submitted, self._submitted + len(schedules))
        self._submitted += len(schedules)
        self._waiting |= dict(zip(jobs, schedules, strict=True))
        return [*jobs]

    def withdraw(self, keep: int = 0) -> None:
        """Forget what is pending, but the `keep` candidates that were submitted first."""
        self._done, left = self._done[:keep], max(0, keep - len(self._done))
        self._waiting = dict([*self._waiting.items()][:left])

    def results(self, meanwhile: Callable[[], object] | None = None) -> Iterator[Measurement]:
        """Yield measurements until nothing is pending; those of a batch are asked for together."""
        while self.pending:
            if meanwhile is not None:
                meanwhile()
            if self._waiting and not self._done:
                waiting, self._waiting = self._waiting, {}
                times_s = list(self._function([self._config_of(job) for job in waiting]))
                pairs = zip(waiting.items(), times_s, strict=True)
                self._done = [_measurement(job, schedule, float(time_s)) for (job, schedule), time_s in pairs]
            if self._done:
                yield self._done.pop(0)


def _measurement(job: int, schedule: str, time_s: float) -> Measurement:
    if 0 < time_s < math.inf:
        return Measurement(job, schedule, ErrorCode.OK, times_s=(time_s,))
    return Measurement(job, schedule, ErrorCode.RUNTIME_ERROR, "simulated")
