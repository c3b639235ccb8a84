"""A CUDA driver in memory with pycuda's names: kernels are Python functions on bytes, time is counted in launches.

`Bindings` has the calls of `cuda.bindings.driver` that kernels take to be timed, `Library` those of `libcuda.so` that
networks take.
"""

import ctypes
import gc
import itertools
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from loopwright.backends.cuda import compile
from loopwright.backends.cuda import driver as real
from loopwright.backends.cuda.launcher import Launch

_compiled = cache(compile.compile_cubin)


class FakeDriver(ModuleType):
    """Stands for `pycuda.driver`; `kernels` run on lists of NumPy byte arrays, by name."""

    def __init__(self, kernels: dict[str, Any]) -> None:
        super().__init__("pycuda.driver")
        self.kernels = kernels
        self.memory: dict[int, np.ndarray] = {}
        self.addresses = itertools.count(4096, 1 << 20)
        self.stack: list[int] = []
        self.deepest = 0
        self.log: list[Any] = []
        self.fails_with: str | None = None
        self.clock_ms = 0.0
        self.launch_ms = 1.0
        self.launch_gap_ms = 0.0
        self.capturing: list[Any] | None = None
        self.streams = itertools.count(1)
        self.free_bytes = 1 << 30
        self._add_contexts()
        self._add_devices()
        self._add_streams()
        self._add_functions()

    def _add_contexts(self) -> None:
        driver = self

        class Error(Exception):
            pass

        class LaunchError(Error):
            pass

        class NoMemory(Error):
            pass

        class Context:
            def __init__(self, index: int) -> None:
                self.index, self.handle = index, 1000 + index

            def push(self) -> None:
                driver.stack.append(self.index)
                driver.deepest = max(driver.deepest, len(driver.stack))

            @staticmethod
            def pop() -> None:
                driver.stack.pop()

            @staticmethod
            def synchronize() -> None:
                assert driver.stack
                driver.log.append("synchronize")

        self.Error, self.LaunchError, self.MemoryError, self.Context = Error, LaunchError, NoMemory, Context

    def _add_devices(self) -> None:
        driver = self

        class Device:
            def __init__(self, index: int) -> None:
                self.index = index

            @staticmethod
            def count() -> int:
                return 2

            def name(self) -> str:
                return "NVIDIA H200"

            def compute_capability(self) -> tuple[int, int]:
                return (9, 0)

            def retain_primary_context(self) -> Any:
                return driver.Context(self.index)

            def total_memory(self) -> int:
                return 1 << 37

            def get_attribute(self, attribute: str) -> int:
                return {"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "WARP_SIZE": 32, "MULTIPROCESSOR_COUNT": 132}.get(
                    attribute, 1024
                )

        class Attributes:
            def __getattr__(self, name: str) -> str:
                return name

        self.Device = Device
        self.device_attribute = self.function_attribute = Attributes()

    def _add_streams(self) -> None:
        driver = self

        class Event:
            def record(self, stream: Any = None) -> None:
                self.at = driver.clock_ms

            def synchronize(self) -> None:
                driver.check()

            def time_since(self, other: "Event") -> float:
                return self.at - other.at

        class Stream:
            def __init__(self) -> None:
                self.handle = next(driver.streams)

            def synchronize(self) -> None:
                assert driver.stack
                driver.check()

        self.Event, self.Stream = Event, Stream

    def _add_functions(self) -> None:
        driver = self

        class Function:
            def __init__(self, name: str) -> None:
                self.name = name

            def prepare(self, formats: str) -> None:
                self.formats = formats

            def set_attribute(self, attribute: str, value: int) -> None:
                driver.log.append((attribute, value))

            def prepared_async_call(self, grid: Any, block: Any, stream: Any, *args: int, shared_size: int) -> None:
                assert driver.stack, "a launch needs a current context"
                assert len(args) == len(self.formats)
                if driver.capturing is not None:
                    assert stream is not None, "a launch on the default stream is not captured, and an error"
                    driver.capturing.append((self.name, grid, block, args, shared_size))
                    return
                driver.clock_ms += driver.launch_gap_ms
                driver.launched(self.name, grid, block, args, shared_size)

            def prepared_call(self, grid: Any, block: Any, *args: Any) -> None:
                """Launch a kernel that takes numbers too; it is given them all, and the driver."""
                assert driver.stack
                struct.pack(self.formats, *args)
                driver.kernels[self.name](driver, *args)

        class Module:
            def __init__(self, code: bytes) -> None:
                assert code[:4] == b"\x7fELF"

            def get_function(self, name: str) -> Function:
                return Function(name)

        self.module_from_buffer = Module

    def init(self) -> None:
        pass

    def get_driver_version(self) -> int:
        return 13000

    def launched(self, name: str, grid: Any, block: Any, args: tuple[int, ...], shared_size: int) -> None:
        self.log.append((name, grid, block, shared_size))
        self.clock_ms += self.launch_ms
        self.kernels[name](*(self.at(address) for address in args))

    def check(self) -> None:
        if self.fails_with:
            raise self.LaunchError(self.fails_with)

    def mem_get_info(self) -> tuple[int, int]:
        return self.free_bytes, 1 << 30

    def mem_alloc(self, size: int) -> int:
        assert self.stack and size > 0
        if size > self.free_bytes:
            raise self.MemoryError("cuMemAlloc failed: out of memory")
        address = next(self.addresses)
        self.memory[address] = np.full(size, 0xAA, np.uint8)
        return address

    def memcpy_htod(self, address: int, array: np.ndarray) -> None:
        assert self.stack and array.flags.c_contiguous
        self.log.append("upload")
        memoryview(array.data)  # which bfloat16 does not have
        self.at(address, array.nbytes)[:] = array.reshape(-1).view(np.uint8)

    def memcpy_dtoh(self, array: np.ndarray, address: int) -> None:
        assert self.stack
        self.check()
        array.reshape(-1).view(np.uint8)[:] = self.at(address, array.nbytes)

    def memcpy_dtod(self, to: int, source: int, size: int) -> None:
        assert self.stack
        self.at(to, size)[:] = self.at(source, size)

    def memset_d32(self, address: int, value: int, count: int) -> None:
        assert self.stack
        self.at(address, 4 * count).view(np.uint32)[:] = value

    def at(self, address: int, size: int | None = None) -> np.ndarray:
        """So many bytes, or all there are, at an address, which may lie inside of an allocation."""
        start = max(base for base in self.memory if base <= address)
        whole = self.memory[start]
        assert address + (size or 0) <= start + len(whole), "outside of the allocation"
        return whole[address - start : len(whole) if size is None else address - start + size]

    def memset_d8(self, address: int, value: int, size: int) -> None:
        assert self.stack
        self.log.append(("flush", size))
        self.clock_ms += 100.0

    def memset_d8_async(self, address: int, value: int, size: int, stream: Any) -> None:
        assert stream is not None
        self.memset_d8(address, value, size)


@contextmanager
def installed(fake: FakeDriver) -> Iterator[None]:
    """Have a FakeDriver stand for pycuda's; no context is left on its stack.

    What tests before left on a device is freed there first. Each source is compiled once in a process, as most tests
    are of the same kernel.
    """
    gc.collect()
    package = ModuleType("pycuda")
    package.driver = fake  # type: ignore[attr-defined]
    package.__spec__ = sys.__spec__
    caches = (real.pycuda_driver, real._context, real.context_handle)
    with (
        patch.dict(sys.modules, {"pycuda": package, "pycuda.driver": fake}),
        patch.object(compile, "compile_cubin", _compiled),
    ):
        for cached in caches:
            cached.cache_clear()
        yield
        for cached in caches:
            cached.cache_clear()
    assert fake.stack == []


class Bindings(ModuleType):
    """Stands for `cuda.bindings.driver`: graphs of launches on a FakeDriver."""

    class CUresult:
        CUDA_SUCCESS = 0
        CUDA_ERROR = 1

    class CUstreamCaptureMode:
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1

    def __init__(self, fake: FakeDriver) -> None:
        super().__init__("cuda.bindings.driver")
        self.fake = fake
        self.made = 0
        self.alive: dict[int, list[Any]] = {}

    def CUstream(self, handle: int) -> int:
        return handle

    def cuStreamBeginCapture(self, stream: int, mode: int) -> tuple[int]:
        assert self.fake.stack and self.fake.capturing is None
        self.fake.capturing = []
        return (0,)

    def cuStreamEndCapture(self, stream: int) -> tuple[int, list[Any] | None]:
        captured, self.fake.capturing = self.fake.capturing, None
        return (0, captured)

    def cuGraphInstantiate(self, graph: list[Any], flags: int) -> tuple[int, int]:
        self.made += 1
        self.alive[self.made] = graph
        return (0, self.made)

    def cuGraphDestroy(self, graph: list[Any]) -> tuple[int]:
        return (0,)

    def cuGraphLaunch(self, graph: int, stream: int) -> tuple[int]:
        assert self.fake.stack
        for launch in self.alive[graph]:
            self.fake.launched(*launch)
        return (0,)

    def cuGraphExecDestroy(self, graph: int) -> tuple[int]:
        assert self.fake.stack
        del self.alive[graph]
        return (0,)


_POINTER = ctypes.c_void_p


class Library:
    """Stands for the driver's library, as ctypes opens it, on a FakeDriver; `streams` has the stream of each launch.

    Machine code calls some of it by address. What a call from there raises is raised where its status is asked about.
    """

    def __init__(self, fake: FakeDriver, graphs: bool = True) -> None:
        self.fake = fake
        self.modules = 0
        self.loaded: list[str] = []
        self.names: dict[int, str] = {}
        self.streams: list[int] = []
        self.early: list[bool] = []
        """For each launch, single or of a graph, whether it may begin before the one ahead has ended."""
        self.status = 0
        self.nodes: dict[int, Launched] = {}
        self.edges: dict[int, tuple[int, bool]] = {}
        """The node that a node of a graph follows, and whether it may begin before that has ended."""
        self.graphs: dict[int, list[int]] = {}
        """The nodes of graphs, and of those that can be launched, by their handles."""
        self.handles = itertools.count(1)
        self.replayed, self.updated = 0, 0
        self.capture_mode = 0
        self.error: BaseException | None = None
        self.cuCtxGetCurrent = self._callback(self._get_current, _POINTER)
        self.cuCtxPushCurrent_v2 = self._callback(self._push, _POINTER)
        self.cuCtxPopCurrent_v2 = self._callback(self._pop, _POINTER)
        self.cuLaunchKernel = self._callback(self._launch_kernel, _POINTER, *[ctypes.c_uint] * 7, *[_POINTER] * 3)
        self.cuLaunchKernelEx = self._callback(self._launch_by_config, *[_POINTER] * 4)
        self.cuMemcpyDtoDAsync_v2 = self._callback(self._copy, *[ctypes.c_uint64] * 2, ctypes.c_size_t, _POINTER)
        self.cuGraphLaunch = self._callback(self._launch_graph, _POINTER, _POINTER)
        if graphs:
            self.cuGraphExecKernelNodeSetParams_v2 = self._callback(self._update, _POINTER, _POINTER, _POINTER)

    def _callback(self, function: Any, *kinds: Any) -> Any:
        def guarded(*arguments: Any) -> int:
            try:
                return int(function(*arguments) or 0)
            except BaseException as error:
                self.error = error
                return 999

        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(guarded)

    def _get_current(self, context: int) -> None:
        stack = self.fake.stack
        ctypes.c_void_p.from_address(context).value = 1000 + stack[-1] if stack else None

    def _push(self, context: int) -> None:
        self.fake.stack.append(context - 1000)

    def _pop(self, context: int) -> None:
        self.fake.stack.pop()

    def _launch_kernel(self, function: int, *how: Any) -> int:
        *sizes, stream, parameters, extra = how
        if self.status:
            return self.status
        assert self.fake.stack and extra is None
        self.streams.append(stream or 0)
        self.early.append(False)
        self.fake.launched(self.names[function], tuple(sizes[:3]), tuple(sizes[3:6]), _addresses(parameters), sizes[6])
        return 0

    def _launch_by_config(self, config: int, function: int, parameters: int, extra: int | None) -> int:
        *sizes, stream, attributes, count = struct.unpack("7I4xQQI", ctypes.string_at(config, 52))
        assert count == 1 and struct.unpack("I4xi", ctypes.string_at(attributes, 12)) == (6, 1), "no wait for the end"
        status = self._launch_kernel(function, *sizes, stream, parameters, extra)
        if not status:
            self.early[-1] = True
        return status

    def _copy(self, target: int, source: int, nbytes: int, stream: int | None) -> None:
        self.streams.append(stream or 0)
        self.fake.memcpy_dtod(target, source, nbytes)

    def _launch_graph(self, graph: int, stream: int | None) -> int:
        if self.status:
            return self.status
        assert self.fake.stack
        self.replayed += 1
        for node in self.graphs[graph]:
            self.streams.append(stream or 0)
            self.early.append(self.edges.get(node, (0, False))[1])
            self.fake.launched(*self.nodes[node])
        return 0

    def _update(self, graph: int, node: int, launch: int) -> None:
        assert self.fake.stack and node in self.graphs[graph]
        self.updated += 1
        self.nodes[node] = self._node(Launch.from_address(launch))

    def _node(self, launch: Any) -> "Launched":
        addresses = _addresses(launch.parameters)
        return self.names[launch.function], tuple(launch.grid), tuple(launch.block), addresses, launch.shared_bytes

    def cuGraphCreate(self, graph: Any, flags: int) -> int:
        assert self.fake.stack
        graph._obj.value = next(self.handles)
        self.graphs[graph._obj.value] = []
        return 0

    def cuGraphAddKernelNode_v2(self, node: Any, graph: Any, before: Any, count: Any, launch: Any) -> int:
        node._obj.value = next(self.handles)
        self.nodes[node._obj.value] = self._node(launch._obj)
        self.graphs[graph.value].append(node._obj.value)
        if count.value:
            self.edges[node._obj.value] = (before._obj.value, False)
        return 0

    def cuGraphAddDependencies_v2(self, graph: Any, before: Any, node: Any, edge: Any, count: Any) -> int:
        assert count.value == 1 and bytes(edge._obj) == bytes([1, 0, 1, 0, 0, 0, 0, 0]), "from its last block's end on"
        assert node._obj.value in self.graphs[graph.value] and node._obj.value not in self.edges
        self.edges[node._obj.value] = (before._obj.value, True)
        return 0

    def cuGraphInstantiateWithFlags(self, made: Any, graph: Any, flags: Any) -> int:
        if self.status:
            return self.status
        made._obj.value, nodes = next(self.handles), self.graphs[graph.value]
        assert [self.edges[node][0] for node in nodes[1:]] == nodes[:-1], "one after the other"
        self.graphs[made._obj.value] = nodes
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        assert self.fake.stack
        del self.graphs[graph.value]
        return 0

    cuGraphExecDestroy = cuGraphDestroy

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        assert self.fake.stack
        self.capture_mode, mode._obj.value = mode._obj.value, self.capture_mode
        return 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        assert self.fake.stack and code[:4] == b"\x7fELF"
        self.modules += 1
        module._obj.value = self.modules
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        assert self.fake.stack and module.value
        self.modules -= 1
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        handle = len(self.names) + 1
        self.names[handle] = name.decode()
        function._obj.value = handle
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        self.fake.log.append((attribute, value))
        return 0

    def cuFuncLoad(self, function: Any) -> int:
        self.loaded.append(self.names[function.value])
        return 0

    def cuGetErrorString(self, status: int, text: Any) -> int:
        if self.error is not None:
            raise self.error
        text._obj.value = {2: b"out of memory", 700: b"an illegal memory access was encountered"}[status]
        return 0


Launched = tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""A kernel's name, its grid and block, the addresses that it takes, and its shared bytes."""


def _addresses(parameters: int) -> tuple[int, ...]:
    """The addresses that pointers, which a null ends, lead to."""
    found: list[int] = []
    size = ctypes.sizeof(ctypes.c_void_p)
    while (pointer := ctypes.c_void_p.from_address(parameters + size * len(found)).value) is not None:
        found.append(ctypes.c_uint64.from_address(pointer).value)
    return tuple(found)
