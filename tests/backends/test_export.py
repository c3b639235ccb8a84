"""Exported kernels: called from C, without Python, here and on another architecture."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from c_programs import ELSEWHERE, HERE, Machine, header_is_strict, only_with_gcc, pointers

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm import library
from loopwright.backends.llvm.cpu import architecture
from loopwright.backends.missing import MissingRequirement
from tests.backends.test_cross_compile import OTHERS

ROWS, INNER, COLUMNS = 13, 40, 24
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "layer.h"
#include "other.h"
static void *aligned(size_t size) { return aligned_alloc(64, (size + 64) / 64 * 64); }
int main(int argc, char **argv) {
  float *a = aligned(4 * %(a)d), *c = aligned(4 * %(c)d);
  double *twice = aligned(8 * 4), x[4] = {1.5, 2, 3, 4};
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  if (argc != 3 || fread(a, 4, %(a)d, in) != %(a)d) return 2;
  if (lw_layer(a, c%(space)s) != LW_LAYER_OK || lw_other(x, twice)) return 3;
  if (lw_other(0, twice) != LW_OTHER_NULL_POINTER || lw_other(x, 0) != LW_OTHER_NULL_POINTER) return 4;
  if (lw_other(x, (double *)((char *)twice + 4)) != LW_OTHER_MISALIGNED) return 5;
  return twice[0] != 3 || twice[3] != 8 || fwrite(c, 4, %(c)d, out) != %(c)d || fclose(out);
}
"""


def layer() -> tuple[list[te.Tensor], npt.NDArray[np.float32]]:
    """A product by weights that are part of the file, which waits for a bias in a buffer of its own."""
    a = te.placeholder((ROWS, INNER), name="float")
    w = te.placeholder((INNER, COLUMNS), name="weight", constant=True)
    weight = np.random.default_rng(1).standard_normal((INNER, COLUMNS)).astype(np.float32)
    return [a, w, topi.nn.softmax(topi.matmul(a, w))], weight


def exported(folder: Path, target: str, suffix: str) -> dict[str, object]:
    tensors, weight = layer()
    kernel = lw.build(te.create_module(tensors, name="layer"), target, {"weight": weight})
    assert kernel.export_library(folder / f"layer{suffix}") == folder / "layer.h"
    x = te.placeholder((4,), name="x", dtype="float64")
    other = te.create_module([x, te.compute((4,), lambda i: x[i] + x[i], name="y")], name="other")
    lw.build(other, target).export_library(folder / f"other{suffix}")
    has_space = "LW_LAYER_WORKSPACE_BYTES 0" not in (folder / "layer.h").read_text()
    return {"a": ROWS * INNER, "c": ROWS * COLUMNS, "space": ", aligned(LW_LAYER_WORKSPACE_BYTES)" if has_space else ""}


def run_in_c(folder: Path, target: str, suffix: str, machine: Machine) -> None:
    machine.build(folder, MAIN % exported(folder, target, suffix), [f"./layer{suffix}", f"./other{suffix}"])
    a = np.random.default_rng(0).standard_normal((ROWS, INNER)).astype(np.float32)
    (folder / "in").write_bytes(a.tobytes())
    machine.run(folder)
    product = a @ layer()[1]
    wanted = np.exp(product - product.max(1, keepdims=True))
    got = np.fromfile(folder / "out", np.float32).reshape(ROWS, COLUMNS)
    np.testing.assert_allclose(got, wanted / wanted.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


@only_with_gcc
@pytest.mark.parametrize("suffix", [".o", ".so"])
@pytest.mark.parametrize("target", ["llvm cores=1", f"llvm arch={architecture()}"])
def test_called_from_c(target: str, suffix: str, tmp_path: Path) -> None:
    run_in_c(tmp_path, target, suffix, HERE)


@pytest.mark.parametrize("suffix", [".o", ".so"])
@pytest.mark.parametrize(("machine", "target"), ELSEWHERE)
def test_called_from_c_elsewhere(machine: Machine, target: str, suffix: str, tmp_path: Path) -> None:
    run_in_c(tmp_path, target, suffix, machine)


@only_with_gcc
def test_the_header_is_c_and_cpp(tmp_path: Path) -> None:
    exported(tmp_path, "llvm cores=1", ".o")
    text = (tmp_path / "layer.h").read_text()
    assert f"const float *float_, /* float32[{ROWS}, {INNER}] */" in text and "weight" not in text
    header_is_strict(tmp_path / "layer.h")


def halves() -> npt.NDArray[np.float16]:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def around(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values, what lies halfway between them, and the neighbours of that."""
    middle = (values[1:] + values[:-1]) / 2
    return np.concatenate([values, middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)])


@only_with_gcc
@pytest.mark.skipif(architecture() != "x86_64", reason="other CPUs convert float16 by an instruction")
@pytest.mark.parametrize(("given", "made"), [("float16", "float32"), ("float32", "float16"), ("float64", "float16")])
@pytest.mark.few(2)
def test_float16_is_converted_without_functions_of_the_compiler(given: str, made: str, tmp_path: Path) -> None:
    """GCC 12 has none for RISC-V, and a library with them was not linked."""
    finite = halves()[np.isfinite(halves())].astype(np.float64)
    special = np.array([np.inf, -np.inf, np.nan, 65519.9, 65520, 1e6, -1e30, 1e-8, -1e-8, 2.0**-25, 0.0, -0.0])
    values = halves() if given == "float16" else np.concatenate([special, around(np.unique(finite))]).astype(given)
    x = te.placeholder(values.shape, name="x", dtype=given)
    module = te.create_module([x, te.compute(values.shape, lambda i: x[i].astype(made), name="y")], name="cast")
    kernel = lw.build(module, "llvm model=x86-64 cores=1")
    kernel.export_library(tmp_path / "cast.o")
    assert not subprocess.check_output(["nm", "--undefined-only", tmp_path / "cast.o"])
    kernel.export_library(tmp_path / "cast.so")
    got = np.zeros(values.shape, made)
    assert ctypes.CDLL(str(tmp_path / "cast.so")).lw_cast(*pointers(values, got)) == 0
    with np.errstate(over="ignore"):
        wanted = values.astype(made)
    np.testing.assert_array_equal(got, wanted)
    right = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[right]), np.signbit(wanted[right]))


THREADS = """
#include <stdio.h>
#include <string.h>
#include "kernel.h"
static float x[LW_MAIN_X_ELEMENTS], y[LW_MAIN_Y_ELEMENTS];
int main(int argc, char **argv) {
  char line[200];
  int threads = 0;
  for (int n = 0; n < LW_MAIN_X_ELEMENTS; n++) x[n] = n;
  if (argc != 3 || lw_main(x, y)) return 2;
  for (int n = 0; n < LW_MAIN_X_ELEMENTS; n++) if (y[n] != n + 1.0f) return 3;
  FILE *status = fopen("/proc/self/status", "r"), *out = fopen(argv[2], "w");
  while (fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &threads);
  return fprintf(out, "%d", threads) < 1 || fclose(out);
}
"""


@only_with_gcc
@pytest.mark.parametrize(("suffix", "options"), [(".o", ["-fopenmp"]), (".so", [])])
def test_parallel_loops_run_on_threads(suffix: str, options: list[str], tmp_path: Path) -> None:
    run_on_threads("llvm cores=3", suffix, options, HERE, tmp_path)
    assert (tmp_path / "out").read_text() == "3"


@pytest.mark.parametrize(("machine", "target"), ELSEWHERE)
def test_parallel_loops_run_on_threads_elsewhere(machine: Machine, target: str, tmp_path: Path) -> None:
    run_on_threads(f"{target} cores=4", ".so", [], machine, tmp_path)


def run_on_threads(target: str, suffix: str, options: list[str], machine: Machine, folder: Path) -> None:
    x = te.placeholder((1 << 16,), name="x")
    module = te.create_module([x, te.compute((1 << 16,), lambda i: x[i] + 1.0, name="y")])
    header = lw.SearchTask(module, target=target).build().export_library(folder / f"kernel{suffix}")
    assert "threads of OpenMP's: link with -fopenmp. */" in header.read_text()
    machine.build(folder, THREADS, [f"./kernel{suffix}"], options)
    machine.run(folder)


def test_what_c_cannot_call_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((1 << 16,), name="x")
    module = te.create_module([x, te.compute((1 << 16,), lambda i: x[i] + 1.0, name="y")])
    kernel = lw.build(module, "llvm cores=1")
    with pytest.raises(ValueError, match=r"^kernel main: a library is an object file \(\.o\) or a shared"):
        kernel.export_library(tmp_path / "kernel.a")
    with pytest.raises(ValueError, match=r"^kernel main checks its addresses: to export it build it without"):
        lw.build(module, "llvm cores=1", check_addresses=True).export_library(tmp_path / "kernel.o")
    monkeypatch.setattr(library.shutil, "which", lambda name: None)
    wanted = rf"^linking for {OTHERS[0]} needs {OTHERS[0]}-linux-gnu-gcc or ld.lld, .*install gcc-.*\(\.o\) needs no"
    with pytest.raises(MissingRequirement, match=wanted):
        lw.build(module, f"llvm arch={OTHERS[0]}").export_library(tmp_path / "kernel.so")
    monkeypatch.setattr(library.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(library.LinkError, match=rf"^kernel main: false does not link it for {architecture()}: $"):
        kernel.export_library(tmp_path / "kernel.so")
    assert not list(tmp_path.iterdir())
    kernel.export_library(tmp_path / "kernel.o")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernel.h", "kernel.o"]
