"""The rule by which records are of use to a task: a device of its model, and a schedule that keeps its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ...dialects.shown_text import one_line
from ...dialects.target import Target, parse_target
from ...passes.pipeline_text import apply_schedule, parse_schedule
from ...passes.primitive import ScheduleError
from ..template.limits import device_excess, limits
from ..workload import ComputeDAG
from . import file as rec
from .file import Record, RecordError, RecordVersionError

_LONGEST_REASON = 200
"""Characters of a reason that are shown."""


class Wanted(Protocol):
    """A task that records are looked up for."""

    @property
    def target(self) -> Target: ...

    @property
    def compute_dag(self) -> ComputeDAG: ...


def same_model(text: str, target: Target) -> bool:
    """True where a record's target is of the kind and the named model of this one, whatever their limits."""
    if text == str(target):
        return True
    try:
        other = parse_target(text)
    except ValueError:
        return False
    return (other.kind, other.model) == (target.kind, target.model) and target.model != Target().model


def same_device(text: str, target: Target) -> bool:
    """True where times measured under a record's target count for this one: the same model, with as many cores."""
    return same_model(text, target) and (text == str(target) or parse_target(text).cores == target.cores)


def is_within(text: str, target: Target) -> bool:
    """True where what keeps the limits of a record's target, of the same model, keeps those of this one."""
    if text == str(target):
        return True
    other = parse_target(text)
    most = {limit.field: limit.most for limit in limits(other)}
    return all(not limit.most or 0 < most[limit.field] <= limit.most for limit in limits(target))


def why_not(record: Record, task: Wanted, versions: Mapping[str, str] | None = None) -> str | None:
    """The reason why a record of a task's workload is of no use to it; None where it is.

    It must be of the same model, of these `versions` of the primitives (None: of any), with a schedule that can be read
    and, where its target is not the very same, keeps the limits of this one.
    """
    target = task.target
    if not same_model(record.target, target):
        return f"another device: {_shown_device(record.target)}"
    try:
        if versions is not None:
            rec.check_replayable(record, versions)
        parse_schedule(record.schedule)
        if record.target == str(target):
            return None
        module = task.compute_dag.for_target(target)
        apply_schedule(module, record.schedule)
    except (RecordVersionError, ScheduleError, ValueError) as error:
        return one_line(str(error).strip().splitlines()[0], _LONGEST_REASON)
    return device_excess(module, target)


def _shown_device(text: str) -> str:
    """A target's kind and model, the text itself where it names none."""
    words = text.split()
    return " ".join(word for word in words if word == words[0] or word.startswith("model=")) or text


def ranked(records: Iterable[Record], target: Target) -> Iterator[Record]:
    """The right records of one workload for a model of device, the best first: of this very target, then of others.

    Others with as many cores come before the rest.
    """
    tiers: tuple[list[Record], ...] = ([], [], [])
    for record in records:
        if same_model(record.target, target):
            near = 1 if same_device(record.target, target) else 2
            tiers[0 if record.target == str(target) else near].append(record)
    for tier in tiers:
        if any(record.ok for record in tier):
            best = rec.best(tier)
            yield best
            yield from sorted((r for r in tier if r.ok and r is not best), key=lambda r: (r.stopped_early, r.time_s))


class Choice:
    """The best record of use to a task, if there is one, and why those that rank before it are not."""

    def __init__(self, records: Iterable[Record], task: Wanted, versions: Mapping[str, str] | None = None) -> None:
        self._own = [r for r in records if r.workload_hash == task.compute_dag.hash]
        self._task = task
        self.refused: list[str] = []
        self.record = self._first(versions)

    def _first(self, versions: Mapping[str, str] | None) -> Record | None:
        for record in ranked(self._own, self._task.target):
            reason = why_not(record, self._task, versions)
            if reason is None:
                return record
            self.refused.append(reason)
        return None

    @property
    def others(self) -> list[str]:
        """The reason why those of other devices, and those that failed, are not used."""
        foreign = [r for r in self._own if not same_model(r.target, self._task.target)]
        failed = [r for r in self._own if not r.ok and same_model(r.target, self._task.target)]
        reasons = [f"another device: {_shown_device(r.target)}" for r in foreign]
        return reasons + [f"failed: {r.error.value}" for r in failed]

    @property
    def reasons(self) -> str:
        """The reason why no record is of use, as the end of a sentence; nothing where there is none of the workload."""
        return counted_reasons([*self.refused, *self.others])

    def require(self) -> Record:
        """The record; RecordError with the reasons where none is of use."""
        if self.record is not None:
            return self.record
        what = f"workload {self._task.compute_dag.hash}, target {self._task.target}"
        if not self._own:
            raise RecordError(f"no record for {what}: tune it first")
        count = len(self._own)
        raise RecordError(f"no valid record for {what}: of {count} record(s) none can be used ({self.reasons})")


def counted_reasons(reasons: Sequence[str]) -> str:
    """Reasons, each with how many records it is of, the most frequent first."""
    return "; ".join(f"{count} {reason}" for reason, count in Counter(reasons).most_common())
