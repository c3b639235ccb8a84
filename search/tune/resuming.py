"""Records that a search goes on from: those of its task on its device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import file as rec
from ..records.file import Record, Role
from ..strategies.strategy import Strategy
from .options import Tunable


@dataclass(frozen=True)
class Resumed:
    """A task's trials in records; the winner of their last run-off, and how many of them came before it."""

    trials: Sequence[Record]
    last_winner: Record | None
    known_to_winner: int
    left_out: Sequence[str]
    """The reasons why other records of the workload are of no use, one for each."""


def resumed_from(loaded: Sequence[Record], task: Tunable, device: str) -> Resumed:
    """Find this task's trials on this device; a winner that a later trial beats is none."""
    left_out: list[str] = []
    own: list[Record] = []
    for record in rec.select(loaded, task.hash):
        reason = _why_not(record, task, device)
        if reason is None:
            own.append(record)
        else:
            left_out.append(reason)
    best = rec.best(own) if any(record.ok for record in own) else None
    trials: list[Record] = []
    known_to_winner = 0
    for record in own:
        if record.role is Role.WINNER:
            known_to_winner = len(trials)
        if record.role is Role.TRIAL and task.tried(record):
            trials.append(record)
    winner = best if best is not None and best.role is Role.WINNER else None
    return Resumed(trials, winner, known_to_winner, left_out)


def _why_not(record: Record, task: Tunable, device: str) -> str | None:
    if not task.counts(record):
        return f"of another target: {record.target}"
    if record.device != device:
        return f"measured on another device: {record.device}"
    return task.why_not(record)


def recall(strategy: Strategy, task: Tunable, record: Record) -> None:
    """Let a search learn from a record, if its decisions still mean the same, and never propose it again."""
    strategy.skip(record.schedule)
    if record.schedule == task.default_schedule and task.default_candidate is not None:
        strategy.observe(*task.default_candidate, record.time_s)
        return
    for space in strategy.spaces:
        if space.name == record.sketch and len(record.decisions) == space.n_decisions:
            row = np.array(record.decisions, dtype=np.int64)
            if strategy.means(space.number, row, record.schedule):
                strategy.observe(space.number, record.decisions, record.time_s)
