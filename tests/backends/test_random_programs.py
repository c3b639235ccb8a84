"""Random programs under random schedules compute on each backend what NumPy says, and touch nothing but their buffers.

`make trust` tries tens of thousands; `python tests/support/program_trials.py KIND SEED` shows one program again.
"""

from itertools import islice
from random import Random

import numpy as np
import program_trials
import pytest
from effort import exploring, usual
from gpu_programs import opencl_device
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_oracle import WIDE, Value, evaluate, random_inputs, reduced, wrong
from program_trials import CPU, FAULTS, TRIALS, Outcome, Problem, on_llvm, scheduled_by_hand, try_one
from random_programs import random_program
from trial_pool import spread
from trust.candidates import run as run_section
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects import kernel as kernel_dialect
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.kernel.types import int_attr

EXPLORE = exploring()


def programs(count: int) -> range:
    """Seeds: the same in every run, others when exploring."""
    return range(100_000, 100_000 + 50 * count) if EXPLORE else range(count)


def test_numpy_and_the_interpreter_agree() -> None:
    """Two meanings of a program that share no code; few values are open to rounding."""
    values = opened = 0
    for seed in programs(120):
        program = random_program(Random(seed))
        try:
            module = te.create_module(program.tensors())
        except te.ExpressionError:
            continue
        inputs = random_inputs(program, seed)
        expected = evaluate(program, inputs)
        for number, (value, got) in enumerate(zip(expected, run_te(module, inputs, "native"), strict=True)):
            assert wrong(value, got) is None, f"seed {seed}, output {number}\n{module}"
            values += value.e.size
            opened += int(np.isinf(value.e).sum())
    assert opened < values / 20


@pytest.mark.parametrize(
    ("combiner", "numbers", "opened"),
    [
        ("add", [40000, 40000, -60000], True),
        ("add", [10000, 10000, -20000], False),
        ("mul", [3000, 3000, 0.001], True),
        ("mul", [3000, 3, 0.001], False),
    ],
)
def test_results_that_may_overflow_on_the_way_are_open(combiner: str, numbers: list[float], opened: bool) -> None:
    """In which order terms are taken is the schedule's: 40000 + 40000 does not fit a half, whatever follows."""
    terms = Value(np.array([numbers], WIDE), np.zeros((1, 3)), "float16")
    assert np.isinf(reduced(combiner, terms).e[0]) == opened


def no_faults(outcomes: list[tuple[int, Outcome]], least: int) -> None:
    found = [f"seed {seed}: {fault.kind}: {fault.what}" for seed, outcome in outcomes for fault in outcome.faults]
    assert not found, "\n\n".join(found)
    assert sum(outcome.tried for _, outcome in outcomes) >= least


@given(st.randoms(use_true_random=False))
@settings(max_examples=400 if EXPLORE else 6 * usual(4), suppress_health_check=[*HealthCheck])
def test_hand_schedules_on_llvm(random: Random) -> None:
    """Hypothesis draws program and schedule, and shrinks what fails."""
    try:
        problem = Problem.of(random, 0, CPU.format(64))
    except te.ExpressionError:
        return
    outcome = Outcome()
    try_one(problem, *scheduled_by_hand(problem, random), random, on_llvm, outcome)
    no_faults([(0, outcome)], 0)


def test_seeded_hand_schedules_on_llvm() -> None:
    no_faults([(seed, TRIALS["llvm-hand"](seed, 2)) for seed in programs(3 * usual(5))], 4 * usual(5))


def test_candidates_on_llvm() -> None:
    no_faults([(seed, TRIALS["llvm-candidates"](seed, 2)) for seed in programs(4 * usual(4))], 4 * usual(4))


@pytest.mark.parametrize("kind", ["interpreted-hand", "interpreted-candidates"])
def test_schedules_interpreted_as_for_cuda(kind: str) -> None:
    no_faults([(seed, TRIALS[kind](seed, 2)) for seed in programs(3 * usual(8))], 2)


@pytest.mark.parametrize("kind", ["opencl-hand", "opencl-candidates"])
@pytest.mark.few(1)
def test_schedules_on_opencl(kind: str) -> None:
    opencl_device()
    no_faults([(seed, TRIALS[kind](seed, 2)) for seed in programs(2 * usual(3))], usual(3))


@pytest.mark.slow(1.2)
def test_moved_accesses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in which one access is off by one: nearly all are caught, unless nothing depends on that access."""

    def moved(module: ModuleOp) -> ModuleOp:
        kernel = lower_to_kernel(module)
        accesses = [op for op in kernel.walk() if isinstance(op, kernel_dialect.LoadOp | kernel_dialect.StoreOp)]
        op = Random(len(accesses)).choice(accesses)
        op.properties["offset"] = int_attr(op.offset.data + 1)
        return kernel

    monkeypatch.setattr(program_trials, "lower_to_kernel", moved)
    outcomes = [TRIALS["llvm-hand"](seed, 1) for seed in range(15 * usual(2))]
    kinds = {fault.kind for outcome in outcomes for fault in outcome.faults}
    assert {FAULTS[0], FAULTS[2]} <= kinds, "wrong values and accesses outside of buffers"
    assert sum(bool(outcome.faults) for outcome in outcomes) >= 0.7 * sum(outcome.tried for outcome in outcomes)


@pytest.mark.slow
def test_a_trial_that_dies_or_hangs_is_an_answer() -> None:
    trials = [("", 3), ("dies", 1), ("", 4), ("hangs", 2), ("", 5)]
    answers = {a.arguments: a for a in spread("misbehaving:misbehave", trials, jobs=2, limit_s=15)}
    assert [answers["", n].result for n in (3, 4, 5)] == [9, 16, 25]
    assert answers["dies", 1].died == "ended by SIGSEGV"
    assert answers["hangs", 2].died == "hung for 15 s"


@pytest.mark.slow(1.2)
def test_the_long_run_in_short() -> None:
    rows = list(islice(run_section(scale=0.0004, seed=3, jobs=1), 2))
    assert [row.what for row in rows] == ["hand schedules on LLVM", "candidates on LLVM"]
    assert all(row.holds and set(row.bad) == set(FAULTS) for row in rows)
