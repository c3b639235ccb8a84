"""Time that other processes have the cores of this one, by which turns that they disturb are taken again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rounds import Timer

MOST_OF_OTHERS = 0.05
"""Part of the cores' time that others may have while something is timed. A choice: what a system does by itself takes
less, and one process that has one of two cores half."""
TRIES = 4
"""Of a turn, at most. A choice: on a machine that is never quiet, it takes so many times as long."""

_CORE_FIELD = 36
"""Of /proc/PID/stat, behind the name: the core that a thread was on last (proc(5), field 39)."""

Nanoseconds = Mapping[str, int]


def _cores() -> set[int]:
    """Return the numbers of the cores that this process may be on; those that there are where it cannot be told."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def of_others(proc: Path = Path("/proc")) -> Nanoseconds:
    """Return the time that each thread of other processes has had a core, of those that were on one of ours last.

    Nothing where the system does not say it.
    """
    cores, own = _cores(), str(os.getpid())
    found: dict[str, int] = {}
    for thread in proc.glob("[0-9]*/task/[0-9]*"):
        if thread.parts[-3] == own:
            continue
        try:
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            if int(fields[_CORE_FIELD]) in cores:
                found[thread.name] = int((thread / "schedstat").read_text().split()[0])
        except (OSError, IndexError):  # it has ended, or the system keeps no such file
            continue
    return found


def undisturbed(
    timer: Timer, pause_s: float = 0.0, seen: Callable[[], Nanoseconds] = of_others, tries: int = TRIES
) -> Timer:
    """Return a timer that times again, each time after a pause, while others have more than a part of the cores.

    It gives what it took when they had least. Threads of this process are not looked at: what a peer's pool, or ours,
    takes from the one that is timed is part of what it costs.
    """
    cores = len(_cores())

    def timed() -> float:
        found: list[tuple[float, float]] = []
        for number in range(tries):
            time.sleep(pause_s if number else 0.0)
            start_s, before = time.perf_counter(), seen()
            taken_s = timer()
            length_s, after = time.perf_counter() - start_s, seen()  # of one look, too: others run in it as well
            theirs_ns = sum(after[thread] - before[thread] for thread in after.keys() & before.keys())
            found.append((theirs_ns / 1e9 / (length_s * cores), taken_s))
            if found[-1][0] <= MOST_OF_OTHERS:
                break
        return min(found)[1]

    return timed
