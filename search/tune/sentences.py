"""Sentences of a search about its trials: one of them as a line, that none is new, that all failed."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..measure.measurement import headline
from ..records.file import Record
from .deadline import Deadline
from .options import Tunable, TuningOptions
from .progress import TuningState, counted


def failure_of(record: Record) -> str:
    """The failure of a trial in short: its code, and the first line of its message."""
    return f"{record.error.value}: {headline(record.message)}"


def trial_line(state: TuningState, record: Record) -> str:
    """A trial as a line: its number, how fast it is or how it failed, the best, and what was tried."""
    result = state.speed(record) if record.ok else failure_of(record)
    what = f"{record.sketch} {list(record.decisions)}"
    if record.template:
        what = str(record.template.get("config"))
    return f"trial {state.done}/{state.total}: {result}; best {state.speed(state.best)}; {what}"


def interrupted(done: int, records: str | os.PathLike[str] | None) -> str:
    """Say after how many trials a search was interrupted, and where they are kept."""
    if not done:
        return "interrupted before the first trial"
    kept = "" if records is None else f"; {'it is' if done == 1 else 'they are'} kept in {os.fspath(records)}"
    return f"interrupted after {counted(done, 'trial')}{kept}"


def none_is_new(asked: int, known: int, options: TuningOptions) -> str:
    """Say that the records hold all trials that were asked for, and how to ask for more."""
    return (
        f"{counted(asked, 'trial')} asked for in all, and the records hold {known}: none is new; "
        f"{options.advice_on_more}"
    )


def time_is_over(state: TuningState, deadline: Deadline) -> str:
    """Say how many of the trials a time limit left out."""
    return f"the time limit of {deadline.limit_s:g} s left {state.total - state.done} of {state.total} trials out"


def stopped_early(state: TuningState) -> str:
    """Say since when no trial was better."""
    return f"stopped early after {state.done} trials: none after trial {state.best_trial} was better"


def all_failed(task: Tunable, state: TuningState, trials: Sequence[Record]) -> str:
    """Say why there is no result: the first error whole, and how many there were of each kind."""
    if not trials:
        return task.why_no_trial() or f"no trial of {task.name} was measured"
    first = trials[0]
    of = f"sketch {first.sketch!r} with schedule\n  {first.schedule or '(empty)'}\nis"
    if first.template:
        of = f"config {first.template.get('config')} is"
    return (
        f"all {len(trials)} trials of {task.name} failed: {state.error_counts()}. "
        f"The first error, {first.error.value}, of {of}\n{first.message}"
    )
