"""A time limit that counts from one moment on a clock that never jumps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
"""Seconds from a moment of its own; of the machine's, `time.monotonic`, which nobody can set."""


@dataclass(frozen=True)
class Deadline:
    """`limit_s` seconds (None: no limit) from `started_s` of the clock."""

    limit_s: float | None
    started_s: float
    clock: Clock = time.monotonic

    @staticmethod
    def after(limit_s: float | None, clock: Clock = time.monotonic) -> Deadline:
        """The deadline of what begins now."""
        return Deadline(None if limit_s is None else float(limit_s), clock(), clock)

    @property
    def left_s(self) -> float:
        """Seconds until it has passed, negative ones since; infinity without a limit."""
        return math.inf if self.limit_s is None else self.limit_s - (self.clock() - self.started_s)

    def is_within(self, reserve_s: Callable[[], float], share: float) -> bool:
        """True where no more time is left than `reserve_s()`, which counts for `share` of the limit at most."""
        if self.limit_s is None:
            return False
        left_s, most_s = self.left_s, share * self.limit_s
        return left_s <= 0 or (left_s <= most_s and left_s <= reserve_s())
