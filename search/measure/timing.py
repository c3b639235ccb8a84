"""Timing of a kernel: probes, repeats of a minimal length, and giving up on slow ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

_MOST_RUNS = 1_000_000
"""Runs of a repeat: a second of the shortest kernels, of 1 us."""
_PROBES = 3
"""Probes of a kernel that seems slower than all that are wanted, at least: the first is cold."""
_PROBE_S = 0.001
"""A probe that decides is so many seconds long: launches alone take a few microseconds each."""


@dataclass(frozen=True)
class TimingSettings:
    """A repeat takes at least `number` runs and `min_repeat_ms`; before every run `flush_bytes` are touched if not 0.

    A kernel slower than `stop_factor` times the best known one is not timed to the end (None: always to the end); one
    that seems so is probed for `probing_ms` first, by when some time slices of other processes are over. The device
    rests for `cooldown_s` seconds before each kernel, which then runs for `warm_up_ms` without being timed, as idle
    devices lower their clocks. Constants are read from copies in turn, of `constant_bytes` all together, if not 0 and
    where the backend can.
    """

    number: int = 1
    repeat: int = 3
    min_repeat_ms: float = 50.0
    stop_factor: float | None = 2.0
    probing_ms: float = 20.0
    flush_bytes: int = 0
    cooldown_s: float = 0.0
    warm_up_ms: float = 0.0
    constant_bytes: int = 0

    def __post_init__(self) -> None:
        if self.number < 1 or self.repeat < 1:
            raise ValueError(f"number and repeat must be at least 1, got {self.number} and {self.repeat}")
        if self.stop_factor is not None and self.stop_factor <= 1:
            raise ValueError(f"stop_factor must be above 1, or None to time all to the end, got {self.stop_factor}")


ONCE = TimingSettings(repeat=1, min_repeat_ms=0.0, stop_factor=None)
"""Those of a kernel that only has to run."""
GPU_TIMING = TimingSettings(min_repeat_ms=3.0, warm_up_ms=2.0, stop_factor=1.5, probing_ms=0.0)
"""For devices with a clock of their own, which nothing else uses: hundreds of runs of a short kernel in a repeat, and a
slow one is known to be so by the shortest of three probes. Of a trial of 17 to 34 ms (H200, 5 ms a repeat) timing was
all but 2.5; the winner is found by longer ones."""


CPU_TIMING = TimingSettings(repeat=5, min_repeat_ms=10.0)
"""For CPUs, as timed by `on_cores`: many short repeats, as other processes may be at work in any of them."""


def on_cores(cores: int, cache_bytes: int) -> TimingSettings:
    """Settings for so many cores, each with a cache of its own of so many bytes, which keep no constants between runs.

    In a network they come from further away, as all other layers are run in between. Of 40 kernels of two networks (two
    threads of an Emerald Rapids, 5 to 19 candidates each) the one that is fastest with constants in near caches takes
    1.00 times as long as the untuned one with constants from far, the fastest with these 0.985.
    """
    return replace(CPU_TIMING, constant_bytes=2 * cores * cache_bytes)


def measure_times(
    run: Callable[[int], float], settings: TimingSettings, best_s: float | None, flush: Callable[[], None] | None = None
) -> tuple[list[float], bool]:
    """Return seconds per run, one number a repeat, and whether it was stopped early as clearly slower.

    `run(n)` runs n times back to back and returns the seconds; `flush` empties the caches.
    """
    if settings.cooldown_s:
        time.sleep(settings.cooldown_s)
    limit_s = settings.stop_factor * best_s if settings.stop_factor is not None and best_s is not None else math.inf
    if settings.warm_up_ms:
        _warm_up(run, settings.warm_up_ms / 1000)
    probe_s = _probe(run, flush, limit_s, settings.probing_ms / 1000)
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


def _warm_up(run: Callable[[int], float], length_s: float) -> None:
    first_s = run(1)
    if first_s < length_s:
        run(_grow(1, first_s, length_s))


def _probe(run: Callable[[int], float], flush: Callable[[], None] | None, limit_s: float, probing_s: float) -> float:
    """Return the seconds of one run; if it seems too slow, which a busy machine may feign, of the shortest of some."""
    probe_s = spent_s = _flushed(run, flush)
    count = 1
    while probe_s > limit_s and (count < _PROBES or spent_s < probing_s):
        runs = 1 if flush is not None else _grow(1, probe_s, _PROBE_S)
        again_s = _flushed(run, flush, runs)
        probe_s, spent_s, count = min(probe_s, again_s), spent_s + runs * again_s, count + 1
    return probe_s


def _flushed(run: Callable[[int], float], flush: Callable[[], None] | None, runs: int = 1) -> float:
    if flush is not None:
        flush()
    return run(runs) / runs


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
