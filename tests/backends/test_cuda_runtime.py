"""Running on CUDA: contexts, launches, copies, timing and arrays of others, on a driver in memory."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from fake_pycuda import Bindings, FakeDriver, installed
from gpu_programs import parse

from loopwright.backends.build import build
from loopwright.backends.cuda import arrays, dlpack, driver
from loopwright.backends.cuda.checks import CudaChecks
from loopwright.backends.device_kernel import DeviceKernel
from loopwright.backends.device_lost import DeviceLost
from loopwright.backends.host_memory import NotEnoughMemory
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.search.measure.device_buffers import DeviceBuffers
from loopwright.search.measure.tolerance import EXACT

SHARED = 20000
TEXT = f"""
func.func @f(%x : memref<4xf32> {{lw.name = "x"}}, %y : memref<4xf32> {{lw.name = "y", lw.output}}) {{
  %c0 = arith.constant 0 : index
  %ws = lw_kernel.alloc "ws" : memref<4xf32>
  lw_kernel.launch grid [1, 1, 1] block [4, 1, 1] {{
    %t = lw_kernel.thread "threadIdx.x" : index
    %s = lw_kernel.alloc "s" : memref<{SHARED}xf32, "shared">
    %v = lw_kernel.load %x[%t] stride 0 : memref<4xf32> -> f32
    lw_kernel.store %v, %s[%t] stride 0 : f32, memref<{SHARED}xf32, "shared">
    %w = lw_kernel.load %s[%t] stride 0 : memref<{SHARED}xf32, "shared"> -> f32
    lw_kernel.store %w, %ws[%t] stride 0 : f32, memref<4xf32>
  }}
  lw_kernel.launch grid [2, 1, 1] block [2, 1, 1] {{
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    %two = arith.constant 2 : index
    %p = arith.muli %b, %two : index
    %i = arith.addi %p, %t : index
    %v = lw_kernel.load %ws[%i] stride 0 : memref<4xf32> -> f32
    lw_kernel.store %v, %y[%i] stride 0 : f32, memref<4xf32>
  }}
  func.return
}}
"""
LAUNCHES = [("f_k0", (1, 1, 1), (4, 1, 1), 4 * SHARED), ("f_k1", (2, 1, 1), (2, 1, 1), 0)]


def double(x: np.ndarray, ws: np.ndarray) -> None:
    ws.view(np.float32)[:4] = 2 * x.view(np.float32)[:4]


def add_one(y: np.ndarray, ws: np.ndarray) -> None:
    y.view(np.float32)[:4] = ws.view(np.float32)[:4] + 1


@pytest.fixture
def cuda() -> Iterator[FakeDriver]:
    """What every test leaves behind: no context on the stack."""
    fake = FakeDriver({"f_k0": double, "f_k1": add_one})
    with installed(fake):
        yield fake
    assert fake.deepest <= 2


def kernel(target: str = "cuda compute_capability=90") -> DeviceKernel:
    module = parse(TEXT)
    module.attributes["lw.target"] = TargetAttr(parse_target(target))
    made = build(module)
    assert isinstance(made, DeviceKernel)
    return made


X = np.array([1, 2, 3, 4], np.float32)


def test_numpy_arrays_are_copied(cuda: FakeDriver) -> None:
    run = kernel()
    np.testing.assert_array_equal(run(X), 2 * X + 1)
    assert [entry for entry in cuda.log if entry[0] in ("f_k0", "f_k1")] == LAUNCHES
    assert ("MAX_DYNAMIC_SHARED_SIZE_BYTES", 4 * SHARED) in cuda.log
    y = np.zeros(4, np.float32)
    assert run(X + 1, y) is y
    np.testing.assert_array_equal(y, 2 * X + 3)
    assert len(cuda.memory) == 3, "buffers are made once"


def test_device_arrays_are_used_in_place(cuda: FakeDriver) -> None:
    device, run = arrays.cuda(0), kernel()
    x, y = device.array(X), device.empty((4,))
    uploads = cuda.log.count("upload")
    assert run(x, y) is y
    np.testing.assert_array_equal(y.numpy(), 2 * X + 1)
    result = run(x)
    assert isinstance(result, arrays.CudaArray)
    np.testing.assert_array_equal(np.asarray(result), 2 * X + 1)
    assert cuda.log.count("upload") == uploads
    with pytest.raises(TypeError, match="output 'y' must be on the device, as an input is, got ndarray"):
        run(x, np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="input 'x' must be float32, got int32"):
        run(device.array(X.astype(np.int32)))
    with pytest.raises(ValueError, match=r"input 'x' must have shape \(4,\), got \(2, 2\)"):
        run(device.array(X.reshape(2, 2)))
    with pytest.raises(TypeError, match="takes 1 arrays"):
        run(x, y, y)
    with pytest.raises(ValueError, match="output 'y' must not overlap 'x' in memory"):
        run(x, x)


class Tensor:
    """An array of another package, by the CUDA array interface."""

    def __init__(self, address: int, shape: tuple[int, ...] = (4,), strides: tuple[int, ...] | None = None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (address, False),
            "strides": strides,
            "version": 3,
        }


def test_arrays_of_other_packages(cuda: FakeDriver) -> None:
    device, run = arrays.cuda(0), kernel()
    x = device.array(X)
    np.testing.assert_array_equal(run(Tensor(x.buffer)).numpy(), 2 * X + 1)
    np.testing.assert_array_equal(run(Tensor(x.buffer, strides=(4,))).numpy(), 2 * X + 1)
    interface = x.__cuda_array_interface__  # type: ignore[attr-defined]
    assert (interface["data"], interface["shape"], interface["typestr"]) == ((x.buffer, False), (4,), "<f4")
    with pytest.raises(ValueError, match=r"contiguous, got shape \(4,\), strides \(2,\)"):
        run(Tensor(x.buffer, strides=(8,)))
    with pytest.raises(ValueError, match="start on a multiple of 16 bytes"):
        run(Tensor(x.buffer + 4))


class Packed:
    """An array of another package, by DLPack alone."""

    def __init__(self, array: arrays.DeviceArray) -> None:
        self.array = array

    def __dlpack__(self, **options: int) -> object:
        return self.array.__dlpack__(**options)  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_dlpack_both_ways(cuda: FakeDriver) -> None:
    device, run = arrays.cuda(0), kernel()
    np.testing.assert_array_equal(run(Packed(device.array(X))).numpy(), 2 * X + 1)


def test_bfloat16_passes_by_dlpack(cuda: FakeDriver) -> None:
    """NumPy lends no memory of it to others, and the CUDA array interface has no word for it."""
    device, values = arrays.cuda(0), np.arange(8).astype(ml_dtypes.bfloat16).reshape(2, 4)
    array = device.array(values)
    np.testing.assert_array_equal(array.numpy(), values)
    seen = device.view(Packed(array))
    assert seen is not None and seen.shape == (2, 4) and seen.dtype == values.dtype
    np.testing.assert_array_equal(seen.numpy(), values)


def test_dlpack_frees_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """On memory of the CPU, which NumPy can read: taken over by a reader, and dropped unread."""
    freed = []

    class Owner:
        def __del__(self) -> None:
            freed.append(True)

    class Exporter:
        def __dlpack__(self, **_: object) -> object:
            monkeypatch.setattr(dlpack, "CUDA", 1)
            return dlpack.exported((X, Owner()), X.ctypes.data, (2, 2), X.dtype, 0)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    seen = np.from_dlpack(Exporter())  # type: ignore[arg-type]
    np.testing.assert_array_equal(seen, X.reshape(2, 2))
    assert np.shares_memory(seen, X) and not freed
    del seen
    gc.collect()
    assert len(freed) == 1
    capsule = Exporter().__dlpack__()
    assert dlpack.borrowed(capsule).shape == (2, 2)
    del capsule
    gc.collect()
    assert len(freed) == 2


def test_benchmark_counts_runs_only(cuda: FakeDriver) -> None:
    run = kernel()
    result = run.benchmark(min_repeat_ms=30, repeat=3)
    assert result.times_s == pytest.approx([2e-3] * 3), "two launches of a millisecond each"
    assert result.number >= 15
    flushed = run.benchmark(X, min_repeat_ms=0, repeat=2, number=4, flush=1 << 20)
    assert flushed.times_s == pytest.approx([2e-3] * 2) and flushed.number == 4
    assert cuda.log.count(("flush", 1 << 20)) == 8


def test_a_buffer_that_does_not_fit_is_a_sentence_with_the_bytes(cuda: FakeDriver) -> None:
    cuda.free_bytes = 1000
    with pytest.raises(NotEnoughMemory, match="a buffer of cuda:0 takes 1,001 bytes of memory, there are 1,000"):
        arrays.cuda(0).allocate(1001)
    assert arrays.cuda(0).allocate(1000)


@pytest.fixture
def graphs(cuda: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Bindings:
    bindings = pytest.importorskip("cuda.bindings")
    fake = Bindings(cuda)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    monkeypatch.setattr(bindings, "driver", fake, raising=False)
    return fake


def test_short_kernels_are_timed_as_graphs(cuda: FakeDriver, graphs: Bindings) -> None:
    """Two launches of a millisecond, and half a millisecond for the host to launch each of them."""
    cuda.launch_gap_ms = 0.5
    run = kernel()
    executable = run._executable
    arrays_of = [X, np.empty(4, np.float32)]
    executable.run(arrays_of)
    uploads = cuda.log.count("upload")
    assert executable.time(arrays_of, 1) == pytest.approx(3e-3), "one run alone is launched"
    assert executable.time(arrays_of, 2) / 2 == pytest.approx(2e-3)
    assert executable.time(arrays_of, 120) / 120 == pytest.approx(2e-3)
    assert executable.time(arrays_of, 90) / 90 == pytest.approx(2e-3)
    assert graphs.made == 1, "of two runs, which take long: it is used again"
    assert cuda.log.count("upload") == uploads, "inputs are on the device"
    assert run.benchmark(X, graph=True, min_repeat_ms=20).times_s == pytest.approx([2e-3] * 5)
    assert run.benchmark(X, graph=False, min_repeat_ms=20).times_s == pytest.approx([3e-3] * 5)
    flushed = run.benchmark(X, graph=True, flush=True, min_repeat_ms=0, number=4, repeat=2)
    assert flushed.times_s == pytest.approx([2e-3] * 2)
    assert cuda.log.count(("flush", 2 * run._executable.runtime.target.l2_bytes)) == 8
    del run, executable
    gc.collect()
    assert graphs.alive == {}, "graphs go with their kernel"


def unlike(driver: FakeDriver, a: int, a_at: int, b: int, b_at: int, words: int, count: int) -> None:
    first, second = driver.at(a + 4 * a_at, 4 * words), driver.at(b + 4 * b_at, 4 * words)
    found = np.count_nonzero(first.view(np.uint32) != second.view(np.uint32))
    driver.at(count, 4).view(np.uint32)[0] += found


def wrong(
    driver: FakeDriver, got: int, at: int, expected: int, number: int, atol: float, rtol: float, count: int
) -> None:
    x = driver.at(got + 4 * at, 4 * number).view(np.float32)
    y = driver.at(expected, 4 * number).view(np.float32)
    driver.at(count, 4).view(np.uint32)[0] += np.count_nonzero(~(abs(x - y) <= atol + rtol * abs(y)))


def test_checks_on_the_device(cuda: FakeDriver, graphs: Bindings, tmp_path: Path) -> None:
    """A kernel on fenced buffers: what checks launch, with kernels of the test's own for those of the device."""
    cuda.kernels |= {"unlike": unlike, "wrong": wrong}
    for name, array in (("x", X), ("y", 2 * X + 1)):
        np.save(tmp_path / f"{name}.npy", array)
    buffers = DeviceBuffers(CudaChecks(0), [str(tmp_path / "x.npy")], [str(tmp_path / "y.npy")], [EXACT])
    executable = kernel()._executable
    uploads = cuda.log.count("upload")
    buffers.poison()
    assert buffers.wrong() == "output 0: 4 of 4 elements differ by more than atol=0, rtol=0, 4 of them NaN " + (
        "(never written?); the first at (0,): got nan, expected 3.0"
    )
    buffers.run(executable)
    assert buffers.wrong() is None and buffers.memory_violation() is None
    assert buffers.time(executable, 60) / 60 == pytest.approx(2e-3) and graphs.made == 1
    assert cuda.log.count("upload") == uploads, "nothing goes to the device for a candidate"
    place = buffers._outputs[0]
    cuda.at(int(place.buffer) + 4096 + 16, 1)[0] = 0
    assert buffers.memory_violation() == "wrote outside of argument 1"
    buffers.restore_inputs()
    assert buffers.memory_violation() is None


def test_few_graphs_are_kept(cuda: FakeDriver, graphs: Bindings) -> None:
    executable = kernel()._executable
    arrays_of = [X, np.empty(4, np.float32)]
    executable.run(arrays_of)
    for number in range(11, 1, -1):  # of more runs than are to be timed
        executable.time(arrays_of, number)
    assert graphs.made == 10 and len(graphs.alive) == 4


def test_a_long_graph_is_used_again_and_a_short_one_is_not(cuda: FakeDriver, graphs: Bindings) -> None:
    executable = kernel()._executable
    arrays_of = [X, np.empty(4, np.float32)]
    executable.run(arrays_of)
    for launch_ms, numbers, made in ((1e-3, (8, 40), 2), (1.0, (9, 45), 3)):
        cuda.launch_ms = launch_ms
        for number in numbers:
            assert executable.time(arrays_of, number) / number == pytest.approx(2e-3 * launch_ms)
        assert graphs.made == made


@pytest.mark.parametrize(
    "reason",
    ["an illegal memory access was encountered", "operation not supported on global/shared address space"],
)
def test_what_a_context_does_not_survive_is_a_lost_device(cuda: FakeDriver, reason: str) -> None:
    run = kernel()
    run(X)
    cuda.fails_with = f"cuMemcpyDtoH failed: {reason}"
    with pytest.raises(DeviceLost, match=f"CUDA device 0: cuMemcpyDtoH failed: {reason}"):
        run(X)
    cuda.fails_with = "cuMemcpyDtoH failed: out of something"
    with pytest.raises(cuda.LaunchError):
        run(X)


def test_devices_describe_themselves(cuda: FakeDriver) -> None:
    device = arrays.cuda(1)
    assert device.name == "NVIDIA H200 (CUDA 13.0 driver)"
    target = device.target
    assert (target.kind, target.model, target.cores, target.warp_size) == ("cuda", "h200", 132, 32)
    assert (target.compute_capability, target.max_shared_bytes) == (90, 232448)
    assert repr(device.empty((2, 3), "int8")) == "<int8 array [2, 3] on cuda:1>"
    with pytest.raises(TypeError, match=r"arrays on devices are of float16, .* got complex64"):
        device.empty((2,), np.complex64)
    with pytest.raises(driver.MissingCuda, match="there is no CUDA device 2; this machine has 2"):
        arrays.cuda(2)


def test_a_kernel_for_another_architecture(cuda: FakeDriver) -> None:
    with pytest.raises(driver.MissingCuda, match=r"was compiled for sm_80, NVIDIA H200 .* is sm_90: build it"):
        kernel("cuda compute_capability=80")(X)
