"""Pace of a search by the clock of its records: trials a second, time a device was idle, seconds to near the best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..records.record import Record, duration

NEAR = 1.05
"""Times of the best that count as near it."""
PAUSE_S = 60.0
"""Seconds beyond a trial's own between two trials from which on the search had stopped, to be resumed later. It is the
time that a device may be waited for; a batch is proposed in a second or two. A choice."""


@dataclass(frozen=True)
class Pace:
    """Wall time of a search in seconds without pauses, `run_s` of it with a trial on a device, and when it came near.

    `near_trials` and `near_s` are the trials and the seconds until the first one that takes at most NEAR times as long
    as the fastest; None where no trial was right.
    """

    trials: int
    wall_s: float
    run_s: float
    near_trials: int | None
    near_s: float | None

    @property
    def trials_per_s(self) -> float:
        return self.trials / self.wall_s

    @property
    def idle(self) -> float:
        """The share of the wall time in which no trial ran."""
        return max(0.0, 1.0 - self.run_s / self.wall_s)

    def __str__(self) -> str:
        """A line: trials a second, and the share of the time that the device is idle."""
        return (
            f"{self.trials_per_s:.3g} trials a second in {duration(self.wall_s)}, device idle for {self.idle:.0%} of it"
        )


def pace_of(trials: Iterable[Record]) -> Pace | None:
    """Return the pace of the searches that trials are of; None where they do not say when they were made.

    Devices of a fleet run side by side: what they ran is divided by their number.
    """
    made = sorted((r for r in trials if r.timestamp), key=lambda r: r.timestamp)
    best_s = min((r.time_s for r in made), default=math.inf)
    wall_s, run_s, before = 0.0, 0.0, -math.inf
    near_trials: int | None = None
    near_s: float | None = None
    for number, record in enumerate(made, start=1):
        own_s = 0.0 if record.reused else record.build_s + record.run_s
        since_s = record.timestamp - before
        wall_s += since_s if since_s <= own_s + PAUSE_S else own_s
        run_s += 0.0 if record.reused else record.run_s
        before = record.timestamp
        if near_s is None and record.ok and record.time_s <= NEAR * best_s:
            near_trials, near_s = number, wall_s
    devices = {r.fleet.get("device") for r in made}
    return Pace(len(made), wall_s, run_s / len(devices), near_trials, near_s) if wall_s > 0 else None
