"""The interpreter of launches: threads side by side, and what they compute."""

import ml_dtypes
import numpy as np
import pytest
from gpu_kernels import MATMUL
from gpu_programs import parse
from launches import COPY, LOAD, OUT, STORE_Z, TO_SHARED, TURNED, X, launch

from loopwright.dialects.interpret.kernel import run_kernel


def test_threads_pass_values_on_behind_a_barrier() -> None:
    (out,) = run_kernel(launch(f"{LOAD}\n{TO_SHARED}\nlw_kernel.barrier\n{TURNED}\n{OUT}"), [X])
    np.testing.assert_array_equal(out, X[::-1])


@pytest.mark.parametrize("blocks", [1, 4, 16, 64])
def test_blocks_have_shared_memory_and_places_of_their_own(blocks: int) -> None:
    threads = 64 // blocks
    module = launch(
        f"""%n = arith.constant {threads} : index
        %m = arith.constant {threads - 1} : index
        %base = arith.muli %b, %n : index
        %p = arith.addi %base, %t : index
        %x = lw_kernel.load %in[%p] : memref<64xf32> -> f32
        {TO_SHARED}
        lw_kernel.barrier
        %u = arith.subi %m, %t : index
        %y = lw_kernel.load %s[%u] : memref<64xf32, "shared"> -> f32
        lw_kernel.store %y, %out[%p] : f32, memref<64xf32>""",
        (threads, 1, 1),
        (blocks, 1, 1),
    )
    (out,) = run_kernel(module, [X])
    np.testing.assert_array_equal(out, X.reshape(blocks, threads)[:, ::-1].reshape(-1))


def test_matmul() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((64, 32), np.float32), rng.random((32, 64), np.float32)
    np.testing.assert_allclose(run_kernel(parse(MATMUL), [a, b])[0], a @ b, rtol=1e-5)


def test_loops_that_end_at_another_place_in_each_thread_and_branches() -> None:
    module = launch(f"""
      lw_kernel.store %one, %r[%c0] : f32, memref<4xf32, "local">
      %few = arith.remsi %t, %c8 : index
      scf.for %i = %c0 to %few step %c1 {{
        %is = arith.cmpi sge, %i, %c4 : index
        scf.if %is {{
          %o = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> f32
          %p = arith.addf %o, %one : f32
          lw_kernel.store %p, %r[%c0] : f32, memref<4xf32, "local">
        }} else {{
          %o = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> f32
          %p = arith.addf %o, %o : f32
          lw_kernel.store %p, %r[%c0] : f32, memref<4xf32, "local">
        }}
      }}
      %y = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> f32
      {OUT}""")
    few = np.arange(64) % 8
    np.testing.assert_array_equal(run_kernel(module, [X])[0], 2.0 ** np.minimum(few, 4) + np.maximum(few - 4, 0))


def test_registers_at_an_index_of_the_threads_own() -> None:
    module = launch(f"""
      %own = arith.remsi %t, %c4 : index
      %v = lw_kernel.load %in[%c0] : memref<64xf32> -> vector<4xf32>
      lw_kernel.store %v, %r[%c0] : vector<4xf32>, memref<4xf32, "local">
      %y = lw_kernel.load %r[%own] : memref<4xf32, "local"> -> f32
      {OUT}""")
    np.testing.assert_array_equal(run_kernel(module, [X])[0], np.arange(64) % 4)


def test_vectors_strides_masks_and_gathers() -> None:
    module = launch(
        """%p = arith.muli %t, %c4 : index
        %l = lw_kernel.lanes : vector<4xindex>
        %w = vector.broadcast %p : index to vector<4xindex>
        %q = arith.addi %w, %l : vector<4xindex>
        %h = arith.subi %c8, %t : index
        %m = lw_kernel.mask %h step -2 : vector<4xi1>
        %x = lw_kernel.load %in[%p] align 16 : memref<64xf32> -> vector<4xf32>
        %a = lw_kernel.load %in[%c8] stride -2 mask %m : memref<64xf32> -> vector<4xf32>
        %g = lw_kernel.gather %in[%q] mask %m : memref<64xf32>, vector<4xindex>, vector<4xi1> -> vector<4xf32>
        %e = vector.extract %x[1] : f32 from vector<4xf32>
        %f = vector.broadcast %e : f32 to vector<4xf32>
        %s1 = arith.addf %a, %g : vector<4xf32>
        %s2 = arith.addf %s1, %f : vector<4xf32>
        lw_kernel.store %s2, %out[%p] align 16 : vector<4xf32>, memref<64xf32>""",
        (16, 1, 1),
    )
    x, mask = X.reshape(16, 4), 8 - np.arange(16)[:, None] - 2 * np.arange(4) >= 0
    right = np.where(mask, X[8 - 2 * np.arange(4)], 0) + np.where(mask, x, 0) + x[:, 1:2]
    np.testing.assert_array_equal(run_kernel(module, [X])[0], right.reshape(-1))


@pytest.mark.parametrize("distance", [1, 2, 4, 8, 16])
def test_shuffles_stay_in_their_warp(distance: int) -> None:
    (out,) = run_kernel(launch(f"{LOAD}\n%y = lw_kernel.shuffle %x, {distance} : f32\n{OUT}"), [X])
    np.testing.assert_array_equal(out, X[np.arange(64) ^ distance])


@pytest.mark.parametrize(
    ("element", "dtype"),
    [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("i8", np.int8), ("i64", np.int64)],
)
def test_other_element_types(element: str, dtype: type) -> None:
    add = "arith.addf" if element[0] in "fb" else "arith.addi"
    module = launch(f"{LOAD}\n{TO_SHARED}\nlw_kernel.barrier\n{TURNED}\n%z = {add} %x, %y : f32\n{STORE_Z}", of=element)
    x: np.ndarray = np.arange(64).astype(dtype)
    np.testing.assert_array_equal(run_kernel(module, [x])[0], x + x[::-1])


def test_bytes_are_summed_by_dot_products() -> None:
    """The pattern that the printer for CUDA makes `__dp4a` of."""
    module = parse("""
    func.func @dot(%a : memref<64xi8>, %b : memref<64xi8>, %out : memref<16xi32> {lw.output}) {
      %c4 = arith.constant 4 : index
      %start = arith.constant 5 : i32
      lw_kernel.launch grid [2, 1, 1] block [8, 1, 1] {
        %t = lw_kernel.thread "threadIdx.x" : index
        %b0 = lw_kernel.thread "blockIdx.x" : index
        %c8 = arith.constant 8 : index
        %n = arith.muli %b0, %c8 : index
        %o = arith.addi %n, %t : index
        %p = arith.muli %o, %c4 : index
        %x = lw_kernel.load %a[%p] align 4 : memref<64xi8> -> vector<4xi8>
        %y = lw_kernel.load %b[%p] align 4 : memref<64xi8> -> vector<4xi8>
        %xw = lw_kernel.convert "extsi" %x : vector<4xi8> -> vector<4xi32>
        %yw = lw_kernel.convert "extsi" %y : vector<4xi8> -> vector<4xi32>
        %m = arith.muli %xw, %yw : vector<4xi32>
        %s = vector.reduction <add>, %m, %start : vector<4xi32> into i32
        lw_kernel.store %s, %out[%o] : i32, memref<16xi32>
      }
      func.return
    }""")
    a, b = (np.random.default_rng(n).integers(-128, 128, 64, dtype=np.int8) for n in (0, 1))
    sums = (a.astype(np.int32) * b).reshape(16, 4).sum(axis=1) + 5
    np.testing.assert_array_equal(run_kernel(module, [a, b])[0], sums)


def test_launches_run_one_after_the_other_and_pass_memory_on() -> None:
    module = parse("""
    func.func @two(%in : memref<64xf32>, %out : memref<64xf32> {lw.output}) {
      %c63 = arith.constant 63 : index
      %w = lw_kernel.alloc "w" : memref<64xf32>
      lw_kernel.launch grid [64, 1, 1] block [1, 1, 1] {
        %t = lw_kernel.thread "blockIdx.x" : index
        %x = lw_kernel.load %in[%t] : memref<64xf32> -> f32
        lw_kernel.store %x, %w[%t] : f32, memref<64xf32>
      }
      lw_kernel.launch grid [1, 1, 1] block [64, 1, 1] {
        %t = lw_kernel.thread "threadIdx.x" : index
        %u = arith.subi %c63, %t : index
        %x = lw_kernel.load %w[%u] : memref<64xf32> -> f32
        lw_kernel.store %x, %out[%t] : f32, memref<64xf32>
      }
      func.return
    }""")
    np.testing.assert_array_equal(run_kernel(module, [X])[0], X[::-1])


def test_copies_arrive_when_they_are_waited_for() -> None:
    (out,) = run_kernel(launch(f"{COPY}\nlw_kernel.commit\nlw_kernel.wait 0\nlw_kernel.barrier\n{TURNED}\n{OUT}"), [X])
    np.testing.assert_array_equal(out, X[::-1])


def test_a_copy_fills_in_zeros_where_its_condition_fails() -> None:
    module = launch(f"""
      %there = arith.cmpi slt, %t, %c8 : index
      {COPY.replace(" : ", " if %there : ", 1)}
      lw_kernel.commit
      lw_kernel.wait 0
      %y = lw_kernel.load %s[%t] : memref<64xf32, "shared"> -> f32
      {OUT}""")
    np.testing.assert_array_equal(run_kernel(module, [X])[0], np.where(X < 8, X, 0))
