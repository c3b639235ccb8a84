"""The records of one workload on one target and device, and the figures that follow from them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp

from ...dialects.cached_property import cached_property
from ..measure.limits import Limits, Share
from ..named_workloads import named_workloads, parameters
from ..records.file import Record, RecordError, Role, best
from ..records.record import duration, key_of
from ..sketch.sketch import Sketch
from ..tune.progress import Round
from ..workload import ComputeDAG

UNTUNED = "default"


class KnownWorkload(Protocol):
    """The interface of a task to a report, which takes it for what is computed and for what a sketch's choices mean."""

    @property
    def flops(self) -> int: ...

    @property
    def compute_dag(self) -> ComputeDAG: ...

    @property
    def module(self) -> ModuleOp: ...

    @property
    def sketches(self) -> Sequence[Sketch]: ...


@dataclass(frozen=True)
class RecordGroup:
    """Records of one workload, target and device, in the order of the file; `task` where the workload is at hand."""

    records: Sequence[Record]
    task: KnownWorkload | None = None

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def name(self) -> str:
        """The workload's name: the first item of its key."""
        return key_parts(self.first.workload_key)[0]

    @property
    def arguments(self) -> str:
        """The workload's arguments as text, with their names where they are known."""
        return key_parts(self.first.workload_key)[1]

    @cached_property
    def trials(self) -> list[Record]:
        """Trials of the search, by time; where only results were kept, those."""
        tried = [r for r in self.records if r.role is Role.TRIAL] or self.records
        return sorted(tried, key=lambda r: r.timestamp)

    @cached_property
    def right(self) -> list[Record]:
        """Trials that ran and were right."""
        return [r for r in self.trials if r.ok]

    @cached_property
    def best(self) -> Record | None:
        """The record that counts."""
        try:
            return best(self.records)
        except RecordError:
            return None

    @cached_property
    def untuned(self) -> Record | None:
        """The last record of the schedule without a search."""
        schedules = {r.schedule for r in self.records if r.sketch == UNTUNED}
        found = [r for r in self.records if r.ok and r.schedule in schedules]
        return found[-1] if found else None

    @cached_property
    def untuned_trial(self) -> Record | None:
        """The trial of the schedule without a search, by the clock of the other trials; as they are where none is."""
        found = [r for r in self.right if r.sketch == UNTUNED]
        return found[-1] if found else self.untuned

    @cached_property
    def flop(self) -> float:
        """Arithmetic operations of one run; 0 where nobody knows."""
        known = [r.flop for r in self.records if r.flop]
        return known[-1] if known else float(self.task.flops) if self.task is not None else 0.0

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes of all inputs and outputs: what moves at least; 0 where nobody knows."""
        return 0 if self.task is None else self.task.compute_dag.moved_bytes

    @property
    def dtype(self) -> str | None:
        """The element type of all inputs; None where they have several, or nobody knows."""
        return None if self.task is None else self.task.compute_dag.dtype

    @cached_property
    def limits(self) -> Limits | None:
        """The limits that the best record keeps; None where it keeps none."""
        return None if self.best is None else Limits.from_json(self.best.limits)

    def share(self, record: Record, limits: Limits) -> Share | None:
        """The speed of a record beside the limit that binds it; None where that is not known."""
        return limits.share(self.flop, self.moved_bytes, record.time_s, self.dtype)

    @cached_property
    def errors(self) -> Mapping[str, int]:
        """Failed trials by code, the most frequent first."""
        return dict(Counter(r.error.value for r in self.trials if not r.ok).most_common())

    @cached_property
    def rounds(self) -> list[Round]:
        """The batches of the search, as far as the records say."""
        found: dict[int, Round] = {}
        for record in self.trials:
            if record.round:
                found.setdefault(record.round, Round(record.round)).records.append(record)
        return [found[number] for number in sorted(found)]

    @property
    def curve(self) -> list[float]:
        """The best seconds after each trial; infinity before the first right one."""
        times, so_far = [], math.inf
        for record in self.trials:
            so_far = min(so_far, record.time_s)
            times.append(so_far)
        return times

    def gflops_per_s(self, time_s: float) -> float:
        """The speed that a time means."""
        return self.flop / time_s / 1e9

    def speed(self, time_s: float) -> str:
        """A speed as people read it; the time alone where the operations are not known."""
        return f"{self.gflops_per_s(time_s):.4g} GFLOP/s ({duration(time_s)})" if self.flop else duration(time_s)


def groups(records: Iterable[Record]) -> list[RecordGroup]:
    """Records by workload, target and device, in order of first appearance."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    return [RecordGroup(each) for each in found.values()]


def key_parts(key: str) -> tuple[str, str]:
    """A workload key's name and arguments; the key itself where it is none of ours."""
    parts = key_of(key)
    if parts is None:
        return key, ""
    name, values = parts[0], [_plain(value) for value in parts[1]]
    known = named_workloads().get(name)
    names = list(parameters(known)) if known is not None else []
    if len(names) != len(values):
        return name, ", ".join(values)
    return name, " ".join(f"{n}={v}" for n, v in zip(names, values, strict=True))


def _plain(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def repeats(record: Record) -> str:
    """Seconds that it took, and over how many repeats."""
    times = record.times_s
    return f"shortest of {len(times)} repeats, median {duration(statistics.median(times))}" if len(times) > 1 else ""
