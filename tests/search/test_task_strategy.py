"""Strategies of the task scheduler: round robin, gradients, and several ways to compute the same."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.search.tune.task_strategy import (
    FAR_BEHIND,
    Gradient,
    RoundRobin,
    TaskHistory,
    far_behind,
    make_strategy,
)


def histories(*latencies: Sequence[float], flop: float = 1.0, group: str | None = None) -> list[TaskHistory]:
    return [TaskHistory(flop, group, list(one)) for one in latencies]


def test_every_task_has_a_round_before_any_has_two() -> None:
    tasks = histories([5.0], [], [])
    for strategy in (Gradient(), RoundRobin()):
        assert strategy.choose(tasks, sum) == 1
    tasks[1].alive = False
    assert Gradient().choose(tasks, sum) == RoundRobin().choose(tasks, sum) == 2


def test_round_robin_goes_round() -> None:
    tasks = histories([], [], [])
    chosen = []
    for _ in range(7):
        number = RoundRobin().choose(tasks, sum)
        assert number is not None
        chosen.append(number)
        tasks[number].latencies_s.append(1.0)
    assert chosen == [0, 1, 2, 0, 1, 2, 0]


def test_gradient_follows_weight_latency_rounds_and_progress() -> None:
    def total(latencies: Sequence[float]) -> float:
        return latencies[0] + 10 * latencies[1]

    assert Gradient().choose(histories([1.0], [0.2]), total) == 1  # weight
    assert Gradient().choose(histories([1.0], [0.05]), total) == 0  # latency
    assert Gradient().choose(histories([1.0] * 4, [0.05]), total) == 1  # rounds without gain
    improving, stuck = [2.0, 1.6, 1.3, 1.1, 1.0], [1.0] * 5
    assert Gradient(alpha=0.8).choose(histories(stuck, improving), sum) == 1
    assert Gradient().choose(histories([1.0], [0.2]), lambda g: max(g)) == 0  # an objective that is no sum


def test_gains_are_those_of_the_formula() -> None:
    gains = Gradient(alpha=0.2, beta=2.0, gamma=0.0, window=3).gains(
        histories([8.0, 6.0, 5.0, 4.0]), lambda g: 3 * g[0]
    )
    assert gains == [pytest.approx(3 * (0.2 * (8.0 - 4.0) / 3 + 0.8 * 4.0 / 4), rel=1e-6)]
    faster = Gradient(gamma=1.0, alpha=0.0).gains(histories([4.0] * 4), sum)
    assert faster == [pytest.approx(4.0 / 16, rel=1e-6)]


def test_of_two_ways_the_slower_has_to_gain_what_makes_it_the_faster() -> None:
    def faster(latencies: Sequence[float]) -> float:
        return min(latency for latency in latencies if latency)

    strategy = Gradient(alpha=0.0)
    near, far = (
        strategy.gains(histories([1.0] * 4, [1.1] * 4), faster),
        strategy.gains(histories([1.0] * 4, [2.0] * 4), faster),
    )
    assert near == [pytest.approx(1.0 / 8), pytest.approx(1.0 - 1.1 * 7 / 8)] and far == [pytest.approx(1.0 / 8), 0.0]
    failed = histories([1.0], [math.inf])
    assert Gradient().choose(failed, faster) == 0, "there is an objective without it"


def test_a_way_that_is_far_behind_another_one_is_found_when_each_was_tried() -> None:
    tasks = histories([1.0], [1.01 * FAR_BEHIND], [0.99 * FAR_BEHIND], [9.0], [1.0], [])
    assert far_behind(tasks, [[0, 1, 2], [3], [4, 5]]) == [1]


def test_the_objective_counts_the_fastest_of_the_ways_to_compute_the_same() -> None:
    net = lw.Network("one")
    weight = net.constant(np.ones((4, 4, 3, 3), np.float32), "w")
    net.output(net.global_avg_pool(net.conv2d(net.input("data", (1, 4, 8, 8)), weight, padding=1)))
    tasks, _ = lw.extract_tasks(net, "llvm cores=1", winograd=True)
    scheduler = lw.TaskScheduler(tasks, [2.0, 2.0, 2.0, 1.0])
    assert scheduler.objective([5.0, 4.0, 3.0, 1.0]) == 7.0
    assert scheduler.objective([5.0, math.inf, math.inf, 1.0]) == 11.0
    assert lw.TaskScheduler([tasks[2], tasks[1], tasks[0]]).objective([5.0, 4.0, 3.0]) == 3.0
    assert lw.TaskScheduler(tasks[1:]).objective([4.0, 3.0, 1.0]) == 4.0  # the direct way is not tuned
    assert lw.TaskScheduler([tasks[0], tasks[0]]).objective([2.0, 3.0]) == 5.0


def test_a_task_far_behind_its_group_has_more_to_gain() -> None:
    alone = histories([1.0] * 4, [0.1] * 4)
    together = histories([1.0] * 4, [0.1] * 4, group="conv")
    plain, alike = (Gradient(alpha=0.0, beta=2.0).gains(tasks, sum) for tasks in (alone, together))
    assert alike[0] == pytest.approx(1.0 - 2 * 0.1, rel=1e-3) and plain[0] < 0.2
    assert alike[1] == plain[1]
    unlike = histories([1.0] * 10, [0.1] * 4, group="conv")  # many rounds more, and still behind
    assert Gradient(alpha=0.0, beta=2.0).gains(unlike, sum)[0] < 0.1


def test_a_task_without_a_right_trial_is_tried_again_before_others() -> None:
    tasks = histories([1.0], [math.inf])
    assert Gradient().choose(tasks, sum) == 1
    tasks[1].alive = False
    assert Gradient().choose(tasks, sum) == 0
    tasks[0].alive = False
    assert Gradient().choose(tasks, sum) is None and RoundRobin().choose(tasks, sum) is None


@pytest.mark.parametrize("wrong", [{"alpha": 1.5}, {"beta": 0.5}, {"gamma": -1.0}, {"window": 0}])
def test_constants_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs 0 <= alpha <= 1"):
        Gradient(**wrong)


def test_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown strategy 'best'; there are: gradient, round-robin"):
        make_strategy("best")
