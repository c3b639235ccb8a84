"""Parallel loops: every iteration runs once, threads have buffers of their own, and what surrounds the loop is seen."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.target import Target

pytestmark = pytest.mark.usefixtures("every_thread")


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def target(cores: int) -> Target:
    return Target(cores=cores, vector_bytes=64)


COUNT = """
func.func @count(%in : memref<{n}x4xi32> {{lw.name = "in"}}, %out : memref<{n}x4xi32> {{lw.name = "out", lw.output}}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : index
  lw_kernel.parallel %i in {n} {{
    %at = arith.muli %i, %four : index
    %x = lw_kernel.load %out[%at] : memref<{n}x4xi32> -> i32
    %y = arith.addi %x, %one : i32
    lw_kernel.store %y, %out[%at] : i32, memref<{n}x4xi32>
    %i32 = arith.index_cast %i : index to i32
    lw_kernel.store %i32, %out[%at + 1] : i32, memref<{n}x4xi32>
  }}
  func.return
}}"""


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("extent", [1, 2, 3, 5, 64, 1000])
@pytest.mark.few(9)
def test_every_iteration_runs_once(extent: int, cores: int) -> None:
    kernel = build(parse(COUNT.format(n=extent)), target(cores))
    source = np.zeros((extent, 4), np.int32)
    for _ in range(20):
        out = np.zeros((extent, 4), np.int32)
        kernel(source, out)
        np.testing.assert_array_equal(out[:, 0], 1)
        np.testing.assert_array_equal(out[:, 1], np.arange(extent))


SURROUNDED = """
func.func @surrounded(%in : memref<32x16xf32>, %k : memref<1xf32>, %out : memref<3x32x16xf32> {lw.output}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %row = arith.constant 16 : index
  %plane = arith.constant 512 : index
  %seven = arith.constant 7 : index
  %common = lw_kernel.alloc "common" : memref<512xf32>
  %spare = lw_kernel.alloc "spare" : memref<16xf32>
  scf.for %p = %zero to %three step %one {
    %base = arith.muli %p, %plane : index
    %s = lw_kernel.load %k[%zero] : memref<1xf32> -> f32
    %scale = vector.broadcast %s : f32 to vector<16xf32>
    %at = arith.addi %seven, %p : index
    %m = lw_kernel.mask %at step -1 : vector<16xi1>
    lw_kernel.parallel %i in 32 {
      %own = lw_kernel.alloc "own" : memref<16xf32>
      %mine = lw_kernel.alloc "mine" : memref<16xf32, "local">
      %a = arith.muli %i, %row : index
      %x = lw_kernel.load %in[%a] mask %m : memref<32x16xf32> -> vector<16xf32>
      lw_kernel.store %x, %own[%zero] : vector<16xf32>, memref<16xf32>
      lw_kernel.parallel %j in 16 {
        %e = lw_kernel.load %own[%j] : memref<16xf32> -> f32
        lw_kernel.store %e, %mine[%j] : f32, memref<16xf32, "local">
      }
      %y = lw_kernel.load %mine[%zero] : memref<16xf32, "local"> -> vector<16xf32>
      %z = arith.mulf %y, %scale : vector<16xf32>
      lw_kernel.store %z, %common[%a] : vector<16xf32>, memref<512xf32>
    }
    lw_kernel.parallel %i in 2 {
      %half = arith.constant 256 : index
      %a = arith.muli %i, %half : index
      %b = arith.addi %a, %base : index
      scf.for %j = %zero to %half step %row {
        %c = arith.addi %a, %j : index
        %d = arith.addi %b, %j : index
        %x = lw_kernel.load %common[%c] : memref<512xf32> -> vector<16xf32>
        lw_kernel.store %x, %out[%d] : vector<16xf32>, memref<3x32x16xf32>
      }
    }
  }
  func.return
}"""


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_captured_values_and_buffers(cores: int) -> None:
    module = parse(SURROUNDED)
    a, k = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32), np.array([3.0], np.float32)
    (expected,) = run_kernel(module, [a, k])
    kernel = build(module, target(cores))
    for _ in range(10):
        np.testing.assert_array_equal(kernel(a, k), expected)


def test_kernels_called_from_several_python_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    kernel = build(parse(SURROUNDED), target(2))
    inputs = [(np.full((32, 16), n, np.float32), np.array([n], np.float32)) for n in range(4)]
    expected = [kernel(*pair) for pair in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for got, right in zip(pool.map(lambda pair: kernel(*pair), inputs), expected, strict=True):
                np.testing.assert_array_equal(got, right)


def test_no_thread_is_kept_to_a_cpu() -> None:
    import os

    kernel = build(parse(COUNT.format(n=64)), target(len(os.sched_getaffinity(0))))
    kernel(np.zeros((64, 4), np.int32), np.zeros((64, 4), np.int32))
    everywhere = os.sched_getaffinity(0)
    assert all(os.sched_getaffinity(int(thread)) == everywhere for thread in os.listdir("/proc/self/task"))


def test_uneven_iterations_are_shared() -> None:
    """All the work lies in one thread's stretch; the other must take part of it."""
    from loopwright.backends.llvm.emit import emit

    module = parse(COUNT.format(n=64))
    kernel = build(module, target(2))
    assert "atomicrmw add" in kernel.source and emit.__module__.endswith("llvm.emit")
