"""Rows that were drawn before are the ones that would be drawn, and leave the generator as it would be left."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright.search.sketch.draws import MOST_KEPT, KnownDraws, Rows
from loopwright.search.sketch.formula import Formulas
from loopwright.search.sketch.hole import Hole
from loopwright.search.sketch.population import Population

POWERS = tuple(2**n for n in range(11))


def held(formulas: Formulas, most: int, default: int = 1, more: tuple[int, ...] = ()) -> Population:
    """Six tiles of an axis whose product is held by a limit of its own, which few rows keep."""
    holes = tuple(Hole(f"x{i}", (*POWERS, *more), default, axis="x") for i in range(6))
    limit = lambda c: c["x0"] * c["x1"] * c["x2"] * c["x3"] * c["x4"] * c["x5"] <= most  # noqa: E731
    return Population(holes, (), (limit,), formulas)


def drawn(population: Population, n: int = 500) -> tuple[Rows, float]:
    """Rows, and what the generator gives after them."""
    rng = np.random.default_rng(0)
    return population.sample(rng, n), rng.random()


@pytest.mark.parametrize("most", [8, 2**30])
def test_populations_with_the_same_holes_and_limits_draw_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Formulas()
    rows, after = drawn(held(shared, most))
    monkeypatch.setattr(Population, "_tried", None)  # nothing is drawn again
    monkeypatch.setattr(Population, "_walked", None)
    again, after_again = drawn(held(shared, most))
    assert np.array_equal(rows, again) and after == after_again


@pytest.mark.parametrize(
    "other",
    [{"most": 16}, {"default": 4}, {"most": 2**30}, {"more": (3,)}],
    ids=["limit", "default", "easy", "choices"],
)
def test_what_differs_is_drawn_as_it_would_be_alone(other: dict[str, Any]) -> None:
    shared = Formulas()
    drawn(held(shared, 8))
    rows, after = drawn(held(shared, **{"most": 8, **other}))
    alone, after_alone = drawn(held(Formulas(), **{"most": 8, **other}))
    assert np.array_equal(rows, alone) and after == after_alone


def test_another_number_of_rows_or_state_of_the_generator_is_another_draw() -> None:
    population, alone = held(Formulas(), 8), held(Formulas(), 8)
    drawn(population)
    assert np.array_equal(drawn(population, 600)[0], drawn(alone, 600)[0])
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(2):
        assert np.array_equal(population.sample(one, 500), held(Formulas(), 8).sample(other, 500))


def test_the_last_draws_are_kept_and_those_of_other_generators_are_not() -> None:
    known, calls = KnownDraws(), list[int]()

    def draw(number: int) -> Rows:
        calls.append(number)
        return np.array([[number]])

    for number in [*range(MOST_KEPT + 1), MOST_KEPT, 0]:
        assert known.get(np.random.default_rng(0), number, partial(draw, number)) == number
    assert calls == [*range(MOST_KEPT + 1), 0]
    for _ in range(2):
        known.get(np.random.Generator(np.random.MT19937(0)), MOST_KEPT, partial(draw, -1))
    assert calls[-2:] == [-1, -1]


@pytest.mark.parametrize("name", ["conv_nchw_7x7", "two_layers", "attention", "softmax"])
@pytest.mark.parametrize("target", ["llvm model=emeraldrapids cores=1", "cuda model=h200"])
def test_sketches_draw_what_each_would_alone(name: str, target: str) -> None:
    for sketch in lw.SearchTask(SAMPLES[name], target=target).sketches:
        own = sketch.population
        alone = Population(own.holes, own.derived, own.limits)
        if own.holes:
            rows, after = drawn(own)
            expected, after_alone = drawn(alone)
            assert np.array_equal(rows, expected) and after == after_alone
