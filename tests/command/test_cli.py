"""The command line: what it does, prints and returns, and what it says to bad input."""

import argparse
import contextlib
import dataclasses
import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from patience import PATIENCE_S, wait_until

import loopwright as lw
from loopwright.backends.llvm.cpu import architecture
from loopwright.cli import command_names
from loopwright.command._report import check
from loopwright.command._searching import add_search_options, as_flag
from loopwright.dialects.presets import preset_target
from loopwright.search.named_workloads import arguments, named_workloads, parameters
from loopwright.search.records import file as rec
from loopwright.search.template import registry
from loopwright.search.tuners.names import TUNERS

pytestmark = pytest.mark.usefixtures("quick_measuring")
SMALL = {
    "n": 12,
    "m": 20,
    "h": 9,
    "w": 7,
    "d": 4,
    "ci": 4,
    "co": 8,
    "c": 6,
    "k": 3,
    "b": 2,
    "kh": 3,
    "kw": 3,
    "tile": 2,
}
QUICK = ["--builders", "1", "--min-repeat-ms", "1", "--cost-model", "random"]
"""For a process of its own, which `quick_measuring` does not reach, and which need not load what learns."""
TUNE = ["tune", "matmul", "--m", "20", "--n", "36", "--k", "16", "--trials", "4"]


@dataclasses.dataclass(frozen=True)
class Tuned:
    folder: Path
    output: str
    progress: str

    @property
    def records(self) -> str:
        return str(self.folder / "matmul.jsonl")

    @property
    def workload(self) -> Path:
        (path,) = self.folder.glob("matmul.*.mlir")
        return path


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, quick_measuring: None) -> Tuned:
    folder = tmp_path_factory.mktemp("tuned")
    with contextlib.chdir(folder):
        code, out, err = call(*TUNE)
    assert code == 0, out + err
    return Tuned(folder, out, err)


# -- workloads by name ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(named_workloads()))
@pytest.mark.few(4)
def test_workload_by_name_builds_untuned_and_is_right(name: str) -> None:
    workload = named_workloads()[name]
    shape = {k: SMALL[k] for k in parameters(workload) if k in SMALL}
    if "conv" in name or "pool" in name or name.startswith("depthwise"):
        shape["n"] = 1
    task = lw.SearchTask(workload, arguments(workload, shape), target="llvm cores=1")
    assert check(task, task.build()).right


def test_defaults_are_the_layer_that_the_summary_says() -> None:
    seed = named_workloads()["conv2d"]
    assert "data = PLACEHOLDER [1, 512, 7, 7]" in str(seed.dag(*arguments(seed, {})))
    assert seed.dag(*arguments(seed, {})).flops == 231_261_184


def test_an_option_means_the_same_kind_of_value_everywhere() -> None:
    kinds: dict[str, set[type]] = defaultdict(set)
    for workload in named_workloads().values():
        for name, default in parameters(workload).items():
            kinds[name].add(type(default))
    assert not {name: kind for name, kind in kinds.items() if len(kind) != 1}


# -- bad input --------------------------------------------------------------------------------------------------------

BAD = [
    (["tune", "conv9"], "there is no workload or network 'conv9'"),
    (["tune", "softmax", "--kh", "3"], "softmax has no option 'kh'; its options are m, n, dtype"),
    (["tune", "conv2d", "--groups", "7"], "do not fit with groups=7"),
    (["tune", "conv2d", "--groups", "0"], "at least 1"),
    (["tune", "conv2d", "--ci", "0"], "extents are at least 1"),
    (["tune", "conv2d", "--dtype", "float31"], "float31"),
    (["tune", "conv2d", "--target", "vulkan"], "kind must be llvm, cuda or opencl"),
    (["tune", "conv2d", "--target", "llvm corez=2"], "unknown option 'corez'"),
    (["tune", "conv2d", "--trials", "0"], "must be a whole number of at least 1, got '0'"),
    (
        ["tune", "conv2d", "--strategy", "gird"],
        "unknown strategy 'gird'; there are: evolution, annealing, genetic, random,",
    ),
    (["tune", "conv2d", "--cost-model", "tress"], "unknown cost model 'tress'; there are: trees, rank, linear,"),
    (["tune", "conv2d", "--time-limit", "0"], "must be seconds above 0, got '0'"),
    (["tune", "conv2d", "--early-stopping", "0"], "must be a whole number of at least 1, got '0'"),
    (["tune", "softmax", "--templates"], "softmax has no template (several reductions)"),
    (["tune", "conv2d_nchw"], "'conv2d_nchw' is a template: give its arguments with --args"),
    (["tune", "dense", "--args", "1,2"], "template dense: dense() missing 1 required positional argument: 'in_dim'"),
    (["tune", "dense", "--args", "1,x"], "--args takes numbers, \"texts\" and [lists] with commas between, got '1,x'"),
    (["tune", "dense", "--args", "1,2,3", "--templates"], "leave out --templates"),
    (["tune", "dense", "--args", "1,2,3", "--n", "4"], "leave out --n"),
    (["tune", "denze", "--args", "1,2,3"], "there is no template 'denze' for target 'llvm'"),
    (["tune", "dense_gpu", "--args", "1,2,3"], "template 'dense_gpu' is for a GPU"),
    (["tune", "mlp", "--args", "1,2,3"], "--args are the arguments of a template, and mlp is a network"),
    (["tune", "conv2d", "--tuner", "ga"], "--tuner searches configs of a template: name one, or give --templates"),
    (["tune", "mlp", "--tuner", "ga"], "--tuner searches one template, and mlp is a network: leave it out"),
    (["tune", "dense", "--args", "1,2,3", "--tuner", "xbg"], "unknown tuner 'xbg'; there are: xgb, ga, random, grid"),
    (
        ["tune", "dense", "--args", "1,2,3", "--tuner", "ga", "--strategy", "grid"],
        "--tuner ga has a way of its own to search, so leave out --strategy",
    ),
    (["tune", "mine.py:tiled"], "'mine.py:tiled' is a template: give its arguments with --args"),
    (["tune", "conv2d", "--trial", "3"], "unrecognized arguments"),
    (["tune", "nothing.mlir"], "cannot read nothing.mlir: No such file or directory"),
    (["tune", "model.onnx"], "model.onnx"),
    (["tune"], "required"),
    (["show", "nothing.jsonl"], "cannot read record file 'nothing.jsonl'"),
    (["show", "nothing.jsonl", "--mode", "poem"], "invalid choice: 'poem'"),
    (["records", "best", "nothing.jsonl"], "cannot read record file 'nothing.jsonl'"),
    (["records"], "required"),
    (["teach"], "invalid choice: 'teach'"),
    ([], "required"),
]


@pytest.mark.parametrize(
    ("argv", "sentence"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_a_sentence_and_exit_code_2(
    argv: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*argv)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("builtin.module {", "bad.mlir:1:"),
        ("builtin.module {}", "expected one function of lw_te.compute on tensors"),
        ("builtin.module {\n  func.func @f() {\n    what.is_this()\n  }\n}", "bad.mlir:3:"),
    ],
)
def test_bad_ir_is_a_sentence_with_its_line(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    code, _, err = call("tune", str(path))
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_shapes_are_refused_for_a_file(tuned: Tuned) -> None:
    code, _, err = call("tune", str(tuned.workload), "--m", "4")
    assert code == 2
    assert "leave out --m" in err


# -- tune -------------------------------------------------------------------------------------------------------------


def test_tune_reports_what_was_reached(tuned: Tuned) -> None:
    for text in ("latency", "GFLOP/s", "of the ", "right: max abs error", "4, errors: none"):
        assert text in tuned.output
    assert re.search(r"the tuned kernel is \d+\.\d\d times as fast|the default schedule won", tuned.output)
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
    assert report["speedup"] == pytest.approx(report["untuned_s"] / report["latency_s"])
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


# -- templates --------------------------------------------------------------------------------------------------------


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
    "wrong.py:tiled": "wrong.py:2 cannot be run: ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("given", WRONG)
def test_a_template_of_ones_own_that_is_not_there_is_a_sentence(own: Path, given: str) -> None:
    registry._TEMPLATES.pop("tiled", None)
    registry._TEMPLATES.pop("by_another_name", None)
    (own / "wrong.py").write_text("one = 1\none / 0\n")
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


# -- show, replay -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "start"),
    [
        ("schedule", "lw-lower-te-to-loop,"),
        ("python", "import loopwright as lw\n"),
        ("dag", "a = PLACEHOLDER [20, 16]\n"),
        ("ir", "builtin.module attributes {lw.target"),
        ("source", "; kernel main"),
    ],
)
def test_show(tuned: Tuned, mode: str, start: str) -> None:
    code, out, err = call("show", tuned.records, "--mode", mode)
    assert code == 0
    assert out.startswith(start)
    assert re.search(r" [mun]?s on ", err)
    code, out, _ = call("show", tuned.records, "--mode", mode, "--json")
    assert json.loads(out)["shown"].startswith(start.strip())


def test_named_workload_is_made_again_from_its_key(tuned: Tuned, tmp_path: Path) -> None:
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(Path(tuned.records).read_bytes())
    assert call("show", str(moved), "--mode", "ir")[:2] == call("show", tuned.records, "--mode", "ir")[:2]


def test_unknown_workload_asks_for_its_file(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    strange = dataclasses.replace(record, workload_key='["mine", [], "0"]')
    path = tmp_path / "mine.jsonl"
    rec.append(path, [strange])
    code, _, err = call("show", str(path), "--mode", "ir")
    assert code == 2
    assert "--workload-file" in err
    code, out, _ = call("show", str(path), "--mode", "ir", "--workload-file", str(tuned.workload))
    assert code == 0
    assert out.startswith("builtin.module")


def test_one_of_several_workloads_is_chosen_by_name_key_or_hash(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    other = dataclasses.replace(
        record, workload_key='["other", [], "feedbeef00000000"]', workload_hash="feedbeef00000000", schedule="lw-other"
    )
    path = tmp_path / "both.jsonl"
    rec.append(path, [record, other])
    code, _, err = call("show", str(path))
    assert code == 2
    assert "2 workloads: choose one with --workload HASH" in err
    for choice in ("other", "feed", "feedbeef00000000", other.workload_key):
        assert call("show", str(path), "--workload", choice)[:2] == (0, "lw-other\n")
    assert call("show", str(path), "--workload", "nosuch")[0] == 2


def test_records_of_another_version_of_a_primitive_are_refused(tuned: Tuned, tmp_path: Path) -> None:
    record = rec.best(rec.load(tuned.records))
    old = dataclasses.replace(record, versions={**record.versions, "lw-split": "0"})
    path = tmp_path / "old.jsonl"
    rec.append(path, [old])
    code, _, err = call("replay", str(path))
    assert code == 2
    assert "lw-split version 0" in err


def test_replay_checks_and_times(tuned: Tuned) -> None:
    code, out, _ = call("replay", tuned.records, "--min-repeat-ms", "5", "--repeat", "2", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["right"] and len(report["times_s"]) == 2 and report["recorded_s"] > 0
    code, out, _ = call("replay", str(tuned.workload), "--schedule", "lw-lower-te-to-loop", "--min-repeat-ms", "5")
    assert code == 0
    assert "right: max abs error" in out


def test_replay_exports_for_c(tuned: Tuned, tmp_path: Path) -> None:
    timing = ["--min-repeat-ms", "1", "--repeat", "1"]
    code, out, _ = call("replay", tuned.records, *timing, "--export", str(tmp_path / "here.o"))
    assert code == 0 and out.endswith(f"MiB, declared in {tmp_path / 'here.h'}\n")
    assert "int lw_matmul(" in (tmp_path / "here.h").read_text()
    elsewhere = "riscv64" if architecture() != "riscv64" else "aarch64"
    board = ["--target", f"llvm arch={elsewhere}", "--export", str(tmp_path / "board.o"), "--export-name", "layer"]
    code, out, _ = call("replay", str(tuned.workload), *board)
    assert code == 0 and out.startswith(f"not checked: kernel main is compiled for {elsewhere}, this CPU is ")
    assert "int lw_layer(" in (tmp_path / "board.h").read_text()
    code, out, _ = call("replay", str(tuned.workload), *board, "--json")
    report = json.loads(out)
    assert code == 0 and report["right"] is None and report["library_bytes"] == (tmp_path / "board.o").stat().st_size


def test_a_torn_line_is_a_warning_of_one_sentence(tuned: Tuned, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(Path(tuned.records).read_bytes() + b'{"workload_key": "[')
    code, out, err = call("show", str(torn))
    assert (code, out) == call("show", tuned.records)[:2]
    warning, found = err.splitlines()
    assert warning.startswith("loopwright: ") and "1 line(s) skipped" in warning
    assert re.search(r" [mun]?s on ", found)


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ('lw-split{block="T_matmul" loop="q" factors=0,4}', "is in no loop 'q'"),
        ("lw-split{", "schedule text 'lw-split{'"),
        ("lw-nothing", "lw-nothing"),
    ],
)
def test_replay_of_a_bad_schedule(tuned: Tuned, schedule: str, sentence: str) -> None:
    code, _, err = call("replay", str(tuned.workload), "--schedule", schedule)
    assert code == 2
    assert sentence in err


def _kernel_of(result: np.ndarray) -> Any:
    return lambda *_: result.copy()


def test_a_wrong_kernel_is_told_from_a_right_one() -> None:
    workload = named_workloads()["matmul"]
    task = lw.SearchTask(workload, arguments(workload, {"m": 4, "n": 4, "k": 4}))
    right = task.reference.expected[0]
    assert check(task, _kernel_of(right)).right
    for wrong in (right + 0.1, np.full_like(right, np.nan), np.where(np.eye(4) > 0, np.inf, right)):
        found = check(task, _kernel_of(wrong))
        assert not found.right
        assert str(found).startswith("WRONG")


def test_what_was_found_is_shown_where_there_is_no_room_for_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence comes after the report, and the exit code says it, too."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("loopwright.storage.whole_file.write_whole", full)
    few = ["matmul", "--m", "8", "--n", "8", "--k", "8", "--trials", "1", "--min-repeat-ms", "1"]
    code, out, err = call("tune", *few, "--target", "llvm cores=1", "--records", str(tmp_path / "r.jsonl"), "--quiet")
    assert code == 2 and re.search(r"\nschedule\n  lw-lower-te-to-loop\n", out) and "replay it" not in out
    assert re.search(r"^loopwright: cannot write .*\.replay\.sh: No space left on device$", err, re.MULTILINE)


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_records_commands(tuned: Tuned, tmp_path: Path) -> None:
    stats = json.loads(call("records", "stats", tuned.records, "--json")[1])["workloads"]
    assert [(s["trials"], s["ok"], s["errors"]) for s in stats] == [(4, 4, {})]
    (best,) = json.loads(call("records", "best", tuned.records, "--json")[1])["records"]
    kept = tmp_path / "kept.jsonl"
    assert call("records", "merge", tuned.records, tuned.records, "-o", str(kept))[0] == 0
    assert len(rec.load(kept)) == len(rec.load(tuned.records))
    assert call("records", "distill", str(kept), "-o", str(kept))[0] == 0
    assert [json.loads(r.to_json()) for r in rec.load(kept)] == [best]
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"kept.{best['workload_hash']}.mlir", "kept.jsonl"]
    code, _, err = call("records", "distill", str(kept), "-o", str(kept / "x" / "y.jsonl"))
    assert code == 2
    assert "cannot write" in err and "Not a directory" in err


def test_an_empty_file_of_records_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for action in ("stats", "best"):
        assert call("records", action, str(tmp_path / "empty.jsonl")) == (0, "no records\n", "")


def test_devices_and_doctor() -> None:
    cpu, *gpus = json.loads(call("devices", "--json")[1])["devices"]
    assert cpu["kind"] == "llvm" and cpu["cores"] >= 1 and cpu["target"].startswith("llvm")
    assert all(device["kind"] in ("cuda", "opencl") and device["max_threads_per_block"] for device in gpus)
    assert all(str(preset_target(device["target"])) == device["target"] for device in (cpu, *gpus))
    text = call("devices")[1]
    assert all(f"--target '{device['target']}'" in text for device in (cpu, *gpus))
    code, out, _ = call("doctor", "--json")
    found = json.loads(out)
    assert (code, found["llvm"]["status"]) == (0, "runs")
    assert {"cuda", "opencl", "onnx", "fleet"} <= set(found)
    assert "for torch.compile" in found["torch"]["text"]


def test_every_command_has_help() -> None:
    for name in command_names():
        code, out, _ = call(name, "--help")
        assert code == 0
        assert f"loopwright {name}" in out
    assert all(name in call("--help")[1] for name in command_names())


def test_a_reader_that_leaves_is_no_error(tuned: Tuned) -> None:
    command = f"{sys.executable} -m loopwright show {tuned.records} --mode source 2>err | head -c 1"
    subprocess.run(["bash", "-c", command], cwd=tuned.folder, capture_output=True, check=True)
    assert "Traceback" not in (tuned.folder / "err").read_text()
