"""The command line: workloads by name, bad input, and what every command has."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from commands import call
from tuned_commands import Tuned

import loopwright as lw
from loopwright.cli import command_names
from loopwright.command._report import check
from loopwright.dialects.presets import preset_target
from loopwright.search.named_workloads import arguments, named_workloads, parameters
from loopwright.search.records import file as rec

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


def test_records_commands(tuned: Tuned, tmp_path: Path) -> None:
    stats = json.loads(call("records", "stats", tuned.records, "--json")[1])["workloads"]
    assert [(s["trials"], s["ok"], s["errors"]) for s in stats] == [(4, 4, {})]
    (best,) = json.loads(call("records", "best", tuned.records, "--json")[1])["records"]
    kept = tmp_path / "kept.jsonl"
    assert call("records", "merge", tuned.records, tuned.records, "-o", str(kept))[0] == 0
    assert len(rec.load(kept)) == len(rec.load(tuned.records))
    before, fewer = kept.read_bytes(), len(rec.load(kept)) - 1
    lost = f"loopwright: {kept} is read, and would lose {fewer} of its records: name another file with -o\n"
    assert call("records", "distill", str(kept), "-o", str(tmp_path / "." / "kept.jsonl")) == (2, "", lost)
    assert kept.read_bytes() == before
    kept = tmp_path / "best.jsonl"
    assert call("records", "distill", str(tmp_path / "kept.jsonl"), "-o", str(kept))[0] == 0
    assert call("records", "distill", str(kept), "-o", str(kept))[0] == 0, "nothing is lost"
    assert [json.loads(r.to_json()) for r in rec.load(kept)] == [best]
    assert sorted(file.name for file in tmp_path.glob("best.*")) == [f"best.{best['workload_hash']}.mlir", "best.jsonl"]
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


def test_a_warning_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts keep what they compile in the cache: all find that it cannot be written to."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    code, _, err = call("compile", "mlp", "--target", "llvm cores=1", "-o", str(tmp_path / "mlp.lw"))
    assert code == 0 and "not kept" in err
    assert len(set(err.splitlines())) == len(err.splitlines())
