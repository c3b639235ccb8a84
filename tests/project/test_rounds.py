"""Timing of what takes turns in benchmarks: the order, the medians, and what a clock sees of a call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from neighbours import MOST_OF_OTHERS, TRIES, of_others, undisturbed
from rounds import call_by_clock, calls_by_clock, in_turn, medians_in_turn, runs_by_clock, times_in_turn


class Clock:
    """A clock that goes on by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_timers_take_turns() -> None:
    order: list[str] = []
    timers = {name: lambda name=name: order.append(name) or float(len(order)) for name in ("a", "b")}
    assert times_in_turn(timers, 3) == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}
    assert order == ["a", "b"] * 3


def test_medians_are_those_of_each_timer() -> None:
    given = {"a": iter([9.0, 1.0, 2.0]), "b": iter([5.0, 7.0, 6.0])}
    assert medians_in_turn({name: values.__next__ for name, values in given.items()}, 3) == {"a": 2.0, "b": 6.0}


def test_the_first_call_of_a_turn_is_not_timed() -> None:
    clock, steps = Clock(), iter([100.0, 1.0, 100.0, 3.0, 100.0, 2.0])

    def call() -> None:
        clock.now_s += next(steps)

    assert in_turn({"call": call}, 3, clock, pause_s=0.0) == {"call": 2.0}


def test_a_call_behind_another_is_timed_by_the_clock_given() -> None:
    clock = Clock()

    def call() -> None:
        clock.now_s += 0.5

    assert call_by_clock(call, clock)() == 0.5
    assert clock.now_s == 1.0


def test_as_many_calls_as_take_the_least_time_share_it() -> None:
    clock, made = Clock(), []

    def call() -> None:
        made.append(1)
        clock.now_s += 0.25

    assert calls_by_clock(call, clock, least_s=1.0)() == 0.25
    assert len(made) == 1 + 4


def test_runs_are_doubled_until_they_take_the_least_time() -> None:
    clock, asked = Clock(), []

    def run_often(number: int) -> None:
        asked.append(number)
        clock.now_s += 0.25 * number

    timed = runs_by_clock(run_often, clock, least_s=1.0)
    assert (timed(), timed()) == (0.25, 0.25)
    assert asked == [1, 1, 2, 4, 1, 4], "one that is not timed, each time"


def test_a_turn_that_others_disturb_is_taken_again() -> None:
    length_ns = 10**12  # more than any turn here takes
    seen = iter([{"1": 0}, {"1": length_ns}, {"1": 0}, {"1": 5, "2": length_ns}])
    given = iter([9.0, 2.0, 1.0])
    assert undisturbed(given.__next__, seen=seen.__next__)() == 2.0
    assert next(given) == 1.0


def test_of_disturbed_turns_the_one_counts_in_which_others_had_least() -> None:
    seen = iter([each for had in (4, 3, 1, 2)[:TRIES] for each in ({"1": 0}, {"1": had * 10**12})])
    given = iter([1.0, 2.0, 3.0, 4.0])
    assert MOST_OF_OTHERS < 1
    assert undisturbed(given.__next__, seen=seen.__next__)() == 3.0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not say it")
def test_threads_of_others_are_seen_and_our_own_are_not() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before = of_others()
        while of_others().get(str(busy.pid), 0) <= before.get(str(busy.pid), 0):
            pass
    finally:
        busy.kill()
        busy.wait()
    assert not set(os.listdir("/proc/self/task")) & set(of_others())
