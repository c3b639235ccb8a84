"""Timing of what takes turns in benchmarks: the order, the medians, and what a clock sees of a call."""

from __future__ import annotations

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
