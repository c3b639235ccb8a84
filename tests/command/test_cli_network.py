"""The command line for networks: tune, compile, run, bench."""

import argparse
import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import call
from onnx import TensorProto, helper
from onnx_models import model, small_network

import loopwright as lw
from loopwright.backends import targets
from loopwright.backends.cuda import driver
from loopwright.backends.cuda.driver import MissingCuda
from loopwright.command._network import read_network
from loopwright.command._peer import alternate
from loopwright.graph import compiler
from loopwright.graph.builders import BuildError
from loopwright.search.records import file as rec
from loopwright.search.tune.scheduler import NetworkResult
from loopwright.search.tune.state import SchedulerState

pytestmark = pytest.mark.usefixtures("quick_measuring")
SHAPE = ["--input-shape", "x=1,3,12,12"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which we are in, with a model whose batch is open and one whose batch is 1."""
    monkeypatch.chdir(tmp_path)
    onnx.save(small_network(open_batch=True), "open.onnx")
    onnx.save(small_network(), "net.onnx")
    return tmp_path


def test_tuning_of_which_all_tasks_fail_is_a_sentence_and_a_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "none of 3 tasks has a schedule; all 2 trials of conv2d_add_relu failed"
    failed = NetworkResult([None] * 3, math.inf, SchedulerState([], 6, sum), why)
    monkeypatch.setattr(lw.TaskScheduler, "tune", lambda *_: failed)
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6")
    assert (code, err) == (1, f"loopwright: {why}\n") and "latency" not in out


def test_tune_compile_run_and_bench(folder: Path) -> None:
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["trials"] == 6 and [row["task"] for row in report["tasks"]] == [0, 1, 2]
    assert report["latency_s"] > 0 and report["tasks_s"] > 0 and report["untuned_tasks_s"] > 0
    assert "task   0: 1 x conv2d_add_relu" in err and "Estimated total latency: " in err
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6")
    assert code == 0 and "trials    6 (6 from the records)" in out and "untuned" in out

    code, out, err = call("report", "net.jsonl", "--no-measure")
    assert code == 0 and "|    0 |" in out and "Estimated total latency: " in out and "; 6 trials in " in out, err

    code, out, _ = call("compile", "net.onnx", "--target", "llvm cores=1")
    assert code == 0 and "(3 tuned)" in out and Path("net.lw").is_file()

    x = np.random.default_rng(0).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save("x.npy", x)
    code, out, _ = call("run", "net.lw", "--input", "x=x.npy", "-o", "out.npz", "--profile")
    assert code == 0 and out.startswith("y: float32[1, 5], min ") and "conv2d_add_relu" in out and "tuned" in out
    (wanted,) = lw.from_onnx("net.onnx").evaluate(x=x)
    np.testing.assert_allclose(np.load("out.npz")["y"], wanted, rtol=1e-3, atol=1e-4)
    code, out, _ = call("run", "net.lw", "--json", "--profile")
    profile = json.loads(out)["profile"]
    assert code == 0 and len(profile) == 3 and all("lw-" in row["schedule"] for row in profile)

    timing = ["--min-repeat-ms", "5", "--repeat", "2"]
    code, out, _ = call("bench", "net.onnx", "--target", "llvm cores=1", *timing)
    assert code == 0 and "latency   median " in out and "(medians of single runs, in turn)" in out
    code, out, _ = call("bench", "net.onnx", "--target", "llvm cores=1", "--json", *timing)
    report = json.loads(out)
    assert report["onnxruntime_s"] > 0 and report["beside_onnxruntime_s"] > 0 and not report["onnxruntime_error"]
    code, out, _ = call("bench", "net.lw", "--json", *timing)
    report = json.loads(out)
    assert len(report["times_s"]) == 2 and report["tuned_kernels"] == 3 and report["onnxruntime_s"] is None


def test_a_network_is_exported_for_c(folder: Path) -> None:
    code, out, err = call("compile", "net.onnx", "--target", "llvm cores=1", "--export", "libnet.o")
    assert code == 0 and "libnet.o: " in out and out.endswith(" KiB, declared in libnet.h\n"), err
    assert not Path("net.lw").exists()
    assert "int lw_net(\n    const float *x, /* float32[1, 3, 12, 12] */" in Path("libnet.h").read_text()
    board = ["--target", "llvm model=cortex-a72", "--export", "board.o", "--export-name", "classify"]
    code, out, _ = call("compile", "net.onnx", *board, "-o", "board.lw", "--json")
    report = json.loads(out)
    assert code == 0 and [report[key] for key in ("library", "header", "file")] == ["board.o", "board.h", "board.lw"]
    assert report["library_bytes"] == Path("board.o").stat().st_size and Path("board.lw").is_file()
    assert "int lw_classify(" in Path("board.h").read_text()


@pytest.mark.slow(1.2)
def test_a_network_is_tuned_with_templates(folder: Path) -> None:
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6", "--templates", "--json")
    report = json.loads(out)
    assert code == 0 and {row["name"] for row in report["tasks"]} == {"conv2d_nchw_cpu", "dense_cpu"}, err
    assert all(record.template for record in rec.load("net.jsonl"))
    code, out, _ = call("compile", "net.onnx", "--target", "llvm cores=1")
    assert code == 0 and "tuned)" in out and "(0 tuned)" not in out
    code, _, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6", "--templates")
    assert code == 0 and "hold 6: none is new; --more-trials N measures N new ones" in err


def test_open_extents_are_given_on_the_command_line(folder: Path) -> None:
    code, _, err = call("run", "open.onnx")
    assert code == 2 and "give its extents, shapes={'x': (...)} (--input-shape)" in err
    code, out, err = call("run", "open.onnx", "--input-shape", "x=2,3,12,12", "--json")
    assert code == 0 and json.loads(out)["results"]["y"]["shape"] == [2, 5], err
    assert err.count("3 of 3 kernels have no record and take the default schedule") == 1
    assert "tune it (lw.TaskScheduler, or loopwright tune)" in err


@pytest.mark.slow(1.2)
def test_a_layout_is_for_tuning_and_compiling_alike(folder: Path) -> None:
    flags = ["--target", "llvm cores=1", "--layout", "NHWC"]
    code, out, err = call("tune", "net.onnx", *flags, "--trials", "3", "--json")
    assert code == 0 and "[[1, 3, 12, 12], [3, 3, 3, 8], [1, 1, 1, 8], [1, 12, 12, 8]]" in err
    code, out, _ = call("compile", "net.onnx", *flags, "--json")
    assert code == 0 and json.loads(out)["tuned_kernels"] == 3 and json.loads(out)["inputs"]["x"][1] == [1, 3, 12, 12]
    code, _, err = call("compile", "net.onnx", "--target", "llvm cores=1", "--layout", "NCHW")
    assert code == 0 and "2 of 3 kernels have no record" in err


def test_networks_by_name_in_another_layout(folder: Path) -> None:
    given = argparse.Namespace(
        layout="auto", batch=None, dtype=None, precision=None, target=None, input_shape=[], constant=[]
    )
    assert read_network(given, "squeezenet_v1.1").inputs["data"].shape == (1, 224, 224, 3)
    code, out, err = call("compile", "mlp", "--batch", "3", "-o", "three.lw", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["inputs"]["data"][1][0] == 3 and report["file_bytes"] == os.path.getsize("three.lw")


def test_a_precision_is_for_tuning_and_compiling_alike_and_is_checked(folder: Path) -> None:
    flags = ["--target", "llvm cores=1", "--precision", "bfloat16"]
    code, _, err = call("tune", "mlp", *flags, "--trials", "4", "--json")
    assert code == 0, err
    code, out, err = call("compile", "mlp", *flags, "--check", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["inputs"]["data"][0] == "float32" and report["tuned_kernels"] == 4
    assert report["kept_fp32"][0]["operator"] == "softmax" and 0 < report["accuracy"]["prob"]["relative"] < 0.03
    code, out, err = call("compile", "mlp", *flags, "--check")
    assert code == 0, err
    assert "\nkept in float32: 1 softmax, computed in float32, its " in out and "\nprob: max error " in out


def test_a_check_fails_where_numbers_leave_the_range(folder: Path) -> None:
    """Products of numbers around 300 x 300 are more than float16 has."""
    large = helper.make_node("Mul", ["x", "large"], ["y"])
    product = helper.make_node("MatMul", ["y", "w"], ["z"])
    given = {"large": np.full((), 300, np.float32), "w": np.full((64, 8), 300, np.float32)}
    onnx.save(model([large, product], {"x": [4, 64]}, ["z"], given), "large.onnx")
    flags = ["--target", "llvm cores=1", "--precision", "float16", "--check"]
    code, out, _ = call("compile", "large.onnx", *flags)
    assert code == 1 and "z: max error inf" in out
    code, out, _ = call("compile", "large.onnx", *flags, "--json")
    assert code == 1 and json.loads(out)["accuracy"] == {"z": None}


def test_networks_by_name_of_another_type(folder: Path) -> None:
    code, out, err = call("tune", "mlp", "--target", "llvm cores=1", "--dtype", "bfloat16", "--trials", "4", "--json")
    assert code == 0, err
    assert json.loads(out)["trials"] == 4
    code, out, err = call("compile", "mlp", "--target", "llvm cores=1", "--dtype", "bfloat16", "--json")
    report = json.loads(out)
    assert code == 0 and report["inputs"]["data"][0] == "bfloat16" and report["tuned_kernels"] == 4
    code, out, _ = call("run", "mlp.lw")
    assert code == 0 and out.startswith("prob: bfloat16[1, 10], min ")
    code, out, _ = call("tune", "--help")
    assert code == 0 and "float16, bfloat16, float32, float64 (default: float32)" in " ".join(out.split())


def test_a_type_that_the_device_lacks_is_refused_before_anything_is_tuned(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyopencl")
    from loopwright.backends.opencl import device

    monkeypatch.setattr(device, "lacking", lambda dtype: "it has no float64" if dtype == "float64" else None)
    argv = ["tune", "mlp", "--target", "opencl model=pocl", "--dtype"]
    code, out, err = call(*argv, "float64")
    assert (code, out) == (2, "") and err.strip().endswith("mlp: it has no float64")


def one_node(path: str, operator: str, dtype: int = TensorProto.FLOAT, **attributes: Any) -> None:
    """Write a model of one operator on a tensor."""
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    onnx.save(model([node], {"x": (2, 3)}, ["y"], dtype=dtype), path)


def test_what_onnxruntime_refuses_is_timed_here(folder: Path) -> None:
    one_node("half.onnx", "Relu", TensorProto.BFLOAT16)
    code, out, err = call("bench", "half.onnx", "--min-repeat-ms", "2")
    assert code == 0, err
    assert "latency   median " in out and "peer      onnxruntime does not run this model: [ONNXRuntimeError]" in out
    code, out, _ = call("bench", "half.onnx", "--min-repeat-ms", "2", "--json")
    report = json.loads(out)
    assert report["median_s"] > 0 and report["onnxruntime_s"] is None
    assert "NOT_IMPLEMENTED" in report["onnxruntime_error"]


def test_rounds_of_single_runs_take_turns() -> None:
    seen = []
    one, other = (lambda: seen.append("a")), (lambda: seen.append("b"))
    assert all(seconds > 0 for seconds in alternate(one, other, rounds=2, round_ms=0))
    assert "".join(seen) == "ab" + 2 * ("a" * 3 + "b" * 3)


@pytest.mark.parametrize(("operator", "attributes"), [("Relu", {}), ("Flatten", {"axis": 0})])
def test_a_network_without_reductions_has_nothing_to_tune(
    folder: Path, operator: str, attributes: dict[str, int]
) -> None:
    one_node("plain.onnx", operator, **attributes)
    code, _, err = call("tune", "plain.onnx")
    assert code == 2 and "plain.onnx has nothing to tune: no kernel of it has a reduction" in err
    assert call("run", "plain.onnx")[0] == 0


def test_inputs_are_made_constants_on_the_command_line(folder: Path) -> None:
    proto = model([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (2, 6)}, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, (2,)))
    onnx.save(proto, "shape.onnx")
    np.save("s.npy", np.array([3, 4]))
    code, out, err = call("run", "shape.onnx", "--constant", "s=s.npy", "--json")
    assert code == 0 and json.loads(out)["results"]["y"]["shape"] == [3, 4], err
    code, out, err = call("bench", "shape.onnx", "--constant", "s=s.npy", "--min-repeat-ms", "1", "--json")
    assert code == 0 and json.loads(out)["onnxruntime_s"] > 0, err


@pytest.mark.parametrize("command", ["compile", "run", "bench", "tune"])
def test_what_is_missing_is_a_sentence_and_exit_code_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Compiling needs no GPU, and says for which one it compiles."""

    def nothing() -> None:
        raise MissingCuda("no GPU here to run on: there is no driver")

    monkeypatch.setattr(driver, "pycuda_driver", nothing)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    targets._warn_of_default.cache_clear()
    code, _, err = call(command, "net.onnx", "--target", "cuda")
    said, *_, last = err.splitlines() if command != "tune" else ["", err]
    if command == "tune":  # it measures, or does nothing
        assert err.count("no GPU here to run on") == 1
    else:
        assert said.startswith(
            "loopwright: 'cuda' is taken for 'cuda model=t4', to compile only: no GPU here to run on: "
        )
    assert code == (command != "compile") and "Traceback" not in err
    assert command == "compile" or (last.startswith("loopwright: ") and "no GPU here to run on: " in last)


def test_a_kernel_that_does_not_compile_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise BuildError("kernel conv2d does not compile: lw-split: no loop 'i'")

    monkeypatch.setattr(compiler, "build_all", fail)
    code, _, err = call("run", "net.onnx")
    assert code == 1 and err.endswith("loopwright: kernel conv2d does not compile: lw-split: no loop 'i'\n")


BAD = [
    (["run", "nothing.onnx"], "model 'nothing.onnx' cannot be imported: No such file or directory"),
    (["run", "nothing.lw"], "cannot read nothing.lw: No such file or directory"),
    (["run", "net.lw"], "net.lw is no compiled network"),
    (["compile", "net.lw"], "net.lw is compiled already: give an ONNX model or a network by name"),
    (
        ["compile", "net.lw", "--export", "net.o"],
        "net.lw is compiled already, without a source of kernels to export: give",
    ),
    (["bench", "net.lw", "--layout", "NHWC"], "net.lw is compiled already: --layout is for"),
    (["run", "conv2d"], "there is no network 'conv2d': give a .onnx file or one of resnet-18,"),
    (["run", "net.onnx", "--input-shape", "x:1,3"], "--input-shape takes NAME=N,C,H,W with whole numbers, got 'x:1,3'"),
    (["run", "net.onnx", "--batch", "2"], "--batch is for networks by name; give --input-shape NAME=N,..."),
    (["run", "mlp", "--input-shape", "x=1"], "mlp has its own shapes: --input-shape is for ONNX models"),
    (["run", "mlp", "--constant", "x=x.npy"], "mlp has no inputs that could be constant: --constant is for ONNX"),
    (["run", "net.onnx", "--constant", "x=no.npy"], "cannot read no.npy: No such file or directory"),
    (["run", "net.onnx", "--constant", "x=x.npy"], "input 'x' has the shape [1, 3, 12, 12], values of shape (2,)"),
    (["run", "mlp", "--batch", "0"], "--batch: must be a whole number of at least 1, got '0'"),
    (["run", "net.lw", "--batch", "2"], "net.lw is compiled already: --batch is for"),
    (["compile", "net.onnx", "--export", "net.a"], "--export: a library is an object file (.o) or a shared one (.so)"),
    (["compile", "net.onnx", "--export-name", "x"], "--export-name is the name of a function in a library: give"),
    (
        ["compile", "net.onnx", "--export", "n.o", "--target", "cuda model=h200"],
        "--export is for targets of CPUs (llvm)",
    ),
    (["compile", "mlp", "--target", "llvm cores=1", "--export", "no/n.o"], "cannot write no/n.o: No such file or dir"),
    (["run", "mlp", "--dtype", "int8"], "network mlp: dtype is one of float16, bfloat16, float32, float64, got 'int8'"),
    (["run", "net.onnx", "--dtype", "float16"], "net.onnx has its own types: --dtype is for networks by name"),
    (["run", "net.lw", "--dtype", "float16"], "net.lw is compiled already: --dtype is for"),
    (["run", "net.onnx", "--records", "no.jsonl"], "there is no record file no.jsonl: tune first"),
    (["run", "net.onnx", "--target", "vulkan"], "kind must be llvm, cuda or opencl"),
    (["run", "net.onnx", "--input", "x"], "--input takes NAME=FILE.npy, got 'x'"),
    (["run", "net.onnx", "--input", "x=no.npy"], "cannot read no.npy: No such file or directory"),
    (["run", "net.onnx", "--input", "z=x.npy"], "there is no input 'z'; inputs are x"),
    (["run", "net.onnx", "--input", "x=x.npy"], "input 'x' must have shape (1, 3, 12, 12), got (2,)"),
    (["tune", "net.onnx", "--m", "3"], "shapes are for workloads by name: net.onnx has its own, so leave out --m"),
    (["tune", "net.onnx", "--trials", "2"], "--trials must be at least the number of tasks, 3, got 2"),
    (["tune", "broken.onnx"], "this is no ONNX model"),
]


@pytest.mark.parametrize(("argv", "sentence"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
@pytest.mark.few(16)
def test_bad_input_is_exit_code_2(folder: Path, argv: list[str], sentence: str) -> None:
    Path("net.lw").write_bytes(b"nothing")
    Path("broken.onnx").write_bytes(b"nothing")
    np.save("x.npy", np.zeros(2, np.float32))
    code, _, err = call(*argv)
    assert code == 2 and sentence in err and "Traceback" not in err


@pytest.mark.slow(1.2)
def test_convolutions_by_winograd_are_tuned_on_request_and_compiled_unless_ruled_out(folder: Path) -> None:
    one = ["--target", "llvm cores=1"]
    code, out, err = call("tune", "net.onnx", *one, "--trials", "5", "--winograd", "--json")
    assert code == 0, err
    report = json.loads(out)
    names = [row["name"] for row in report["tasks"]]
    assert names[:3] == ["conv2d_add_relu", "conv2d_winograd_add_relu", "conv2d_winograd_add_relu"]
    ways_s = [row["latency_s"] for row in report["tasks"]]
    assert report["tasks_s"] == pytest.approx(min(ways_s[:3]) + sum(ways_s[3:]))
    records = [r for r in rec.load("net.jsonl") if r.ok]
    rec.append("fast.jsonl", [replace(r, times_s=(1e-9,)) if "winograd" in r.workload_key else r for r in records])
    for flags, count in (([], 1), (["--winograd"], 1), (["--no-winograd"], 0)):
        code, out, _ = call("compile", "net.onnx", *one, "--records", "fast.jsonl", "--json", *flags)
        assert code == 0 and json.loads(out)["winograd_kernels"] == count
    code, _, err = call("run", "net.lw", "--no-winograd")
    assert code == 2 and "net.lw is compiled already: --no-winograd is for ONNX models" in err
    code, _, err = call("tune", "matmul", "--winograd")
    assert code == 2 and "--winograd is for networks" in err
