"""Exported networks: called from C, without Python, here and on another architecture; and what they refuse."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import (
    ELSEWHERE,
    HERE,
    Machine,
    exported_outputs,
    header_is_strict,
    only_with_gcc,
    pointers,
    split,
    workspace_bytes,
)
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.backends.arrays import aligned_empty
from loopwright.backends.llvm import c_function

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")

TARGET = "llvm cores=1"
Array = Any
BUFFER = "static _Alignas(64) unsigned char {name}[{nbytes}];\n"
MAIN = """
#include <stdio.h>
{includes}
{buffers}
int main(int argc, char **argv) {{
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  if (argc != 3 || !in || !out) return 2;
{reads}
{calls}
{writes}
  return fclose(out);
}}
"""


def convolutions() -> lw.Network:
    """Weights, a shape that no vector divides, and an output that later steps read."""
    random, net = np.random.default_rng(0), lw.Network("small-net")
    x = net.input("data", (3, 5, 7, 9))
    y = net.conv2d(x, net.constant(random.standard_normal((11, 5, 3, 3), np.float32), "w"), padding=1, label="conv")
    y = net.relu(net.bias_add(y, net.constant(random.standard_normal(11, np.float32), "b")), label="act")
    z = net.max_pool(y, kernel=(2, 2), stride=(2, 2), label="pool")
    w = net.constant(random.standard_normal((13, 11), np.float32), "dense")
    z = net.dense(net.flatten(net.global_avg_pool(z)), w, label="logits")
    net.output(net.softmax(z), y, names=["prob", "features"])
    return net


def integers() -> lw.Network:
    """Inputs of several types, named as C must not; outputs that are an input, a constant, and a tensor twice."""
    net = lw.Network("integers")
    a, b = net.input("class", (3, 7), "int8"), net.input("1", (7, 5), "int8")
    d, h = net.input("X", (5,), "float64"), net.input("x", (2, 3), "float16")
    product = net.matmul(net.cast(a, dtype="int32"), net.cast(b, dtype="int32"), label="product")
    most = net.argmax(product, axis=1, label="most")
    bits = net.greater(net.exp(d), 1.0, label="bits")
    net.output(product, most, bits, net.add(h, h, label="twice"))
    net.output(net.reshape(product, shape=(15,)), net.reshape(a, shape=(7, 3)), names=["flat", "same"])
    net.output(net.constant(np.arange(6, dtype=np.int64).reshape(2, 3), "six"), names=["six"])
    return net


def parallel() -> lw.Network:
    """Large enough for loops on several threads."""
    net = lw.Network("parallel")
    x = net.input("x", (256, 1024))
    net.output(net.exp(net.sqrt(net.abs(x))), net.sum(x, axis=1))
    return net


NETWORKS = [convolutions, integers]


def inputs_of(net: lw.Network) -> dict[str, Array]:
    """Return small whole numbers, which all types hold."""
    random = np.random.default_rng(0)
    return {name: random.integers(-4, 5, v.shape).astype(v.dtype) for name, v in net.inputs.items()}


def program(plans: dict[str, Any], header_texts: dict[str, str]) -> str:
    """Return a program that calls each function of a header once on the inputs in a file, and writes all outputs."""
    parts: dict[str, str] = dict.fromkeys(("includes", "buffers", "reads", "calls", "writes"), "")
    for name, plan in plans.items():
        parts["includes"] += f'#include "{name}.h"\n'
        pointers = []
        for kind, ports in (("in", plan.inputs), ("out", plan.outputs)):
            for number, port in enumerate(ports):
                buffer = f"{name}_{kind}{number}"
                parts["buffers"] += BUFFER.format(name=buffer, nbytes=port.nbytes)
                pointers.append(f"(void *){buffer}")
                if kind == "in":
                    parts["reads"] += f"  if (fread({buffer}, 1, {port.nbytes}, in) != {port.nbytes}) return 3;\n"
                else:
                    parts["writes"] += f"  if (fwrite({buffer}, 1, {port.nbytes}, out) != {port.nbytes}) return 4;\n"
        if "void *workspace" in header_texts[name]:
            parts["buffers"] += BUFFER.format(name=f"{name}_space", nbytes=f"LW_{name.upper()}_WORKSPACE_BYTES")
            pointers.append(f"{name}_space")
        parts["calls"] += f"  if (lw_{name}({', '.join(pointers)})) return 5;\n"
    return MAIN.format(**parts)


def run_in_c(folder: Path, target: str, suffix: str, machine: Machine) -> list[tuple[lw.Network, list[Array]]]:
    """Export all networks for one program, and return what it makes of each."""
    compiled = {f"net{n}": (net := make(), lw.compile(net, target, processes=1)) for n, make in enumerate(NETWORKS)}
    texts = {}
    for name, (_, found) in compiled.items():
        written = found.export_library(folder / f"{name}{suffix}", name)
        assert written == folder / f"{name}.h"
        texts[name] = written.read_text()
    libraries = [f"./{name}{suffix}" for name in compiled]
    machine.build(folder, program({name: found.plan for name, (_, found) in compiled.items()}, texts), libraries)
    feeds = [array for net, _ in compiled.values() for array in inputs_of(net).values()]
    (folder / "in").write_bytes(b"".join(array.tobytes() for array in feeds))
    machine.run(folder)
    outputs = [value for net, _ in compiled.values() for value in net.outputs.values()]
    arrays = split((folder / "out").read_bytes(), [np.empty(v.shape, v.dtype) for v in outputs])
    return [(net, [arrays.pop(0) for _ in net.outputs]) for net, _ in compiled.values()]


@pytest.mark.slow(1.2)
@only_with_gcc
@pytest.mark.parametrize("suffix", [".o", ".so"])
@pytest.mark.few(1)
def test_called_from_c(suffix: str, tmp_path: Path) -> None:
    """Two networks in one program give the executor's bits."""
    for net, outputs in run_in_c(tmp_path, TARGET, suffix, HERE):
        executor = lw.compile(net, TARGET, processes=1).executor()
        executor.run(**inputs_of(net))
        for number, got in enumerate(outputs):
            np.testing.assert_array_equal(got, executor.get_output(number))


@pytest.mark.parametrize("suffix", [".o", ".so"])
@pytest.mark.parametrize(("machine", "target"), ELSEWHERE)
@pytest.mark.few(2)
def test_called_from_c_elsewhere(machine: Machine, target: str, suffix: str, tmp_path: Path) -> None:
    for net, outputs in run_in_c(tmp_path, target, suffix, machine):
        for got, wanted in zip(outputs, net.evaluate(**inputs_of(net)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@only_with_gcc
def test_loops_run_on_threads(tmp_path: Path) -> None:
    compiled = lw.compile(parallel(), "llvm cores=2", processes=1)
    assert "runs on 2 threads" in compiled.export_library(tmp_path / "net.so").read_text()
    (x,) = feeds_of(parallel()).values()
    outputs = exported_outputs(compiled, [x], tmp_path)
    for got, want in zip(outputs, compiled.executor()(x), strict=True):
        np.testing.assert_array_equal(got, want)


@only_with_gcc
def test_headers_are_c_and_cpp(tmp_path: Path) -> None:
    for number, make in enumerate(NETWORKS):
        lw.compile(make(), TARGET, processes=1).export_library(tmp_path / f"{number}.o")
        header_is_strict(tmp_path / f"{number}.h")
    text = (tmp_path / "0.h").read_text()
    assert "int lw_small_net(\n    const float *data, /* float32[3, 5, 7, 9] */\n    float *prob, " in text
    assert "#define LW_SMALL_NET_DATA_SHAPE {3, 5, 7, 9}\n" in text and "LW_SMALL_NET_PROB_ELEMENTS 39\n" in text
    text = (tmp_path / "1.h").read_text()
    for wanted in ("const int8_t *class_,", "const int8_t *_1,", "const double *X,", "const uint16_t *x_,"):
        assert wanted in text
    assert "uint8_t *bits, /* bool[5] */" in text


def loaded(path: Path, name: str) -> Any:
    return getattr(ctypes.CDLL(str(path)), f"lw_{name}")


@only_with_gcc
def test_threads_run_it_at_once_on_workspaces_of_their_own(tmp_path: Path) -> None:
    net = convolutions()
    compiled = lw.compile(net, TARGET, processes=1)
    nbytes = workspace_bytes(compiled.export_library(tmp_path / "net.so"))
    assert 0 < nbytes < compiled.plan.arena_bytes - sum(port.nbytes for port in compiled.plan.inputs)
    function = loaded(tmp_path / "net.so", "small_net")
    random, wrong = np.random.default_rng(0), []

    def call_often(data: Array) -> None:
        wanted = compiled.executor()(data)
        prob, features = (np.empty(port.shape, port.dtype) for port in compiled.plan.outputs)
        space = aligned_empty((nbytes,), np.uint8)
        for _ in range(50):
            prob[:], space[:] = 0, 255
            code = function(*pointers(data, prob, features, space))
            wrong.extend([code] * (code != 0 or not all(map(np.array_equal, (prob, features), wanted))))

    threads = [
        threading.Thread(target=call_often, args=[random.standard_normal((3, 5, 7, 9), np.float32)]) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@only_with_gcc
def test_what_a_caller_must_not_pass_is_a_code(tmp_path: Path) -> None:
    compiled = lw.compile(convolutions(), TARGET, processes=1)
    compiled.export_library(tmp_path / "net.so")
    function = loaded(tmp_path / "net.so", "small_net")
    given = [np.zeros(port.shape, port.dtype) for port in (*compiled.plan.inputs, *compiled.plan.outputs)]
    given.append(aligned_empty((compiled.plan.arena_bytes,), np.uint8))
    assert function(*pointers(*given)) == 0
    for number in range(len(given)):
        addresses = pointers(*given)
        addresses[number] = ctypes.c_void_p(0)
        assert function(*addresses) == c_function.NULL_POINTER
        addresses[number] = ctypes.c_void_p(given[number].ctypes.data + 2)
        assert function(*addresses) == c_function.MISALIGNED


@only_with_gcc
@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["resnet-18", "bert_encoder_layer", "densenet-121"])
def test_networks_give_the_executors_bits(name: str, tmp_path: Path) -> None:
    net = lw.testing.network(name, **SMALL[name])
    compiled = lw.compile(net, TARGET)
    arrays = list(feeds_of(net).values())
    outputs = exported_outputs(compiled, arrays, tmp_path)
    wanted = compiled.executor()(*arrays)
    for got, want in zip(outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(got, want)


def scalar() -> lw.Network:
    net = lw.Network("scalar")
    net.output(net.exp(net.input("x", ())))
    return net


def nothing_given() -> lw.Network:
    net = lw.Network("nothing")
    net.output(net.exp(net.constant(np.arange(3, dtype=np.float32))))
    return net


def empty() -> lw.Network:
    """An array without elements, whose pointer may be null."""
    net = lw.Network("empty")
    x, y = net.input("x", (0, 3), empty=True), net.input("y", (2, 3))
    net.output(x, net.exp(y), y)
    return net


def narrow() -> lw.Network:
    net = lw.Network("narrow")
    x, b = net.input("x", (5, 3), "bfloat16"), net.input("b", (5, 3), "bool")
    net.output(net.exp(x), net.logical_not(b))
    return net


@only_with_gcc
@pytest.mark.parametrize("make", [scalar, nothing_given, empty, narrow])
def test_odd_networks_give_the_executors_bits(make: Callable[[], lw.Network], tmp_path: Path) -> None:
    net = make()
    compiled = lw.compile(net, TARGET, processes=1)
    arrays = list(inputs_of(net).values())
    outputs = exported_outputs(compiled, arrays, tmp_path)
    header_is_strict(tmp_path / "net.h")
    wanted = compiled.executor()(*arrays)
    for got, want in zip(outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(got, want)


@only_with_gcc
def test_an_array_without_elements_may_be_null(tmp_path: Path) -> None:
    lw.compile(empty(), TARGET, processes=1).export_library(tmp_path / "net.so")
    y, z, same = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32), np.empty((2, 3), np.float32)
    null = ctypes.c_void_p(0)
    (given, *outputs) = pointers(y, z, same)
    assert loaded(tmp_path / "net.so", "empty")(null, given, null, *outputs) == 0
    assert (same == 1).all() and (z > 2).all()


def test_what_c_cannot_call_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = lw.compile(convolutions(), TARGET, processes=1)
    path = tmp_path / "net.o"
    with pytest.raises(ValueError, match=r"^network small-net: a library is an object file \(\.o\) or a shared one"):
        compiled.export_library(tmp_path / "net.lw")
    with pytest.raises(OSError, match="missing"):
        compiled.export_library(tmp_path / "missing" / "net.o")
    monkeypatch.setattr(c_function, "_MOST_CONSTANT_BYTES", 1 << 10)
    with pytest.raises(ValueError, match=r"^network small-net holds [0-9,]+ bytes .* holds at most 1,024$"):
        compiled.export_library(path)
    compiled.save(tmp_path / "net.lw")
    said = (
        r"^to export network small-net to .*net\.o use what lw\.compile returns: a file .* holds machine code for a "
        r"process that loads it, and no source of kernels; its model and its records give the same kernels again$"
    )
    with pytest.raises(ValueError, match=said):
        lw.load_network(tmp_path / "net.lw").export_library(path)
    for_gpu = replace(compiled.package, plan=replace(compiled.plan, target="cuda model=h200"))
    with pytest.raises(ValueError, match=r"^to export network .* compile it for llvm: it is for cuda, whose kernels C"):
        lw.CompiledNetwork(for_gpu).export_library(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.lw"]
