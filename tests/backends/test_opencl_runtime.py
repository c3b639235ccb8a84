"""Kernels, arrays and measuring on an OpenCL device."""

import json
import os
import signal
from typing import Any

import numpy as np
import pytest
from gpu_programs import opencl_device, parse

import loopwright as lw
from loopwright import te
from loopwright.backends.c_family.artifact import Artifact, CompileError
from loopwright.backends.c_family.kernel_source import KernelSource, Launch
from loopwright.backends.device_kernel import DeviceKernel
from loopwright.backends.device_lost import DeviceLost
from loopwright.backends.opencl import device
from loopwright.backends.opencl.executable import load
from loopwright.backends.opencl.platform import MissingOpenCl, device_at
from loopwright.backends.signature import Argument
from loopwright.search.measure.backend_api import load_backend

pytestmark = pytest.mark.usefixtures("device_here")
SIZE = 1000


@pytest.fixture(scope="module")
def device_here() -> int:
    return opencl_device()


def scale(target: str = "opencl") -> lw.Schedule:
    """2 a + b on 8 blocks of 128 threads, the last of them partly idle."""
    a, b = te.placeholder((SIZE,), name="a"), te.placeholder((SIZE,), name="b")
    c = te.compute((SIZE,), lambda i: a[i] * 2.0 + b[i], name="c")
    schedule = lw.Schedule([a, b, c], target=target)
    (i,) = schedule.get_loops("c")
    outer, inner = schedule.split("c", i, [None, 128])
    schedule.bind("c", outer, "blockIdx.x")
    schedule.bind("c", inner, "threadIdx.x")
    return schedule


@pytest.fixture(scope="module")
def kernel() -> DeviceKernel:
    made = lw.build(scale(), "opencl")
    assert isinstance(made, DeviceKernel)
    return made


A, B = (np.random.default_rng(n).standard_normal(SIZE).astype(np.float32) for n in (0, 1))


def test_numpy_arrays(kernel: DeviceKernel) -> None:
    np.testing.assert_allclose(kernel(A, B), 2 * A + B, rtol=1e-6)
    out = np.zeros(SIZE, np.float32)
    assert kernel(A, B, out) is out
    np.testing.assert_allclose(out, 2 * A + B, rtol=1e-6)
    with pytest.raises(TypeError, match="input 'b' must be float32, got float64"):
        kernel(A, B.astype(np.float64))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_instead_of_hanging(kernel: DeviceKernel) -> None:
    kernel(A, B)

    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            kernel(A, B)
        except DeviceLost as error:
            os._exit(0 if "no device outlives a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_device_arrays(kernel: DeviceKernel) -> None:
    where = lw.opencl()
    a, b = where.array(A), where.array(B)
    c = kernel(a, b)
    assert c.shape == (SIZE,) and c.dtype == np.float32
    np.testing.assert_allclose(c.numpy(), 2 * A + B, rtol=1e-6)
    again = kernel(c, B)
    np.testing.assert_allclose(np.asarray(again), 4 * A + 3 * B, rtol=1e-5)
    out = where.empty((SIZE,))
    assert kernel(a, b, out) is out
    with pytest.raises(ValueError, match="output 'c' must not overlap 'a' in memory"):
        kernel(a, b, a)
    with pytest.raises(TypeError, match="output 'c' must be on the device, as an input is, got ndarray"):
        kernel(a, b, A)
    with pytest.raises(ValueError, match="a copy only"):
        np.asarray(out, copy=False)


def test_arrays_of_pyopencl(kernel: DeviceKernel) -> None:
    array = pytest.importorskip("pyopencl.array")
    from loopwright.backends.opencl.platform import queue_of

    a = array.to_device(queue_of(0), A)
    np.testing.assert_allclose(kernel(a, B).numpy(), 2 * A + B, rtol=1e-6)


def test_cpu_arrays_are_numpys() -> None:
    made = lw.cpu().array(A[::2])
    assert isinstance(made, np.ndarray) and made.flags.c_contiguous and made.ctypes.data % 64 == 0
    assert lw.cpu().empty((2, 3), "int8").dtype == np.int8
    assert lw.cpu().target.kind == "llvm"


def test_benchmark(kernel: DeviceKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    result = kernel.benchmark(min_repeat_ms=2, repeat=3)
    assert len(result.times_s) == 3 and result.median > 0
    with monkeypatch.context() as patch:  # a clock that no other program disturbs
        patch.setattr(kernel._executable.runtime, "time", lambda buffers, runs, *_: 1e-5 * runs)
        assert 200 <= kernel.benchmark(min_repeat_ms=2, repeat=3).number <= 300
    flushed = kernel.benchmark(A, B, min_repeat_ms=0, repeat=1, number=2, flush=1 << 20)
    assert flushed.number == 2 and flushed.median > 0
    with pytest.raises(MissingOpenCl, match="no graphs"):
        kernel.benchmark(graph=True)


def test_constants_stay_on_the_device() -> None:
    a, w = te.placeholder((4, 8), name="a"), te.placeholder((8,), name="w", constant=True)
    c = te.compute((4, 8), lambda i, j: a[i, j] * w[j], name="c")
    schedule = lw.Schedule([a, w, c], target="opencl")
    i, j = schedule.get_loops("c")
    schedule.bind("c", i, "blockIdx.x")
    schedule.bind("c", j, "threadIdx.x")
    weights, values = np.arange(8, dtype=np.float32), np.ones((4, 8), np.float32)
    kernel = lw.build(schedule, "opencl", params={"w": weights})
    weights[:] = 0
    expected = np.tile(np.arange(8, dtype=np.float32), (4, 1))
    np.testing.assert_array_equal(kernel(values), expected)
    result: Any = kernel(lw.opencl().array(values))
    np.testing.assert_array_equal(result.numpy(), expected)
    assert kernel.benchmark(min_repeat_ms=1, repeat=1).median > 0


def test_a_device_to_measure_on() -> None:
    backend = load_backend("loopwright.backends.opencl.device")
    assert backend is device
    a, b = te.placeholder((SIZE,), name="a"), te.placeholder((SIZE,), name="b")
    module = te.create_module([a, b, te.compute((SIZE,), lambda i: a[i] * 2.0 + b[i], name="c")], target="opencl")
    artifact = backend.build(str(module), scale().pipeline)
    header = json.loads(artifact.split(b"\n")[1])
    assert header["kind"] == "opencl" and header["architecture"] == backend.device_name()
    executable = backend.load(artifact)
    out = np.zeros(SIZE, np.float32)
    executable.run([A, B, out])
    np.testing.assert_allclose(out, 2 * A + B, rtol=1e-6)
    assert executable.time([A, B, out], 10) > 0
    versions = backend.versions()
    assert versions["pyopencl"] and versions["lw-bind"]


def one_launch(source: str, block: tuple[int, int, int] = (1, 1, 1), shared_bytes: int = 0) -> Artifact:
    launch = Launch("k", (1, 1, 1), block, (0,), shared_bytes, 0, False)
    kernel = KernelSource("k", (Argument("y", "float32", (1,), True),), (), (launch,), source)
    return Artifact("opencl", "", kernel, (), b"")


def test_refusals() -> None:
    with pytest.raises(CompileError, match=r"(?s)refuses kernel 'k':.*nothing"):
        load(one_launch("__kernel void k(__global float* y) { y[0] = nothing; }")).run([np.zeros(1, np.float32)])
    with pytest.raises(MissingOpenCl, match=r"kernel 'k' has 1073741824 threads a block, .* allows \d+"):
        load(one_launch("", (1 << 20, 1 << 10, 1)))
    with pytest.raises(MissingOpenCl, match=r"kernel 'k' has 1099511627776 shared bytes a block, .* allows \d+"):
        load(one_launch("", shared_bytes=1 << 40))
    with pytest.raises(MissingOpenCl, match="there is no OpenCL device 99; devices here: "):
        lw.opencl(99)


def test_targets_of_devices() -> None:
    target = lw.opencl().target
    assert target.kind == "opencl" and target.max_threads_per_block >= 64 and target.max_shared_bytes >= 16 << 10
    assert target.cores == device_at(0).max_compute_units
    assert " " not in target.model


def test_a_binary_of_another_driver_is_compiled_anew() -> None:
    module = parse(
        "func.func @k(%y : memref<1xf32> {lw.output}) {\n%c0 = arith.constant 0 : index\n"
        "lw_kernel.launch grid [1, 1, 1] block [1, 1, 1] {\n%v = arith.constant 3.0 : f32\n"
        "lw_kernel.store %v, %y[%c0] stride 0 : f32, memref<1xf32>\n}\nfunc.return\n}"
    )
    from loopwright.backends.opencl.compile import compile_module

    artifact = compile_module(module)
    assert artifact.binary
    moved = Artifact("opencl", "some other device", artifact.kernel, (), b"no binary of this device")
    for each in (artifact, moved):
        y = np.zeros(1, np.float32)
        load(each).run([y])
        assert y[0] == 3.0
