"""Kernels and networks are timed by one rule."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.time_evaluator import Repeats, flush_bytes, flushed


def timed(number: int | None, repeat: int, min_repeat_ms: float | None, run_s: float = 1e-3) -> tuple[list[int], int]:
    """The calls that timing makes, and the runs of a repeat."""
    calls: list[int] = []

    def run(runs: int) -> float:
        calls.append(runs)
        return runs * run_s

    return calls, Repeats(number, repeat, min_repeat_ms, 100.0).of(run).number


def test_a_number_of_runs_is_just_that_many() -> None:
    assert timed(1, 600, None) == ([1] * 600, 1)
    assert timed(7, 2, 0) == ([7, 7], 7)


def test_a_length_makes_it_as_many_as_take_so_long() -> None:
    for number in (None, 1, 20):
        calls, runs = timed(number, 3, 50.0)
        assert runs >= 50 and calls[-3:] == [runs] * 3
    assert timed(None, 1, None)[1] >= 100 and timed(400, 2, 50.0) == ([400, 400], 400)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"number": 0}, "number must be a whole number of at least 1, got 0"),
        ({"repeat": 0}, "repeat must be a whole number of at least 1, got 0"),
        ({"repeat": 2.5}, "repeat must be a whole number of at least 1, got 2.5"),
        ({"min_repeat_ms": -1}, "min_repeat_ms must be at least 0, got -1"),
        ({"flush": -1}, "flush must be True, or bytes of at least 0, got -1"),
    ],
)
def test_bad_options_are_one_sentence(kernel: lw.Kernel, options: dict[str, int], sentence: str) -> None:
    benchmark: Callable[..., object] = kernel.benchmark
    with pytest.raises(ValueError, match=sentence):
        benchmark(**options)


def test_a_flush_comes_before_each_run_and_is_not_timed() -> None:
    done: list[str] = []

    def run(runs: int) -> float:
        done.extend(["run"] * runs)
        return runs * 1.0

    assert flushed(run, lambda: done.append("flush"))(2) == 2.0 and done == ["flush", "run"] * 2
    assert flushed(run, None) is run
    assert (flush_bytes(True, 64), flush_bytes(False, 64), flush_bytes(12, 64)) == (128, 0, 12)


@pytest.fixture(scope="module")
def kernel() -> lw.Kernel:
    x = te.placeholder((16,), name="x")
    return lw.build(te.create_module([x, topi.nn.relu(x)]), "llvm cores=1")


def test_kernels_and_networks_take_the_same_options(kernel: lw.Kernel) -> None:
    net = lw.Network("one")
    net.output(net.relu(net.input("x", (16,))))
    executor = lw.compile(net, "llvm cores=1").executor()
    for timing in (kernel.benchmark, executor.benchmark):
        many = timing(number=1, repeat=60)
        assert len(many.times_s) == 60 and many.number == 1 and min(many.times_s) > 0
        cold = timing(number=2, repeat=2, flush=1 << 16)
        assert len(cold.times_s) == 2 and cold.number == 2
    data = np.full(16, -1, np.float32)
    executor.set_input(x=data)
    executor.benchmark(number=1, repeat=1, flush=True)
    np.testing.assert_array_equal(executor.get_output(0), 0 * data)


def test_short_times_are_shown_with_three_digits() -> None:
    assert str(lw.BenchmarkResult((1.5e-3, 2.5e-3), 1)) == "median 2.0000 ms, mean 2.0000 ms, std 0.5000 ms"
    short = lw.BenchmarkResult((2.25e-8, 2.25e-8, 3.15e-8), 1_000_000)
    assert str(short) == "median 0.0000225 ms, mean 0.0000255 ms, std 0.0000042 ms"
    assert str(lw.BenchmarkResult((0.0,), 1)) == "median 0.0000 ms, mean 0.0000 ms, std 0.0000 ms"
