"""Estimates and limits as programs: they give what NumPy gives, bit for bit, or leave it to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch import arrays
from loopwright.search.sketch.expression import NoExpressionError, also, is_nowhere, mapped
from loopwright.search.sketch.formula import WORTH_ROWS, Estimate, Formula, total_seconds
from loopwright.search.sketch.hole import Columns, Derived, Hole
from loopwright.search.sketch.population import Population

CUDA, CORE = "cuda model=h200", "llvm model=emeraldrapids cores=1"


def convolution(channels: int, size: int, filters: int, stride: int = 1) -> list[te.Tensor]:
    data, kernel = te.placeholder((1, channels, size, size)), te.placeholder((filters, channels, 3, 3))
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, stride, 1))]


def product(rows: int, columns: int, terms: int) -> list[te.Tensor]:
    a, b = te.placeholder((rows, terms)), te.placeholder((terms, columns))
    return [a, b, topi.nn.matmul(a, b)]


@pytest.mark.parametrize("target", [CUDA, CORE])
@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(partial(convolution, 32, 14, 48), id="conv"),
        pytest.param(partial(convolution, 17, 13, 40, 2), id="strided-conv"),
        pytest.param(partial(product, 190, 70, 300), id="matmul"),
    ],
)
def test_sketches_have_formulas_that_give_what_numpy_gives(
    operator: Callable[[], list[te.Tensor]], target: str
) -> None:
    for sketch in lw.SearchTask(operator(), target=target).sketches:
        numbers: list[Hole | Derived] = [*sketch.holes, *sketch.derived]
        rows = np.random.default_rng(1).integers(0, sketch.sizes, size=(300, len(sketch.holes)))
        columns = sketch.columns(rows)
        assert isinstance(sketch.prior, Estimate)
        functions: list[Callable[[Columns], Any]] = [*sketch.limits, partial(total_seconds, sketch.prior.models)]
        for function in functions:
            found = Formula(function, numbers)(columns, len(rows))
            with np.errstate(all="ignore"):
                expected = np.broadcast_to(np.asarray(function(columns), dtype=np.float64), found.shape)
            np.testing.assert_array_equal(found, expected)


COLUMNS = {"a": np.arange(1, 41), "b": np.arange(40, 0, -1)}
NUMBERS = (Hole("a", tuple(range(1, 41)), 1), Hole("b", tuple(range(1, 41)), 1))


@mapped
def halves(a: Any) -> Any:
    return np.asarray(a) // 2


FUNCTIONS: dict[str, Callable[[Columns], Any]] = {
    "arithmetic": lambda c: (c["a"] + 3) * c["b"] - c["a"] / c["b"] + 7 // c["a"] + c["b"] % 5 + (-c["a"]) // 3,
    "reversed": lambda c: 2 - c["a"] + 3 * c["b"] + 4 / c["a"] + 9 % c["b"],
    "truths": lambda c: ((c["a"] > 3) & (c["b"] >= 4) | ~(c["a"] != c["b"])) | (c["a"] <= 2),
    "truths as numbers": lambda c: (c["a"] > 3) * 1.5 + arrays.sum([c["a"] > 2, c["b"] > 2], axis=0),
    "powers": lambda c: (c["a"] / 3.0) ** 0.5 + (c["a"] / 7) ** 2 + (c["b"] / 3) ** 8.0 + 1.35 ** c["a"],
    "powers of powers": lambda c: ((c["a"] * 0.1) ** 8.0 + (c["b"] * 0.1) ** 8.0) ** 0.125,
    "functions": lambda c: arrays.maximum(c["a"], 7) + arrays.minimum(c["b"], c["a"]) + arrays.gcd(c["a"], 12),
    "rounded": lambda c: arrays.ceil(c["a"] / 3) + (c["a"] / 3).astype(np.int64) + arrays.ceil(c["b"]),
    "towards zero": lambda c: (c["a"] / 3 - 5).astype(np.int64) + arrays.asarray(2.5 - c["b"] / 4, int),
    "chosen": lambda c: arrays.where(c["a"] % 4 == 0, 4.0, arrays.where(c["a"] > 9, 2.0, 1)) + arrays.sign(c["a"] - 5),
    "made": lambda c: arrays.ones(len(c["a"])) * arrays.full(len(c["a"]), 3) + arrays.zeros_like(c["a"]) + c["b"],
    "clipped": lambda c: arrays.clip(c["a"] * 1.5, 3, 20.0) + arrays.prod([c["a"], c["b"]], axis=0),
    "masks": lambda c: arrays.all([c["a"] > 2, c["b"] > 2], axis=0) | arrays.any([c["a"] > 38, c["b"] > 39], axis=0),
    "most": lambda c: arrays.max([c["a"] * 1.0, c["b"] * 2.0], axis=0) + arrays.asarray(c["a"], np.float64),
    "mapped": lambda c: halves(c["a"] * 3) + halves(halves(c["b"])) + halves(c["a"] * 3),
    "narrowed": lambda c: also(c["a"] > 9, c, lambda d: d["b"] > 5, lambda m: {n: v[m] for n, v in c.items()}),
    "nowhere": lambda c: c["a"] if is_nowhere(c["a"] > 90) else arrays.where(c["a"] > 90, c["b"], c["a"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_arrays_take_expressions(name: str) -> None:
    function = FUNCTIONS[name]
    found = Formula(function, NUMBERS)(COLUMNS, 40)
    np.testing.assert_array_equal(found, np.asarray(function(COLUMNS), dtype=np.float64))


def of_arrays_alone(c: Columns) -> Any:
    if not isinstance(c["a"], np.ndarray):
        raise ValueError("columns are arrays")
    return c["a"] > 3


REFUSED: dict[str, Callable[[Columns], Any]] = {
    "tested": lambda c: c["a"] if (c["a"] > 3).any() else c["b"],
    "branches": lambda c: c["a"] if c["a"] > 3 else c["b"],
    "numpy's own": lambda c: np.cumsum(c["a"]),
    "looked up": lambda c: np.arange(50)[c["a"]],
    "assigned": lambda c: c["a"].__setitem__(0, 1),
    "raises what it likes": of_arrays_alone,
    "fewer bits": lambda c: (c["a"] / 3).astype(np.float32) * 2,
    "fewer bits that wrap": lambda c: c["a"].astype(np.uint8) * 10,
    "made of fewer bits": lambda c: c["a"] * arrays.ones(len(c["a"]), np.int32),
    "no arithmetic of truths": lambda c: (c["a"] > 1) + (c["b"] > 1),
    "no expression": lambda c: 1.0,
    "unknown": lambda c: c["c"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_expressions_have_not_is_left_to_numpy(name: str) -> None:
    with pytest.raises(NoExpressionError):
        Formula(REFUSED[name], NUMBERS)


def test_derived_numbers_are_part_of_a_formula() -> None:
    area = Derived("area", lambda c: c["a"] * c["b"], 1)
    found = Formula(lambda c: c["area"] + 1, (*NUMBERS, area))(COLUMNS, 40)
    np.testing.assert_array_equal(found, COLUMNS["a"] * COLUMNS["b"] + 1)


@pytest.mark.parametrize(
    "limit", [lambda c: c["a"] * c["b"] < 300, lambda c: np.isin(c["a"], (2, 3, 5)), of_arrays_alone]
)
def test_limits_say_the_same_of_many_rows_as_of_few(limit: Callable[[Columns], Any]) -> None:
    population = Population(NUMBERS, (), (limit, lambda c: c["a"] % 2 == 1))
    rows = np.random.default_rng(0).integers(0, 40, size=(2 * WORTH_ROWS, 2))
    few = np.concatenate([population.legal(part) for part in np.array_split(rows, 80)])
    np.testing.assert_array_equal(Population(NUMBERS, (), population.limits).legal(rows), few)
