"""Samples for a cost model, made of the records of other tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import Target
from ...passes.primitive import ScheduleError
from ..features.of_records import RecordFeatures
from ..records import file as rec
from ..records.file import Record, Role
from ..sketch.sketch import Sketch
from ..workload import ComputeDAG
from . import CostModel, Floats, Pretrained, make_model, relative_speed
from .ranking import ranking_quality


class Task(Protocol):
    """A workload on a target, such as a SearchTask."""

    @property
    def compute_dag(self) -> ComputeDAG: ...

    @property
    def target(self) -> Target: ...

    @property
    def module(self) -> ModuleOp: ...

    @property
    def sketches(self) -> list[Sketch]: ...


@dataclass(frozen=True)
class Samples:
    """Samples of several tasks: features `(n, f)`, seconds `(n,)` (infinite for failures), task numbers `(n,)`."""

    features: Floats
    times_s: Floats
    tasks: npt.NDArray[np.int64]

    @property
    def scores(self) -> Floats:
        """Each sample's speed as a share of its task's best."""
        return relative_speed(self.times_s, self.tasks)


def samples_of(records: str | os.PathLike[str] | Iterable[Record], tasks: Sequence[Task]) -> Samples:
    """The trials of `tasks` in a record file, or among records.

    Features are computed from the decisions, or from the IR of a schedule that no sketch gives any more; a schedule
    that the workload no longer allows is left out, as are tasks without a right trial. RecordError where the file
    cannot be read.
    """
    loaded = rec.loaded(records)
    features: list[Floats] = []
    times_s: list[float] = []
    numbers: list[int] = []
    for number, task in enumerate(tasks):
        own = [r for r in loaded if _is_of(r, task)]
        if not any(r.ok for r in own):
            continue
        known = RecordFeatures(task.module, task.target, task.sketches)
        for record, row in zip(own, _rows(known, own), strict=True):
            if row is not None:
                features.append(row)
                times_s.append(record.time_s)
                numbers.append(number)
    stacked = np.stack(features) if features else np.zeros((0, 0), dtype=np.float32)
    return Samples(stacked, np.array(times_s), np.array(numbers, dtype=np.int64))


def _rows(known: RecordFeatures, records: Sequence[Record]) -> list[Floats | None]:
    """The features of each record; None where its schedule is not legal any more."""
    try:
        return list(known(records))
    except (ScheduleError, ValueError):
        pass
    if len(records) == 1:
        return [None]
    half = len(records) // 2  # few are at fault, most are computed together
    return [*_rows(known, records[:half]), *_rows(known, records[half:])]


def _is_of(record: Record, task: Task) -> bool:
    same = record.workload_hash == task.compute_dag.hash and record.target == str(task.target)
    return same and record.role is Role.TRIAL


def train_cost_model(
    records: str | os.PathLike[str] | Iterable[Record],
    tasks: Sequence[Task],
    model: str | CostModel = "rank",
    seed: int = 0,
) -> Pretrained:
    """A cost model that knows the records of `tasks`, for `TuningOptions(cost_model=...)` of another task.

    The tasks should be for the same target. What is known is kept in mind while it learns of the new task; ranking by
    pairs carries over best, as it never compares candidates of two tasks. ValueError where there is nothing to learn.
    """
    known = samples_of(records, tasks)
    if not len(known.times_s):
        wanted = ", ".join(task.compute_dag.hash for task in tasks) or "no tasks"
        raise ValueError(f"no right trials to train on: the records hold none of {wanted} on their targets")
    chosen = make_model(model, seed) if isinstance(model, str) else model
    return Pretrained(chosen, known.features, known.scores, known.tasks)


def ranking_by_round(history: Samples, model: CostModel, round_size: int = 16) -> Mapping[int, Any]:
    """Rate a model's ranking of each batch of a task's trials before it was measured, by the trials known then.

    The trials are taken in their order; values are `ranking.RankingQuality`, or None where a batch cannot tell.
    """
    found: dict[int, Any] = {}
    for known in range(round_size, len(history.times_s) - round_size + 1, round_size):
        model.fit(history.features[:known], relative_speed(history.times_s[:known]))
        if not model.ready:
            continue
        batch = slice(known, known + round_size)
        found[known] = ranking_quality(model.predict(history.features[batch])[0], history.times_s[batch])
    return found
