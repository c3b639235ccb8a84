"""Tuning one task: propose, measure, record, learn, again; at the end a run-off decides the winner."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ..cost_model import make_model, relative_speed
from ..measure.measurer import Measurement, MeasureOptions, Measurer, headline
from ..measure.preflight import measured_elsewhere
from ..records import file as rec
from ..records.file import DEFAULT_SKETCH, ErrorCode, Record, RecordError, Role
from ..records.workload_files import workload_file, write_workload
from ..sketch.space import Described, SpaceError
from ..strategies.evolution import Evolution, EvolutionSettings
from ..strategies.make import strategy_maker
from ..strategies.strategy import Proposal, Strategy
from .deadline import Deadline
from .options import Tunable, TuningError, TuningOptions, TuningResult, TuningTask
from .progress import TuningState, progress_of

__all__ = [
    "DEFAULT_SKETCH",
    "Tuner",
    "TuningError",
    "TuningOptions",
    "TuningResult",
    "TuningTask",
    "tune",
    "versions_for",
]

RUN_OFF_SHARE = 0.2
"""Part of a time limit that is kept for the run-off, at most: what is searched in less has little to compare."""

_HOPELESS_BATCHES = 3


def tune(
    task: Tunable, options: TuningOptions, measure: MeasureOptions, deadline: Deadline | None = None
) -> TuningResult:
    """Tune `task` and return the result; no process outlives the call.

    The time limit counts from now, unless `deadline` began before. Ctrl-C passes through, with everything measured so
    far in the record file. Raises TuningError when no trial succeeds, RecordError when the record file cannot be
    opened, WorkerStartError when nothing can be measured.
    """
    deadline = deadline or Deadline.after(options.time_limit_s)
    loading = threading.Thread(target=_load_learning, args=(options,), daemon=True)
    loading.start()  # while the workers start
    with Measurer(measure) as measurer:
        loading.join()
        return Tuner(task, options, measurer, deadline).run()


def _load_learning(options: TuningOptions) -> None:
    """Import what the first fit of a cost model would import, a second's work, if there will be one."""
    learns = getattr(strategy_maker(options.strategy), "learns", True) and options.cost_model != "random"
    if options.num_measure_trials > options.batch_size and learns:
        with contextlib.suppress(ImportError, OSError, MemoryError):  # the fit will say it, where there is one
            importlib.import_module("sklearn.ensemble")


@dataclass(frozen=True)
class _Trial:
    """A candidate that is being measured: its proposal (None: the untuned schedule), and what the model expects."""

    proposal: Proposal | None
    round: int
    predicted: float | None


class Tuner:
    """The loop for one task on a running measurer.

    `still`, of a tuner that shares its time with others, says how many more candidates may be begun.
    """

    def __init__(
        self,
        task: Tunable,
        options: TuningOptions,
        measurer: Measurer,
        deadline: Deadline | None = None,
        still: Callable[[], int] | None = None,
    ) -> None:
        self.task, self.options = task, options
        self._deadline = deadline or Deadline.after(options.time_limit_s)
        self._still = still or self._may_begin
        self.state = TuningState(task.name, options.num_measure_trials, task.flop, started_s=self._deadline.started_s)
        self.trials: list[Record] = []
        self._measurer = measurer
        self._progress = progress_of(options.progress)
        model = options.cost_model
        self._model = make_model(model, options.seed) if isinstance(model, str) else model
        self._waiting: dict[int, _Trial] = {}
        self._unsaved: list[Record] = []
        self._used_up = False
        self._unsearchable = ""
        self._kept = False
        self._default_asked = False
        self._last_winner: Record | None = None
        self._known_to_winner = 0
        self._to_recall: list[Record] = []
        self._until = options.num_measure_trials

    def run(self) -> TuningResult:
        """Search until the trials are used up, then let the best compete."""
        if self.options.records is not None:
            rec.append(self.options.records, [])  # better to fail now than after the first batch
        self.resume(self.load_records())
        self.enter()
        self._progress.start(self.state)
        if elsewhere := measured_elsewhere(self.task.target, self._measurer.device):
            self._progress.note(elsewhere)
        try:
            self._search()
            if self.state.done < self.options.num_measure_trials:
                self._note_why_it_ends()
            best = self.finish()
        except KeyboardInterrupt:
            self._progress.note(f"interrupted after {self.state.done} trials{self._where_kept()}")
            raise
        finally:
            self._save([])
            self._progress.stop()
            if self._unsaved:
                self._progress.note(f"{len(self._unsaved)} record(s) could not be saved")
        return TuningResult(best, self.state.default, self.trials, self.state)

    @cached_property
    def strategy(self) -> Strategy:
        """What proposes, which knows the trials that were taken over; making it makes the task's sketches."""
        options = self.options
        make = strategy_maker(options.strategy)
        if make is Evolution and options.cost_model == "random":
            make = partial(Evolution, settings=EvolutionSettings(estimated=0.0))
        strategy = make(self.task.spaces, seed=options.seed, note=self._progress.note)
        names = {space.name: index for index, space in enumerate(self.task.spaces)}
        for record in self._to_recall:
            self._default_asked |= record.schedule == self.task.default_schedule
            strategy.skip(record.schedule)
            _recall(strategy, record, names.get(record.sketch))
        return strategy

    def _note_why_it_ends(self) -> None:
        done, asked = self.state.done, self.options.num_measure_trials
        if self._used_up:
            self._progress.note(f"the search space is used up after {done} trials: there are no others")
        elif not self._still():
            self._progress.note(
                f"the time limit of {self._deadline.limit_s:g} s left {asked - done} of {asked} trials out"
            )

    def enter(self) -> None:
        """Make the measurer measure this task, with all that is known of it."""
        task, measurer = self.task, self._measurer
        self._keep_workload()
        measurer.use(task.measured())
        for record in self.trials:
            _remember(measurer, record)
        if self.state.best is not None:
            measurer.best_s = self.state.best.time_s

    def _keep_workload(self) -> None:
        """Write the IR beside the records, which hold no more than its hash."""
        if self._kept or self.options.records is None or not self.task.workload_hash:
            return
        self._kept = True
        try:
            write_workload(self.options.records, self.task.workload_hash, self.task.workload)
        except OSError as error:
            path = workload_file(self.options.records, self.task.workload_hash)
            self._progress.note(f"cannot write {path}: {error.strerror}; what shows the records will ask for the IR")

    def round(self, trials: int) -> int:
        """Search for `trials` more trials, or until there is a reason to end, and return how many there were."""
        before = self.state.done
        self.enter()
        self._until = before + trials
        try:
            self._search()
        finally:
            self._save([])
        return self.state.done - before

    @property
    def exhausted(self) -> bool:
        """Whether another round would measure nothing."""
        return self._used_up or self._should_stop()

    @property
    def settled(self) -> bool:
        """Whether the winner of a run-off is known, and no trial came after it or is better."""
        return self._last_winner is not None and self.state.done == self._known_to_winner

    def finish(self) -> Record:
        """Let the best compete and return the winner; TuningError if no trial succeeded, or no sketch was left."""
        if self._unsearchable:
            raise TuningError(f"{self.task.name}: {self._unsearchable}")
        if self.state.best is None:
            raise TuningError(self._all_failed())
        return self._run_off()

    def _search(self) -> None:
        overlap = self._measurer.options.overlap
        low_water = self.options.batch_size // 2 if overlap else 0
        self._submit()
        for measurement in self._measurer.results(self._keep_to_time):
            self._trial_done(measurement)
            if self._measurer.pending <= low_water:
                self._submit()
        self._waiting.clear()  # what was withdrawn

    def _may_begin(self) -> int:
        """How many more candidates the time limit allows: when it is over, one if there has been none."""
        if not self._deadline.is_within(self.run_off_s, RUN_OFF_SHARE):
            return self.options.num_measure_trials
        return 0 if self.state.done else 1

    def _keep_to_time(self) -> None:
        """Take back what there is no time for."""
        still = self._still()
        if still < len(self._waiting):
            self._measurer.withdraw(keep=still)

    def run_off_s(self) -> float:
        """Seconds that a run-off among the best so far may take, as they took when they were tried, a repeat a lap."""
        finalists = [] if self.settled or self.state.best is None else self._finalists()
        if len(finalists) < 2:
            return 0.0
        return sum(r.build_s + self.options.final_laps * r.run_s for r in finalists)

    def _submit(self) -> None:
        """Have the next batch measured, unless there is a reason to end."""
        room = self._until - self.state.done - len(self._waiting)
        count = min(self.options.batch_size, room, self._still())
        if count <= 0 or self._used_up or self._should_stop():
            return
        start_s = time.monotonic()
        self._show_phase("searching")
        strategy = self.strategy
        batch: list[Proposal | None] = []
        if not self._default_asked:
            self._default_asked = True
            strategy.skip(self.task.default_schedule)
            batch.append(None)
        self.state.begin_round()
        self._learn()
        try:
            batch += strategy.propose(self._model, count - len(batch))
        except SpaceError as error:
            self._unsearchable = str(error)
        self._used_up = len(batch) < count
        trials = [
            _Trial(p, self.state.round, e) for p, e in zip(batch, strategy.expected(self._model, batch), strict=True)
        ]
        self.state.search_s += time.monotonic() - start_s
        self._show_phase("measuring")
        schedules = [self.task.default_schedule if p is None else p.schedule for p in batch]
        self._waiting |= dict(zip(self._measurer.submit(schedules), trials, strict=True))

    def _learn(self) -> None:
        """Fit the cost model, if the strategy follows it, to what was measured."""
        if self.strategy.learns:
            features, times_s = self.strategy.training_set()
            if len(times_s):
                self._model.fit(features, relative_speed(times_s))

    def _should_stop(self) -> bool:
        state, options = self.state, self.options
        if not state.done:
            return False
        if not self._still():
            return True
        if options.early_stopping is not None and state.done - state.best_trial >= options.early_stopping:
            return True
        hopeless = min(_HOPELESS_BATCHES * options.batch_size, options.num_measure_trials)
        return state.best is None and state.done >= hopeless

    def _trial_done(self, measurement: Measurement) -> None:
        trial = self._waiting.pop(measurement.job)
        proposal = trial.proposal
        record = self._record(measurement, trial, Role.TRIAL)
        if proposal is not None:
            self.strategy.observe(proposal.space, proposal.row, record.time_s)
        self._save([record])
        self._count(record)
        if not record.ok and self.state.errors.total() == 1:
            why = f"{record.error.value}: {headline(record.message)}"
            self._progress.note(f"first failure, trial {self.state.done - 1}: {why}")
        self.state.build_s, self.state.run_s = self._measurer.building_s, self._measurer.running_s
        self._progress.update(self.state)
        for callback in self.options.callbacks:
            callback(self.state, record)

    def _record(self, measurement: Measurement, trial: _Trial | None, role: Role) -> Record:
        task, measurer = self.task, self._measurer
        proposal = None if trial is None else trial.proposal
        return Record(
            workload_key=task.workload_key,
            workload_hash=task.hash,
            target=task.target,
            sketch=DEFAULT_SKETCH if proposal is None else task.spaces[proposal.space].name,
            decisions=() if proposal is None else proposal.row,
            schedule=measurement.schedule,
            times_s=measurement.times_s,
            error=measurement.error,
            message=measurement.message,
            build_s=measurement.build_s,
            run_s=measurement.run_s,
            versions=versions_for(measurement.schedule, measurer.versions),
            device=measurer.device,
            timestamp=time.time(),
            seed=self.options.seed,
            artifact=measurement.artifact,
            stopped_early=measurement.stopped_early,
            reused=measurement.reused,
            role=role,
            round=0 if trial is None else trial.round,
            predicted=None if trial is None else trial.predicted,
            flop=task.flop,
            resources=measurement.resources,
            template=self._described(proposal),
        )

    def _described(self, proposal: Proposal | None) -> dict[str, Any]:
        """What the record of a proposal, or of the untuned schedule, says of a template."""
        if proposal is None:
            return self.task.described_default()
        space = self.task.spaces[proposal.space]
        return space.described(proposal.row) if isinstance(space, Described) else {}

    def _count(self, record: Record) -> None:
        """Take a trial, new or resumed, into the state."""
        self.trials.append(record)
        self.state.count(record, record.sketch == DEFAULT_SKETCH)

    def _save(self, new: Sequence[Record]) -> None:
        """Append to the record file; what cannot be written (disk full) is kept and tried again with the next."""
        if self.options.records is None:
            return
        self._unsaved += new
        if not self._unsaved:
            return
        try:
            rec.append(self.options.records, self._unsaved)
        except RecordError as error:
            if len(self._unsaved) == len(new):  # say it once
                self._progress.note(f"{error}; tuning goes on, and saving is tried again after each trial")
            return
        self._unsaved.clear()

    def load_records(self) -> list[Record]:
        """The records of the record file that can be replayed; none if it does not exist yet."""
        if self.options.records is None or not Path(self.options.records).is_file():
            return []
        return rec.load(self.options.records, self._measurer.versions)

    def resume(self, loaded: Sequence[Record]) -> None:
        """Take over this task's trials on this device, so that none is measured again."""
        own = rec.select(loaded, self.task.hash, self.task.target, self._measurer.device)
        best = rec.best(own) if any(record.ok for record in own) else None
        self._last_winner = best if best is not None and best.role is Role.WINNER else None
        for record in own:
            if record.role is Role.WINNER:
                self._known_to_winner = self.state.done
            if record.role is not Role.TRIAL or not self.task.tried(record):
                continue
            self._count(record)
            self._to_recall.append(record)
        self.state.resumed = self.state.done

    def _run_off(self) -> Record:
        """Time the best trials and the untuned schedule in turn, record it, and return the winner."""
        if self.settled and self._last_winner is not None:
            return self._last_winner
        finalists = self._finalists()
        if len(finalists) < 2:
            assert self.state.best is not None
            return self.state.best
        found = self._compared(finalists)
        if len(found) < len(finalists):
            assert self.state.best is not None
            self._progress.note("the time limit left none for comparing the best: the fastest trial is the result")
            return self.state.best
        results = [self._final(old, new) for old, new in zip(finalists, found, strict=True)]
        right = [record for record in results if record.ok]
        if not right:
            raise TuningError(
                f"the best schedules of {self.task.name} failed when they were measured again; the first error:\n"
                f"{results[0].message}"
            )
        winner = replace(min(right, key=lambda r: r.time_s), role=Role.WINNER)
        self._save([winner if r.schedule == winner.schedule else r for r in results])
        self.state.best = winner
        if (default := next((r for r in right if r.schedule == self.task.default_schedule), None)) is not None:
            self.state.default = default
        self._show_phase("done")
        return winner

    def _compared(self, finalists: Sequence[Record]) -> list[Measurement]:
        """The measurements of finalists, each timed in turn; of fewer repeats, or fewer finalists, where time is up."""
        measurer = self._measurer
        if self._deadline.left_s <= 0:
            return []
        self._show_phase("comparing the best")
        numbers = measurer.submit([r.schedule for r in finalists], fresh=True, laps=self.options.final_laps)
        found = {m.job: m for m in measurer.results(self._end_with_time)}
        self.state.build_s, self.state.run_s = measurer.building_s, measurer.running_s
        return [found[number] for number in numbers if number in found]

    def _end_with_time(self) -> None:
        if self._deadline.left_s <= 0:
            self._measurer.withdraw()

    def _final(self, trial: Record, measurement: Measurement) -> Record:
        """Return the run-off's record of a schedule that was tried before."""
        again = self._record(measurement, None, Role.FINAL)
        return replace(again, sketch=trial.sketch, decisions=trial.decisions, template=trial.template)

    def _finalists(self) -> list[Record]:
        """Return the best trials with distinct schedules, and the default."""
        ranked = sorted((r for r in self.trials if r.ok and not r.stopped_early), key=lambda r: r.time_s)
        chosen: dict[str, Record] = {}
        for record in ranked:
            if len(chosen) < self.options.final_candidates and record.time_s <= 1.5 * ranked[0].time_s:
                chosen.setdefault(record.schedule, record)
        if self.state.default is not None:
            chosen.setdefault(self.state.default.schedule, self.state.default)
        return list(chosen.values())

    def _show_phase(self, phase: str) -> None:
        self.state.phase = phase
        self._progress.update(self.state)

    def _where_kept(self) -> str:
        return "" if self.options.records is None else f"; they are kept in {os.fspath(self.options.records)}"

    def _all_failed(self) -> str:
        if not self.trials:
            return f"no trial of {self.task.name} was measured"
        first = self.trials[0]
        return (
            f"all {len(self.trials)} trials of {self.task.name} failed: {self.state.error_counts()}. "
            f"The first error, {first.error.value}, of sketch {first.sketch!r} with schedule\n"
            f"  {first.schedule or '(empty)'}\nis\n{first.message}"
        )


def _recall(strategy: Strategy, record: Record, space: int | None) -> None:
    """Let the search learn from a record, if its decisions still mean the same."""
    if space is None or len(record.decisions) != strategy.spaces[space].n_decisions:
        return
    row = np.array(record.decisions, dtype=np.int64)
    if strategy.means(space, row, record.schedule):
        strategy.observe(space, record.decisions, record.time_s)


def _remember(measurer: Measurer, record: Record) -> None:
    """Let the measurer reuse a record for candidates that compile to its artifact."""
    if record.error in (ErrorCode.DEVICE_LOST, ErrorCode.UNKNOWN):
        return
    known = Measurement(
        job=-1,
        schedule=record.schedule,
        error=record.error,
        message=record.message,
        times_s=record.times_s,
        artifact=record.artifact,
        stopped_early=record.stopped_early,
    )
    measurer.remember(known)


def versions_for(schedule: str, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of packages, and of those primitives that the schedule uses."""
    used = rec.primitives_of(schedule)
    return {n: v for n, v in versions.items() if not n.startswith(rec.PRIMITIVE_PREFIX) or n in used}
