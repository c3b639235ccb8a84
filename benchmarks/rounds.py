"""Timing of several functions in turn, in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

Timer = Callable[[], float]
"""Runs something, and returns its seconds."""

Name = TypeVar("Name", bound=Hashable)

PAUSE_S = 0.02
"""Between turns on a CPU: the other side's threads go on spinning for a few milliseconds after their last loop."""

POOL_PAUSE_S = 0.15
"""Between turns with onnxruntime: threads of its pool look for work 2^20 times before they sleep. On 16 cores (Emerald
Rapids) MobileNet takes 6.7 ms 20 ms after it, and 1.5 after so many, as in a process of its own."""

FINE_S = 1e-4
"""The longest step of a clock that short runs can be timed by."""


def clock_of_a_thread() -> Callable[[], float]:
    """Return a clock for what runs on one thread: of the CPU, in which others count least, else of the wall.

    Some virtual machines count seconds of the CPU in steps of 10 ms.
    """
    start_s = time.process_time()
    while (step_s := time.process_time() - start_s) == 0:
        pass
    return time.process_time if step_s <= FINE_S else time.perf_counter


def runs_by_clock(run_often: Callable[[int], object], clock: Callable[[], float], least_s: float) -> Timer:
    """Return a timer of a run, of as many as take `least_s`, after one that is not timed; `run_often` makes so many.

    As of calls: the first run finds in the shared cache what others have left there.
    """
    runs = 1

    def timed() -> float:
        nonlocal runs
        run_often(1)
        while True:
            start_s = clock()
            run_often(runs)
            taken_s = clock() - start_s
            if taken_s >= least_s:
                return taken_s / runs
            runs *= 2

    return timed


def call_by_clock(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Timer:
    """Return a timer of a call, after one that is not timed."""

    def timed() -> float:
        call()
        start_s = clock()
        call()
        return clock() - start_s

    return timed


def behind_one(timer: Timer) -> Timer:
    """Return a timer that gives the second of two measurements."""

    def timed() -> float:
        timer()
        return timer()

    return timed


def calls_by_clock(call: Callable[[], object], clock: Callable[[], float], least_s: float) -> Timer:
    """Return a timer of a call, of as many as take `least_s`, after one that is not timed."""

    def timed() -> float:
        call()
        number, start_s, taken_s = 0, clock(), 0.0
        while number == 0 or taken_s < least_s:
            call()
            number, taken_s = number + 1, clock() - start_s
        return taken_s / number

    return timed


def times_in_turn(timers: Mapping[Name, Timer], rounds: int, pause_s: float = 0.0) -> dict[Name, list[float]]:
    """Return what each timer gives in each round; the timers take turns, each after a pause."""
    found: dict[Name, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            time.sleep(pause_s)
            found[name].append(timer())
    return found


def medians_in_turn(timers: Mapping[Name, Timer], rounds: int, pause_s: float = 0.0) -> dict[Name, float]:
    """Return the median of what each timer gives, over rounds in which they take turns, each after a pause."""
    found = times_in_turn(timers, rounds, pause_s)
    return {name: statistics.median(times_s) for name, times_s in found.items()}


def in_turn(
    calls: Mapping[Name, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    pause_s: float = PAUSE_S,
) -> dict[Name, float]:
    """Return the median seconds of each function by a clock, after a call that is not timed; the functions take turns.

    Each begins `pause_s` after the one before it. `time.process_time` as the clock leaves out the time that others
    have the CPU, for functions of one thread.
    """
    return medians_in_turn({name: call_by_clock(call, clock) for name, call in calls.items()}, rounds, pause_s)
