"""The schedules that the kernels of a network are compiled with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence

from ..passes.pipeline_text import parse_schedule
from ..search.records import file as rec
from ..search.records import pretuned
from ..search.records.file import Record, RecordVersionError, RecordWarning
from ..search.task import SearchTask
from ..search.template.epilogues import schedule_of_same_anchor
from ..search.template.history import History, best_record, histories
from .tasks import has_reduction

_FRAMES = 4
"""From a warning here to whoever called `lw.compile`."""


class UntunedWarning(UserWarning):
    """Kernels of a network have no record, and are built with the default schedule."""


def chosen_schedules(
    name: str,
    tasks: Sequence[SearchTask],
    records: str | os.PathLike[str] | Iterable[Record] | None,
    versions: Mapping[str, str],
) -> list[str | None]:
    """Return the schedule of each task of the network `name`; None for the default one.

    How many tasks with something to search have no record is said once (UntunedWarning), and so is each record that
    would be taken but is of no schedule that can be read (RecordWarning).
    """
    given: list[Record] = []
    if records is not None:
        given = rec.load(records, versions) if isinstance(records, str | os.PathLike) else list(records)
    history = History(given)
    found = [_schedule(task, history, versions) for task in tasks]
    pairs = zip(tasks, found, strict=True)
    untuned = [task.name for task, schedule in pairs if schedule is None and has_reduction(task)]
    if untuned:
        shown = ", ".join(untuned[:3]) + (", ..." if len(untuned) > 3 else "")
        hint = "" if records is not None else ": tune it (lw.TaskScheduler, or loopwright tune) and give the records"
        warnings.warn(
            f"network {name}: {len(untuned)} of {len(tasks)} kernels have no record and take the default schedule "
            f"({shown}){hint}",
            UntunedWarning,
            stacklevel=_FRAMES - 1,
        )
    return found


def _schedule(task: SearchTask, given: History, versions: Mapping[str, str]) -> str | None:
    """Return the best of the records given, else of the histories applied around, else of the pre-tuned ones.

    Where all of them have none, a template's config for the same operator and shapes with another epilogue will do.
    """
    while (known := given.query(task.target, task.compute_dag.hash)) is not None:
        if _readable(known, task):
            break
        given = History(record for record in given.records if record is not known)
    record = known or best_record(task.target, task.compute_dag.hash)
    if record is None:
        return schedule_of_same_anchor(task, (given, *histories(), pretuned.index()))
    if known is None and not _readable(record, task):
        return None
    try:
        rec.check_replayable(record, versions)
    except RecordVersionError:
        return None
    return record.schedule


def _readable(record: Record, task: SearchTask) -> bool:
    """True where a record's schedule is one; warns where it is not."""
    try:
        parse_schedule(record.schedule)
    except ValueError as error:
        warnings.warn(f"a record of {task.name} is left out: {error}", RecordWarning, stacklevel=_FRAMES + 1)
        return False
    return True
