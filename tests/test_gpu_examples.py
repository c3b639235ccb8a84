"""The GPU schedules under examples/ compute the right thing on OpenCL, and compile for CUDA without a GPU."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from gpu_programs import opencl_device

import loopwright as lw

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", [16, 50])
def test_matmul_is_right_after_each_step(size: int) -> None:
    opencl_device()
    matmul = example("gpu_matmul")
    sch = matmul.matmul(size)
    for step in matmul.STEPS:
        step(sch)
        matmul.check(sch, size)


@pytest.mark.parametrize(("channels", "filters", "size"), [(4, 16, 14), (3, 5, 9)])
@pytest.mark.parametrize("unrolled", [0, 512])
def test_convolution(channels: int, filters: int, size: int, unrolled: int) -> None:
    opencl_device()
    conv = example("gpu_conv2d")
    sch = lw.Schedule(conv.conv2d(channels, filters, size), target=conv.OPENCL)
    conv.schedule(sch, auto_unroll_max_step=unrolled)
    conv.check(sch)


def test_cuda_source_without_a_gpu() -> None:
    conv, matmul = example("gpu_conv2d"), example("gpu_matmul")
    sch = lw.Schedule(conv.conv2d(8, 16, 14), target=f"cuda compute_capability=90 {conv.LIMITS}")
    conv.schedule(sch)
    assert lw.build(sch).source.count("__shared__") == 2
    sch = matmul.matmul(64, "cuda compute_capability=90")
    for step in matmul.STEPS:
        step(sch)
    source = lw.build(sch).source
    assert source.count("__syncthreads();") == 2
    assert "reinterpret_cast<const float4*>(&b_shared[" in source
