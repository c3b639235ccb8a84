"""The classic tuners' interface to the loop that all tuning goes through."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...dialects.classic_words import knows_classic_words
from ...dialects.counts import require_count
from ..cost_model import CostModel, make_model
from ..measure.local import measuring
from ..measure.measurement import Measuring, headline
from ..measure.measurer import Measurer, MeasureTask
from ..records import file as rec
from ..records.file import Record, Role
from ..records.index import SKETCH_PREFIX
from ..sketch.space import Space
from ..strategies.order import in_random_order
from ..strategies.random_search import RandomSearch
from ..strategies.strategy import Note, Proposal, Strategy, StrategyMaker
from ..template.config import Config
from ..template.in_search import TemplateInSearch, TemplateSpace
from ..template.space import Rows
from ..template.task import TemplateTask
from ..tune import callback
from ..tune.loop import TaskTuner, TuningOptions, TuningResult
from ..tune.progress import TuningState
from .classic import AnyCallback, as_callback
from .simulated import SimulatedMeasurer

LOGGER = logging.getLogger("loopwright.tuners")
"""Shows each trial at level DEBUG, and a search without a valid trial at level WARNING."""

Where = str | os.PathLike[str] | Iterable[Record]


class Tuner:
    """Tunes a template task; each config is proposed once, and none that is not legal or breaks a limit of the target.

    A tuner is a strategy and a cost model for the loop of `TemplateTask.tune`, without its run-off and its untuned
    schedule. One of one's own overrides `propose`.
    """

    batch_size = 16
    """Configs proposed at a time."""

    def __init__(self, task: TemplateTask, seed: int = 0) -> None:
        if not hasattr(task, "config_space"):
            raise TypeError(f"a tuner searches a lw.TemplateTask, got {type(task).__name__}")
        self.task = task
        self.seed = seed
        self.space = task.config_space
        self.rng = np.random.default_rng(seed)
        self._option: Any = None

    # -- what a tuner is ----------------------------------------------------------------------------------------------

    def _strategy(self) -> StrategyMaker:
        """The factory of its strategy."""
        return RandomSearch

    def _model(self) -> CostModel:
        """The cost model, where the strategy follows one."""
        return make_model("random")

    def _space(self) -> TemplateSpace:
        """The space of configs, with the features that the cost model sees."""
        return TemplateSpace(self.task)

    def propose(self, count: int) -> list[int]:
        """Up to `count` distinct legal indices that are not in `visited`; fewer where the space is used up."""
        loop = self._loop
        asking = loop.strategy
        found = asking.usual.propose(loop.model, count) if isinstance(asking, _Asking) else loop.propose(count)
        return self._indices([proposal.row for proposal in found])

    def update(self, rows: Rows, times_s: npt.NDArray[np.float64]) -> None:
        """Learn from measured rows `(n, d)` and their seconds `(n,)`, infinite for failures: for one of one's own."""

    def draw(self, count: int) -> list[int]:
        """Up to `count` random distinct legal indices that are not in `visited`."""
        known = self.visited
        rows = in_random_order(self._loop.strategy.spaces[0], self.rng)
        return [*islice((index for row in rows if (index := self._indices([row])[0]) not in known), count)]

    def load_history(self, records: Where) -> int:
        """Learn from records of other tasks of the same template; returns how many are of use. Some tuners cannot."""
        return 0

    # -- how far it has come ------------------------------------------------------------------------------------------

    @cached_property
    def _loop(self) -> TaskTuner:
        own = type(self).propose is not Tuner.propose
        options = TuningOptions(
            strategy=partial(_Asking, self) if own else self._strategy(),
            cost_model=self._model(),
            seed=self.seed,
            progress=False,
        )
        measurer = Measurer(self.task.measure_options())
        loop = TaskTuner(_Searched(self.task, tuner=self), options, measurer, still=lambda: self.state.total)
        loop.skips_default, loop.hopeless_after = True, float("inf")
        return loop

    @property
    def state(self) -> TuningState:
        """Progress of tuning."""
        return self._loop.state

    @property
    def trials(self) -> list[Record]:
        """The trials so far, resumed ones included."""
        return self._loop.trials

    @property
    def visited(self) -> set[int]:
        """The indices of the configs that were measured, or found not to be legal."""
        return set(self._indices(self._loop.strategy.measured))

    @property
    def refused(self) -> int:
        """Configs that were proposed and turned out not to be legal; they are no trials."""
        return self._loop.refused

    @property
    def best(self) -> Record | None:
        """The fastest trial so far."""
        return self.state.best

    @property
    def best_config(self) -> Any:
        """The config of the fastest trial so far, or None."""
        return None if self.best is None else self.task.config(self.best.decisions)

    def _indices(self, rows: Sequence[Sequence[int]]) -> list[int]:
        found: list[int] = self.space.indices(
            np.array(rows, dtype=np.int64).reshape(len(rows), self.space.n_decisions)
        ).tolist()
        return found

    # -- tuning -------------------------------------------------------------------------------------------------------

    @knows_classic_words
    def tune(
        self,
        n_trial: int,
        measure_option: Any = None,
        early_stopping: int | None = None,
        callbacks: Sequence[AnyCallback] = (),
    ) -> TuningResult:
        """Measure up to `n_trial` configs more; returns the best and all trials.

        `measure_option` is what `measure_option()` returns, a MeasureOptions, None for the usual one of the target, or
        a function from the task and configs to seconds. `early_stopping` ends after so many trials without a better
        one. `callbacks` are those of TuningOptions, or take `(tuner, inputs, results)` as classic ones do. Ctrl-C
        passes through, and what was measured stays in `trials`. Where no trial was valid, the result says so, and a
        warning of the log.
        """
        require_count("n_trial", n_trial)
        if early_stopping is not None:
            require_count("early_stopping", early_stopping)
        loop, state = self._loop, self.state
        count = min(n_trial, self.space.size)
        state.total, loop.patient_from, loop.stopped = state.done + count, state.done, False
        state.begun_at = state.done
        told = tuple(as_callback(each, self, self.task) for each in (self._log, *callbacks))
        loop.options = replace(loop.options, early_stopping=early_stopping, batch_size=self.batch_size, callbacks=told)
        self._option = measure_option
        try:
            with self._measuring(measure_option) as loop.measurer:
                loop.round(count)
        finally:
            callback.end(told)
        if state.best is None:
            LOGGER.warning(headline(loop.failure))
        return loop.result(state.best)

    def _measuring(self, option: Any) -> AbstractContextManager[Measuring]:
        if callable(option):
            return SimulatedMeasurer(lambda configs: option(self.task, configs), self._config_of)
        return Measurer(measuring(option, self.task.measure_options()))

    def _config_of(self, job: int) -> Config:
        proposal = self._loop.waits_for(job)
        assert proposal is not None, "the untuned schedule is no trial of a tuner"
        return self.task.config(proposal.row)

    def _log(self, state: TuningState, record: Record) -> None:
        best = 0.0 if state.best is None else state.best.gflops_per_s
        result = record.times_s if record.ok else f"{record.error.value}: {record.message.strip()[-200:]}"
        speeds = f"{record.gflops_per_s:.2f}/{best:.2f}"
        config = self.task.config(record.decisions)
        LOGGER.debug("No: %d\tGFLOPS: %s\tresult: %s\t%s", state.done, speeds, result, config)

    def resume(self, records: Where) -> int:
        """Take over this task's trials from records, so that none is measured again; returns how many there were."""
        known = self.visited
        before = self.state.done
        searched = self._loop.task
        for record in rec.select(load_records(records), self.task.compute_dag.hash):
            if not searched.counts(record) or searched.why_not(record) is not None:
                continue
            if record.sketch == SKETCH_PREFIX + self.task.name and record.role is Role.TRIAL:
                row = np.array(record.decisions, dtype=np.int64)
                if len(row) == self.space.n_decisions and ((row >= 0) & (row < self.space.sizes)).all():
                    (index,) = self._indices([record.decisions])
                    if index not in known:
                        known.add(index)
                        self._loop.take_over(record)
        self.state.resumed += self.state.done - before
        return self.state.done - before


class _Asking(Strategy):
    """Asks a tuner of one's own for indices; `usual` is the strategy that it would have."""

    def __init__(self, tuner: Tuner, spaces: Sequence[Space], *, seed: int, note: Note) -> None:
        super().__init__(spaces, seed, note)
        self._tuner = tuner
        self.usual = tuner._strategy()(spaces, seed=seed, note=note)
        self.learns = self.usual.learns

    def skip(self, schedule: str) -> None:
        super().skip(schedule)
        self.usual.skip(schedule)

    def observe(self, space: int, row: Sequence[int], time_s: float) -> None:
        super().observe(space, row, time_s)
        self.usual.observe(space, row, time_s)
        self._tuner.update(np.array([row], dtype=np.int64), np.array([time_s]))

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        for row in self._tuner.space.rows(self._tuner.propose(count)).tolist():
            self._take(proposals, 0, tuple(row))
        return proposals


@dataclass(frozen=True)
class _Searched(TemplateInSearch):
    """A template task as a tuner searches it: with features, and a way to measure, of the tuner's own."""

    tuner: Tuner | None = None

    @cached_property
    def spaces(self) -> Sequence[TemplateSpace]:
        assert self.tuner is not None
        return [self.tuner._space()]

    def passes_over(self, record: Record) -> bool:
        """Look at configs one by one from now on, where one of which no kernel was made had been misjudged."""
        if not super().passes_over(record):
            return False
        self.task.cases.doubt(self.task.config_space.rows([record.template["index"]])[0])
        return True

    def measured(self) -> MeasureTask:
        """The workload with data to check candidates by; without data where nothing runs."""
        assert self.tuner is not None
        option = self.tuner._option
        if callable(option):
            return MeasureTask(self.workload, (), (), ())
        return super().measured()


def load_records(records: Where) -> list[Record]:
    """The records of a file, or the given ones; none of a file that does not exist yet."""
    if isinstance(records, str | os.PathLike):
        return rec.load(records) if Path(records).is_file() else []
    return list(records)
