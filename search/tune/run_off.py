"""The run-off at the end of a search: the best trials and the untuned schedule, timed in turn, decide the winner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ...dialects.cached_property import cached_property
from ..measure.limits import Limits
from ..measure.measurement import Measuring
from ..measure.measurer import MeasureError, Measurement, headline
from ..measure.process import WorkerStartError
from ..records.file import Record, Role
from .deadline import Deadline
from .options import Tunable, TuningOptions
from .progress import Progress, TuningState
from .record_keeping import RecordKeeping
from .sentences import failure_of
from .trial import Trial, record_of

RUN_OFF_SHARE = 0.2
"""Part of a time limit that is kept for the run-off, at most: what is searched in less has little to compare. A
choice."""

_SLOWEST = 1.5
"""Time of the slowest trial that competes, over that of the fastest. A choice: trials were timed once each, at
different moments; one this much slower is not the best for noise alone."""

LIMITS_S = 1.0
"""Seconds that measuring the limits of a CPU takes, about: 0.2 of arithmetic, 0.5 of copying, and compiling both."""


@dataclass
class RunOff:
    """The run-offs of one search, whose `state` and `trials` it reads whenever it is asked."""

    task: Tunable
    options: TuningOptions
    state: TuningState
    trials: Sequence[Record]
    deadline: Deadline
    progress: Progress
    records: RecordKeeping
    later_laps: float
    """Part of the time of a trial's run that a lap after the first takes: all, where kernels are loaded anew."""
    builders: Callable[[], int] = lambda: 1
    """The number of those that build its schedules at once."""
    last_winner: Record | None = None
    known_to_winner: int = 0
    """Trials before the last winner."""

    @property
    def settled(self) -> bool:
        """True where the winner of a run-off is known, and no trial came after it or is better."""
        return self.last_winner is not None and self.state.done == self.known_to_winner

    @property
    def expected_s(self) -> float:
        """Seconds that it may take now, as its schedules took when they were tried, a repeat a lap.

        Builders are at other candidates that take as long: of n the first is free after an n-th of that, the second
        after two.
        """
        finalists = [] if self.settled or self.state.best is None else self._finalists()
        if len(finalists) < 2:
            return 0.0
        longest_s, builders = max(r.build_s for r in finalists), max(1, self.builders())
        laps = 1 + (self.options.final_laps - 1) * self.later_laps
        return longest_s * (1 + len(finalists) / builders) + laps * sum(r.run_s for r in finalists)

    def winner(self, best: Record, measurer: Measuring) -> Record:
        """Time the best trials and the untuned schedule in turn, record it, and return the winner, by the median lap.

        Neighbours of a core slow some laps of all, and one that is spared by chance is the shortest: of 40 kernels on a
        host that others use (5 to 19 candidates each, up to 11 laps) the least one's choice took 0.99 times as long as
        the untuned one in other laps, the median's 0.98.

        Where they cannot be compared, `best`, the fastest trial, stands.
        """
        if self.settled and self.last_winner is not None:
            return self.last_winner
        finalists = self._finalists()
        if len(finalists) < 2:
            return best
        try:
            found = self._compared(finalists, measurer)
        except (MeasureError, WorkerStartError) as error:
            return self._uncompared(best, f"the best could not be compared: {headline(str(error))}")
        if len(found) < len(finalists):
            return self._uncompared(best, "the time limit left none for comparing the best")
        results = [self._final(old, new, measurer) for old, new in zip(finalists, found, strict=True)]
        right = [record for record in results if record.ok]
        if not right:
            self.records.save(results)
            return self._uncompared(best, f"the best failed when they were measured again ({failure_of(results[0])})")
        winner = replace(min(right, key=lambda r: median(r.times_s)), role=Role.WINNER)
        self.records.save([winner if r.schedule == winner.schedule else r for r in results])
        times = f"{self.state.speed(winner)}, as a trial {self.state.speed(best)}"
        self.progress.note(f"run-off of {len(finalists)} schedules: {times}")
        self.state.best = winner
        if (default := next((r for r in right if r.schedule == self.task.default_schedule), None)) is not None:
            self.state.default = default
        self._show_phase("done")
        return winner

    def _uncompared(self, best: Record, why: str) -> Record:
        self.progress.note(f"{why}: the fastest trial is the result")
        return best

    def _compared(self, finalists: Sequence[Record], measurer: Measuring) -> list[Measurement]:
        """The measurements of finalists, each timed in turn; of fewer repeats, or fewer finalists, where time is up."""
        if self.deadline.left_s <= 0:
            return []

        def end_with_time() -> None:
            if self.deadline.left_s <= 0:
                measurer.withdraw()

        self._show_phase("comparing the best")
        numbers = measurer.submit([r.schedule for r in finalists], fresh=True, laps=self.options.final_laps)
        found = {m.job: m for m in measurer.results(end_with_time)}
        self.state.build_s, self.state.run_s = measurer.building_s, measurer.running_s
        return [found[number] for number in numbers if number in found]

    def _final(self, trial: Record, measurement: Measurement, measurer: Measuring) -> Record:
        """Return the run-off's record of a schedule that was tried before."""
        again = record_of(self.task, Trial(None), measurement, measurer, self._options_with_limits, Role.FINAL)
        return replace(again, sketch=trial.sketch, decisions=trial.decisions, template=trial.template)

    @cached_property
    def _options_with_limits(self) -> TuningOptions:
        """The options, with the limits of the device that are measured now, as no candidate is, where time allows."""
        limits = self.options.limits
        if limits is None or isinstance(limits, Limits):
            return self.options
        return replace(self.options, limits=limits() if self.deadline.left_s > LIMITS_S else None)

    def _finalists(self) -> list[Record]:
        """Return the best trials with distinct schedules, and the default."""
        ranked = sorted((r for r in self.trials if r.ok and not r.stopped_early), key=lambda r: r.time_s)
        chosen: dict[str, Record] = {}
        for record in ranked:
            if len(chosen) < self.options.final_candidates and record.time_s <= _SLOWEST * ranked[0].time_s:
                chosen.setdefault(record.schedule, record)
        if self.state.default is not None:
            chosen.setdefault(self.state.default.schedule, self.state.default)
        return list(chosen.values())

    def _show_phase(self, phase: str) -> None:
        self.state.phase = phase
        self.progress.update(self.state)
