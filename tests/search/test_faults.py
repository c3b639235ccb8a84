"""Real machine code that misbehaves: each fault becomes a record with its code, and the search goes on."""

import contextlib
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from pathlib import Path

import effort
import numpy as np
import numpy.typing as npt
import pytest
from patience import PATIENCE_S, hurried
from process_faults import HANG, PROCESS_FAULTS, loop
from processes import alive, marked_processes
from raw_llvm_backend import DOUBLE, one_line

from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records import file as rec
from loopwright.search.records.file import ErrorCode, Role
from loopwright.search.sketch.population import Mask, Rows
from loopwright.search.tune.loop import TuningOptions, TuningTask, tune

SOURCE = np.arange(64, dtype=np.float32)
TASK = MeasureTask("none", [SOURCE], [2 * SOURCE], [Tolerance(1e-6, 1e-6)])
OPTIONS = MeasureOptions(
    "raw_llvm_backend", builders=1, run_timeout_s=PATIENCE_S, timing=TimingSettings(repeat=2, min_repeat_ms=0.0)
)


MARK = f"LOOPWRIGHT_TEST=faults {os.getpid()}"


def check_faults(
    measurer: Measurer, faults: Mapping[str, tuple[str, Container[ErrorCode], str]], right: Callable[[int], str]
) -> None:
    """Measure each fault (its program, the codes and words that its record may have), and a program that is right.

    What never ends is under a limit of 0.8 s, and nothing else.
    """
    for number, (name, (body, codes, words)) in enumerate(faults.items()):
        with hurried(measurer, run_timeout_s=0.8) if "longer than" in words else contextlib.nullcontext():
            (bad,) = measurer.measure([body])
        (good,) = measurer.measure([right(number)])
        assert bad.error in codes and words in bad.message and bad.times_s == (), f"{name}: {bad.message}"
        assert good.ok, f"after '{name}': {good.message}"


def storing(pointer: str, offset: int, value: str = "3.0") -> str:
    return f"%at = getelementptr float, ptr {pointer}, i64 {offset}\n store float {value}, ptr %at"


FAULTS = {
    "loops forever": ("br label %spin\nspin:\n br label %spin\nnever:", ErrorCode.RUN_TIMEOUT, "longer than 0.8 s"),
    "writes past the end": (DOUBLE + storing("%y", 64), ErrorCode.WRONG_RESULT, "outside of argument 1"),
    "writes before the start": (DOUBLE + storing("%y", -1), ErrorCode.WRONG_RESULT, "outside of argument 1"),
    "writes past its input": (DOUBLE + storing("%x", 70), ErrorCode.WRONG_RESULT, "outside of argument 0"),
    "changes its input": (DOUBLE + storing("%x", 5), ErrorCode.WRONG_RESULT, "changed its input 0"),
    "writes to nowhere": (DOUBLE + storing("null", 3), ErrorCode.RUNTIME_ERROR, "killed by SIG"),
    "one wrong number": (DOUBLE + storing("%y", 7), ErrorCode.WRONG_RESULT, "1 of 64 elements differ"),
    "never writes": ("br label %done\ndone:", ErrorCode.WRONG_RESULT, "64 of them NaN (never written?)"),
    "a trap": ("call void @llvm.trap()\n unreachable\ndead:", ErrorCode.RUNTIME_ERROR, "killed by SIG"),
    "not a program": ("%what = frobnicate", ErrorCode.COMPILE_ERROR, "frobnicate"),
}


FAILED = set(ErrorCode) - {ErrorCode.OK}


def right(number: int) -> str:
    """A program that is right, and another than those of other numbers."""
    return DOUBLE + storing("%y", number, f"{2.0 * number}")


@pytest.mark.usefixtures("forked_workers")
def test_each_fault_has_its_code_and_spares_the_next() -> None:
    with Measurer(OPTIONS) as measurer:
        measurer.use(TASK)
        check_faults(measurer, {n: (body, {code}, words) for n, (body, code, words) in FAULTS.items()}, right)
        pids = measurer.pids
    assert not any(map(alive, pids))


@pytest.mark.slow(1.2)
def test_candidates_cannot_harm_the_process_they_run_in() -> None:
    """After most of them another process is started."""
    tried = effort.spread(list(PROCESS_FAULTS), 4 * effort.level())
    options = replace(OPTIONS, env=dict([MARK.split("=")]))
    with Measurer(options) as measurer:
        measurer.use(TASK)
        check_faults(measurer, {n: (PROCESS_FAULTS[n][0], FAILED, PROCESS_FAULTS[n][1]) for n in tried}, right)
        assert len(marked_processes(MARK)) == 4, "a builder, a runner and their guards"
    assert not marked_processes(MARK)


@pytest.mark.slow(1.2)
def test_a_candidate_that_forks_without_end_is_ended_before_its_time() -> None:
    options = replace(OPTIONS, env=dict([MARK.split("=")]))
    with Measurer(options) as measurer:
        measurer.use(TASK)
        bomb = loop("%f = call i32 @fork()", 9, HANG)  # 512 processes
        bad, good = measurer.measure([bomb, DOUBLE])
        assert "it started more than 256 processes" in bad.message and good.ok
    assert not marked_processes(MARK)


class Faulty:
    """A space of programs, one a row: two of three are faulty."""

    name = "faulty"
    n_decisions = 1

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return rng.permutation(30)[: min(n, 30), None].astype(np.int64)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self.sample(rng, len(rows))

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return a

    def legal(self, rows: Rows) -> Mask:
        return np.ones(len(rows), bool)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        return np.concatenate([rows, rows % 3], axis=1).astype(np.float32)

    def schedule(self, row: Rows) -> str:
        number = int(row[0])
        if number % 3 == 0:
            return one_line(right(number))
        faults = list(FAULTS.values())[4:]
        return one_line(faults[number // 3 % len(faults)][0] + f"\n ; {number}")


@pytest.mark.slow(1.2)
def test_a_search_among_faults_ends_with_a_right_schedule(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    default = one_line(FAULTS["writes to nowhere"][0])
    task = TuningTask("faults", "k", "none", "llvm", [Faulty()], default, TASK.inputs, TASK.expected, TASK.tolerances)
    options = replace(OPTIONS, env=dict([MARK.split("=")]))
    result = tune(task, TuningOptions(num_measure_trials=14, batch_size=7, records=path, progress=False), options)
    trials = [r for r in rec.load(path) if r.role is Role.TRIAL]
    assert len(trials) == 14 and trials == list(result.trials)
    assert result.best.ok and result.default is None
    assert next(r for r in trials if r.sketch == "default").error is ErrorCode.RUNTIME_ERROR
    codes = {r.error for r in trials}
    assert {ErrorCode.OK, ErrorCode.WRONG_RESULT, ErrorCode.RUNTIME_ERROR} <= codes
    assert not marked_processes(MARK)


@pytest.mark.usefixtures("forked_workers")
def test_the_same_machine_code_is_measured_once() -> None:
    with Measurer(OPTIONS) as measurer:
        measurer.use(TASK)
        first, note, other = measurer.measure([DOUBLE, DOUBLE + "\n ; a note", right(1)])
        assert (first.reused, note.reused, other.reused) == (False, True, False)
        assert note.times_s == first.times_s and note.artifact == first.artifact != other.artifact


# -- on a device with memory of its own -------------------------------------------------------------------------------

ON_DEVICE = {
    "past the end": ("y[i] = 2 * x[i]; if (i == 63) y[64] = 1;", ErrorCode.WRONG_RESULT, "outside of argument 1"),
    "before the start": ("y[i] = 2 * x[i]; y[-1 - i] = 1;", ErrorCode.WRONG_RESULT, "outside of argument 1"),
    "past its input": ("y[i] = 2 * x[i]; x[64 + i] = 1;", ErrorCode.WRONG_RESULT, "outside of argument 0"),
    "its input": ("y[i] = 2 * x[i]; x[i] = i + 1;", ErrorCode.WRONG_RESULT, "changed its input 0"),
    "wrong": ("y[i] = 3 * x[i];", ErrorCode.WRONG_RESULT, "63 of 64 elements differ"),
    "never written": ("if (i < 60) y[i] = 2 * x[i];", ErrorCode.WRONG_RESULT, "4 of them NaN"),
    "right at first": (
        "y[i] = y[i] != y[i] ? 2 * x[i] : -7;",  # while it is poisoned
        ErrorCode.WRONG_RESULT,
        "right at first, but after repeated runs: output 0: 64 of 64",
    ),
    "loops forever": ("volatile int n = 1; while (n) y[i] = n;", ErrorCode.RUN_TIMEOUT, "longer than"),
    "not a program": ("y[i] = frobnicate;", ErrorCode.COMPILE_ERROR, "frobnicate"),
}


@pytest.mark.slow
def test_faults_on_an_opencl_device() -> None:
    pytest.importorskip("pyopencl")
    with Measurer(replace(OPTIONS, backend="raw_opencl_backend")) as measurer:
        measurer.use(TASK)
        faults = {n: (body, {code}, words) for n, (body, code, words) in ON_DEVICE.items()}
        check_faults(measurer, faults, lambda n: f"y[i] = 2 * x[i]; /* {n} */")
