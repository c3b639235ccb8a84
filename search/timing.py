"""How often a kernel is run to time it: probes, repeats of a minimal length, and giving up on slow ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

_MOST_RUNS = 1_000_000
_PROBES = 3
_PROBING_S = 0.02


@dataclass(frozen=True)
class TimingSettings:
    """A repeat takes at least `number` runs and `min_repeat_ms`; before every run `flush_bytes` are touched if not 0.

    A kernel slower than `stop_factor` times the best known one is not timed to the end (None: always to the end). The
    device rests for `cooldown_s` seconds before each kernel.
    """

    number: int = 1
    repeat: int = 3
    min_repeat_ms: float = 50.0
    stop_factor: float | None = 2.0
    flush_bytes: int = 0
    cooldown_s: float = 0.0


def measure_times(
    run: Callable[[int], float], settings: TimingSettings, best_s: float | None, flush: Callable[[], None] | None = None
) -> tuple[list[float], bool]:
    """Return seconds per run, one number a repeat, and whether it was stopped early as clearly slower.

    `run(n)` runs n times back to back and returns the seconds; `flush` empties the caches.
    """
    if settings.cooldown_s:
        time.sleep(settings.cooldown_s)
    limit_s = settings.stop_factor * best_s if settings.stop_factor is not None and best_s is not None else math.inf
    probe_s = _probe(run, flush, limit_s)
    if probe_s > limit_s:
        return [probe_s], True
    min_repeat_s = settings.min_repeat_ms / 1000
    number = _grow(settings.number, probe_s, min_repeat_s)
    times: list[float] = []
    for _ in range(settings.repeat):
        if flush is None:
            repeat_s, number = _repeat(run, number, min_repeat_s)
        else:
            repeat_s = _repeat_flushed(run, flush, settings.number, min_repeat_s)
        times.append(repeat_s)
        if min(times) > limit_s:
            return times, True
    return times, False


def _probe(run: Callable[[int], float], flush: Callable[[], None] | None, limit_s: float) -> float:
    """Return the seconds of one run; if it seems too slow, which a busy machine may feign, of the shortest of some."""
    probe_s = spent_s = _flushed(run, flush)
    count = 1
    while probe_s > limit_s and (count < _PROBES or spent_s < _PROBING_S):
        again_s = _flushed(run, flush)
        probe_s, spent_s, count = min(probe_s, again_s), spent_s + again_s, count + 1
    return probe_s


def _flushed(run: Callable[[int], float], flush: Callable[[], None] | None) -> float:
    if flush is not None:
        flush()
    return run(1)


def _grow(number: int, run_s: float, min_repeat_s: float) -> int:
    return min(_MOST_RUNS, max(number, math.ceil(min_repeat_s / max(run_s, 1e-9))))


def _repeat(run: Callable[[int], float], number: int, min_repeat_s: float) -> tuple[float, int]:
    total_s = run(number)
    while total_s < 0.8 * min_repeat_s and number < _MOST_RUNS:  # the probe was cold: the kernel is faster than it
        number = max(_grow(number, total_s / number, min_repeat_s), min(_MOST_RUNS, 2 * number))
        total_s = run(number)
    return total_s / number, number


def _repeat_flushed(run: Callable[[int], float], flush: Callable[[], None], number: int, min_repeat_s: float) -> float:
    """Time single runs, each on empty caches, until there are enough; flushing counts toward the minimal length."""
    total_s, runs, start_s = 0.0, 0, time.monotonic()
    while runs < number or time.monotonic() - start_s < min_repeat_s:
        flush()
        total_s += run(1)
        runs += 1
    return total_s / runs
