"""Transfer: the cost model of a new task starts from a record file's trials of other tasks of the same target."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...dialects.target import Target, parse_target
from ..features.of_records import RecordFeatures
from ..records import file as rec
from ..records.file import Record, RecordWarning, Role
from ..records.match import same_device
from ..records.workload_files import rebuilt_dag
from ..sketch.generate import generate_sketches
from ..tune.progress import counted
from ..workload import ComputeDAG
from . import CostModel, Floats, Pretrained, make_model
from .samples import Samples

TEACHABLE = "trees"
"""The cost model that starts from other tasks: the one of a search unless told otherwise."""
MOST_RECORDS = 512
"""The latest records of other tasks that are looked at: more would outvote what a search measures itself. A choice."""
MOST_TASKS = 8
"""The tasks of the latest records that are made again, which takes some tenths of a second each. A choice: the time
before the first trial."""


class Taught(Protocol):
    """A task whose cost model is to start from others: its workload and its target."""

    @property
    def compute_dag(self) -> ComputeDAG: ...

    @property
    def target(self) -> Target: ...


@dataclass(frozen=True)
class Transfer:
    """Samples of other tasks, of how many tasks, and how many of the records looked at are not among them."""

    history: Samples
    tasks: int
    skipped: int

    @property
    def samples(self) -> int:
        return len(self.history.times_s)

    def model(self, seed: int) -> CostModel:
        """A cost model that knows the samples, and is asked when it has seen some of the new task too."""
        known = self.history
        return Pretrained(make_model(TEACHABLE, seed), known.features, known.scores, known.tasks, alone=False)

    def __str__(self) -> str:
        used = "the cost model starts from nothing"
        if self.samples:
            samples, tasks = counted(self.samples, "record"), counted(self.tasks, "other task")
            used = f"the cost model starts from {samples} of {tasks}"
        return f"{used}; {counted(self.skipped, 'record')} cannot be used" if self.skipped else used


def transfer_to(task: Taught, path: str | os.PathLike[str]) -> Transfer | None:
    """Samples of the latest trials of other tasks of the same target in a record file; None where there are none.

    A task is made again from its IR beside the file, or from its key; records of tasks that cannot be, of templates,
    and of schedules that the sketches no longer give are skipped. Speeds are relative to the best of their task and
    device.
    """
    own = task.compute_dag.hash
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)  # the search loads the file too, and says so
        loaded = rec.load(path)
    others = [r for r in loaded if r.workload_hash != own and r.role is Role.TRIAL]
    found = [r for r in others if same_device(r.target, task.target)]
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in sorted(found, key=lambda r: -r.timestamp)[:MOST_RECORDS]:
        groups.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    if not groups:
        return None
    kept = []
    for group in [*groups.values()][:MOST_TASKS]:
        features, times_s = _samples(group, path)
        if np.isfinite(times_s).any():
            kept.append((features, times_s))
    history = _history(kept)
    return Transfer(history, len(kept), sum(map(len, groups.values())) - len(history.times_s))


def _history(samples: Sequence[tuple[Floats, Floats]]) -> Samples:
    if not samples:
        return Samples(np.zeros((0, 0), dtype=np.float32), np.zeros(0), np.zeros(0, dtype=np.int64))
    numbers = np.repeat(np.arange(len(samples)), [len(times_s) for _, times_s in samples])
    return Samples(np.concatenate([f for f, _ in samples]), np.concatenate([t for _, t in samples]), numbers)


def _samples(records: Sequence[Record], path: str | os.PathLike[str]) -> tuple[Floats, Floats]:
    """The features `(n, f)` and seconds `(n,)` of one task's records that its sketches still give."""
    none = np.zeros((0, 0), dtype=np.float32), np.zeros(0)
    try:
        dag, target = rebuilt_dag(records[0], path), parse_target(records[0].target)
        if dag is None:
            return none
        module = dag.for_target(target)
        known = RecordFeatures(module, target, generate_sketches(module, target))
        current = [r for r in records if known.is_current(r)]
        return (known(current), np.array([r.time_s for r in current])) if current else none
    except Exception:  # whatever a rule makes of another task, which may be anyone's, is no reason not to tune this one
        return none
