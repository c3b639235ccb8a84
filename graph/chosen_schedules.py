"""The schedules that the kernels of a network are compiled with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..dialects.caller import warn_caller
from ..search.records import file as rec
from ..search.records.file import Record, RecordWarning
from ..search.records.index import History
from ..search.records.known import best_known, known_histories
from ..search.records.match import Choice, counted_reasons
from ..search.task import SearchTask
from ..search.template.epilogues import RecordedAnchors
from .tasks import has_reduction


class UntunedWarning(UserWarning):
    """Kernels of a network have no record, and are built with the default schedule."""


def chosen_schedules(
    name: str,
    tasks: Sequence[SearchTask],
    records: str | os.PathLike[str] | Iterable[Record] | None,
    versions: Mapping[str, str],
) -> list[str | None]:
    """Return the schedule of each task of the network `name`; None for the default one.

    How many tasks with something to search have no record that is of use is said once (UntunedWarning), with the
    reasons, and why a record is passed over for a slower one (RecordWarning).
    """
    given: list[Record] = []
    if records is not None:
        given = rec.load(records, versions) if isinstance(records, str | os.PathLike) else list(records)
    history = History(given)
    choices = [best_known(task, versions, first=history) for task in tasks]
    for task, choice in zip(tasks, choices, strict=True):
        if choice.refused:
            text = f"a record of {task.name} is left out: {counted_reasons(choice.refused)}"
            warn_caller(text, RecordWarning)
    anchors = RecordedAnchors((history, *known_histories()))
    schedules = [_schedule(task, choice, anchors) for task, choice in zip(tasks, choices, strict=True)]
    untuned = [
        f"{task.name}: {choice.reasons}" if choice.reasons else task.name
        for task, choice, schedule in zip(tasks, choices, schedules, strict=True)
        if schedule is None and has_reduction(task)
    ]
    if untuned:
        shown = ", ".join(untuned[:3]) + (", ..." if len(untuned) > 3 else "")
        hint = "" if records is not None else ": tune it (lw.TaskScheduler, or loopwright tune) and give the records"
        warn_caller(
            f"network {name}: {len(untuned)} of {len(tasks)} kernels have no record and take the default schedule "
            f"({shown}){hint}",
            UntunedWarning,
        )
    return schedules


def _schedule(task: SearchTask, choice: Choice, anchors: RecordedAnchors) -> str | None:
    """Return the schedule of the record chosen for a task.

    Where there is none, a template's config for the same operator and shapes with another epilogue will do.
    """
    if choice.record is not None:
        return choice.record.schedule
    return anchors.schedule(task)
