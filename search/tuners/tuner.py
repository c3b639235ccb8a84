"""What every tuner does: propose configs, have them measured, learn, until the trials are used up."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..measure.measurement import headline
from ..records import file as rec
from ..records.file import ErrorCode, Record, Role
from ..template.history import SKETCH_PREFIX
from ..tune.loop import TuningError, TuningResult
from ..tune.progress import TuningState
from .local_measuring import check_count
from .trials import Trials

if TYPE_CHECKING:
    from ..template.space import Rows
    from ..template.task import TemplateTask

LOGGER = logging.getLogger("loopwright.tuners")
"""Shows each trial at level DEBUG."""

Callback = Callable[["Tuner", Sequence[Record]], Any]
"""Called with the tuner and the record of the trial just done, in a list; tuning ends when one returns True.

Its method `finish()`, if it has one, is called when tuning ends, for whatever reason.
"""

Where = str | os.PathLike[str] | Iterable[Record]

_MOST_REFUSED = 4
_ASKED = 8
_MOST_AT_ONCE = 4096
_MOST_DRAWS = 64
_SMALL = 1 << 16


class Tuner(ABC):
    """Proposes configs of a task; each is proposed once, and none that is not legal or breaks a limit of the target."""

    batch_size = 16
    """Configs proposed at a time."""

    def __init__(self, task: TemplateTask, seed: int = 0) -> None:
        self.task = task
        self.seed = seed
        self.space = task.config_space
        self.rng = np.random.default_rng(seed)
        self.visited: set[int] = set()
        self.trials: list[Record] = []
        self.refused = 0
        """Configs that were proposed and turned out not to be legal; they are no trials."""
        self.state = TuningState(task.name, 0, float(task.flops))
        self._refusal = ""
        self._started = 0
        self._left: list[int] = []
        """Proposed and not measured, as tuning ended before."""

    # -- what a tuner is ----------------------------------------------------------------------------------------------

    @abstractmethod
    def propose(self, count: int) -> list[int]:
        """Up to `count` distinct legal indices that are not in `visited`; fewer where the space is used up."""

    def update(self, rows: Rows, times_s: npt.NDArray[np.float64]) -> None:
        """Learn from measured rows `(n, d)` and their seconds `(n,)`, infinite for failures."""
        return None

    def load_history(self, records: Where) -> int:
        """Learn from records of other tasks of the same template; returns how many are of use. Some tuners cannot."""
        return 0

    # -- tuning -------------------------------------------------------------------------------------------------------

    @property
    def best(self) -> Record | None:
        """The fastest trial so far."""
        return self.state.best

    @property
    def best_config(self) -> Any:
        """The config of the fastest trial so far, or None."""
        return None if self.best is None else self.task.config(self.best.decisions)

    @property
    def trials_since_best(self) -> int:
        """Trials since the best one, of those that the last call of `tune` made."""
        return self.state.done - max(self.state.best_trial, self._started)

    def tune(
        self,
        n_trial: int,
        measure_option: Any = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> TuningResult:
        """Measure up to `n_trial` configs more; returns the best and all trials.

        `measure_option` is what `measure_option()` returns, a MeasureOptions, None for the usual one of the target, or
        a function from the task and configs to seconds. `early_stopping` ends after so many trials without a better
        one. Ctrl-C passes through, and what was measured stays in `trials`. TuningError when no trial was valid.
        """
        check_count("n_trial", n_trial)
        if early_stopping is not None:
            check_count("early_stopping", early_stopping)
        state = self.state
        self._started = state.done
        state.total = state.done + min(n_trial, self.space.size)
        try:
            with Trials(self.task, measure_option, self.seed) as trials:
                self._go_on(trials, early_stopping, callbacks)
        finally:
            for callback in callbacks:
                if hasattr(callback, "finish"):
                    callback.finish()
        if state.best is None:
            raise TuningError(self._all_failed())
        return TuningResult(state.best, None, self.trials, state)

    def _go_on(self, trials: Trials, patience: int | None, callbacks: Sequence[Callback]) -> None:
        """Propose and measure until there is nothing more to do, or reason to end."""
        state = self.state
        while state.done < state.total and self.refused < _MOST_REFUSED * state.total:
            room = state.total - state.done
            if patience is not None:
                room = min(room, patience - self.trials_since_best)
            indices = self._take(min(self.batch_size, room))
            if not indices or self._measure(trials, indices, patience, callbacks):
                return

    def _take(self, count: int) -> list[int]:
        """What was proposed before and not measured, else what is proposed now."""
        self._left = [i for i in self._left if i not in self.visited] or self.propose(count)
        taken, self._left = self._left[:count], self._left[count:]
        self.visited.update(taken)
        return taken

    def resume(self, records: Where) -> int:
        """Take over this task's trials from records, so that none is measured again; returns how many there were."""
        mine: list[Record] = []
        for record in self._of_task(load_records(records)):
            if len(record.decisions) == self.space.n_decisions and record.role is Role.TRIAL:
                row = np.array(record.decisions, dtype=np.int64)
                index = int(self.space.indices(row[None])[0])
                if (row < self.space.sizes).all() and index not in self.visited:
                    self.visited.add(index)
                    self._count(record)
                    mine.append(record)
        self.state.resumed += len(mine)
        self._learn(mine)
        return len(mine)

    def _of_task(self, records: Iterable[Record]) -> list[Record]:
        wanted = rec.select(records, self.task.compute_dag.hash, str(self.task.target))
        return [r for r in wanted if r.sketch == SKETCH_PREFIX + self.task.name]

    def _measure(
        self, trials: Trials, indices: Sequence[int], patience: int | None, callbacks: Sequence[Callback]
    ) -> bool:
        """Measure a batch and learn from it; True where tuning is to end, whatever is left of the batch then."""
        done: list[Record] = []
        left = set(indices)
        try:
            for config, record in trials.measure([self.task.config(i) for i in indices]):
                done.append(record)
                left.discard(config.index)
                if record.error is ErrorCode.INSTANTIATION_ERROR:  # refused before anything was built or run
                    self._refused(record, config)
                    continue
                self._count(record)
                self._log(record, config)
                ends = [callback(self, [record]) is True for callback in callbacks]
                if any(ends) or (patience is not None and self.trials_since_best >= patience):
                    return True
        finally:
            self.visited -= left
            self._left = [i for i in indices if i in left] + self._left
            self._learn(done)
        return False

    def _refused(self, record: Record, config: Any) -> None:
        """Pass over a config that no kernel could be made of, which is no trial, and look at others more closely."""
        self.refused += 1
        self._refusal = self._refusal or record.message
        self.task.cases.distrust()
        LOGGER.debug("refused: %s\t%s", record.message.strip()[-200:], config)

    def _learn(self, records: Sequence[Record]) -> None:
        if records:
            rows = np.array([r.decisions for r in records], dtype=np.int64).reshape(len(records), -1)
            self.update(rows, np.array([r.time_s for r in records]))

    def _count(self, record: Record) -> None:
        state = self.state
        self.trials.append(record)
        state.done += 1
        state.last = record
        if not record.ok:
            state.errors[record.error.value] += 1
        elif state.best is None or record.time_s < state.best.time_s:
            state.best, state.best_trial = record, state.done

    def _log(self, record: Record, config: Any) -> None:
        best = 0.0 if self.best is None else self.gflops(self.best)
        result = record.times_s if record.ok else f"{record.error.value}: {record.message.strip()[-200:]}"
        LOGGER.debug(
            "No: %d\tGFLOPS: %.2f/%.2f\tresult: %s\t%s", self.state.done, self.gflops(record), best, result, config
        )

    def gflops(self, record: Record) -> float:
        """The speed of a record in 10^9 operations a second; 0 when it failed."""
        return float(self.task.flops) / record.time_s / 1e9 if record.ok else 0.0

    def _all_failed(self) -> str:
        if not self.trials:
            return f"no config of {self.task.name} is legal on {self.task.target}{self._first_refusal()}"
        first = self.trials[0]
        return (
            f"all {len(self.trials)} trials of {self.task.name} failed: {self.state.error_counts()}. The first error, "
            f"{first.error.value}, of config {first.template.get('config')} is\n{first.message}"
        )

    def _first_refusal(self) -> str:
        """Why a config is not legal: of one that was proposed, else of one that never was."""
        rows = self.space.sample(np.random.default_rng(0), _ASKED)
        reason = self._refusal or next(filter(None, map(self.task.why_not, rows)), "")
        return f"; the first one asked: {headline(reason)}" if reason else ""

    # -- drawing ------------------------------------------------------------------------------------------------------

    def draw(self, count: int, taken: Iterable[int] = ()) -> list[int]:
        """Up to `count` random distinct legal indices, neither visited nor `taken`; small spaces to the last one."""
        seen = {*self.visited, *taken}
        if self.space.size <= _SMALL:
            return self.fresh(self.rng.permutation(self.space.size), count, seen)
        found: list[int] = []
        for _ in range(_MOST_DRAWS):
            if len(found) >= count:
                break
            some = self.space.indices(self.space.sample(self.rng, max(8 * (count - len(found)), 64)))
            found += self.fresh(some, count - len(found), {*seen, *found})
        return found

    def fresh(self, indices: npt.NDArray[np.int64], count: int, seen: Container[int]) -> list[int]:
        """The first `count` of the indices that are legal and not seen, each once."""
        unseen = np.array([i for i in dict.fromkeys(indices.tolist()) if i not in seen], dtype=np.int64)
        kept: list[int] = []
        start, step = 0, max(16, 2 * count)
        while len(kept) < count and start < len(unseen):
            part = unseen[start : start + step]
            kept += part[self.task.legal(self.space.rows(part))].tolist()
            start, step = start + step, min(2 * step, _MOST_AT_ONCE)
        return kept[:count]


def load_records(records: Where) -> list[Record]:
    """The records of a file, or the given ones; none of a file that does not exist yet."""
    if isinstance(records, str | os.PathLike):
        return rec.load(records) if Path(records).is_file() else []
    return list(records)
