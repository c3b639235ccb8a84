"""Networks on a CUDA device: recorded once in a graph, and replayed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy.typing as npt

from ...backends.c_family.artifact import Artifact
from ...backends.cuda.arrays import CudaDevice
from ...backends.cuda.driver import current, device_at
from ...backends.cuda.graph import Graph, can_replay
from ...backends.cuda.launches import BoundLaunch, DeviceCopy, LoadedFunction, enqueue
from ...backends.cuda.runtime import CudaRuntime
from ...backends.llvm.bound_calls import Call, Copy, Slot
from .binding import Binding, bound
from .package import Package, require_memory
from .plan import Place, Port
from .signature import Signature

Array = npt.NDArray[Any]


class _Kernel(CudaRuntime):
    """A loaded kernel that can be put into a stream."""

    def enqueue(self, pointers: Sequence[int], stream: Any) -> None:
        self._launch(pointers, stream)


class CudaNetwork(CudaDevice):
    """The kernels and the constants of a network on a device, each there when it is first needed."""

    def __init__(self, package: Package, index: int) -> None:
        super().__init__(index)
        self.plan = package.plan
        self._package = package
        self._artifacts = [Artifact.from_bytes(data, "cuda") for data in package.kernels]

    @cached_property
    def kernels(self) -> list[_Kernel]:
        """The kernels as pycuda loads them, for sessions."""
        return [_Kernel(artifact, self.index) for artifact in self._artifacts]

    @cached_property
    def functions(self) -> list[LoadedFunction]:
        """The kernels as the driver loads them, for frames."""
        return [LoadedFunction(artifact, self.index) for artifact in self._artifacts]

    @cached_property
    def constants(self) -> list[Any]:
        """The constants in memory of pycuda's."""
        return [self.array(array).buffer for array in self._package.constants]

    @cached_property
    def binding(self) -> Binding:
        """The steps on arguments, constants and a workspace."""
        return bound(self.plan, [Signature(a.kernel.arguments, a.kernel.workspaces) for a in self._artifacts])

    def session(self) -> CudaSession:
        """Return a session with an arena and a stream of its own."""
        return CudaSession(self)

    def frame(self, constants: Sequence[int]) -> CudaFrame:
        """Return a frame, which runs the steps on memory and streams of a caller's; it has the constants' addresses."""
        return CudaFrame(self, constants)


class CudaFrame:
    """Each step as launches and the addresses that they take: those of arguments and workspace are set in each run.

    One frame is for one thread at a time. It waits for nothing and allocates nothing, so that runs may be captured.
    """

    def __init__(self, network: CudaNetwork, constants: Sequence[int]) -> None:
        binding, count = network.binding, len(network.plan.inputs) + len(network.plan.outputs)
        self._network, self._constants = network, constants
        self._holes: list[list[tuple[Any, int]]] = [[] for _ in range(count)]
        self._spaces: list[tuple[Any, int, int]] = []
        self._arrays: list[Any] = []
        self._launches: list[BoundLaunch] = []
        self._copies: list[Copy] = []
        self._workspace = -1
        for step in binding.steps:
            if isinstance(step, Copy):
                self._copies.append(step)
            else:
                self._bind(step)

    def _bind(self, step: Call) -> None:
        function = self._network.functions[step.kernel]
        assert len(step.slots) == len(function.kernel.arguments) + len(function.kernel.workspaces)
        pointers = (ctypes.c_uint64 * len(step.slots))()
        for position, slot in enumerate(step.slots):
            if slot.kind == "argument":
                self._holes[slot.number].append((pointers, position))
            elif slot.kind == "workspace":
                self._spaces.append((pointers, position, slot.number))
            else:
                pointers[position] = self._constants[slot.number]
        self._arrays.append(pointers)
        self._launches += function.bound(pointers)

    def run(self, addresses: Sequence[int], workspace: int, stream: int) -> None:
        """Put one run into a stream, by its handle.

        `addresses` are those of inputs, then of outputs: contiguous, of the plan's types and shapes, on multiples of 16
        bytes; `workspace` is that of the binding's bytes, which are free again after what the stream holds then.
        """
        for holes, address in zip(self._holes, addresses, strict=True):
            for pointers, position in holes:
                pointers[position] = address
        if workspace != self._workspace:
            self._workspace = workspace
            for pointers, position, offset in self._spaces:
                pointers[position] = workspace + offset
        copies = [
            DeviceCopy(self._address(each.target, addresses), self._address(each.source, addresses), each.nbytes)
            for each in self._copies
        ]
        enqueue(self._network.index, self._launches, copies, stream)

    def _address(self, slot: Slot, addresses: Sequence[int]) -> int:
        if slot.kind == "argument":
            return addresses[slot.number]
        if slot.kind == "constant":
            return self._constants[slot.number]
        return self._workspace + slot.number


class CudaSession:
    """An arena, a stream, and a graph of all steps; without `cuda-bindings` the steps are launched one by one."""

    def __init__(self, network: CudaNetwork) -> None:
        self._network = network
        self._graph: Graph | None = None
        self._flush: tuple[int, Any] | None = None
        require_memory(network.plan, device_at(network.index).total_memory(), network.name)
        self._base = network.allocate(max(1, network.plan.arena_bytes))
        self._calls = []
        for step in network.plan.steps:
            pointers = [self._address(place) for place in (*step.places, *step.workspaces)]
            self._calls.append((network.kernels[step.kernel], pointers))
        with current(network.index) as driver:
            self._stream = driver.Stream()

    def _address(self, place: Place) -> int:
        if place.is_constant:
            return int(self._network.constants[place.number])
        return int(self._base) + place.number

    def write(self, port: Port, array: Array) -> None:
        with current(self._network.index) as driver:
            driver.memcpy_htod_async(self._address(port.place), array, self._stream)
            self._stream.synchronize()

    def read(self, port: Port, array: Array) -> None:
        with current(self._network.index) as driver:
            driver.memcpy_dtoh_async(array, self._address(port.place), self._stream)
            self._stream.synchronize()

    def run(self) -> None:
        with current(self._network.index):
            self._start()

    def _start(self) -> None:
        """Put one run into the stream."""
        if self._graph is None and can_replay():
            self._enqueue()  # once as it is: kernels are loaded when they are first launched
            self._stream.synchronize()
            self._graph = Graph(self._stream.handle, self._enqueue)
        if self._graph is not None:
            self._graph.launch()
        else:
            self._enqueue()

    def _enqueue(self) -> None:
        for kernel, pointers in self._calls:
            kernel.enqueue(pointers, self._stream)

    def finish(self) -> None:
        with current(self._network.index):
            self._stream.synchronize()

    @property
    def cache_bytes(self) -> int:
        return self._network.target.l2_bytes

    def flush(self, nbytes: int) -> None:
        with current(self._network.index) as driver:
            if self._flush is None or self._flush[0] < nbytes:
                self._flush = (nbytes, driver.mem_alloc(nbytes))
            driver.memset_d8_async(int(self._flush[1]), 0, nbytes, self._stream)
            self._stream.synchronize()

    def time(self, number: int) -> float:
        with current(self._network.index) as driver:
            if self._graph is None:
                self._start()
            start, end = driver.Event(), driver.Event()
            start.record(self._stream)
            for _ in range(number):
                self._start()
            end.record(self._stream)
            end.synchronize()
            return float(end.time_since(start)) * 1e-3

    def time_steps(self) -> list[float]:
        """Each step by itself, replayed in a graph where that is possible, so that no launch is counted."""
        self.finish()
        repeats = 20
        return [kernel.time(pointers, repeats, graph=can_replay()) / repeats for kernel, pointers in self._calls]

    def __del__(self) -> None:
        if (graph := getattr(self, "_graph", None)) is not None:
            with contextlib.suppress(Exception), current(self._network.index):
                graph.close()


def load(package: Package, index: int = 0) -> CudaNetwork:
    """Load a network's kernels on a device by its number."""
    return CudaNetwork(package, index)
