"""Compiled networks on devices with memory of their own: on OpenCL for real, on CUDA with a driver in memory."""

from __future__ import annotations

import bisect
import ctypes
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_pycuda import FakeDriver, Library, installed
from packages import grow, parts_of, with_header, write_parts
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda import launches, tensor_maps
from loopwright.backends.device_lost import DeviceLost
from loopwright.dialects.numpy_types import ELEMENT_TYPES, teach_numpy
from loopwright.graph.runtime.package import PackageError

H200 = "cuda model=h200"


@pytest.fixture
def opencl() -> str:
    pytest.importorskip("pyopencl")
    from loopwright.backends.opencl.platform import MissingOpenCl, device_at

    try:
        device_at()
    except MissingOpenCl as error:
        pytest.skip(str(error))
    return "opencl"


def test_network_on_opencl(opencl: str, tmp_path: Path) -> None:
    net = lw.Network("net")
    random = np.random.default_rng(0)
    x = net.input("data", (1, 8, 8, 4))
    y = net.conv2d(x, net.constant(random.standard_normal((3, 3, 4, 16), np.float32)), padding=1, layout="NHWC")
    y = net.relu(net.bias_add(y, net.constant(random.standard_normal(16, np.float32)), axis=3))
    z = net.max_pool(y, kernel=2, layout="NHWC")
    net.output(net.reshape(z, shape=(16, 16)), net.transpose(y, axes=(0, 3, 1, 2)))
    (data,) = feeds_of(net).values()
    lw.compile(net, opencl, processes=1).save(tmp_path / "net.lw")
    compiled = lw.load_network(tmp_path / "net.lw")
    first, second = compiled.executor(), compiled.executor()
    first.set_input("data", data)
    second.set_input("data", np.zeros_like(data))
    second.run()
    first.run()
    for number, want in enumerate(net.evaluate(data=data)):
        np.testing.assert_allclose(first.get_output(number), want, rtol=1e-3, atol=1e-4)
        assert not np.allclose(second.get_output(number), want, rtol=1e-3)
    assert first.benchmark(repeat=1, min_repeat_ms=1).mean > 0
    assert len(first.profile(repeat=1).rows) == 3
    larger_than_memory(tmp_path / "net.lw", r"a buffer on .*")


def larger_than_memory(path: Path, where: str) -> None:
    """A network in a file, with an input larger than any memory, is refused in a sentence."""
    write_parts(path, with_header(parts_of(path), grow))
    loaded = lw.load_network(path, trusted=True)
    with pytest.raises(PackageError, match=rf"^network .* takes 35,184,[\d,]+ bytes, {where} has [\d,]+$"):
        loaded.executor()


class ArenaDriver(FakeDriver):
    """Memory that may be addressed anywhere in an allocation; all kernels do the same with a tensor and a result."""

    def __init__(self) -> None:
        super().__init__({"main_k0": self.add_one})

    @staticmethod
    def add_one(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
        count = min(len(x), len(y), 32)
        y[:count].view(np.float32)[:] = x[:count].view(np.float32) + 1

    def at(self, address: int, size: int | None = None) -> np.ndarray[Any, Any]:
        starts = sorted(self.memory)
        start = starts[bisect.bisect_right(starts, address) - 1]
        return self.memory[start][address - start :]

    def launched(self, name: str, grid: Any, block: Any, args: tuple[int, ...], shared_size: int) -> None:
        self.clock_ms += 1.0
        self.log.append(name)
        self.kernels[name](*(self.at(address) for address in args))

    def memcpy_htod_async(self, address: int, array: np.ndarray[Any, Any], stream: Any) -> None:
        data = np.asarray(array.data).reshape(-1).view(np.uint8)
        self.at(address)[: data.size] = data

    def memcpy_dtoh_async(self, array: np.ndarray[Any, Any], address: int, stream: Any) -> None:
        flat = array.reshape(-1).view(np.uint8)
        flat[:] = self.at(address)[: flat.size]


@pytest.fixture
def cuda() -> Iterator[ArenaDriver]:
    pytest.importorskip("cuda.bindings.nvrtc")
    fake = ArenaDriver()
    with installed(fake):
        yield fake


def steps_net() -> lw.Network:
    net = lw.Network("steps")
    x = net.input("data", (8,))
    y = net.softmax(net.reshape(x, shape=(1, 8)))
    z = net.softmax(y)
    net.output(y, z, net.softmax(z))
    return net


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
@pytest.mark.few(3)
def test_networks_and_arrays_of_every_element_type(opencl: str, dtype: str) -> None:
    teach_numpy(dtype)
    values = (np.arange(24).reshape(2, 12) * 11 - 100).astype(dtype)
    weight = (np.arange(12) % 2).astype(dtype)
    net = lw.Network("net")
    net.output(net.maximum(net.input("data", values.shape, dtype), net.constant(weight, "weight")))
    run = lw.compile(net, opencl, processes=1).executor()
    placed = lw.opencl().array(values)
    np.testing.assert_array_equal(placed.numpy(), values)
    for given in (values, placed):
        run.set_input("data", given)
        run.run()
        got = np.asarray(run.get_output(0))
        assert got.dtype == values.dtype
        np.testing.assert_array_equal(got, np.maximum(values, weight))
    with pytest.raises(TypeError, match="uint64, bool, got complex64"):
        lw.opencl().empty((2,), "complex64")


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.few(1)
def test_network_on_cuda_is_replayed(
    cuda: ArenaDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, graphs: bool
) -> None:
    library = Library(cuda, graphs)
    monkeypatch.setattr(launches, "library", lambda: library)
    compiled = lw.compile(steps_net(), H200, processes=1)
    executor = compiled.executor()
    compiled.save(tmp_path / "net.lw")
    larger_than_memory(tmp_path / "net.lw", "NVIDIA.*")
    data = np.arange(8, dtype="float32")
    executor.set_input("data", data)
    executor.run()
    cuda.log.clear()
    executor.run()
    assert cuda.log == ["main_k0"] * 3
    assert library.replayed == (1 if graphs else 0)
    assert [(executor.get_output(number) == data + 1 + number).all() for number in range(3)] == [True] * 3
    executor.set_input("data", data + 10)
    executor.run()
    assert (executor.get_output(2) == data + 13).all()
    assert library.replayed == (2 if graphs else 0) and not library.updated
    assert executor.benchmark(repeat=2, min_repeat_ms=10).mean == pytest.approx(3e-3)  # a millisecond a kernel
    assert [row.time_s for row in executor.profile(repeat=1).rows] == pytest.approx([1e-3] * 3)
    del executor, compiled
    gc.collect()
    assert not library.graphs and library.modules == 0


@pytest.fixture
def library(cuda: ArenaDriver, monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library(cuda)
    monkeypatch.setattr(launches, "library", lambda: made)
    return made


def placed(cuda: ArenaDriver, values: np.ndarray[Any, Any]) -> int:
    """The address of an array on the device, made by another package."""
    address = next(cuda.addresses)
    cuda.memory[address] = values.copy().reshape(-1).view(np.uint8)
    return address


def values_at(cuda: ArenaDriver, address: int) -> np.ndarray[Any, Any]:
    return cuda.memory[address].view(np.float32)


def test_frame_on_cuda_runs_on_memory_and_streams_of_a_caller(cuda: ArenaDriver, library: Library) -> None:
    """Nothing is allocated, uploaded or waited for in a run, and the context is on nobody's stack after it."""
    net = lw.Network("steps")
    y = net.softmax(net.input("data", (1, 8)))
    net.output(net.softmax(net.softmax(y)), y)
    compiled = lw.compile(net, H200, processes=1)
    loaded: Any = compiled.loaded()
    frame = loaded.frame([])
    assert library.loaded == ["main_k0"] * len(compiled.package.kernels), "loaded before a capture"
    memory, data = dict(cuda.memory), np.arange(8, dtype=np.float32)
    cuda.log.clear()
    for number, stream in enumerate((0, 7)):
        addresses = [placed(cuda, data + number), *(placed(cuda, np.zeros(8, np.float32)) for _ in range(2))]
        workspace = placed(cuda, np.zeros(loaded.binding.workspace_bytes, np.uint8))
        library.streams.clear()
        frame.run(addresses, workspace, stream)
        assert set(library.streams) == {stream} and not cuda.stack
        assert (values_at(cuda, addresses[2]) == data + number + 1).all()
        assert (values_at(cuda, addresses[1]) == data + number + 3).all()
        assert (values_at(cuda, workspace)[:8] == data + number + 2).all()
    assert cuda.log == 6 * ["main_k0"]
    assert memory.keys() <= cuda.memory.keys()
    del frame, loaded, compiled
    gc.collect()
    assert library.modules == 0


def test_frame_on_cuda_copies_what_no_kernel_computes(cuda: ArenaDriver, library: Library) -> None:
    net = lw.Network("copies")
    x = net.input("data", (8,))
    y = net.relu(x)
    net.output(y, net.reshape(x, shape=(2, 4)), net.reshape(y, shape=(4, 2)), net.constant(np.full(3, 7, np.float32)))
    compiled = lw.compile(net, H200, processes=1)
    loaded: Any = compiled.loaded()
    frame = loaded.frame([placed(cuda, array) for array in compiled.package.constants])
    data = np.arange(8, dtype=np.float32)
    addresses = [placed(cuda, data), *(placed(cuda, np.zeros(n, np.float32)) for n in (8, 8, 8, 3))]
    frame.run(addresses, 0, 5)
    assert [values_at(cuda, a).tolist() for a in addresses[1:]] == [
        (data + 1).tolist(),
        data.tolist(),
        (data + 1).tolist(),
        [7, 7, 7],
    ]
    assert library.streams == [5] * 4


def test_a_frame_on_cuda_replays_a_graph_with_the_addresses_of_each_run(cuda: ArenaDriver, library: Library) -> None:
    """Only the kernels that take another address are told; streams have graphs of their own, captures none."""
    compiled = lw.compile(steps_net(), H200, processes=1)
    loaded: Any = compiled.loaded()
    frames = [loaded.frame([])]
    x, other = (placed(cuda, np.arange(8, dtype=np.float32) + number) for number in (0, 100))
    outputs = [placed(cuda, np.zeros(8, np.float32)) for _ in range(3)]
    workspace = placed(cuda, np.zeros(64, np.uint8))

    def run(source: int, stream: int = 7, captured: bool = False) -> tuple[int, int]:
        replayed, updated = library.replayed, library.updated
        for address in outputs:
            values_at(cuda, address)[:] = 0
        library.streams.clear()
        frames[0].run([source, *outputs], workspace, stream, captured)
        assert library.streams == [stream] * 3
        first = values_at(cuda, source)
        assert [(values_at(cuda, y) == first + 1 + n).all() for n, y in enumerate(outputs)] == [True] * 3
        return library.replayed - replayed, library.updated - updated

    assert [run(x), run(x), run(x)] == [(0, 0), (1, 0), (1, 0)], "a graph is made of the first run"
    assert [run(other), run(other)] == [(1, 1), (1, 0)]
    assert [run(x, captured=True), run(x), run(x)] == [(0, 0), (1, 1), (1, 0)]
    assert [run(other, 8), run(x, 8), run(x)] == [(0, 0), (1, 1), (1, 0)]
    outputs.reverse()
    assert run(x) == (1, 3), "the second one's output is in the same place, but the one it reads is not"
    for stream in range(20, 40):
        run(x, stream)
    assert len(library.graphs) == 2 * 8, "those of streams that came first are gone"
    frames.clear()
    del loaded, compiled
    gc.collect()
    assert not library.graphs and library.modules == 0


def test_kernels_that_count_are_loaded_for_each_stream_and_each_capture(cuda: ArenaDriver, library: Library) -> None:
    """Counters are of what is loaded, so that runs beside each other must not share it; others share all they load."""
    loaded: Any = lw.compile(steps_net(), H200, processes=1).loaded()
    kernels = len(loaded._artifacts)
    loaded._artifacts = [_counting(artifact) for artifact in loaded._artifacts]
    frame = loaded.frame([])
    addresses = [placed(cuda, np.arange(8, dtype=np.float32)), *(placed(cuda, np.zeros(8)) for _ in range(3))]
    workspace = placed(cuda, np.zeros(64, np.uint8))
    found = []
    for stream, captured in ((3, False), (3, False), (4, False), (3, False), (5, True), (5, True), (4, False)):
        frame.run(addresses, workspace, stream, captured)
        found.append(library.modules // kernels - 1)
    assert found == [1, 1, 2, 2, 3, 4, 4] and library.capture_mode == 0
    session = loaded.session()
    assert library.modules // kernels - 1 == 5
    del frame, session, loaded
    gc.collect()
    assert library.modules == 0


def _counting(artifact: Artifact) -> Artifact:
    launches_ = tuple(replace(launch, counts=True) for launch in artifact.kernel.launches)
    return replace(artifact, kernel=replace(artifact.kernel, launches=launches_))


def test_tensor_maps_are_made_in_the_context_and_where_arrays_have_moved(
    cuda: ArenaDriver, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver makes none without a current context; a graph's kernel is told of a map that is made anew."""
    made: list[int] = []

    def encode(at: Any, element: Any, rank: Any, address: Any, *sizes: Any) -> int:
        assert cuda.stack
        made.append(address.value)
        return 0

    monkeypatch.setattr(tensor_maps, "_encoder", lambda _: encode)
    net = lw.Network("steps")
    net.output(net.softmax(net.input("data", (1, 8))))
    (artifact,) = lw.compile(net, H200, processes=1).package.kernels
    function = launches.LoadedFunction(Artifact.from_bytes(artifact, "cuda"), 0)
    (launch,) = function.kernel.launches
    mapped = replace(launch, maps=(TensorMap(1, "f32", (1, 8), (1, 8), 0), TensorMap(0, "f32", (1, 8), (1, 8), 0)))
    function.kernel = replace(function.kernel, launches=(mapped,))
    monkeypatch.setattr(cuda, "launched", lambda *how: None)
    started = launches.Launches(0, [(function, [launches.Address(1, 0), launches.Address(2, 32)])])
    for bases in ((4096, 8192), (4096, 8192), (4096, 16384)):
        started.start((ctypes.c_uint64 * 3)(0, *bases), 7)
        assert not cuda.stack
    assert made == [8192 + 32, 4096, 16384 + 32] and library.updated == 1


def test_kernels_that_wait_by_themselves_may_begin_early_behind_others(
    cuda: ArenaDriver, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one begins when all before it in the stream has ended, and so do those of kernels kept from before."""
    loaded: Any = lw.compile(steps_net(), H200, processes=1).loaded()
    data = np.arange(8, dtype=np.float32)
    addresses = [placed(cuda, data), *(placed(cuda, np.zeros(8, np.float32)) for _ in range(3))]
    workspace = placed(cuda, np.zeros(64, np.uint8))

    def early(frame: Any, captured: bool = False) -> list[bool]:
        library.early.clear()
        frame.run(addresses, workspace, 7, captured)
        return library.early.copy()

    frame = loaded.frame([])
    behind = [False, True, True]
    assert [early(frame), early(frame), early(frame), early(frame, captured=True)] == [behind] * 4
    assert library.replayed == 2 and (values_at(cuda, addresses[3]) == data + 3).all()
    monkeypatch.delattr(Library, "cuGraphAddDependencies_v2")
    older = loaded.frame([])
    assert [early(older), early(older)] == [behind, [False] * 3], "graphs of drivers before 12.3 have no such edges"
    loaded._artifacts = [_not_waiting(artifact) for artifact in loaded._artifacts]
    del loaded.__dict__["functions"]
    kept = loaded.frame([])
    assert [early(kept), early(kept), early(kept, captured=True)] == [[False] * 3] * 3


def _not_waiting(artifact: Artifact) -> Artifact:
    launches_ = tuple(replace(launch, waits=False) for launch in artifact.kernel.launches)
    return replace(artifact, kernel=replace(artifact.kernel, launches=launches_))


def test_no_graph_where_the_driver_makes_none(cuda: ArenaDriver, library: Library) -> None:
    loaded: Any = lw.compile(steps_net(), H200, processes=1).loaded()
    frame = loaded.frame([])
    addresses = [placed(cuda, np.arange(8, dtype=np.float32)), *(placed(cuda, np.zeros(8)) for _ in range(3))]
    library.cuGraphInstantiateWithFlags = lambda *arguments: 2  # type: ignore[method-assign]
    for _ in range(3):
        frame.run(addresses, 0, 3)
    assert cuda.log == ["main_k0"] * 9 and not library.replayed and not cuda.stack


def test_a_launch_that_fails_is_the_drivers_sentence(cuda: ArenaDriver, library: Library) -> None:
    loaded: Any = lw.compile(steps_net(), H200, processes=1).loaded()
    frame = loaded.frame([])
    addresses = [placed(cuda, np.zeros(8, np.float32)) for _ in range(4)]
    for status, error, text in ((2, RuntimeError, "^CUDA: out of memory$"), (700, DeviceLost, "illegal memory access")):
        library.status = status
        with pytest.raises(error, match=text):
            frame.run(addresses, placed(cuda, np.zeros(4096, np.uint8)), 0)
        assert not cuda.stack


def test_small_network_compiles_for_cuda() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    net = lw.testing.network("mlp", **SMALL["mlp"])
    compiled = lw.compile(net, H200, processes=1)
    assert compiled.plan.kind == "cuda"
    assert len(compiled.package.kernels) == 4 and all(compiled.package.kernels)
    assert compiled.plan.target.startswith("cuda model=h200")


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_network_on_a_device() -> None:
    """Sessions of their own streams and arenas, launched one by one at first, and then as graphs."""
    net = lw.testing.network("mlp", **SMALL["mlp"])
    compiled = lw.compile(net, "cuda", processes=1)
    first, second = compiled.executor(), compiled.executor()
    feeds = feeds_of(net)
    wanted = net.evaluate(**feeds)
    other = {name: array + 1 for name, array in feeds.items()}
    for _ in range(3):
        first.run(**feeds)
        second.run(**other)
        for number, want in enumerate(wanted):
            np.testing.assert_allclose(first.get_output(number), want, rtol=1e-3, atol=1e-4)
    for number, want in enumerate(net.evaluate(**other)):
        np.testing.assert_allclose(second.get_output(number), want, rtol=1e-3, atol=1e-4)
    assert first.benchmark(repeat=1, min_repeat_ms=1).mean > 0
    assert all(row.time_s > 0 for row in first.profile(repeat=2).rows)
    assert first.benchmark(number=3, repeat=1, flush=True).mean > 0


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_kernels_see_what_those_two_before_wrote_on_a_device() -> None:
    """Each may begin when the last block of the one ahead has ended; arrays share memory with others before them."""
    net = lw.Network("chain")
    before = x = net.input("data", (2048, 256))
    many, half = (net.constant(np.full((1,), value, np.float32)) for value in (200.0, 0.5))
    for _ in range(12):
        before, x = x, net.add(net.multiply(net.softmax(x), many), net.multiply(before, half))
    net.output(x)
    executor = lw.compile(net, "cuda", processes=1).executor()
    random = np.random.default_rng(0)
    feeds = [random.standard_normal((2048, 256), np.float32) for _ in range(2)]
    found: list[list[np.ndarray[Any, Any]]] = [[], []]
    for number in range(40):
        executor.run(data=feeds[number % 2])
        found[number % 2].append(executor.get_output(0))
    for data, outputs in zip(feeds, found, strict=True):
        np.testing.assert_allclose(outputs[0], net.evaluate(data=data)[0], rtol=1e-3, atol=1e-6)
        assert all(np.array_equal(outputs[0], each) for each in outputs)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_network_whose_products_copy_boxes_on_a_device() -> None:
    """Tensor maps of a network's arrays, in sessions with memory of their own."""
    net = lw.Network("wide")
    random = np.random.default_rng(0)
    x = net.input("data", (256, 512), "float16")
    weights = [net.constant((random.standard_normal((512, 512)) / 16).astype(np.float16)) for _ in range(2)]
    net.output(net.matmul(net.relu(net.matmul(x, weights[0])), weights[1]))
    compiled = lw.compile(net, "cuda", processes=1)
    sessions = [compiled.executor(), compiled.executor()]
    for number in range(3):
        data = random.standard_normal((256, 512)).astype(np.float16)
        (want,) = net.evaluate(data=data)
        for session in sessions:
            session.run(data=data)
            np.testing.assert_allclose(session.get_output(0), want, rtol=2e-2, atol=2e-2, err_msg=f"run {number}")
