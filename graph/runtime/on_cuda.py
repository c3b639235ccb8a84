"""Networks on a CUDA device: each run is one call, which replays a graph."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ...backends.c_family.artifact import Artifact
from ...backends.cuda.arrays import CudaDevice
from ...backends.cuda.driver import current, device_at
from ...backends.cuda.launches import NO_BASES, Address, DeviceCopy, Launches, LoadedFunction, relaxed_capture
from ...backends.llvm.bound_calls import Call, Copy, Slot
from ...dialects.cached_property import cached_property
from .binding import Binding, bound
from .package import Package, require_memory
from .plan import Place, Port
from .signature import Signature

Array = npt.NDArray[Any]


_MOST_STREAMS = 8
"""A frame keeps its launches on so many streams."""
_REPEATS = 20
"""Runs of a step that is timed."""


class CudaNetwork(CudaDevice):
    """The kernels and the constants of a network on a device, each there when it is first needed."""

    def __init__(self, package: Package, index: int) -> None:
        super().__init__(index)
        self.plan = package.plan
        self._package = package
        self._artifacts = [Artifact.from_bytes(data, "cuda") for data in package.kernels]

    @cached_property
    def functions(self) -> list[LoadedFunction]:
        """The kernels, loaded."""
        return [LoadedFunction(artifact, self.index) for artifact in self._artifacts]

    @cached_property
    def counts(self) -> bool:
        """True where kernels keep counters in what is loaded, so that runs beside each other need one each."""
        return any(launch.counts for artifact in self._artifacts for launch in artifact.kernel.launches)

    def own_functions(self) -> list[LoadedFunction]:
        """Return the kernels for runs one after the other: those that keep counters are loaded for these alone."""
        return [
            LoadedFunction(each, self.index) if any(launch.counts for launch in each.kernel.launches) else function
            for each, function in zip(self._artifacts, self.functions, strict=True)
        ]

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
    """The steps as launches on bases: arguments and workspace, whose addresses are set in each run.

    One frame is for one thread at a time. It waits for nothing and allocates nothing, so that runs may be captured.
    """

    def __init__(self, network: CudaNetwork, constants: Sequence[int]) -> None:
        self._network, self._constants = network, constants
        binding, self._arguments = network.binding, len(network.plan.inputs) + len(network.plan.outputs)
        self._bases = (ctypes.c_uint64 * (self._arguments + 2))()
        self._steps = [
            (step.kernel, [*map(self._address, step.slots)]) for step in binding.steps if isinstance(step, Call)
        ]
        self._copies = [
            DeviceCopy(self._address(step.target), self._address(step.source), step.nbytes)
            for step in binding.steps
            if isinstance(step, Copy)
        ]
        self._functions = network.functions  # loaded before a capture
        self._on: dict[int, Launches] = {}
        self._functions_on: dict[int, list[LoadedFunction]] = {}
        """Kernels that keep counters, by streams: work in one may run beside that in another."""
        self._captured: list[Launches] = []
        """Launches of such kernels in captured streams, whose graphs may run beside each other."""

    def _address(self, slot: Slot) -> Address:
        if slot.kind == "argument":
            return Address(1 + slot.number, slot.start)
        if slot.kind == "workspace":
            return Address(1 + self._arguments, slot.number)
        return Address(0, self._constants[slot.number])

    def run(self, addresses: Sequence[int], workspace: int, stream: int, captured: bool = False) -> None:
        """Put one run into a stream, by its handle, which is `captured` or not.

        `addresses` are those of inputs, then of outputs: contiguous, of the plan's types and shapes, on multiples of 16
        bytes; `workspace` is that of the binding's bytes, which are free again after what the stream holds then.
        """
        self._bases[1:] = [*addresses, workspace]
        if captured and self._network.counts:
            launches = self._launches_in_capture()
        else:
            launches = self._on.get(stream) or self._launches_on(stream)
        launches.start(self._bases, stream, captured)

    def _launches_on(self, stream: int) -> Launches:
        """Return new launches for a stream; those of the stream that came first go where there are many."""
        while len(self._on) >= _MOST_STREAMS:
            self._on.pop(next(iter(self._on)))
        functions = self._functions
        if self._network.counts:
            functions = self._functions_on.get(stream) or self._network.own_functions()
            self._functions_on[stream] = functions
        made = self._on[stream] = self._launches_of(functions)
        return made

    def _launches_in_capture(self) -> Launches:
        """Return launches of kernels that no other graph has, which live as long as the frame."""
        with relaxed_capture(self._network.index):
            self._captured.append(self._launches_of(self._network.own_functions()))
        return self._captured[-1]

    def _launches_of(self, functions: Sequence[LoadedFunction]) -> Launches:
        calls = [(functions[kernel], addresses) for kernel, addresses in self._steps]
        return Launches(self._network.index, calls, self._copies)


class CudaSession:
    """An arena, a stream, and the launches of all steps."""

    def __init__(self, network: CudaNetwork) -> None:
        self._network = network
        self._flush: tuple[int, Any] | None = None
        require_memory(network.plan, device_at(network.index).total_memory(), network.name)
        self._base = network.allocate(max(1, network.plan.arena_bytes))
        functions = network.own_functions()
        self._calls = [
            (
                functions[step.kernel],
                [Address(0, self._address(place)) for place in (*step.places, *step.workspaces)],
            )
            for step in network.plan.steps
        ]
        self._launches = Launches(network.index, self._calls)
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
        self._launches.start(NO_BASES, self._stream.handle)

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
        return self._timed(self._launches, number)

    def time_steps(self) -> list[float]:
        """Each step by itself, many times in a graph where that is possible, so that no launch is counted."""
        self.finish()
        alone = [Launches(self._network.index, [call] * _REPEATS) for call in self._calls]
        return [self._timed(launches, 1) / _REPEATS for launches in alone]

    def _timed(self, launches: Launches, number: int) -> float:
        """Return the seconds that runs take, after one that a graph is made of."""
        with current(self._network.index) as driver:
            if not launches.started:
                launches.start(NO_BASES, self._stream.handle)
            start, end = driver.Event(), driver.Event()
            start.record(self._stream)
            for _ in range(number):
                launches.start(NO_BASES, self._stream.handle)
            end.record(self._stream)
            end.synchronize()
            return float(end.time_since(start)) * 1e-3


def load(package: Package, index: int = 0) -> CudaNetwork:
    """Load a network's kernels on a device by its number."""
    return CudaNetwork(package, index)
