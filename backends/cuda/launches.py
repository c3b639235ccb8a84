"""Kernels put into streams: those of an artifact, loaded, and launches in order, which are one call of machine code."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..c_family.artifact import Artifact
from ..c_family.kernel_source import Launch as KernelLaunch
from ..device_lost import DeviceLost
from .cubins import of_each_launch, separate_cubins
from .dependent import add_edge, config, has_edges
from .device_checks import check_device
from .driver import context_handle, current, is_fatal, library
from .language import STATIC_SHARED_BYTES
from .launcher import DRIVER_CALLS, Copied, Launch, Parameter, Program, starter
from .tensor_maps import HostMap

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES in cuda.h."""


class Address(NamedTuple):
    """Bytes from a base on, which is known by its number when launches start; base 0 is address 0."""

    base: int
    offset: int


NO_BASES = (ctypes.c_uint64 * 1)()
"""The bases of launches whose addresses are all known when they are made."""


class DeviceCopy(NamedTuple):
    """A copy of so many bytes from one address to another."""

    target: Address
    source: Address
    nbytes: int


def checked(status: int) -> None:
    """Raise the words of the driver for a status that is an error: DeviceLost where the context is lost by it."""
    if status == 0:
        return
    text = ctypes.c_char_p()
    library().cuGetErrorString(status, ctypes.byref(text))
    why = (text.value or b"").decode() or f"error {status}"
    if is_fatal(why):
        raise DeviceLost(f"CUDA: {why}")
    raise RuntimeError(f"CUDA: {why}")


class LoadedFunction:
    """The kernels of an artifact in a device's primary context, loaded whole, so that a capture may launch them."""

    def __init__(self, artifact: Artifact, index: int) -> None:
        check_device(artifact, index)
        self.kernel, self._context = artifact.kernel, context_handle(index)
        self._driver, self._modules = library(), list[Any]()
        self.handles: list[Any] = []
        launches = self.kernel.launches
        with current(index):
            for cubin in separate_cubins(artifact.binary):
                module = ctypes.c_void_p()
                checked(self._driver.cuModuleLoadData(ctypes.byref(module), cubin))
                self._modules.append(module)
            for launch, module in zip(launches, of_each_launch(self._modules, len(launches)), strict=True):
                self.handles.append(self._loaded(module, launch.name, launch.dynamic_shared_bytes))

    def _loaded(self, module: Any, name: str, shared_bytes: int) -> Any:
        driver, function = self._driver, ctypes.c_void_p()
        checked(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        if shared_bytes > STATIC_SHARED_BYTES:
            checked(driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes))
        if hasattr(driver, "cuFuncLoad"):  # from CUDA 12.4 on; before it, the first launch loads a kernel
            checked(driver.cuFuncLoad(function))
        return function

    def __del__(self) -> None:
        if modules := getattr(self, "_modules", None):
            with contextlib.suppress(Exception), _entered(self._driver, self._context):  # the device may be ending
                for module in modules:
                    self._driver.cuModuleUnload(module)


@contextlib.contextmanager
def _entered(driver: Any, context: Any) -> Iterator[None]:
    """Make a context the thread's current one."""
    checked(driver.cuCtxPushCurrent_v2(context))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


_RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED in cuda.h."""


@contextlib.contextmanager
def relaxed_capture(index: int) -> Iterator[None]:
    """Let this thread load kernels while it captures a stream, which captures forbid by default."""
    driver, mode = library(), ctypes.c_int(_RELAXED)
    with current(index):
        checked(driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
        try:
            yield
        finally:
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


class Launches:
    """The launches of functions on addresses, in order, then copies; `start` puts them into a stream.

    From the second start on they are a graph, whose nodes are given the addresses that are others than before. A graph
    runs once at a time: one object is for one stream, and for one thread at a time. It pays from one launch on: on an
    H200 (2026-11-23) the host took 6.7, 13.0 and 16.6 us for 1, 2 and 3 launches one by one, 5.1, 5.4 and 5.4 us for
    graphs of them, and 5.7, 6.4 and 6.3 us where all addresses moved. Kernels that wait for the one ahead by themselves
    may begin before its end, in streams and in graphs.
    """

    def __init__(
        self,
        index: int,
        calls: Sequence[tuple[LoadedFunction, Sequence[Address]]],
        copies: Sequence[DeviceCopy] = (),
    ) -> None:
        self._driver, self._context, self._functions = library(), context_handle(index), [each for each, _ in calls]
        self._replays, self.started = (
            hasattr(self._driver, "cuGraphExecKernelNodeSetParams_v2"),
            False,
        )  # from CUDA 12 on
        self._graph, self._replay = ctypes.c_void_p(), ctypes.c_void_p()
        self._keep: list[Any] = []
        self._launches = self._lay_out(calls)
        moved = [(*copy.target, *copy.source, copy.nbytes) for copy in copies]
        self._program = Program(
            driver=self._kept((ctypes.c_void_p * len(DRIVER_CALLS))(*map(self._address_of, DRIVER_CALLS))),
            context=self._context.value,
            parameter_count=len(self._parameters),
            parameters=self._kept(self._parameters),
            values=ctypes.addressof(self._values),
            launch_count=len(self._launches),
            launches=ctypes.addressof(self._launches),
            copy_count=len(moved),
            copies=self._kept((Copied * len(moved))(*(Copied(*each) for each in moved))),
        )
        self._at, self._start = ctypes.addressof(self._program), starter()

    def _lay_out(self, calls: Sequence[tuple[LoadedFunction, Sequence[Address]]]) -> Any:
        """Return the launches, each with pointers to its parameters' values, which are in one array, and a null."""
        self._maps: list[tuple[HostMap, Address, int]] = []
        found = [
            (handle, launch, [addresses[number] for number in launch.buffers], addresses)
            for function, addresses in calls
            for handle, launch in zip(function.handles, function.kernel.launches, strict=True)
        ]
        taken = [(*address, number) for number, (_, _, given, _) in enumerate(found) for address in given]
        self._parameters = (Parameter * len(taken))(*(Parameter(*each) for each in taken))
        self._values = (ctypes.c_uint64 * len(taken))()
        first, size = ctypes.addressof(self._values), ctypes.sizeof(ctypes.c_uint64)
        made: list[Launch] = []
        for handle, launch, given, addresses in found:
            maps = [HostMap(each) for each in launch.maps]
            self._maps += [(each, addresses[each.described.buffer], len(made)) for each in maps]
            own = (first + size * place for place in range(len(given)))
            pointers = (ctypes.c_void_p * (len(maps) + len(given) + 1))(*(each.at for each in maps), *own)
            first += size * len(given)
            made.append(
                Launch(
                    function=handle.value,
                    grid=launch.grid,
                    block=launch.block,
                    shared_bytes=launch.dynamic_shared_bytes,
                    parameters=self._kept(pointers),
                    context=self._context.value,
                    config=self._config(launch) if made else None,
                )
            )
        return (Launch * len(made))(*made)

    def _config(self, launch: KernelLaunch) -> int | None:
        """Return how a kernel that waits by itself is launched behind another one; None for others."""
        if not (launch.waits and hasattr(self._driver, "cuLaunchKernelEx")):  # from CUDA 11.8 on
            return None
        return self._kept(config(launch.grid, launch.block, launch.dynamic_shared_bytes))

    def _kept(self, array: Any) -> int:
        self._keep.append(array)
        return ctypes.addressof(array)

    def _address_of(self, name: str) -> int | None:
        found = getattr(self._driver, name, None)
        return None if found is None else ctypes.cast(found, ctypes.c_void_p).value

    def start(self, bases: Any, stream: int, direct: bool = False) -> None:
        """Put one run into a stream, by its handle; it waits for nothing.

        `bases` is an array of 64-bit addresses, the first of which is 0. `direct` is for streams in a capture, which
        graphs cannot be launched in: each kernel is launched.
        """
        if self._maps:
            self._move_maps(bases)
        replay = None if direct else self._replay.value
        if status := self._start(self._at, ctypes.addressof(bases), stream, replay):
            checked(status)
        if not (direct or self.started):
            self.started = True
            if self._replays and len(self._launches):
                self._record()

    def _move_maps(self, bases: Any) -> None:
        """Make the tensor maps of arrays that have moved, in the context, which the driver asks for."""
        moved = [
            (each, at, number)
            for each, address, number in self._maps
            if (at := bases[address.base] + address.offset) != each.address
        ]
        if not moved:
            return
        with _entered(self._driver, self._context):
            for each, at, number in moved:
                each.move(at)
                self._launches[number].changed = 1

    def _record(self) -> None:
        """Make a graph, of the addresses of the last run; where the driver does not, launches stay single."""
        driver = self._driver
        with _entered(driver, self._context):
            try:
                checked(driver.cuGraphCreate(ctypes.byref(self._graph), 0))
                before = ctypes.c_void_p()
                for launch in self._launches:
                    before = self._add_node(launch, before)
                flags = ctypes.c_ulonglong(0)
                checked(driver.cuGraphInstantiateWithFlags(ctypes.byref(self._replay), self._graph, flags))
            except RuntimeError:
                self._replay = ctypes.c_void_p()

    def _add_node(self, launch: Launch, before: ctypes.c_void_p) -> ctypes.c_void_p:
        """Add a kernel to the graph, behind another one where there is one."""
        node, is_early = ctypes.c_void_p(), bool(launch.config) and has_edges(self._driver)
        how = (ctypes.byref(before), ctypes.c_size_t(1 if before and not is_early else 0), ctypes.byref(launch))
        checked(self._driver.cuGraphAddKernelNode_v2(ctypes.byref(node), self._graph, *how))
        if is_early:
            checked(add_edge(self._driver, self._graph, before, node))
        launch.node, launch.changed = node.value, 0
        return node

    def __del__(self) -> None:
        graph, replay = getattr(self, "_graph", None), getattr(self, "_replay", None)
        if graph or replay:
            with contextlib.suppress(Exception), _entered(self._driver, self._context):  # the device may be ending
                if replay:
                    self._driver.cuGraphExecDestroy(replay)  # once it has run to its end
                if graph:
                    self._driver.cuGraphDestroy(graph)
