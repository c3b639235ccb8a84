"""Prefetches ask for the right lines and change nothing else."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi


def product(target: str) -> tuple[lw.Schedule, str, str]:
    a, b = te.placeholder((12, 40), name="a"), te.placeholder((40, 48), name="b")
    sch = lw.Schedule([a, b, topi.nn.matmul(a, b)], target=target)
    block = "T_matmul"
    j0, j1 = sch.split(block, "j", [None, 16])
    k0, k1 = sch.split(block, "k", [None, 4])
    sch.reorder(block, "i", j0, k0, k1, j1)
    sch.vectorize(block, j1)
    sch.unroll(block, k1)
    return sch, block, k0


@pytest.mark.parametrize("distance", [1, 3])
def test_what_is_computed_stays_the_same_and_lines_are_asked_for_once(distance: int) -> None:
    sch, block, k0 = product("llvm cores=1 vector_bytes=64")
    sch.prefetch(block, "b", k0, distance=distance)
    kernel = lw.build(sch)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 40), dtype=np.float32), rng.standard_normal((40, 48), dtype=np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)
    # Four rows of b are read in an iteration, a line of each.
    assert kernel.source.count("call void @llvm.prefetch") == 4


def test_a_gpu_whose_threads_hide_latency_gets_no_hint() -> None:
    sch, block, k0 = product("opencl max_threads_per_block=64")
    sch.prefetch(block, "b", k0, distance=3)
    assert "prefetch" not in lw.build(sch).source


def test_a_scalar_that_moves_within_a_line_asks_for_it_once() -> None:
    sch, block, k0 = product("llvm cores=1 vector_bytes=64")
    sch.prefetch(block, "a", k0, distance=4)
    assert lw.build(sch).source.count("call void @llvm.prefetch") == 1


def test_what_the_next_iteration_of_a_fused_loop_reads_is_asked_for() -> None:
    a, b = te.placeholder((6, 48), name="a"), te.placeholder((6, 48), name="b")
    sch = lw.Schedule([a, b, topi.add(a, b)], target="llvm cores=1 vector_bytes=64")
    block = "T_add"
    j0, j1 = sch.split(block, "ax1", [None, 16])
    i0, i1 = sch.split(block, "ax0", [None, 2])
    sch.reorder(block, i0, j0, i1, j1)
    task = sch.fuse(block, i0, j0)
    sch.unroll(block, i1)
    sch.vectorize(block, j1)
    sch.prefetch(block, "b", task)
    kernel = lw.build(sch)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 48), dtype=np.float32), rng.standard_normal((6, 48), dtype=np.float32)
    np.testing.assert_array_equal(kernel(x, y), x + y)
    assert kernel.source.count("call void @llvm.prefetch") == 2  # a line of each row of the next tile
