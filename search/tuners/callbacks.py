"""Functions to call after each trial."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from .. import records as rec
from ..records import Record

if TYPE_CHECKING:
    from .tuner import Callback, Tuner

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def log_to_file(path: str | os.PathLike[str]) -> Callback:
    """Append every record to a file; RecordError, now and not after the first trial, where it cannot be opened."""
    rec.append(path, [])

    def append(tuner: Tuner, records: Sequence[Record]) -> None:
        rec.append(path, records)

    return append


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G", stream: TextIO | None = None) -> Callback:
    """Show `[Task  1/12]  Current/Best:  541.83/3570.66 GFLOPS | Progress: (960/2000) | 1001.31 s` on one line.

    `total` is the number of trials, `prefix` what the line begins with, `si_prefix` the unit of the speed.
    """
    if si_prefix not in _PREFIXES:
        raise ValueError(f"si_prefix must be one of {', '.join(map(repr, _PREFIXES))}, got {si_prefix!r}")
    out = sys.stdout if stream is None else stream
    scale = _PREFIXES[si_prefix] / 1e9
    started_s = time.monotonic()
    done = 0
    current = 0.0
    best = 0.0

    def show(tuner: Tuner, records: Sequence[Record]) -> None:
        nonlocal done, current, best
        for record in records:
            done += 1
            current = tuner.gflops(record) / scale
            best = max(best, current)
        line = f"\r{prefix} Current/Best: {current:7.2f}/{best:7.2f} {si_prefix}FLOPS | Progress: ({done}/{total})"
        out.write(f"{line} | {time.monotonic() - started_s:.2f} s")
        if done >= total:
            out.write(" Done.\n")
        out.flush()

    return show


def early_stop(trials: int) -> Callback:
    """End after so many trials without a better one."""

    def check(tuner: Tuner, records: Sequence[Record]) -> bool:
        return tuner.state.done - tuner.state.best_trial >= trials

    return check


def time_limit(seconds: float) -> Callback:
    """End when so many seconds have passed since this call."""
    started_s = time.monotonic()

    def check(tuner: Tuner, records: Sequence[Record]) -> bool:
        return time.monotonic() - started_s >= seconds

    return check
