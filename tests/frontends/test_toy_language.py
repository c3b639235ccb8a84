"""A language of another package: installed elsewhere, its functions tuned, linked into a C program, and run."""

import os
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from c_programs import CC, only_with_gcc
from stock_opt import replayed
from xdsl.context import Context
from xdsl.parser import Parser

import loopwright as lw
from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.context import create_context
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.cuda.source_target import CudaSource
from loopwright.backends.llvm.source_target import LlvmSource
from loopwright.backends.opencl.source_target import OpenclSource
from loopwright.backends.source_target import SourceTarget

EXAMPLE = Path(lw.__file__).parent / "examples" / "toy_language"
LAYER = """
func.func @layer(%x: tensor<5x7xf32>, %w: tensor<7x9xf32>) -> tensor<5x9xf32> {
  %y = toy.matmul %x, %w : tensor<5x7xf32>, tensor<7x9xf32> -> tensor<5x9xf32>
  %z = toy.relu %y : tensor<5x9xf32> -> tensor<5x9xf32>
  func.return %z : tensor<5x9xf32>
}
"""
PROGRAM = """
#include <stdio.h>
#include "layer.h"
#if LW_LAYER_WORKSPACE_BYTES
static _Alignas(64) char workspace[LW_LAYER_WORKSPACE_BYTES];
#define ARGUMENTS x, w, y, workspace
#else
#define ARGUMENTS x, w, y
#endif
int main(void) {
    static float x[LW_LAYER_X_ELEMENTS], w[LW_LAYER_W_ELEMENTS], y[LW_LAYER_T_RELU_ELEMENTS];
    for (int i = 0; i < LW_LAYER_X_ELEMENTS; i++) x[i] = (float)(i % 5 - 2);
    for (int i = 0; i < LW_LAYER_W_ELEMENTS; i++) w[i] = (float)(i % 3 - 1);
    if (lw_layer(ARGUMENTS) != LW_LAYER_OK) return 1;
    for (int i = 0; i < LW_LAYER_T_RELU_ELEMENTS; i++) printf("%g ", y[i]);
    return 0;
}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs that find the package, which lies in a folder of its own."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "packages"), str(folder / "source")], check=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": str(folder / "packages"), "PATH": path}


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@only_with_gcc
@pytest.mark.slow(1.2)
def test_a_tuned_function_is_called_by_a_program(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "layer.mlir").write_text(LAYER)
    command = [sys.executable, "-m", "toy_language", "layer.mlir", "--target", "llvm cores=1", "--trials", "2"]
    assert run(command, tmp_path, installed) == "layer.h\n"
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run([str(CC), "-std=c11", "-Wall", "-o", "main", "main.c", "layer.o", "-lm"], cwd=tmp_path, check=True)
    x, w = np.arange(35).reshape(5, 7) % 5 - 2, np.arange(63).reshape(7, 9) % 3 - 1
    printed = run(["./main"], tmp_path, {})
    assert [float(word) for word in printed.split()] == np.maximum(x @ w, 0).reshape(-1).tolist()


@pytest.mark.parametrize(
    ("passes", "piece"),
    [
        ("toy-to-te", "lw_te.compute"),
        ("toy-to-te,lw-lower-te-to-loop", "lw_loop.block"),
        ("toy-to-te,lw-lower-te-to-loop,lw-lower-loop-to-kernel", "lw_kernel.store"),
        ("toy-to-te,lw-convert-te-to-linalg", "linalg.generic"),
    ],
)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_each_stage_parses_back(installed: dict[str, str], tmp_path: Path, passes: str, piece: str) -> None:
    (tmp_path / "layer.mlir").write_text(LAYER)
    printed = run(["xdsl-opt", "layer.mlir", "-p", passes], tmp_path, installed)
    assert piece in printed
    assert "toy." not in printed
    assert replayed(printed, "").strip() == printed.strip()


def workload() -> lw.Schedule:
    a, b = te.placeholder((4, 8), name="a"), te.placeholder((4, 8), name="b")
    return lw.Schedule([a, b, te.compute((4, 8), lambda i, j: a[i, j] + b[i, j], name="c")], target="cuda model=h200")


@pytest.mark.slow(1.2)
@pytest.mark.parametrize("name", ["lw-cuda", "lw-opencl", "lw-llvm"])
@pytest.mark.few(1)
def test_code_is_an_output_of_xdsl_opt(installed: dict[str, str], tmp_path: Path, name: str) -> None:
    (tmp_path / "layer.mlir").write_text(LAYER)
    code = run(["xdsl-opt", "layer.mlir", "-p", "toy-to-te", "-t", name], tmp_path, installed)
    piece = {"lw-cuda": "__global__", "lw-opencl": "__kernel", "lw-llvm": "define"}[name]
    assert piece in code


def emitted(target: SourceTarget, program: str) -> str:
    output = StringIO()
    target.emit(Context(), Parser(create_context(), program).parse_module(), output)
    return output.getvalue()


@pytest.mark.parametrize("passes", ["", "lw-lower-loop-to-kernel"])
def test_code_is_that_of_a_kernel_from_any_level(passes: str) -> None:
    sch = workload()
    sch.bind("c", "i", "blockIdx.x")
    program = str(sch.module)
    kernel = lower_to_kernel(sch)
    code = emitted(CudaSource(), replayed(program, passes))
    assert code.strip() == print_cuda(kernel).source.strip()


@pytest.mark.parametrize("target", [OpenclSource(), LlvmSource()])
def test_a_module_for_another_kind_is_refused(target: SourceTarget) -> None:
    with pytest.raises(ValueError, match=f"{target.name} prints kernels for {target.kind}, the module is for 'cuda"):
        emitted(target, str(workload().module))
