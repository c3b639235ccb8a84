"""Callbacks of a search: of TuningOptions, of a network's, and of the tuners."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import Protocol, TextIO

from ..records import file as rec
from ..records.file import Record
from ..tune.callback import Callback
from ..tune.state import SchedulerState


class Tuning(Protocol):
    """Progress of a search, of a task or of a network."""

    @property
    def trials_since_best(self) -> int: ...


_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Of units (SI)."""


def log_to_file(path: str | os.PathLike[str]) -> Callback[Tuning]:
    """Append every record to a file; RecordError, now and not after the first trial, where it cannot be opened."""
    rec.append(path, [])

    def append(state: Tuning, record: Record) -> None:
        rec.append(path, [record])

    return append


class ProgressBar:
    """A line that tells how far tuning has come; see `progress_bar`."""

    def __init__(self, total: int, prefix: str, unit: str, out: TextIO) -> None:
        self._total = total
        self._prefix = prefix
        self._unit = unit
        self._out = out
        self._started_s = time.monotonic()
        self._done = 0
        self._best = 0.0
        self._open = False

    def __call__(self, state: Tuning, record: Record) -> None:
        """Show the line again, after this trial."""
        self._done += 1
        current = record.gflops_per_s / (_PREFIXES[self._unit] / 1e9)
        self._best = max(self._best, current)
        speed = f"Current/Best: {current:7.2f}/{self._best:7.2f} {self._unit}FLOPS"
        spent_s = time.monotonic() - self._started_s
        self._out.write(f"\r{self._prefix} {speed} | Progress: ({self._done}/{self._total}) | {spent_s:.2f} s")
        self._out.flush()
        self._open = True

    def finish(self) -> None:
        """End the line, if one has begun."""
        if self._open:
            self._out.write(" Done.\n")
            self._out.flush()
        self._open = False


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G", stream: TextIO | None = None) -> ProgressBar:
    """Show `[Task  1/12]  Current/Best:  541.83/3570.66 GFLOPS | Progress: (960/2000) | 1001.31 s Done.` on one line.

    `total` is the number of trials, `prefix` what the line begins with, `si_prefix` the unit of the speed. The line
    ends when tuning does, after all trials or before.
    """
    if si_prefix not in _PREFIXES:
        raise ValueError(f"si_prefix must be one of {', '.join(map(repr, _PREFIXES))}, got {si_prefix!r}")
    return ProgressBar(total, prefix, si_prefix, sys.stdout if stream is None else stream)


def log_estimated_latency(path: str | os.PathLike[str]) -> Callback[SchedulerState]:
    """Write a network's total latency over time to a file, for `lw.TaskScheduler(callbacks=[...])`.

    After each trial a line of seconds, milliseconds (empty while a task has no schedule) and trials, between tabs.
    """
    Path(path).write_text("ElapsedTime(s)\tEstimatedLatency(ms)\tTrials\n")

    def append(state: SchedulerState, record: Record) -> None:
        latency = f"{state.latency_s * 1e3:.6g}" if math.isfinite(state.latency_s) else ""
        with Path(path).open("a") as file:
            file.write(f"{state.used_s:.3f}\t{latency}\t{state.done}\n")

    return append


def early_stop(trials: int) -> Callback[Tuning]:
    """End after so many trials without a better one; trials from before the call of `tune` do not count."""

    def check(state: Tuning, record: Record) -> bool:
        return state.trials_since_best >= trials

    return check


def time_limit(seconds: float) -> Callback[Tuning]:
    """End when so many seconds have passed since this call."""
    started_s = time.monotonic()

    def check(state: Tuning, record: Record) -> bool:
        return time.monotonic() - started_s >= seconds

    return check
