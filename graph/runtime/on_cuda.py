"""Networks on a CUDA device: recorded once in a graph, and replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ...backends.c_family.artifact import Artifact
from ...backends.cuda.arrays import CudaDevice
from ...backends.cuda.driver import current, device_at
from ...backends.cuda.graph import Graph, can_replay
from ...backends.cuda.runtime import CudaRuntime
from .package import Package, require_memory
from .plan import Place, Port

Array = npt.NDArray[Any]


class _Kernel(CudaRuntime):
    """A loaded kernel that can be put into a stream."""

    def enqueue(self, pointers: Sequence[int], stream: Any) -> None:
        self._launch(pointers, stream)


class CudaNetwork(CudaDevice):
    """The kernels and the constants of a network on a device."""

    def __init__(self, package: Package, index: int) -> None:
        super().__init__(index)
        self.plan = package.plan
        self.kernels = [_Kernel(Artifact.from_bytes(data, "cuda"), index) for data in package.kernels]
        self.constants = [self.array(array).buffer for array in package.constants]

    def session(self) -> CudaSession:
        """Return a session with an arena and a stream of its own."""
        return CudaSession(self)


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
