"""benchmarks/sanitize.py finds compute-sanitizer, runs a sample under it, and says whose kernel is complained about."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import loopwright as lw

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "sanitize.py"
REPORT = """========= COMPUTE-SANITIZER
loopwright kernel: 0 conv lw-lower-te-to-loop
loopwright kernel: 1 matmul lw-lower-te-to-loop,lw-split{block="c"}
========= Invalid __global__ read of size 4 bytes
=========     at main_k0+0x90
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f is out of bounds
========= Error: Race reported between Write access at main_k0+0xe0 and Read access at main_k0+0x100 [4 hazards]
loopwright kernel: 2 softmax lw-lower-te-to-loop
WRONG: 0.5 off
========= ERROR SUMMARY: 2 errors
"""


@pytest.fixture
def sanitize(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    spec = importlib.util.spec_from_file_location("sanitize", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sanitize", module)
    spec.loader.exec_module(module)
    return module


def stand_in(folder: Path, says: str) -> None:
    """A program named compute-sanitizer that prints a report."""
    program = folder / "compute-sanitizer"
    (folder / "report").write_text(says)
    program.write_text(f"#!/bin/sh\ncat {folder / 'report'}\n")
    program.chmod(0o755)


def test_complaints_are_those_of_the_kernel_before_them(sanitize: ModuleType) -> None:
    found = sanitize.complaints_in(REPORT)
    assert [name.split()[:2] for name in found] == [["1", "matmul"], ["2", "softmax"]]
    invalid, race = next(iter(found.values()))
    assert invalid == "Invalid __global__ read of size 4 bytes" and race.startswith("Error: Race reported between")
    assert sanitize.complaints_in("loopwright kernel: 0 a b\n========= ERROR SUMMARY: 0 errors\n") == {}
    clean = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
    assert sanitize.complaints_in(clean) == {}
    assert sanitize.complaints_in(clean.replace("0 hazards", "3 hazards")) == {"unknown": ["3 errors"]}


@pytest.mark.parametrize(("says", "code", "shown"), [(REPORT, 1, "2 kernels with complaints"), ("", 2, "says nothing")])
def test_a_run_with_a_program_that_stands_in(
    sanitize: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    says: str,
    code: int,
    shown: str,
) -> None:
    stand_in(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sanitize, "WORKLOADS", (sanitize.sums,))
    monkeypatch.setattr("sys.argv", ["sanitize", "--samples", "1", "--tools", "memcheck"])
    assert sanitize.main() == code
    printed = capsys.readouterr()
    assert shown in printed.out + printed.err


def test_without_it_one_sentence_says_so(
    sanitize: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sanitize.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr("sys.argv", ["sanitize"])
    assert sanitize.main() == 2
    error = capsys.readouterr().err
    assert "needs compute-sanitizer" in error and "nvidia-cuda-sanitizer-api" in error and error.count("\n") == 1


@pytest.mark.slow(1.2)
def test_the_sample_is_of_all_workloads_and_compiles(sanitize: ModuleType) -> None:
    samples = sanitize.draw(sanitize.WORKLOADS, "cuda model=h200", 1, 0)
    assert {sample.name for sample in samples} == {workload.__name__ for workload in sanitize.WORKLOADS}
    rng = np.random.default_rng(0)
    task = lw.SearchTask(sanitize.conv, target="cuda model=h200")
    drawn = sanitize.schedules_of(task, 3, rng)
    assert len(drawn) == len(set(drawn)) >= 3
