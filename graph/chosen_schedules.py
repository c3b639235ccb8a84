"""The schedules that the kernels of a network are compiled with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..dialects.caller import warn_caller
from ..dialects.target import Target
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


@dataclass(frozen=True)
class Known:
    """A schedule for a kernel, and the record that it is of: the kernel's, or one of the same anchor's template."""

    schedule: str
    record: Record


class KnownSchedules:
    """Schedules known of kernels: in `records`, a file or records, in the histories applied around, and pre-tuned.

    `versions` are those of the primitives that schedules are replayed by, for tasks of `target`; those of branches have
    a thread of it.
    """

    def __init__(
        self, records: str | os.PathLike[str] | Iterable[Record] | None, versions: Mapping[str, str], target: Target
    ) -> None:
        given: list[Record] = []
        if records is not None:
            given = rec.load(records, versions) if isinstance(records, str | os.PathLike) else list(records)
        self.versions, self.target = versions, target
        self.has_file = records is not None
        self._first = History(given)
        self._histories = (self._first, *known_histories(target))
        self._anchors = RecordedAnchors(self._histories)
        self._choices: dict[tuple[str, Target], Choice] = {}
        self._known: dict[tuple[str, Target], Known | None] = {}

    def names(self, operator: str) -> bool:
        """True where some record is of a kernel that is named after an operator."""
        return any(operator in record.workload_key for known in self._histories for record in known.records)

    def choice(self, task: SearchTask) -> Choice:
        """The best record of a task itself."""
        key = task.compute_dag.hash, task.target
        if key not in self._choices:
            self._choices[key] = best_known(task, self.versions, first=self._first)
        return self._choices[key]

    def best(self, task: SearchTask) -> Known | None:
        """The schedule for a task of the record chosen for it; None where nothing is known.

        Where it has no record, a template's config for the same operator and shapes with another epilogue will do.
        """
        key = task.compute_dag.hash, task.target
        if key not in self._known:
            self._known[key] = self._found(task)
        return self._known[key]

    def _found(self, task: SearchTask) -> Known | None:
        record = self.choice(task).record
        if record is not None:
            return Known(record.schedule, record)
        adapted = self._anchors.best(task)
        return None if adapted is None else Known(adapted[1], adapted[0])


def chosen_schedules(name: str, tasks: Sequence[SearchTask], known: KnownSchedules) -> list[str | None]:
    """Return the schedule of each task of the network `name`; None for the default one.

    How many tasks with something to search have no record that is of use is said once (UntunedWarning), with the
    reasons, but for those of branches, which no search tunes, and why a record is passed over for a slower one
    (RecordWarning).
    """
    for task in tasks:
        if refused := known.choice(task).refused:
            warn_caller(f"a record of {task.name} is left out: {counted_reasons(refused)}", RecordWarning)
    found = [known.best(task) for task in tasks]
    schedules = [None if best is None else best.schedule for best in found]
    untuned = [
        f"{task.name}: {reasons}" if (reasons := known.choice(task).reasons) else task.name
        for task, schedule in zip(tasks, schedules, strict=True)
        if schedule is None and has_reduction(task) and task.target == known.target
    ]
    if untuned:
        shown = ", ".join(untuned[:3]) + (", ..." if len(untuned) > 3 else "")
        hint = "" if known.has_file else ": tune it (lw.TaskScheduler, or loopwright tune) and give the records"
        warn_caller(
            f"network {name}: {len(untuned)} of {len(tasks)} kernels have no record and take the default schedule "
            f"({shown}){hint}",
            UntunedWarning,
        )
    return schedules
