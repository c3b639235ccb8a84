"""Every kind of operator through the search's GPU sketches: interpreted, run on OpenCL, compiled for CUDA."""

import re
from functools import cache

import numpy as np
import pytest
from gpu_programs import check_interpreted, check_on_opencl
from sample_workloads import SAMPLES
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.context import create_context
from loopwright.backends.cuda import device as cuda_device
from loopwright.backends.cuda.cubins import separate_cubins
from loopwright.dialects.kernel import LaunchOp
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.dialects.te import ComputeOp
from loopwright.search.measure.reference import make_reference
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch

OPENCL = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 warp_size=1 max_vthreads=8"
CUDA = (
    "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90"
)


@cache
def module_for(name: str, target: str) -> ModuleOp:
    module = te.create_module(SAMPLES[name]())
    module.attributes["lw.target"] = TargetAttr(parse_target(target))
    return module


@cache
def sketches_of(name: str, target: str) -> tuple[Sketch, ...]:
    return tuple(generate_sketches(module_for(name, target), parse_target(target)))


def candidates(name: str, target: str, seed: int) -> list[str]:
    """Of each sketch the default or a candidate from anywhere within the limits, in turn; the first one's has both.

    Those that unroll most are left to the search: compiling one takes seconds.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    for number, sketch in enumerate(sketches_of(name, target)):
        most = [min(3, len(h.choices)) if h.name.endswith("_unroll") else len(h.choices) for h in sketch.holes]
        rows = rng.integers(0, most, size=(2000, len(sketch.holes)))
        rows = rows[sketch.legal(rows)][:1]
        if number == 0 or (number + seed) % 2 or not len(rows):
            rows = np.concatenate([sketch.default[None], rows])[: 2 if number == 0 else 1]
        for row in rows:
            found[sketch.schedule(row)] = None
    return list(found)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(1)
def test_candidates_are_right_on_opencl(name: str) -> None:
    workload = module_for(name, OPENCL)
    check_on_opencl(workload, make_reference(workload), candidates(name, OPENCL, 0))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(2)
def test_candidates_compile_for_cuda(name: str) -> None:
    """No device is needed; what is launched is within what the architecture has."""
    workload = str(module_for(name, CUDA))
    for schedule in candidates(name, CUDA, 1):
        artifact = Artifact.from_bytes(cuda_device.build_candidate(workload, schedule), "cuda")
        launches, cubins = artifact.kernel.launches, separate_cubins(artifact.binary)
        assert artifact.architecture == "sm_90" and len(cubins) == len(launches)
        assert all(cubin[:4] == b"\x7fELF" for cubin in cubins)
        assert [r.name for r in artifact.resources] == [launch.name for launch in launches]
        for launch in launches:
            assert np.prod(launch.block) <= 1024
            assert launch.static_shared_bytes + launch.dynamic_shared_bytes <= 232448


@pytest.mark.parametrize("target", [OPENCL, CUDA])
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(2)
def test_candidates_are_right_when_interpreted(name: str, target: str) -> None:
    workload = module_for(name, target)
    check_interpreted(workload, make_reference(workload), candidates(name, target, 2))


def product(dtype: str, summed: str) -> list[te.Tensor]:
    a, b = te.placeholder((34, 64), name="a", dtype=dtype), te.placeholder((40, 64), name="b", dtype=dtype)
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype=summed)]


@pytest.mark.parametrize(
    ("dtype", "summed"),
    [("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")],
)
@pytest.mark.few(1)
def test_products_of_narrow_types_are_right_when_interpreted(dtype: str, summed: str) -> None:
    """Their copies move 16 bytes at once, by the device itself; bytes are joined four by four."""
    task = lw.SearchTask(te.create_module(product(dtype, summed)), target=CUDA)
    rng = np.random.default_rng(0)
    schedules = [s.schedule(row) for s in task.sketches for row in (s.default, *s.sample(rng, 2))]
    check_interpreted(task.module, task.reference, schedules)


def scalars() -> list[te.Tensor]:
    s, t, k = te.placeholder((), name="s"), te.placeholder((), name="t"), te.reduce_axis((0, 40), "k")
    return [s, t, te.compute((16, 33), lambda i, j: te.sum(s[()] * t[()], axis=k), name="o")]


@pytest.mark.parametrize("target", [OPENCL, CUDA])
def test_products_of_scalars_alone_have_no_operands_to_copy(target: str) -> None:
    task = lw.SearchTask(te.create_module(scalars()), target=target)
    check_interpreted(task.module, task.reference, [task.default_schedule])


def folded() -> list[te.Tensor]:
    x, w, k = te.placeholder((8, 9, 4), name="x"), te.placeholder((8, 9), name="w"), te.reduce_axis((0, 4), "k")
    below = te.compute((8, 9, 4), lambda i, j, k: te.exp(x[i, j, k]), name="below")
    unread = te.compute((8, 9), lambda i, j: te.sum(below[i, j, k], axis=k), name="unread")
    return [x, w, te.compute((8, 9), lambda i, j: te.if_then_else(i < 0, unread[i, j], w[i, j]), name="o")]


@pytest.mark.parametrize("target", [OPENCL, CUDA])
def test_stages_that_folding_leaves_unread_are_no_part_of_a_program(target: str) -> None:
    module = te.create_module(folded())
    assert [op.label.data for op in module.walk() if isinstance(op, ComputeOp)] == ["o"]
    task = lw.SearchTask(module, target=target)
    check_interpreted(task.module, task.reference, [task.default_schedule])


UNREAD = """func.func @main(%x: tensor<64xf32> {lw.name = "x"}) -> tensor<64xf32> {
  %unread = lw_te.compute "unread" [i = 64] -> tensor<64xf32> {
    %0 = lw_te.read %x[63 - i] : tensor<64xf32>
    lw_te.yield %0 : f32
  }
  %y = lw_te.compute "y" [i = 64] -> tensor<64xf32> {
    %0 = lw_te.read %x[i] : tensor<64xf32>
    %1 = arith.mulf %0, %0 : f32
    lw_te.yield %1 : f32
  }
  func.return %y : tensor<64xf32>
}"""


@pytest.mark.parametrize("target", [OPENCL, CUDA])
def test_stages_of_a_file_that_nothing_reads_are_not_launched(target: str) -> None:
    module = Parser(create_context(), UNREAD).parse_module()
    task = lw.SearchTask(module, target=target)
    check_interpreted(task.module, task.reference, [task.default_schedule])
    for given in (module, task.schedule_module(task.default_schedule)):
        launches = [op for op in lower_to_kernel(given, target).walk() if isinstance(op, LaunchOp)]
        assert len(launches) == 1


@pytest.mark.parametrize(
    ("transposed", "dtype", "turned"), [(True, "float32", 2), (False, "float32", 1), (True, "int8", 1)]
)
@pytest.mark.few(2)
def test_operands_lie_side_by_side_along_what_neighbouring_threads_read(
    transposed: bool, dtype: str, turned: int
) -> None:
    """Data (M, K) and weight (N, K) are both turned in shared memory; of weight (K, N), or of bytes, the data alone."""
    data = te.placeholder((96, 128), name="data", dtype=dtype)
    weight = te.placeholder((96, 128) if transposed else (128, 96), name="weight", dtype=dtype)
    made = topi.matmul(data, weight, False, transposed)
    lanes_alone = CUDA.replace("compute_capability=90", "compute_capability=75")  # whose matrix units take no bytes
    task = lw.SearchTask(te.create_module([data, weight, made]), target=lanes_alone)
    assert {sketch.template.count("lw-storage-align") for sketch in task.sketches} == {turned}
    sketch = next(s for s in task.sketches if s.name == "j")
    artifact = cuda_device.build(str(task.module), sketch.schedule(sketch.default))
    source = Artifact.from_bytes(artifact, "cuda").kernel.source
    loads = re.findall(r"ld\.shared\.(v\d\.)?f32", source)  # of both operands, which assembly names by addresses
    assert set(loads) == ({"v4."} if dtype == "float32" else set())
    assert "reinterpret_cast<const float4*>(&weight_shared[" not in source


def test_windows_that_slide_along_the_lanes_lie_as_in_global_memory() -> None:
    """Turned, data of a convolution with stride 2 had each window apart: 512x3199 took 190 us for 118 on an H200."""
    data, kernel = te.placeholder((1, 64, 99), name="data"), te.placeholder((32, 64, 3), name="kernel")
    task = lw.SearchTask([data, kernel, topi.nn.conv1d_ncw(data, kernel, 2)], target=CUDA)
    for sketch in task.sketches:
        copies = [step for step in sketch.template.split(",lw-") if step.startswith("cache-read")]
        (of_data,) = [step for step in copies if 'buffer="data"' in step]
        assert "layout" not in of_data
        assert any('buffer="kernel"' in step and "layout" in step for step in copies)
