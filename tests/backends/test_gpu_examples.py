"""The GPU schedules under examples/ are right on OpenCL and interpreted for CUDA, and compile without a GPU."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gpu_programs import check_outputs, opencl_device

import loopwright as lw
from loopwright.search.measure.reference import make_reference

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", [132, 50])
@pytest.mark.slow(1.2)
@pytest.mark.few(1)
def test_matmul_is_right_after_each_step(size: int) -> None:
    opencl_device()
    matmul = example("gpu_matmul")
    sch = matmul.matmul(size)
    for step in matmul.STEPS:
        step(sch)
        matmul.check(sch, size)


@pytest.mark.parametrize(("channels", "filters", "size"), [(4, 16, 14), (3, 5, 9)])
@pytest.mark.parametrize("unrolled", [0, 512])
@pytest.mark.few(1)
def test_convolution(channels: int, filters: int, size: int, unrolled: int) -> None:
    opencl_device()
    conv = example("gpu_conv2d")
    sch = lw.Schedule(conv.conv2d(channels, filters, size), target=conv.OPENCL)
    conv.schedule(sch, auto_unroll_max_step=unrolled)
    conv.check(sch)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.few(1)
def test_products_of_warp_groups(dtype: str) -> None:
    """Interpreted, in tiles that are small enough for it."""
    wgmma = example("gpu_matmul_wgmma")
    tiles = wgmma.Tiles(columns=64, stages=2, group=1)
    sch = wgmma.scheduled(256, dtype, tiles=tiles)
    reference = make_reference(sch.workload)
    check_outputs([np.asarray(lw.interpret(sch, *reference.inputs))], reference, sch.pipeline)


def scheduled(name: str) -> lw.Schedule:
    """A small schedule of an example, for CUDA."""
    module, target = example(f"gpu_{name}"), "cuda model=h200"
    if name == "matmul":
        sch: lw.Schedule = module.matmul(50, target)
        for step in module.STEPS:
            step(sch)
        return sch
    arguments = {"conv2d": (3, 5, 9), "depthwise": (9, 8), "softmax": (3, 256)}[name]
    sch = lw.Schedule(getattr(module, name)(*arguments), target=target)
    module.schedule(sch)
    return sch


@pytest.mark.parametrize("name", ["matmul", "conv2d", "depthwise", "softmax"])
@pytest.mark.few(2)
def test_they_are_right_for_cuda_when_interpreted(name: str) -> None:
    sch = scheduled(name)
    reference = make_reference(sch.workload)
    check_outputs([np.asarray(lw.interpret(sch, *reference.inputs))], reference, sch.pipeline)


def test_cuda_source_without_a_gpu() -> None:
    conv, matmul = example("gpu_conv2d"), example("gpu_matmul")
    sch = lw.Schedule(conv.conv2d(8, 16, 14), target=f"cuda compute_capability=90 {conv.LIMITS}")
    conv.schedule(sch)
    assert lw.build(sch).source.count("__shared__") == 2
    sch = matmul.matmul(64, "cuda compute_capability=90")
    for step in matmul.STEPS:
        step(sch)
    source = lw.build(sch).source
    assert source.count("__syncthreads();") == 1  # of each iteration, whose copies run ahead
    loads = re.findall(r"ld\.shared\.(v\d\.)?f32 .*\[(p\d)", source)  # of both factors, at an address each
    assert set(loads) == {("v4.", "p0"), ("v4.", "p1")}


@pytest.mark.parametrize(("size", "channels", "rows", "columns"), [(9, 8, 2, 4), (14, 4, 1, 16), (8, 6, 3, 3)])
@pytest.mark.few(1)
def test_depthwise(size: int, channels: int, rows: int, columns: int) -> None:
    opencl_device()
    depthwise = example("gpu_depthwise")
    sch = lw.Schedule(depthwise.depthwise(size, channels), target=depthwise.OPENCL)
    depthwise.schedule(sch, rows, columns)
    depthwise.check(sch, lw.build(sch))


@pytest.mark.parametrize(("rows", "columns", "threads"), [(3, 256, 32), (2, 100, 32), (1, 513, 64)])
@pytest.mark.few(1)
def test_softmax(rows: int, columns: int, threads: int) -> None:
    opencl_device()
    softmax = example("gpu_softmax")
    sch = lw.Schedule(softmax.softmax(rows, columns), target=softmax.OPENCL)
    softmax.schedule(sch, threads)
    softmax.check(sch, lw.build(sch))


@pytest.mark.parametrize("name", ["gpu_depthwise", "gpu_softmax"])
def test_an_example_says_what_it_reached(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opencl_device()
    sizes = ["--size", "8", "--channels", "4"] if name == "gpu_depthwise" else ["--rows", "2", "--columns", "64"]
    monkeypatch.setattr("sys.argv", [name, *sizes])
    example(name).main()
    assert re.fullmatch(r"right; [\d.]+ us, [\d.]+ GB/s\n", capsys.readouterr().out)


def test_full_sizes_fit_an_h200() -> None:
    """The source for CUDA: 16 bytes an access, a row and a tile in registers, one launch."""
    depthwise, softmax = example("gpu_depthwise"), example("gpu_softmax")
    sch = lw.Schedule(depthwise.depthwise(112, 32), target="cuda model=h200")
    depthwise.schedule(sch)
    kernel: Any = lw.build(sch)
    assert "*reinterpret_cast<float4*>(&T_relu[" in kernel.source and "const float4 data" in kernel.source
    rows = lw.Schedule(softmax.softmax(8192, 4096), target="cuda model=h200")
    softmax.schedule(rows)
    joined: Any = lw.build(rows)
    assert "__shfl_xor_sync" in joined.source and "*reinterpret_cast<float4*>(&T_softmax_norm[" in joined.source
    for (resources,) in (kernel.resources, joined.resources):
        assert resources.stack_bytes == 0 and resources.registers <= 80


def test_matmul_on_tensor_cores_has_its_instructions() -> None:
    source = lw.build(example("gpu_matmul_tensor").scheduled(256)).source
    assert source.count("mma_m16n16k16_f16(") == 1 + 4 * 4 * 4  # a function, and tiles of a warp by steps of k
    assert source.count("load_matrices_4(") == 1 + (4 + 4) * 4
    assert "float T_matmul[128] = {};" in source
