"""The command line for networks: tune, compile, run, bench."""

import argparse
import contextlib
import io
import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import small_network

import loopwright as lw
from loopwright.cli import main
from loopwright.command._network import read_network

SHAPE = ["--input-shape", "x=1,3,12,12"]


def call(*argv):
    """Run a command in this process: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder, which we are in, with a model whose batch is open and one whose batch is 1."""
    monkeypatch.chdir(tmp_path)
    onnx.save(small_network(open_batch=True), "open.onnx")
    onnx.save(small_network(), "net.onnx")
    return tmp_path


def test_tune_compile_run_and_bench(folder):
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["trials"] == 6 and [row["task"] for row in report["tasks"]] == [0, 1, 2]
    assert report["latency_s"] > 0 and report["tasks_s"] > 0 and report["untuned_tasks_s"] > 0
    assert "task   0: 1 x conv2d_add_relu" in err and "Estimated total latency: " in err
    code, out, err = call("tune", "net.onnx", "--target", "llvm cores=1", "--trials", "6")
    assert code == 0 and "trials    6 (6 from the records)" in out and "untuned" in out

    code, out, _ = call("compile", "net.onnx", "--target", "llvm cores=1")
    assert code == 0 and "(3 tuned)" in out and Path("net.lw").is_file()

    x = np.random.default_rng(0).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save("x.npy", x)
    code, out, _ = call("run", "net.lw", "--input", "x=x.npy", "-o", "out.npz", "--profile")
    assert code == 0 and out.startswith("y: float32[1, 5], min ") and "conv2d_add_relu" in out and "tuned" in out
    (wanted,) = lw.from_onnx("net.onnx").evaluate(x=x)
    np.testing.assert_allclose(np.load("out.npz")["y"], wanted, rtol=1e-3, atol=1e-4)
    code, out, _ = call("run", "net.lw", "--json", "--profile")
    assert code == 0 and len(json.loads(out)["profile"]) == 3

    timing = ["--min-repeat-ms", "5", "--repeat", "2"]
    code, out, _ = call("bench", "net.onnx", "--target", "llvm cores=1", *timing)
    assert code == 0 and "latency   median " in out and "peer      onnxruntime " in out
    code, out, _ = call("bench", "net.lw", "--json", *timing)
    report = json.loads(out)
    assert len(report["times_s"]) == 2 and report["tuned_kernels"] == 3 and report["onnxruntime_s"] is None


def test_open_extents_are_given_on_the_command_line(folder):
    code, _, err = call("run", "open.onnx")
    assert code == 2 and "give its extents, shapes={'x': (...)} (--input-shape)" in err
    code, out, err = call("run", "open.onnx", "--input-shape", "x=2,3,12,12", "--json")
    assert code == 0 and json.loads(out)["results"]["y"]["shape"] == [2, 5], err
    assert "3 of 3 kernels have no record" not in err  # nothing was asked for


def test_a_layout_is_for_tuning_and_compiling_alike(folder):
    flags = ["--target", "llvm cores=1", "--layout", "NHWC"]
    code, out, err = call("tune", "net.onnx", *flags, "--trials", "3", "--json")
    assert code == 0 and "[[1, 12, 12, 3], [3, 3, 3, 8], [1, 1, 1, 8], [1, 12, 12, 8]]" in err
    code, out, _ = call("compile", "net.onnx", *flags, "--json")
    assert code == 0 and json.loads(out)["tuned_kernels"] == 3 and json.loads(out)["inputs"]["x"][1] == [1, 3, 12, 12]
    code, _, err = call("compile", "net.onnx", "--target", "llvm cores=1", "--layout", "NCHW")
    assert code == 0 and "2 of 3 kernels have no record" in err


def test_networks_by_name_in_another_layout(folder):
    given = argparse.Namespace(layout="auto", batch=None, input_shape=[])
    assert read_network(given, "squeezenet_v1.1").inputs["data"].shape == (1, 224, 224, 3)
    code, out, err = call("compile", "mlp", "--batch", "3", "-o", "three.lw", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["inputs"]["data"][1][0] == 3 and report["file_bytes"] == os.path.getsize("three.lw")


BAD = [
    (["run", "nothing.onnx"], "cannot read nothing.onnx: No such file or directory"),
    (["run", "nothing.lw"], "cannot read nothing.lw: No such file or directory"),
    (["run", "net.lw"], "net.lw is no compiled network"),
    (["compile", "net.lw"], "net.lw is compiled already: give an ONNX model or a network by name"),
    (["bench", "net.lw", "--layout", "NHWC"], "net.lw is compiled already: --layout is for"),
    (["run", "conv2d"], "there is no network 'conv2d': give a .onnx file or one of resnet-18,"),
    (["run", "net.onnx", "--input-shape", "x:1,3"], "--input-shape takes NAME=N,C,H,W with whole numbers, got 'x:1,3'"),
    (["run", "net.onnx", "--batch", "2"], "--batch is for networks by name; give --input-shape NAME=N,..."),
    (["run", "mlp", "--input-shape", "x=1"], "mlp has its own shapes: --input-shape is for ONNX models"),
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
def test_bad_input_is_exit_code_2(folder, argv, sentence):
    Path("net.lw").write_bytes(b"nothing")
    Path("broken.onnx").write_bytes(b"nothing")
    np.save("x.npy", np.zeros(2, np.float32))
    code, _, err = call(*argv)
    assert code == 2 and sentence in err and "Traceback" not in err
