"""Rows on GPUs that threads hold in registers, in vectors, and in parts where they are far longer."""

import numpy as np
import pytest
from gpu_programs import check_interpreted
from gpu_rows import H200, launches, normalised, schedules, softmax, task_of, unary

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda_device
from loopwright.backends.cuda.nvrtc import compile_ptx


def masked(dtype: str, *shape: int) -> list[te.Tensor]:
    """Softmax of scores where a mask is true, as attention has it."""
    data, mask = te.placeholder(shape, name="data", dtype=dtype), te.placeholder(shape, name="mask", dtype="bool")
    return [data, mask, topi.nn.softmax(topi.where(mask, data, -1e4))]


def with_threads(task: lw.SearchTask, threads: int) -> str:
    """The schedule of the one sketch with so many threads for a row."""
    (sketch,) = task.sketches
    (hole,) = sketch.holes
    return sketch.schedule(np.array([hole.choices.index(threads)]))


@pytest.mark.parametrize(
    ("tensors", "vector", "threads"),
    [
        (softmax(6, 128), 4, 32),
        (softmax(5, 264), 4, 32),  # two whole rounds of the warp, and two threads
        (softmax(5, 197), 1, 32),
        (masked("float32", 3, 256), 4, 64),
        (masked("float16", 3, 256), 8, 32),
        (normalised((1,), 5, 96), 1, 32),
        (unary(topi.nn.log_softmax, 3, 1030), 2, 64),
    ],
)
@pytest.mark.few(2)
def test_rows_in_vectors_are_right_when_interpreted(tensors: list[te.Tensor], vector: int, threads: int) -> None:
    task = task_of(tensors, H200)
    schedule = with_threads(task, threads)
    check_interpreted(task.module, task.reference, [schedule])
    ((grid, block),) = launches(task, schedule)
    assert (int(np.prod(grid)), block[0]) == (tensors[0].shape[0], threads)
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), schedule), "cuda")
    (resources,) = artifact.resources
    assert resources.stack_bytes == 0, "no row is in memory of a thread, which is global memory"
    width = {1: "float", 2: "float2", 4: "float4", 8: "half_x8"}[vector]
    assert vector == 1 or f"const {width}*>(&data[" in artifact.kernel.source


@pytest.mark.parametrize("width", [1000, 8192, 32000])
@pytest.mark.few(2)
def test_rows_are_read_from_memory_once(width: int) -> None:
    """Log-softmax read each row three times, and kept exponentials in shared memory that are read once."""
    task = task_of(unary(topi.nn.log_softmax, 512, width), H200)
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), task.default_schedule), "cuda")
    (launch,) = artifact.kernel.launches
    terms = -(-width // launch.block[0])
    ptx = compile_ptx(artifact.kernel.source, 90)
    read = sum(
        line.count("ld.global") * {"v2": 2, "v4": 4}.get(line.partition("nc.")[2][:2], 1) for line in ptx.split("\n")
    )
    assert terms <= read <= terms + 8  # the last vector, which not all threads have, may be read for each stage


def test_epilogues_of_rows_in_a_batch_of_one_are_in_the_kernel() -> None:
    """An epilogue read `[0, i, j]` where it wrote `[b, i, j]`: each reduction became a kernel of its own."""
    data, mask = te.placeholder((1, 2, 9, 40), name="data"), te.placeholder((1, 2, 9, 40), name="mask", dtype="bool")
    made = topi.nn.softmax(data)
    task = task_of([data, mask, topi.where(mask, made, 0)], H200)
    assert len(launches(task, task.default_schedule)) == 1
    check_interpreted(task.module, task.reference, schedules(task, count=1))


def test_rows_longer_than_registers_end_without_branches() -> None:
    task = task_of(softmax(67, 40001), H200)
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), task.default_schedule), "cuda")
    assert "if (" not in artifact.kernel.source.replace("if ((thread_x & 31) == 0)", "")


@pytest.mark.parametrize(("rows", "width", "kernels"), [(1, 50257, 3), (60, 50257, 3), (67, 50257, 1), (1, 16384, 1)])
def test_few_rows_far_longer_than_registers_are_in_parts(rows: int, width: int, kernels: int) -> None:
    """Each of the two reductions in a kernel, and one that writes; each joins the parts of those before."""
    task = task_of(softmax(rows, width), H200)
    assert len(launches(task, task.default_schedule)) == kernels


@pytest.mark.parametrize(
    ("size", "lanes"),
    [(14, (4, 7, 14, 28, 49)), (28, (14, 16, 28, 49, 56, 98, 112)), (7, (7,)), (13, (13,)), (11, (11,))],
)
def test_lanes_have_as_many_terms_each_where_these_are_written_out(size: int, lanes: tuple[int, ...]) -> None:
    """Means of pixels with channels last, without a search in as many lanes as each has terms."""
    data = te.placeholder((1, size, size, 96), name="data")
    (sketch,) = lw.SearchTask([data, topi.mean(data, (1, 2))], target="cuda model=h200").sketches
    (hole,) = (hole for hole in sketch.holes if hole.name.endswith("_lanes"))
    assert hole.choices == lanes and hole.default == size
