"""Task, options and result of tuning."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy.typing as npt

from ...dialects.classic_words import options_know_classic_words
from ...dialects.counts import require_count
from ...dialects.errors import Error
from ..cost_model import CostModel, make_model
from ..measure.limits import Limits
from ..measure.measurement import MeasureTask, headline
from ..measure.tolerance import Tolerance
from ..records.file import Record
from ..report.group import RecordGroup
from ..report.notebook import search_output
from ..sketch.space import Space
from ..strategies.make import strategy_maker
from ..strategies.strategy import StrategyMaker
from ..workload import workload_hash
from .callback import Callback
from .progress import Progress, TuningState, counted


class Tunable(Protocol):
    """Interface of a task to a tuner: each property when it is needed, and the data whenever a round of it begins."""

    @property
    def name(self) -> str: ...

    @property
    def workload_key(self) -> str: ...

    @property
    def workload(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def spaces(self) -> Sequence[Space]: ...

    @property
    def default_schedule(self) -> str: ...

    @property
    def default_candidate(self) -> tuple[int, tuple[int, ...]] | None:
        """The untuned schedule as a space and its row, which a search begins from; None where it is of no space."""

    @property
    def flop(self) -> float: ...

    @property
    def workload_hash(self) -> str: ...

    @property
    def hash(self) -> str: ...

    def measured(self) -> MeasureTask:
        """The workload with data to check candidates by."""

    def counts(self, record: Record) -> bool:
        """True where times measured under a record's target are of this device."""

    def why_not(self, record: Record) -> str | None:
        """The reason why a record of the workload is of no use here; None where it is."""

    def tried(self, record: Record) -> bool:
        """True for the record of a trial that tuning this task would have made."""

    def passes_over(self, record: Record) -> bool:
        """True for a candidate that turned out not to be legal where that makes it no trial."""

    def why_no_trial(self) -> str:
        """The reason why nothing was measured, where there is more to say than that."""

    def described_default(self) -> dict[str, Any]:
        """Contents of the field `template` in records of the untuned schedule."""


class TuningError(Error):
    """Tuning cannot give a result; the text shows the first error whole and counts the causes."""


class OfSketches:
    """A Tunable whose trials are of sketches, as records tell by their field `template`."""

    @property
    def default_candidate(self) -> tuple[int, tuple[int, ...]] | None:
        """Return None: the untuned schedule is known as text alone."""
        return None

    def tried(self, record: Record) -> bool:
        """True for the record of a trial of sketches."""
        return not record.template

    def passes_over(self, record: Record) -> bool:
        """Every candidate of a sketch is a trial."""
        return False

    def why_no_trial(self) -> str:
        """Return nothing: there is no more to say than that there was none."""
        return ""

    def described_default(self) -> dict[str, Any]:
        """Return nothing: the untuned schedule is no template's."""
        return {}


@dataclass(frozen=True)
class TuningTask(OfSketches):
    """Task of tuning: a workload's IR text with its target, the spaces to search, and data to check with.

    Outputs are right within their tolerances; `flop` is the floating-point operations of one run (0: not
    known). With `workload_hash`, that of the IR without its target, the IR is kept beside the records; without, the
    hash is that of the text.
    """

    name: str
    workload_key: str
    workload: str
    target: str
    spaces: Sequence[Space]
    default_schedule: str
    inputs: Sequence[npt.NDArray[Any]]
    expected: Sequence[npt.NDArray[Any]]
    tolerances: Sequence[Tolerance]
    flop: float = 0.0
    workload_hash: str = ""

    def counts(self, record: Record) -> bool:
        """True for records of the very same target."""
        return record.target == self.target

    def why_not(self, record: Record) -> str | None:
        """Return None: the target is the same."""
        return None

    @property
    def hash(self) -> str:
        """The hash under which its records are found."""
        return self.workload_hash or workload_hash(self.workload)

    def measured(self) -> MeasureTask:
        """The workload with data to check candidates by."""
        return MeasureTask(self.workload, self.inputs, self.expected, self.tolerances)


Spelling = Callable[[str, object], str]
"""From an option's keyword and a value to how both are given where the search was asked for."""


def as_keyword(keyword: str, value: object) -> str:
    """An option as Python has it: `more_trials=8`."""
    return f"{keyword}={value}"


BATCH = 16
"""Candidates of the first batches. A choice: enough for the builders of a large machine, few enough to learn often."""
LARGEST_BATCH = 64
"""Candidates of a batch that has grown. A choice: a model is fitted, and candidates bred, as long for 64 as for 16."""
GROWTH = 8
"""A batch has one candidate for so many trials so far, once that is more than `BATCH`. An eighth more samples change a
model little: of 512 trials, 19 batches are thought of where it were 32."""


@options_know_classic_words
@dataclass(frozen=True)
class TuningOptions:
    """Options of a search.

    `num_measure_trials` counts all trials, with those found in the file `records`, which new ones are appended to;
    `more_trials`, in its place, counts the new ones only.
    `early_stopping`: end after so many trials without a better one. `time_limit_s` counts from the call, on a clock
    that nobody can set: sketches, data, fits and the run-off are within it. What is under way when it ends is finished,
    and one candidate at least is measured.
    `batch_size`: candidates proposed at once; by default 16, and from 128 trials on an eighth of them, 64 at most.
    `strategy`: `evolution`, `annealing`, `genetic`, `random`, `grid`, or what makes one; the last three learn nothing.
    `cost_model`: `trees`, `rank`, `linear`, `roofline`, `random`, or a model; with `transfer`, `trees` start from what
    `records` know of other tasks of the target. `callbacks` are called with the state and the record after each trial;
    one that returns True ends tuning, in a network that of the task. `verbose` shows each trial. `limits` of the device
    are kept in the records; a function that measures them is called before the first run-off is recorded, when nothing
    else runs, and its records have them. Sentences that advise an option have it as `spelled` says.
    """

    num_measure_trials: int = 64
    more_trials: int | None = None
    records: str | os.PathLike[str] | None = None
    seed: int = 0
    batch_size: int | None = None
    early_stopping: int | None = None
    time_limit_s: float | None = None
    strategy: str | StrategyMaker = "evolution"
    cost_model: str | CostModel = "trees"
    transfer: bool = True
    final_candidates: int = 4
    final_laps: int = 8
    callbacks: Sequence[Callback[TuningState]] = ()
    progress: bool | Progress = True
    verbose: bool = False
    limits: Limits | Callable[[], Limits | None] | None = None
    spelled: Spelling = as_keyword

    @property
    def advice_on_more(self) -> str:
        """Advice on getting new trials where the records hold all that were asked for."""
        return f"{self.spelled('more_trials', 'N')} measures N new ones"

    def trials_after(self, known: int) -> int:
        """The trials in all of a search that begins with `known` ones from the records."""
        return self.num_measure_trials if self.more_trials is None else known + self.more_trials

    def batch_after(self, done: int) -> int:
        """Candidates to propose at once after so many trials."""
        return self.batch_size or min(LARGEST_BATCH, max(BATCH, done // GROWTH))

    @property
    def refits(self) -> bool:
        """True where there may be trials after the first batch, which a cost model is fitted for."""
        return self.learns and self.trials_after(0) > self.batch_after(0)

    @property
    def learns(self) -> bool:
        """True where there is a cost model to fit, and a strategy that follows it."""
        return bool(getattr(strategy_maker(self.strategy), "learns", True)) and self.cost_model != "random"

    def __post_init__(self) -> None:
        strategy_maker(self.strategy)
        for name in ("num_measure_trials", "final_candidates", "final_laps"):
            require_count(name, getattr(self, name))
        for name in ("more_trials", "batch_size", "early_stopping"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        if self.time_limit_s is not None and not (isinstance(self.time_limit_s, Real) and self.time_limit_s >= 0):
            raise ValueError(f"time_limit_s must be seconds of at least 0, got {self.time_limit_s!r}")
        if not isinstance(self.seed, Integral):
            raise ValueError(f"seed must be a whole number, got {self.seed!r}")
        if self.records is not None and not isinstance(self.records, str | os.PathLike):
            raise TypeError(f"records must be the path of a file, got {type(self.records).__name__}")
        if isinstance(self.cost_model, str):
            make_model(self.cost_model, self.seed)
        elif not callable(getattr(self.cost_model, "predict", None)):
            raise TypeError(f"cost_model must be a name or a cost model, got {type(self.cost_model).__name__}")
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise TypeError(
                f"callbacks must be a list of functions of a state and a record, got {self.callbacks!r:.60}"
            )


def as_options(options: TuningOptions | int | None) -> TuningOptions:
    """Options of a search that are given whole, as a number of trials, or not at all; TypeError for anything else."""
    if isinstance(options, Integral) and not isinstance(options, bool):
        return TuningOptions(num_measure_trials=int(options))
    if options is None or isinstance(options, TuningOptions):
        return options or TuningOptions()
    raise TypeError(f"options are lw.TuningOptions(...) or a number of trials, got {type(options).__name__}")


@dataclass(frozen=True, repr=False)
class TuningResult:
    """The winner, the untuned schedule's record (None if it failed), and every trial, resumed ones first.

    Where no trial was right, there is no winner: `failure` says why, and asking for `best` is a TuningError with that
    text, so that a loop over many tasks goes on.
    """

    winner: Record | None
    default: Record | None
    trials: Sequence[Record]
    state: TuningState
    failure: str = ""

    @property
    def best(self) -> Record:
        """The winner; TuningError where no trial was right."""
        if self.winner is None:
            raise TuningError(self.failure)
        return self.winner

    @property
    def speedup(self) -> float:
        """Time of the untuned schedule over the winner's, by what decided, so at least 1; NaN if that failed."""
        return math.nan if self.default is None or self.winner is None else self.winner.times_as_fast(self.default)

    def __str__(self) -> str:
        """A line: the task, how fast the winner is or why there is none, the trials."""
        if self.winner is None:
            return f"{self.state.task}: {headline(self.failure)}"
        trials = counted(len(self.trials), "trial")
        return f"{self.state.task}: {self.state.speed(self.winner)}, {trials}, errors {self.state.error_counts()}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self}>"

    def _repr_html_(self) -> str:
        """The figures, the curve of the trials and the best schedule, for a notebook."""
        records = [*self.trials, *filter(None, (self.default, self.winner))]
        return search_output(str(self), RecordGroup(records) if records else None)
