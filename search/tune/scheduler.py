"""The task scheduler: tunes the tasks of a network in turn, each round the one that promises most for the whole."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ...backends.host_memory import NotEnoughMemory
from ...dialects.classic_words import knows_classic_words
from ...dialects.markup import as_text, notebook
from ...dialects.te import ComputeOp
from ..cost_model import CostModel, make_model
from ..cost_model.shared import SharedModel
from ..measure.local import LocalBuilder, Measure, Runner, measuring
from ..measure.measurer import MeasureError, MeasureOptions, Measurer, headline
from ..measure.preflight import measured_elsewhere
from ..records import file as rec
from ..records.file import Record
from ..records.network_files import TunedNetwork, WeightedTask, write_network
from ..report.notebook import task_table
from ..task import SearchTask
from ..task_in_search import in_search
from ..template.in_search import TemplateInSearch
from ..template.task import TemplateTask
from . import callback
from .callback import Callback
from .deadline import Clock, Deadline
from .display import Silent
from .displays import make_network_progress
from .kept_data import KeptData
from .loop import TaskTuner, TuningOptions, TuningTask
from .options import Tunable, as_options
from .progress import counted
from .run_off import RUN_OFF_SHARE
from .sentences import interrupted, none_is_new
from .state import SchedulerState, TaskRow, ways_of, weighted_sum
from .table import SchedulerProgress
from .task_strategy import Objective, TaskHistory, TaskStrategy, far_behind, make_strategy

SchedulableTask = SearchTask | TemplateTask | TuningTask

_GROUP_BASE = 1.618
"""Tasks of one group differ in their operations by up to about this factor (as in Ansor)."""

_SHOWN = 3
"""Tasks that a sentence names."""


@dataclass(frozen=True, repr=False)
class NetworkResult:
    """The winners by task (None: no trial of it was right), the objective in seconds, and the last state.

    Where no task has a winner, `failure` says why, so that a loop over many networks goes on.
    """

    best: Sequence[Record | None]
    latency_s: float
    state: SchedulerState
    failure: str = ""

    def __str__(self) -> str:
        """A line: the total, of how many tasks there is a schedule, or why there is none, the trials."""
        if self.failure:
            return headline(self.failure)
        found = sum(best is not None for best in self.best)
        total = f"{self.latency_s * 1e3:.4g} ms in all" if math.isfinite(self.latency_s) else "no total"
        return (
            f"{total}, schedules for {found} of {counted(len(self.best), 'task')}, {counted(self.state.done, 'trial')}"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        """The table of tasks, for a notebook."""
        return notebook(f"<p>{as_text(str(self))}</p>{task_table(self.state)}")


class TaskScheduler:
    """Divides measurement trials among the tasks of a network.

    `weights` say how often each task appears (default: once each); the objective is the sum of weight times latency, or
    `objective(latencies_s)`. Of tasks that compute the same in several ways (`SearchTask.instead_of`) it counts the
    fastest. `strategy` is `gradient`, `round-robin`, or a TaskStrategy with other constants. Tasks with
    the same entry in `groups` are expected to reach similar speeds; without `groups`, these are tasks of the same
    computation and about as many operations. Trials in the file `load_records` count as done, and new ones go there
    too, unless TuningOptions names another file. With `share_model`, all tasks teach one cost model. `callbacks` are
    those of TuningOptions, but see the state of the network, whose tuning ends when one returns True.
    """

    @knows_classic_words
    def __init__(
        self,
        tasks: Sequence[SchedulableTask],
        weights: Sequence[float] | None = None,
        load_records: str | os.PathLike[str] | None = None,
        *,
        strategy: str | TaskStrategy = "gradient",
        objective: Objective | None = None,
        groups: Sequence[str | None] | None = None,
        share_model: bool = False,
        callbacks: Sequence[Callback[SchedulerState]] = (),
    ) -> None:
        if not isinstance(tasks, Sequence) or not all(hasattr(task, "workload_key") for task in tasks):
            raise TypeError(f"tasks are a list of tasks, as lw.extract_tasks gives, got {tasks!r:.60}")
        if not tasks:
            raise ValueError("there is no task to tune")
        for name, values in (("weights", weights), ("groups", groups)):
            if values is not None and len(values) != len(tasks):
                raise ValueError(f"{name} must have one entry for each of the {len(tasks)} tasks, got {len(values)}")
        self.tasks = list(tasks)
        self.weights = [1.0] * len(tasks) if weights is None else [float(w) for w in weights]
        if any(w < 0 for w in self.weights):
            raise ValueError(f"weights must not be negative, got {min(self.weights)}")
        targets = sorted({str(task.target) for task in tasks})
        if len(targets) > 1:
            raise ValueError(f"all tasks must be for one target, got {' and '.join(targets)}")
        self.load_records = load_records
        self.strategy = make_strategy(strategy) if isinstance(strategy, str) else strategy
        self.ways = ways_of([*map(_hashes, self.tasks)])
        self.objective = objective or weighted_sum(self.weights, self.ways)
        self.groups = [_group(task) for task in tasks] if groups is None else list(groups)
        self.share_model = share_model
        self.callbacks = tuple(callbacks)

    @knows_classic_words
    def tune(
        self,
        options: TuningOptions | int | None = None,
        measure: Measure = None,
        *,
        builder: LocalBuilder | None = None,
        runner: Runner | None = None,
        trials_per_round: int | None = None,
        early_stopping_task: int | None = None,
        progress: SchedulerProgress | None = None,
        clock: Clock = time.monotonic,
    ) -> NetworkResult:
        """Tune all tasks, then let the best schedules of each compete.

        `options.num_measure_trials` is for all tasks together, resumed trials included, and at least one a task;
        `options.early_stopping` ends tuning after so many trials that did not lower the objective,
        `early_stopping_task` a task after so many that did not lower its latency. `options.time_limit_s` counts from
        the call, on `clock`: a task's sketches and data are made when it is first measured, and up to a fifth of the
        time is kept for run-offs, those of the largest shares of the whole first. `measure`, `builder` and `runner` are
        those of `lw.SearchTask.tune`. Ctrl-C passes through with
        everything measured in the records; the same call goes on from there. Where no trial of any task succeeds, the
        result says so. Raises as `lw.SearchTask.tune` does.
        """
        options = as_options(64 * len(self.tasks) if options is None else options)
        deadline = Deadline.after(options.time_limit_s, clock)
        count = options.trials_after(0)
        if count < len(self.tasks) and options.more_trials is None:
            raise ValueError(f"num_measure_trials must be at least the number of tasks, {len(self.tasks)}, got {count}")
        if not isinstance(measure, MeasureOptions) or builder or runner:
            measure = measuring(measure, _measure_options(self.tasks[0]), builder, runner)
        shown = progress or (make_network_progress() if options.progress is True else Silent())
        with Measurer(measure) as measurer:
            batches = 1 + measurer.devices if measure.overlap else 1  # the next is thought of while the others run
            most = min(trials_per_round or batches * options.batch_after(0), max(1, count // len(self.tasks)))
            return _Run(self, options, measurer, most, early_stopping_task, shown, deadline).run()


class _Run:
    """One call of `tune`."""

    def __init__(
        self,
        scheduler: TaskScheduler,
        options: TuningOptions,
        measurer: Measurer,
        trials_per_round: int,
        early_stopping_task: int | None,
        progress: SchedulerProgress,
        deadline: Deadline,
    ) -> None:
        self.scheduler, self.options, self.measurer = scheduler, options, measurer
        self.deadline, self.kept = deadline, KeptData()
        self.trials_per_round, self.progress = trials_per_round, progress
        self.records = scheduler.load_records if options.records is None else options.records
        common = replace(
            options,
            records=self.records,
            early_stopping=early_stopping_task,
            time_limit_s=None,
            callbacks=(self._trial_done, *options.callbacks),
        )
        models = self._models()
        self.tuners = [
            # Seeds differ, so that tasks that are alike are not unlucky alike.
            TaskTuner(
                _tunable(task, model),
                replace(
                    common,
                    cost_model=model,
                    seed=options.seed + number,
                    progress=_TaskNotes(self.progress, number, task.name),
                ),
                measurer,
                deadline,
                self._may_begin,
            )
            for number, (task, model) in enumerate(zip(scheduler.tasks, models, strict=True))
        ]
        rows = [
            TaskRow(number, weight, tuner.state, TaskHistory(tuner.task.flop, group), _hashes(task)[1] is not None)
            for number, (task, weight, tuner, group) in enumerate(
                zip(scheduler.tasks, scheduler.weights, self.tuners, scheduler.groups, strict=True)
            )
        ]
        started_s = deadline.started_s
        trials = options.trials_after(0)
        self.state = SchedulerState(rows, trials, scheduler.objective, scheduler.ways, started_s=started_s)
        self.stopped = False

    def run(self) -> NetworkResult:
        if self.records is not None:
            rec.append(self.records, [])  # better to fail now than after the first round
            self._keep_weights(self.records)
        self._resume()
        self.progress.start(self.state)
        if elsewhere := measured_elsewhere(self.tuners[0].task.target, self.measurer.device):
            self.progress.note(elsewhere)
        try:
            with self._notes_interruption():
                self._search()
                best = self._finish()
        finally:
            self.kept.forget()
            self.progress.stop(self.state)
            callback.end((*self.options.callbacks, *self.scheduler.callbacks))
        return NetworkResult(best, self.state.latency_s, self.state, "" if any(best) else self._all_failed())

    def _keep_weights(self, records: str | os.PathLike[str]) -> None:
        """Write the weights beside the records, for reports on the network."""
        tasks = zip(self.tuners, self.scheduler.weights, self.scheduler.tasks, strict=True)
        kept = tuple(WeightedTask(t.task.name, t.task.hash, weight, _hashes(task)[1]) for t, weight, task in tasks)
        try:
            write_network(records, TunedNetwork(self.tuners[0].task.target, kept))
        except OSError as error:
            self.progress.note(f"cannot write the weights beside {os.fspath(records)}: {error.strerror}")

    def _search(self) -> None:
        state = self.state
        while (chosen := self._next()) is not None:
            state.phase = f"tuning task {chosen}"
            self.progress.trial(state)
            tuner = self.tuners[chosen]
            done = self._round(chosen)
            history = state.rows[chosen].history
            history.latencies_s.append(state.rows[chosen].latency_s)
            history.alive = done > 0 and not tuner.exhausted
            self._leave_slow_ways()
            state.next_task = self._choose()
            self.progress.round(state, chosen)

    def _round(self, number: int) -> int:
        """Search one task for a round; returns the trials, none where its data does not fit into memory."""
        state, tuner = self.state, self.tuners[number]
        try:
            most = min(self._most_of_round(tuner), state.total - state.done)
            done = tuner.round(most, partial(self._think_ahead, number))
        except NotEnoughMemory as error:
            self.progress.note(f"task {number} {tuner.task.name} is left out: {error}")
            return 0
        self._keep_data(number)
        return done

    def _most_of_round(self, tuner: TaskTuner) -> int:
        """Trials of a task's next round, at most.

        Where time is limited, a task's first round is what builders make at once: of 58 tasks (EfficientNet-B0 on an
        H200, six builders) twelve had their first one in 21 s with 32 trials each, in the order of the network, and the
        others none, whatever their share of the whole.
        """
        if tuner.begins_alone:
            return 1
        if tuner.trials or self.deadline.limit_s is None:
            return self.trials_per_round
        return min(self.trials_per_round, self.measurer.builders or self.trials_per_round)

    def _leave_slow_ways(self) -> None:
        for number in far_behind([row.history for row in self.state.rows], self.state.ways):
            self.state.rows[number].history.alive = False

    def _think_ahead(self, number: int) -> None:
        """Have the task that is likely the next one propose its first candidates, while the round of another ends.

        What that round finds may speak for a third task: then they wait for a round of their own.
        """
        others = [replace(row.history, alive=row.history.alive and row.number != number) for row in self.state.rows]
        following = self.scheduler.strategy.choose(others, self.state.objective)
        if following is not None and self._may_begin():
            tuner = self.tuners[following]
            tuner.think_ahead(min(self.options.batch_after(0), self._most_of_round(tuner)))

    def _keep_data(self, number: int) -> None:
        task = self.scheduler.tasks[number]
        if isinstance(task, SearchTask | TemplateTask):
            self.kept.used(task)

    def _may_begin(self) -> int:
        """Count the candidates of any task that the time limit and early stopping allow; one if there has been none."""
        if not self.deadline.is_within(self._run_offs_s, RUN_OFF_SHARE):
            return min(self.state.total, self._patience())
        return 0 if self.state.done else 1

    def _patience(self) -> int:
        """Count the trials that may follow if none lowers the objective."""
        patience = self.options.early_stopping
        if patience is None or not math.isfinite(self.state.best_s):
            return self.state.total
        return max(0, patience - self.state.trials_since_best)

    def _run_offs_s(self) -> float:
        return sum(tuner.run_off.expected_s for tuner in self.tuners)

    def _next(self) -> int | None:
        self.state.next_task = self._choose()
        return self.state.next_task

    def _choose(self) -> int | None:
        """Return the task to tune next, or None when there is a reason to end."""
        state = self.state
        if self.stopped or state.done >= state.total or not self._may_begin():
            return None
        return self.scheduler.strategy.choose([row.history for row in state.rows], state.objective)

    def _finish(self) -> list[Record | None]:
        """Return each task's winner, of a run-off where there was a trial since the last one, and time for it."""
        state = self.state
        state.next_task = None
        self._note_what_is_left_out()
        best: list[Record | None] = [None] * len(self.tuners)
        shares = [weight * row.latency_s for weight, row in zip(self.scheduler.weights, state.rows, strict=True)]
        for number in sorted(range(len(best)), key=lambda n: -shares[n] if math.isfinite(shares[n]) else 0.0):
            state.phase = f"comparing the best of task {number}"
            self.progress.trial(state)
            best[number] = self._winner(state.rows[number], self.tuners[number])
        state.phase = "done"
        return best

    def _all_failed(self) -> str:
        first = next((tuner for tuner in self.tuners if tuner.trials), self.tuners[0]).failure
        return first if len(self.tuners) == 1 else f"none of {len(self.tuners)} tasks has a schedule; {first}"

    def _note_what_is_left_out(self) -> None:
        """Say which tasks there was no time for."""
        untried = [f"{row.number} {row.tuning.task}" for row in self.state.rows if not row.tuning.done]
        if untried and not self._may_begin():
            shown = ", ".join(untried[:_SHOWN]) + (", ..." if len(untried) > _SHOWN else "")
            counted = f"{len(untried)} of {len(self.tuners)} tasks"
            self.progress.note(f"the time limit of {self.deadline.limit_s:g} s left {counted} untried: task {shown}")

    def _winner(self, row: TaskRow, tuner: TaskTuner) -> Record | None:
        if tuner.state.best is None:
            if tuner.trials or self._may_begin():
                reason = tuner.state.error_counts() if tuner.trials else "not tried"
                self.progress.note(f"task {row.number} {row.tuning.task} has no schedule that was right: {reason}")
            return None
        if self.deadline.left_s <= 0:
            return tuner.state.best
        try:
            if not tuner.run_off.settled:
                tuner.enter()
                self._keep_data(row.number)
        except (MeasureError, NotEnoughMemory) as error:
            name = f"task {row.number} {row.tuning.task}"
            self.progress.note(f"{name}: the best were not compared, the fastest trial is the result: {error}")
            return tuner.state.best
        tuner.state.best = tuner.finish()
        return tuner.state.best

    def _resume(self) -> None:
        """Take over what the record files hold, and the rounds that this would have been."""
        loaded = self._loaded()
        for row, tuner in zip(self.state.rows, self.tuners, strict=True):
            tuner.resume(loaded)
            best_s = math.inf
            for number, trial in enumerate(tuner.trials, start=1):
                best_s = min(best_s, trial.time_s)
                if number % self.trials_per_round == 0 or number == len(tuner.trials):
                    row.history.latencies_s.append(best_s)
            row.history.alive = not tuner.exhausted
        if self.state.resumed:
            self.state.best_s, self.state.best_trial = self.state.latency_s, self.state.done
        self.state.total = self.options.trials_after(self.state.resumed)
        if self.state.resumed >= self.state.total:
            self.progress.note(none_is_new(self.state.total, self.state.resumed, self.options))

    def _loaded(self) -> list[Record]:
        paths = {os.fspath(p) for p in (self.scheduler.load_records, self.records) if p is not None}
        found = [rec.load(path, self.measurer.versions) for path in sorted(paths) if os.path.isfile(path)]
        return rec.merge(found) if len(found) > 1 else [record for records in found for record in records]

    def _models(self) -> list[str | CostModel]:
        wanted, count = self.options.cost_model, len(self.scheduler.tasks)
        if not self.scheduler.share_model and isinstance(wanted, str):
            return [_begun(task, self.options) for task in self.scheduler.tasks]
        model = make_model(wanted, self.options.seed) if isinstance(wanted, str) else wanted
        shared = SharedModel(model)
        return [shared.view(number) for number in range(count)]

    def _trial_done(self, _: object, record: Record) -> bool:
        state = self.state
        state.build_s, state.run_s = self.measurer.building_s, self.measurer.running_s
        if state.latency_s < state.best_s:
            state.best_s, state.best_trial = state.latency_s, state.done
        self.progress.trial(state)
        self.stopped |= callback.tell(self.scheduler.callbacks, state, record)
        return self.stopped

    @contextmanager
    def _notes_interruption(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.progress.note(interrupted(self.state.done, self.records))
            raise


class _TaskNotes(Silent):
    """Display of the tuner of one task, in that of all."""

    def __init__(self, shown: SchedulerProgress, number: int, name: str) -> None:
        self._shown, self._task = shown, f"task {number} {name}"

    def note(self, text: str) -> None:
        """Say it of the task."""
        self._shown.note(f"{self._task}: {text}")


def _begun(task: SchedulableTask, options: TuningOptions) -> str | CostModel:
    """Return the cost model of a task alone: it starts from the one that ships for its kind of target, if one does."""
    asked = task.search_task if isinstance(task, TemplateTask) else task
    return asked.grounded(options).cost_model if isinstance(asked, SearchTask) else options.cost_model


def _tunable(task: SchedulableTask, model: str | CostModel) -> Tunable:
    if isinstance(task, TemplateTask):
        return TemplateInSearch(task)
    return task if isinstance(task, TuningTask) else in_search(task, model)


def _measure_options(task: SchedulableTask) -> MeasureOptions:
    if isinstance(task, TuningTask):
        raise ValueError(f"task {task.name} does not say how it is measured: pass MeasureOptions")
    return task.measure_options()


def _hashes(task: SchedulableTask) -> tuple[str | None, str | None]:
    """The hash of a task's workload, and that of the workload that it stands for."""
    return (None, None) if isinstance(task, TuningTask) else (task.compute_dag.hash, task.instead_of)


def _group(task: SchedulableTask) -> str | None:
    """Return what tasks of the same computation and about as many operations have in common."""
    if isinstance(task, TuningTask):
        return None
    stages = ",".join(op.label.data for op in task.compute_dag.func.body.block.ops if isinstance(op, ComputeOp))
    return f"{stages}:{int(math.log(task.flops + 1, _GROUP_BASE))}" if task.flops else None
