"""Tuning one task: propose, measure, record, learn, again; at the end a run-off decides the winner."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from ...dialects.cached_property import cached_property
from ..cost_model import make_model, relative_speed
from ..measure.measurement import Measuring
from ..measure.measurer import Measurement, MeasureOptions, Measurer, headline
from ..measure.preflight import measured_elsewhere
from ..records import file as rec
from ..records.file import DEFAULT_SKETCH, ErrorCode, Record, Role
from ..records.match import counted_reasons
from ..sketch.space import SpaceError
from ..strategies.evolution import Evolution, EvolutionSettings
from ..strategies.make import strategy_maker
from ..strategies.strategy import Proposal, Strategy
from . import callback
from .backlog import Backlog
from .deadline import Deadline
from .displays import progress_of
from .learning import Learning
from .options import Tunable, TuningError, TuningOptions, TuningResult, TuningTask
from .progress import TuningState
from .record_keeping import RecordKeeping
from .resuming import recall, resumed_from
from .run_off import RUN_OFF_SHARE, RunOff
from .sentences import all_failed, failure_of, interrupted, none_is_new, stopped_early, time_is_over, trial_line
from .trial import Trial, measurement_of, record_of

__all__ = [
    "DEFAULT_SKETCH",
    "TaskTuner",
    "TuningError",
    "TuningOptions",
    "TuningResult",
    "TuningTask",
    "tune",
]

_HOPELESS_BATCHES = 3
"""Batches of failures and nothing else after which a search ends. A choice: limits leave few candidates that fail, so
that 48 failures in a row have one cause."""

_MOST_REFUSED = 4
"""Candidates that turned out not to be legal, for each trial asked for, after which a search ends. A choice."""


def tune(
    task: Tunable, options: TuningOptions, measure: MeasureOptions, deadline: Deadline | None = None
) -> TuningResult:
    """Tune `task` and return the result; no process outlives the call.

    The time limit counts from now, unless `deadline` began before. Ctrl-C passes through, with everything measured so
    far in the record file. Where no trial succeeds, the result says so. Raises RecordError when the record file cannot
    be opened, WorkerStartError when nothing can be measured.
    """
    return tune_what_is_made(lambda: (task, options), options, measure, deadline)


def tune_what_is_made(
    make: Callable[[], tuple[Tunable, TuningOptions]],
    options: TuningOptions,
    measure: MeasureOptions,
    deadline: Deadline | None = None,
) -> TuningResult:
    """Tune the task that `make` returns, with the options that it returns for those that were given, `options`.

    It is called while the workers start, and what it raises passes through. Making the sketches of a product takes a
    third of a second, and importing what builders need half of one, so that both at once begin 0.3 s sooner.
    """
    deadline = deadline or Deadline.after(options.time_limit_s)
    if options.records is not None:
        rec.require_writable(options.records)  # said before workers start
    measurer = Measurer(measure)
    tuners: list[TaskTuner] = []

    def meanwhile() -> None:
        task, chosen = make()
        tuners.append(TaskTuner(task, chosen, measurer, deadline))
        tuners[0].prepare(partial(measurer.begin, task.workload))

    measurer.meanwhile = meanwhile
    with measurer:
        return tuners[0].run()


class TaskTuner:
    """The loop for one task on a running measurer, which may be another one in each round.

    `still`, of a tuner that shares its time with others, says how many more candidates may be begun.
    """

    refused = 0
    """Candidates that turned out not to be legal, and are no trials."""
    stopped = False
    """True where a callback ended the search."""
    patient_from = 0
    """Trials before the first one that early stopping counts."""

    def __init__(
        self,
        task: Tunable,
        options: TuningOptions,
        measurer: Measuring,
        deadline: Deadline | None = None,
        still: Callable[[], int] | None = None,
    ) -> None:
        self.task, self.options = task, options
        self._deadline = deadline or Deadline.after(options.time_limit_s)
        self._still = still or self._may_begin
        self.state = TuningState(task.name, options.trials_after(0), task.flop, started_s=self._deadline.started_s)
        self.trials: list[Record] = []
        self.measurer = measurer
        self._progress = progress_of(options.progress)
        self._records = RecordKeeping(options.records, self._progress.note)
        kept = task.target.startswith("llvm") and measurer.options.runners is None  # kernels, by the runner here
        later_laps = 1 / measurer.options.timing.repeat if kept else 1.0
        self.run_off = RunOff(
            task,
            options,
            self.state,
            self.trials,
            self._deadline,
            self._progress,
            self._records,
            later_laps,
            lambda: self.measurer.builders,
        )
        model = options.cost_model
        self.model = make_model(model, options.seed) if isinstance(model, str) else model
        self._waiting: dict[int, Trial] = {}
        self._learning = Learning()
        self._used_up = False
        self._unsearchable = ""
        self.skips_default = False
        self.hopeless_after: float = min(_HOPELESS_BATCHES * options.batch_after(0), options.trials_after(0))
        self._to_recall: list[Record] = []
        self._until = self._asked = self.state.total

    def prepare(self, begin: Callable[[Sequence[str]], bool]) -> None:
        """Do what needs no worker while they start: choose the untuned schedule, and think of what is measured first.

        `begin` is told the schedules of candidates as they are known, for builders to begin with, and says whether
        others are wanted. Where records may speak for other candidates only the untuned one is chosen. The search meets
        again what is raised here.
        """
        records = self.options.records
        known = records is not None and os.path.exists(records) and os.path.getsize(records) > 0
        with contextlib.suppress(Exception):  # rules and spaces are others' code as well
            if known:
                self.think_ahead(0)
            else:
                self._think_first(begin)

    def _think_first(self, begin: Callable[[Sequence[str]], bool]) -> None:
        """Propose what is measured before anything is known: a batch, or as many as keep all builders at work."""
        wanted = begin([self.task.default_schedule])
        self.strategy.skip(self.task.default_schedule)
        thought: list[Proposal] = []
        backlog = self._backlog
        try:
            while len(thought) < backlog.most_unled_while(wanted) and (found := self._first(thought)):
                thought += found
                if len(thought) - len(found) <= backlog.low_water < len(thought):
                    self._begin_learning()  # builders have enough to do meanwhile
                    if self.measurer.options.overlap:
                        self.task.measured()  # makes the data that candidates are checked with
                wanted = begin([each.schedule for each in found])
        finally:
            self.strategy.put_back(thought)
        self._begin_learning()

    def _first(self, thought: Sequence[Proposal]) -> list[Proposal]:
        """Propose a batch of what is measured first, after the untuned schedule and what was thought of before."""
        start_s, begun = time.monotonic(), 1 + len(thought)
        size = self.options.batch_after(0)
        found = self.propose(max(0, min(size - begun % size, self._room() - begun)))
        self.state.search_s += time.monotonic() - start_s
        return found

    def run(self) -> TuningResult:
        """Search until the trials are used up, then let the best compete."""
        self._records.open()
        self.resume(self._records.load(self.measurer.versions))
        self._begin_from(self.state.resumed)
        self.enter()
        self._progress.start(self.state)
        if elsewhere := measured_elsewhere(self.task.target, self.measurer.device):
            self._progress.note(elsewhere)
        try:
            self._note_what_is_known()
            self._search()
            if self.state.done < self.state.total:
                self._note_why_it_ends()
            winner = self.finish()
        except KeyboardInterrupt:
            self._progress.note(interrupted(self.state.done, self._records.place))
            raise
        finally:
            self._records.save()
            self._progress.stop()
            self._records.note_what_is_lost()
            callback.end(self.options.callbacks)
        return self.result(winner)

    def _begin_from(self, known: int) -> None:
        """Count the trials that are asked for from those that are known."""
        self.state.total = self._until = self.options.trials_after(known)
        self._asked = self._until - known
        if self.options.more_trials is not None:  # new ones, whatever came before
            self.patient_from = known
            self.hopeless_after += known

    def result(self, winner: Record | None) -> TuningResult:
        """The result of a search with this winner."""
        failure = "" if winner is not None else self.failure
        return TuningResult(winner, self.state.default, self.trials, self.state, failure)

    @cached_property
    def strategy(self) -> Strategy:
        """The search strategy, which knows the trials that were taken over; making it makes the task's sketches."""
        options = self.options
        make = strategy_maker(options.strategy)
        if make is Evolution and options.cost_model == "random":
            make = partial(Evolution, settings=EvolutionSettings(estimated=0.0))
        strategy = make(self.task.spaces, seed=options.seed, note=self._progress.note)
        if self.task.default_candidate is not None:
            strategy.begin_from(*self.task.default_candidate)
        for record in self._to_recall:
            self._recall(strategy, record)
        return strategy

    def _recall(self, strategy: Strategy, record: Record) -> None:
        self.skips_default |= record.schedule == self.task.default_schedule
        recall(strategy, self.task, record)

    def _note_what_is_known(self) -> None:
        """Say that nothing is left to do where the records hold all trials that were asked for."""
        known, asked = self.state.resumed, self.state.total
        if known >= asked:
            self._progress.note(f"{self.state.task}: {none_is_new(asked, known, self.options)}")

    def _note_why_it_ends(self) -> None:
        state = self.state
        if self._unsearchable and state.best is not None:
            self._progress.note(self._unsearchable)
        elif self._used_up:
            self._progress.note(f"the search space is used up after {state.done} trials: there are no others")
        elif not self._still():
            self._progress.note(time_is_over(state, self._deadline))
        elif self._patience() <= 0:
            self._progress.note(stopped_early(state))

    def enter(self) -> None:
        """Make the measurer measure this task, with all that is known of it."""
        task, measurer = self.task, self.measurer
        self._records.keep_workload(task.workload_hash, lambda: task.workload)
        measurer.use(task.measured())
        for record in self.trials:
            if record.error not in (ErrorCode.DEVICE_LOST, ErrorCode.UNKNOWN):
                measurer.remember(measurement_of(record))
        if self.state.best is not None:
            measurer.best_s = self.state.best.time_s

    def round(self, trials: int, meanwhile: Callable[[], None] | None = None) -> int:
        """Search for `trials` more trials, or until there is a reason to end, and return how many there were.

        `meanwhile` is called once, where builds and runs overlap: when the last candidates are under way.
        """
        before = self.state.done
        self.enter()
        self._until, self._asked = before + trials, trials
        try:
            self._search(meanwhile if self.measurer.options.overlap else None)
        finally:
            self._records.save()
        return self.state.done - before

    @property
    def begins_alone(self) -> bool:
        """True where the first round is the untuned schedule alone, which others are then bred from."""
        alone = not self.measurer.options.overlap and self.task.default_candidate is not None
        return alone and not self.trials

    def think_ahead(self, count: int) -> None:
        """Propose the first `count` candidates of the next round, while a round of another task ends."""
        if self.exhausted or self.strategy.put_aside:
            return
        start_s = time.monotonic()
        if not self.skips_default:
            self.strategy.skip(self.task.default_schedule)
        with contextlib.suppress(SpaceError):  # the round will say it
            self.strategy.put_back(self.propose(count))
        self.state.search_s += time.monotonic() - start_s

    @property
    def exhausted(self) -> bool:
        """True where another round would measure nothing."""
        return self._used_up or self._should_stop()

    def finish(self) -> Record | None:
        """Let the best compete and return the winner; None, and a note of it, if no trial succeeded."""
        if self.state.best is None:
            self._progress.note(headline(self.failure))
            return None
        return self.run_off.winner(self.state.best, self.measurer)

    @property
    def failure(self) -> str:
        """The reason why there is no result: no sketch that could be searched, or the first error whole."""
        if self._unsearchable:
            return f"{self.task.name}: {self._unsearchable}"
        return all_failed(self.task, self.state, self.trials)

    def _search(self, meanwhile: Callable[[], None] | None = None) -> None:
        try:
            self._keep_ahead()
            for measurement in self.measurer.results(self._keep_to_time):
                self._trial_done(measurement)
                self._keep_ahead()
                if meanwhile is not None and self._may_propose() <= 0:
                    meanwhile()
                    meanwhile = None
        finally:
            self._put_back()

    def _keep_ahead(self) -> None:
        """Have a batch more measured where too little is under way."""
        while self._backlog.is_low and self._submit():
            pass

    @property
    def _backlog(self) -> Backlog:
        return Backlog(self.measurer, self.options, self.trials, self._asked)

    def _put_back(self) -> None:
        """Let what was proposed and not measured be proposed again: it was withdrawn, or measuring was interrupted."""
        left = [trial.proposal for trial in self._waiting.values()]
        self._waiting.clear()
        if None in left:
            self.skips_default = False
        if left:
            self._used_up = False
            self.strategy.put_back([proposal for proposal in left if proposal is not None])

    def _may_begin(self) -> int:
        """Count the candidates that the time limit still allows: when it is over, one if there has been none."""
        if not self._deadline.is_within(lambda: self.run_off.expected_s, RUN_OFF_SHARE):
            return self.state.total
        return 0 if self.state.done else 1

    def _keep_to_time(self) -> None:
        """Take back what there is no time for."""
        still = self._still()
        if still < len(self._waiting):
            self.measurer.withdraw(keep=still)

    def _submit(self) -> bool:
        """Have the next batch measured, unless there is a reason to end; True where there was a batch."""
        count = self._may_propose()
        if count <= 0:
            return False
        is_last = count == self._room() - len(self._waiting)
        start_s = time.monotonic()
        self._show_phase("searching")
        self.state.begin_round()
        strategy = self.strategy  # making it recalls what is known, the untuned schedule perhaps
        untuned = [] if self.skips_default else [None]
        if untuned:  # it is compiled while the others are thought of
            self.skips_default = True
            strategy.skip(self.task.default_schedule)
            self._measure(untuned)
        proposals: list[Proposal] = []
        try:
            proposals = self.propose(count - len(untuned))
        except SpaceError as error:
            self._unsearchable = str(error)
        self._used_up = len(untuned) + len(proposals) < count
        self._measure(self.strategy.longest_first(proposals) if is_last else proposals)
        self.state.search_s += time.monotonic() - start_s
        self._show_phase("measuring")
        return bool(untuned or proposals)

    def _measure(self, batch: Sequence[Proposal | None]) -> None:
        """Have candidates measured; None is the untuned schedule."""
        expected = self.strategy.expected(self.model, batch)
        trials = [Trial(proposal, self.state.round, speed) for proposal, speed in zip(batch, expected, strict=True)]
        schedules = [self.task.default_schedule if proposal is None else proposal.schedule for proposal in batch]
        self._waiting |= dict(zip(self.measurer.submit(schedules), trials, strict=True))
        self._begin_learning()

    def _begin_learning(self) -> None:
        """Begin to import what a fit needs: after the first candidates, which builders must not wait for."""
        if self.options.refits:
            self._learning.begin()

    def _may_propose(self) -> int:
        """Count the candidates that the next batch may have; none or fewer where there is a reason to end the round."""
        if self._used_up or self._should_stop():
            return 0
        return min(self.options.batch_after(self.state.done), self._room() - len(self._waiting))

    def _room(self) -> int:
        """Count the candidates that the round may still have, those that are under way among them."""
        return int(min(self._until - self.state.done, self._patience(), self._still()))

    def propose(self, count: int) -> list[Proposal]:
        """Return up to `count` candidates to measure next, by a cost model fitted to all that was measured."""
        if self.strategy.learns and self.strategy.put_aside < count and not self._does_without():
            features, times_s = self.strategy.training_set()
            if len(times_s):
                self._learning.wait()
                self.model.fit(features, relative_speed(times_s))
        return self.strategy.propose(self.model, count)

    def _does_without(self) -> bool:
        """True while what a fit needs is still imported, where the model knows something and builders would wait."""
        return self._learning.is_loading and self.model.ready and self.measurer.options.overlap

    def waits_for(self, job: int) -> Proposal | None:
        """The proposal that is measured as a job; None for the untuned schedule."""
        return self._waiting[job].proposal

    @property
    def trials_since_best(self) -> int:
        """Trials since the best one, of those that early stopping counts."""
        return self.state.done - max(self.state.best_trial, self.patient_from)

    def _patience(self) -> float:
        """Count the trials that may follow if none is better; infinite where that is no reason to stop."""
        patience = self.options.early_stopping
        return math.inf if patience is None else patience - self.trials_since_best

    def _should_stop(self) -> bool:
        state = self.state
        if self.stopped or self.refused >= _MOST_REFUSED * state.total:
            return True
        if not state.done:
            return False
        if not self._still() or self._patience() <= 0:
            return True
        return state.best is None and state.done >= self.hopeless_after

    def _trial_done(self, measurement: Measurement) -> None:
        trial = self._waiting.pop(measurement.job)
        proposal = trial.proposal
        record = record_of(self.task, trial, measurement, self.measurer, self.options, Role.TRIAL)
        if proposal is not None:
            self.strategy.observe(proposal.space, proposal.row, record.time_s)
        elif self.task.default_candidate is not None:
            self.strategy.observe(*self.task.default_candidate, record.time_s)
        if self.task.passes_over(record):
            self.refused += 1
            return
        self._records.save([record])
        self._count(record)
        if self.options.verbose:
            self._progress.note(trial_line(self.state, record))
        if not record.ok and self.state.errors.total() == 1:
            self._progress.note(f"first failure, trial {self.state.done}: {failure_of(record)}")
        self.state.build_s, self.state.run_s = self.measurer.building_s, self.measurer.running_s
        self._progress.update(self.state)
        if callback.tell(self.options.callbacks, self.state, record):
            self.stopped = True
            self.measurer.withdraw()

    def _count(self, record: Record) -> None:
        """Take a trial, new or resumed, into the state."""
        self.trials.append(record)
        self.state.count(record, record.sketch == DEFAULT_SKETCH)

    def resume(self, loaded: Sequence[Record]) -> None:
        """Take over this task's trials on this device, so that none is measured again; say which are left out."""
        resumed = resumed_from(loaded, self.task, self.measurer.device)
        if resumed.left_out:
            why = counted_reasons(resumed.left_out)
            self._progress.note(f"records of {self.task.name} that are not gone on with: {why}")
        self.run_off.last_winner, self.run_off.known_to_winner = resumed.last_winner, resumed.known_to_winner
        for record in resumed.trials:
            self.take_over(record)
        self.state.resumed = self.state.begun_at = self.state.done

    def take_over(self, record: Record) -> None:
        """Count a trial from before, and learn from it."""
        self._count(record)
        if "strategy" in self.__dict__:
            self._recall(self.strategy, record)
        else:
            self._to_recall.append(record)

    def _show_phase(self, phase: str) -> None:
        self.state.phase = phase
        self._progress.update(self.state)
