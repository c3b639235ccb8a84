"""`loopwright tune`: what it searches, reports and leaves behind, and what it says where that cannot be."""

import argparse
import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from commands import call
from patience import PATIENCE_S, wait_until
from tuned_commands import QUICK, TUNE, Tuned

import loopwright as lw
from loopwright.command._searching import add_search_options, as_flag
from loopwright.search.named_workloads import arguments, named_workloads
from loopwright.search.records import file as rec
from loopwright.search.template import registry
from loopwright.search.tuners.names import TUNERS

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_tune_reports_what_was_reached(tuned: Tuned) -> None:
    for text in ("latency", "GFLOP/s", "of the ", "right: max abs error", "4, errors: none"):
        assert text in tuned.output
    laps = r"untuned +[\d.]+ [num]?s \(median [\d.]+ [num]?s\); "
    assert re.search(laps + r"(the tuned kernel is \d+\.\d\d times as fast|the default schedule won)", tuned.output)
    assert "T_matmul(i, j) += a[i, k] * b[k, j]" in tuned.output
    assert "matmul 4/4" in tuned.progress


def test_the_printed_command_replays_the_schedule(tuned: Tuned) -> None:
    """As printed, in a shell where `xdsl-opt` need not be on the path."""
    command = tuned.output.strip().splitlines()[-1].strip()
    assert command.startswith("sh matmul.") and command.endswith(".replay.sh")
    done = subprocess.run(["bash", "-c", command], cwd=tuned.folder, capture_output=True, text=True, check=True)
    record = rec.best(rec.load(tuned.records))
    workload = named_workloads()["matmul"]
    task = lw.SearchTask(workload, arguments(workload, {"m": 20, "n": 36, "k": 16}))
    assert done.stdout.strip() == str(task.schedule_module(record.schedule)).strip()


def test_tune_goes_on_from_the_file_and_says_so(tuned: Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matmul.jsonl").write_bytes(Path(tuned.records).read_bytes())
    code, out, err = call(*TUNE[:-1], "6", "--json", "--strategy", "grid")
    report = json.loads(out)
    assert code == 0
    assert "matmul.jsonl (exists: gone on with)" in err
    assert (report["trials"], report["resumed"]) == (6, 4)
    assert report["right"] and report["gflops_per_s"] > 0
    best, untuned = rec.best(rec.load("matmul.jsonl")), rec.load("matmul.jsonl")[0].schedule
    timed = [r for r in rec.load("matmul.jsonl") if r.role is not rec.Role.TRIAL]
    laps = next(r.times_s for r in reversed(timed) if r.schedule == untuned)
    assert report["speedup"] == pytest.approx(median(laps) / median(best.times_s)) and report["speedup"] >= 1
    assert Path(report["workload_file"]).is_file()
    assert {sum(r.decisions) for r in rec.load("matmul.jsonl")[4:] if r.role is rec.Role.TRIAL} <= {0, 1}  # a grid's


def test_nothing_is_measured_when_the_file_holds_all_trials(
    tuned: Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("matmul.jsonl").write_bytes(Path(tuned.records).read_bytes())
    code, out, _ = call(*TUNE)
    assert code == 0
    assert "4 (4 from the records; --more-trials N measures N new ones)" in out
    assert Path("matmul.jsonl").read_bytes() == Path(tuned.records).read_bytes()


def test_sentences_name_options_as_the_command_line_has_them(tuned: Tuned, tmp_path: Path) -> None:
    """Also those that the search says, which Python hears with keywords."""
    again = tmp_path / "matmul.jsonl"
    again.write_bytes(Path(tuned.records).read_bytes())
    _, _, err = call(*TUNE, "--records", str(again))
    assert "none is new; --more-trials N measures N new ones" in err
    assert as_flag("num_measure_trials", 8) == "--trials 8"


def test_every_spelling_is_an_option_of_the_command() -> None:
    parser = argparse.ArgumentParser()
    add_search_options(parser)
    for keyword in ("num_measure_trials", "more_trials", "seed", "early_stopping", "time_limit_s", "strategy"):
        assert as_flag(keyword, "").strip() in parser.format_help()
        assert keyword in {field.name for field in dataclasses.fields(lw.TuningOptions)}


def test_early_stopping_and_time_limit_end_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = [*TUNE[:-1], "4000", "--strategy", "random", "--cost-model", "random"]
    code, _, err = call(*small, "--early-stopping", "2", "--records", "early.jsonl")
    assert code == 0 and "stopped early after" in err
    code, _, err = call(*small, "--time-limit", "0.01", "--records", "limit.jsonl")
    assert code == 0 and "the time limit of 0.01 s left" in err


def test_a_template_by_name_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = ["tune", "dense", "--args", '16,32,24,"float32"', "--target", "llvm cores=1", "--strategy", "genetic"]
    code, out, err = call(*wanted, "--trials", "3", "--json")
    report = json.loads(out)
    assert code == 0 and report["right"] and report["trials"] == 3, err
    assert report["template"]["name"] == "dense_cpu" and report["template"]["args"] == [16, 32, 24, "float32"]
    records = rec.load("dense_cpu.jsonl")
    assert {r.template["name"] for r in records} == {"dense_cpu"}
    code, out, err = call(*wanted, "--more-trials", "2")
    assert code == 0 and "trials    5 (3 from the records)" in out and "of dense_cpu: tile_row=" in out, err
    code, out, err = call("replay", "dense_cpu.jsonl", "--min-repeat-ms", "1")
    assert code == 0 and "right: max abs error" in out, err


@pytest.mark.parametrize("name", TUNERS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_template_is_tuned_by_a_tuner_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = ["tune", "dense", "--args", "16,32,24", "--target", "llvm cores=1", "--tuner", name]
    code, out, err = call(*wanted, "--trials", "3")
    assert code == 0 and "trials    3, errors: none" in out and "untuned   not measured" in out, err
    assert "Progress: (3/3)" in err and err.endswith(" Done.\n")
    first = rec.load("dense_cpu.jsonl")
    assert len(first) == 3 and {r.sketch for r in first} == {"template:dense_cpu"}
    code, out, err = call(*wanted, "--more-trials", "2", "--early-stopping", "9", "--time-limit", "100", "--json")
    report = json.loads(out)
    assert code == 0 and (report["trials"], report["resumed"], report["untuned_s"]) == (5, 3, None), err
    assert len({r.schedule for r in rec.load("dense_cpu.jsonl")}) == 5
    code, out, err = call(*wanted, "--trials", "5")
    assert code == 0 and "5 trials asked for in all, and the records hold 5: none is new" in err
    code, _, err = call(*wanted, "--more-trials", "400", "--time-limit", "0.01")
    assert code == 0 and len(rec.load("dense_cpu.jsonl")) < 5 + 40


OWN = """
import loopwright as lw
from loopwright import te, topi
from beside import TILES

@lw.template
def tiled(cfg, m, n):
    a, b = te.placeholder((m, n), name="a"), te.placeholder((n, m), name="b")
    c = topi.matmul(a, b)
    sch = lw.Schedule([a, b, c])
    i, j, k = sch.get_loops(c)
    cfg.define_split("tile", j, num_outputs=2, filter=lambda entity: entity.size[-1] in TILES)
    sch.split(c, j, cfg["tile"].size)
    return sch

def plain(cfg, m, n):
    return tiled.function(cfg, m, n)

@lw.template("by_another_name")
def _hidden(cfg, m, n):
    return tiled.function(cfg, m, n)

NUMBER = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder, which we are in, with a template of the user's own that imports what is beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "beside.py").write_text("TILES = (1, 2, 4, 8)\n")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("mine", "beside", "loopwright_own_mine", "loopwright_own_wrong"):
            del sys.modules[name]


@pytest.mark.parametrize("tuner", [[], ["--tuner", "grid"]])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("mine.py:tiled", "tiled"),
        ("mine:tiled", "tiled"),
        ("mine.py:plain", "plain"),
        ("mine.py:by_another_name", "by_another_name"),
    ],
)
@pytest.mark.few(2)
def test_a_template_of_ones_own_is_tuned(own: Path, given: str, name: str, tuner: list[str]) -> None:
    registry._TEMPLATES.pop("tiled", None)
    registry._TEMPLATES.pop("by_another_name", None)
    wanted = ["tune", given, "--args", "16,24", "--target", "llvm cores=1", "--trials", "3"]
    code, out, err = call(*wanted, *tuner, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["right"] and report["trials"] == 3 and report["template"]["name"] == name
    assert report["template"]["config"]["tile"][-1] in (1, 2, 4, 8)
    code, out, err = call("show", f"{name}.jsonl", "--mode", "dag")
    assert code == 0 and out.startswith("a = PLACEHOLDER [16, 24]"), err


WRONG = {
    "mine.py:nothing": "mine.py has no template 'nothing'; it has by_another_name, tiled",
    "mine.py:NUMBER": "mine.py has no template 'NUMBER'; it has by_another_name, tiled",
    "mine.py:dense": "mine.py has no template 'dense'; it has by_another_name, tiled",
    "nowhere.py:tiled": "there is no file nowhere.py",
    "no_such_module:tiled": "no_such_module cannot be run: ModuleNotFoundError: No module named 'no_such_module'",
    "held:tiled": "held has no template 'tiled'; it has none",
    "wrong.py:tiled": "wrong.py:2 cannot be run: ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("given", WRONG)
def test_a_template_of_ones_own_that_is_not_there_is_a_sentence(own: Path, given: str) -> None:
    registry._TEMPLATES.pop("tiled", None)
    registry._TEMPLATES.pop("by_another_name", None)
    (own / "wrong.py").write_text("one = 1\none / 0\n")
    (own / "held").mkdir()
    (own / "held" / "__init__.py").touch()
    assert call("tune", given, "--args", "16,24") == (2, "", f"loopwright: {WRONG[given]}\n")


def test_a_workload_is_tuned_with_the_template_of_its_operator(tuned: Tuned, tmp_path: Path) -> None:
    """Beside the records of its sketches, which are no trials of the template."""
    both = tmp_path / "both.jsonl"
    both.write_bytes(Path(tuned.records).read_bytes())
    code, out, err = call(*TUNE[:-1], "2", "--templates", "--json", "--records", str(both))
    report = json.loads(out)
    assert code == 0 and (report["trials"], report["resumed"]) == (2, 0), err
    assert report["template"]["name"] == "dense_cpu" and report["workload_hash"] in tuned.workload.name


def test_tune_takes_ir_from_a_file(tuned: Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("product.mlir").write_text(tuned.workload.read_text())
    code, out, _ = call("tune", "product.mlir", "--trials", "2", "--target", "llvm cores=1", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["workload_hash"] in tuned.workload.name
    assert Path("product.jsonl").is_file()
    code, out, _ = call("show", "product.jsonl", "--mode", "dag")
    assert (code, out.splitlines()[0]) == (0, "a = PLACEHOLDER [20, 16]")


def test_records_that_cannot_be_written_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = call(*TUNE, "--records", str(tmp_path / "file" / "r.jsonl"))
    assert code == 2
    assert "cannot open record file" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.few(1)
def test_interrupt_keeps_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C at a terminal reaches the whole process group."""
    argv = [sys.executable, "-m", "loopwright", *TUNE[:-1], "4000", "--records", "kept.jsonl", *QUICK]
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        argv,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    kept = tmp_path / "kept.jsonl"
    assert wait_until(lambda: kept.exists() and kept.read_bytes().count(b"\n") >= 2)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert "go on with: loopwright tune matmul" in err
    assert len(rec.load(kept)) >= 2
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    code, out, _ = call("show", str(kept))
    assert (code, out[:3]) == (0, "lw-")


@pytest.mark.parametrize(
    ("kind", "limit", "says"),
    [
        (resource.RLIMIT_NOFILE, 12, "process cannot start: Too many open files"),
        (resource.RLIMIT_FSIZE, 1_200, "the task's data cannot be written to .*: .*; TMPDIR says where"),
        (resource.RLIMIT_AS, 200 << 20, "out of memory|does not allow it: .*load"),
    ],
)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_too_little_of_something_is_a_sentence(tmp_path: Path, kind: int, limit: int, says: str) -> None:
    """With one thread of NumPy's, whatever the machine has cores: each takes tens of megabytes of addresses.

    And without a cache of byte code: CPython 3.11 keeps files of it that a limit cut short, and none imports again.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "loopwright", *TUNE, "--records", "r.jsonl", *QUICK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )
    assert ran.returncode in (1, 2), ran.stderr
    (line,) = [line for line in ran.stderr.splitlines() if not line.startswith("OpenBLAS")]
    assert re.search(says, line), line
