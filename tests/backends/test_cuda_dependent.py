"""Kernels that wait for the launch ahead by themselves, so that they may begin before it has ended."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from machine_code import accesses_before_the_wait, disassembled_kernels
from pipelined_matmul import CUDA, OPENCL, lower, matmul, tile

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda.compile import compile_module, print_for
from loopwright.backends.opencl.compile import print_opencl

WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
PIPELINED = partial(tile, stages=2, registers=0, vector=1, turned=False)


def test_the_wait_is_the_first_statement_of_a_kernel_that_can() -> None:
    _, kernel = lower(matmul(16, 16, 16), PIPELINED, CUDA)
    printed = print_for(kernel, 90)
    body = printed.source.partition("\nmain_k0(")[2].splitlines()[1:]
    assert next(line.strip() for line in body if "__shared__" not in line) == WAIT
    assert [launch.waits for launch in printed.launches] == [True] and printed.source.count(WAIT) == 1
    older = print_for(kernel, 80)
    assert WAIT not in older.source and [launch.waits for launch in older.launches] == [False]
    opencl = print_opencl(lower(matmul(16, 16, 16), PIPELINED, OPENCL)[1])
    assert "griddepcontrol" not in opencl.source and [launch.waits for launch in opencl.launches] == [False]


def test_kernels_of_before_wait_for_nothing() -> None:
    """Kept kernels do not say that they wait: they begin where the one ahead has ended."""
    artifact = compile_module(lower(matmul(16, 16, 16), PIPELINED, CUDA)[1])
    _, header, binary = artifact.to_bytes().split(b"\n", 2)
    said = json.loads(header)
    assert said["kernel"]["launches"][0].pop("waits") is True
    kept = Artifact.from_bytes(b"\n".join((b"loopwright-gpu-2", json.dumps(said).encode(), binary)), "cuda")
    assert [launch.waits for launch in kept.kernel.launches] == [False] and kept.binary == artifact.binary
    bad: Any
    for bad in ([], {**said, "kernel": 1}, {**said, "kernel": {**said["kernel"], "launches": [3]}}):
        with pytest.raises(ValueError, match=r"^the kernel"):
            Artifact.from_bytes(b"\n".join((b"loopwright-gpu-2", json.dumps(bad).encode(), binary)), "cuda")


def rows() -> list[te.Tensor]:
    data = te.placeholder((6, 600), name="data")
    return [data, topi.nn.softmax(data, -1)]


def scaled() -> list[te.Tensor]:
    data, scale = te.placeholder((640, 64), name="data"), te.placeholder((64,), name="scale")
    return [data, scale, topi.multiply(data, scale)]


def half_product() -> list[te.Tensor]:
    a, b = te.placeholder((4096, 1024), "float16", name="a"), te.placeholder((1024, 1024), "float16", name="b")
    return [a, b, topi.cast(topi.matmul(a, b, out_dtype="float32"), "float16")]


def few_rows() -> list[te.Tensor]:
    a, b = te.placeholder((4, 8192), name="a"), te.placeholder((8192, 64), name="b")
    return [a, b, topi.matmul(a, b)]


@pytest.mark.parametrize("workload", [rows, scaled, half_product, few_rows])
@pytest.mark.few(1)
def test_nothing_is_read_before_the_wait(workload: Callable[[], list[te.Tensor]]) -> None:
    """Loads of what a kernel never writes, which compilers move freely, stay behind it."""
    task = lw.SearchTask(workload, target="cuda model=h200")
    artifact = compile_module(lower_to_kernel(task.schedule_module(task.default_schedule), task.target))
    for name, instructions in disassembled_kernels(artifact.binary).items():
        assert len(instructions) > 16, name
        assert accesses_before_the_wait(instructions) == [], name
