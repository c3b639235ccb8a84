"""Unrolled loops of kernels for CUDA, which NVRTC copies where all that differs between copies is a number added."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gpu_programs import compile_cuda
from lowered_runs import exact_inputs, lowered
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.buffers import scope_of
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower import _unrolled_loops
from loopwright.schedule import Schedule

OPENCL = "opencl max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"
CUDA = "cuda max_threads_per_block=1024 max_shared_bytes=49152 warp_size=32 max_vthreads=8 compute_capability=90"
Steps = Callable[[Schedule], Any]


def checked(tensors: Sequence[te.Tensor], steps: Steps, target: str = CUDA) -> ModuleOp:
    """Lower a schedule to a kernel, which is held to the expressions, and for CUDA compiles."""
    sch = Schedule(tensors, target=target)
    steps(sch)
    module = lowered(sch.module)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    if target == CUDA:
        compile_cuda(module, (90,))
    return module


def left_to_nvrtc(module: ModuleOp) -> list[int]:
    """The iterations of the loops that are written once, outer ones first."""
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp) and kernel.UNROLL in op.attributes]
    return [loop.ub.owner.value.value.data for loop in loops]  # type: ignore[union-attr]


def matmul(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b, r = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b"), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def doubled(extent: int) -> list[te.Tensor]:
    x = te.placeholder((extent,), name="x")
    return [x, te.compute((extent,), lambda i: x[i] * 2.0, name="y")]


def tiled(sch: Schedule) -> None:
    """A tile of 2 x 4 elements of each thread in registers, its columns apart by virtual threads."""
    copy = sch.cache_write("c", "c", "local")
    i, j, k = sch.get_loops("c")
    i0, i1, i2 = sch.split("c", i, [None, 4, 2])
    j0, jv, j1, j2 = sch.split("c", j, [None, 2, 4, 2])
    sch.reorder("c", i0, j0, jv, i1, j1, k, i2, j2)
    for loop, kind in (
        (i0, "blockIdx.y"),
        (j0, "blockIdx.x"),
        (jv, "vthread"),
        (i1, "threadIdx.y"),
        (j1, "threadIdx.x"),
    ):
        sch.bind("c", loop, kind)
    sch.unroll("c", i2)
    sch.unroll("c", j2)
    sch.reverse_compute_at(copy, j1)
    for loop in sch.get_loops(copy)[-2:]:
        sch.unroll(copy, loop)


def test_a_tile_in_registers_is_written_once() -> None:
    module = checked(matmul(16, 32, 6), tiled)
    assert left_to_nvrtc(module) == [2, 2, 2] * 3, "start, sum and store: rows, columns, virtual threads"
    source = print_cuda(module).source
    assert source.count("fmaf(") == 1 and source.count("#pragma unroll\n") == 7, "the sums start at the declaration"
    assert "float c_local[8] = {};" in source
    (resources,) = compile_module(module).resources
    assert resources.stack_bytes == 0, "registers of constant number"


def test_copies_are_written_for_other_compilers() -> None:
    module = checked(matmul(16, 32, 6), tiled, OPENCL)
    assert left_to_nvrtc(module) == []


def test_the_same_instructions_as_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    once = compile_module(checked(matmul(16, 32, 6), tiled)).resources
    monkeypatch.setattr(_unrolled_loops.UnrolledLoops, "is_steady", lambda *_: False)
    module = checked(matmul(16, 32, 6), tiled)
    assert left_to_nvrtc(module) == [] and print_cuda(module).source.count("fmaf(") == 8
    assert compile_module(module).resources == once


def test_too_many_copies_are_left_to_nvrtc_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unrolled_loops, "MOST_COPIES", 4)
    module = checked(matmul(16, 32, 6), tiled)
    assert left_to_nvrtc(module) == [2, 2] * 6, "rows are copies, columns by virtual threads are not"


def test_statements_under_predicates_are_copies() -> None:
    """NVRTC joins branches of copies, and not those of a loop that it unrolls."""

    def steps(sch: Schedule) -> None:
        outer, inner = sch.split("y", "i", [None, 4])
        sch.bind(outer, "threadIdx.x")
        sch.unroll(inner)

    assert left_to_nvrtc(checked(doubled(32), steps)) == [4]
    module = checked(doubled(30), steps)
    assert left_to_nvrtc(module) == [4] and print_cuda(module).source.count("y[") == 1 + 4, "whole tiles, and the rest"


def test_quotients_are_simplified_here() -> None:
    x = te.placeholder((8, 4), name="x")
    y = te.compute((32,), lambda i: x[i // 4, 3 - i % 4] * 2.0, name="y")

    def steps(sch: Schedule, inner: int) -> None:
        outer, last = sch.split("y", "i", [None, inner])
        sch.bind(outer, "threadIdx.x")
        sch.unroll(last)

    assert left_to_nvrtc(checked([x, y], lambda sch: steps(sch, 4))) == [4], "known to be the last axis"
    assert left_to_nvrtc(checked([x, y], lambda sch: steps(sch, 8))) == []


def test_vectors_that_start_evenly_in_some_copies_only_are_copies() -> None:
    x = te.placeholder((8, 6), name="x")
    y = te.compute((8, 4), lambda i, j: x[i, j] * 2.0, name="y")

    def steps(sch: Schedule) -> None:
        i, j = sch.get_loops("y")
        outer, row = sch.split("y", i, [None, 4])
        sch.bind(outer, "threadIdx.x")
        sch.unroll(row)
        sch.vectorize(j)

    module = checked([x, y], steps)
    assert left_to_nvrtc(module) == []
    assert print_cuda(module).source.count("float4") > 0, "rows of even numbers start at multiples of four"


def test_what_unrolled_loops_load_from_shared_memory_is_loaded_before_them_as_vectors() -> None:
    def steps(sch: Schedule) -> None:
        copy = sch.cache_read("c", "b", "shared")
        tile = sch.cache_write("c", "c", "local")
        i, j, k = sch.get_loops("c")
        j0, j1 = sch.split("c", j, [None, 6])
        sch.reorder("c", j0, i, k, j1)
        sch.bind("c", j0, "blockIdx.x")
        sch.bind("c", i, "threadIdx.x")
        sch.unroll("c", j1)
        sch.compute_at(copy, k)
        sch.bind(copy, sch.get_loops(copy)[-1], "threadIdx.x")
        sch.reverse_compute_at(tile, i)

    module = checked(matmul(32, 24, 5), steps)
    source = print_cuda(module).source
    assert source.count("const float4*>(") == source.count("const float2*>(") == 1
    unrolled = [op for op in module.walk() if kernel.UNROLL in op.attributes]
    loads = [op for op in module.walk() if isinstance(op, kernel.LoadOp) and scope_of(op.buffer) == "shared"]
    assert len(loads) == 2 and not any(op.parent_op() in unrolled for op in loads)
