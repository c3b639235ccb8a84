"""Networks on an OpenCL device."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.c_family.artifact import Artifact
from ...backends.opencl.arrays import OpenClDevice
from ...backends.opencl.executable import OpenClRuntime
from ...backends.opencl.platform import device_at
from .package import Package, require_memory
from .plan import Place, Port, Step

Array = npt.NDArray[Any]


class OpenClNetwork(OpenClDevice):
    """The kernels and the constants of a network on a device."""

    def __init__(self, package: Package, index: int) -> None:
        super().__init__(index)
        self.plan = package.plan
        artifacts = [Artifact.from_bytes(data, "opencl") for data in package.kernels]
        self.kernels = [OpenClRuntime(artifact, index) for artifact in artifacts]
        self.constants = [self.array(array).buffer for array in package.constants]

    def session(self) -> OpenClSession:
        """Return a session with an arena of its own."""
        return OpenClSession(self)


class OpenClSession:
    """An arena, and the buffers within it that each step takes."""

    def __init__(self, network: OpenClNetwork) -> None:
        self._network = network
        require_memory(network.plan, device_at(network.index).max_mem_alloc_size, f"a buffer on {network.name}")
        self._arena = network.allocate(max(1, network.plan.arena_bytes))
        self._sizes = _sizes(network)
        self._parts: dict[tuple[int, int], Any] = {}
        self._calls = [(network.kernels[step.kernel], self._buffers(step)) for step in network.plan.steps]

    def _buffers(self, step: Step) -> list[Any]:
        sizes = self._sizes[step.kernel]
        return [self._part(place, size) for place, size in zip((*step.places, *step.workspaces), sizes, strict=True)]

    def _part(self, place: Place, size: int) -> Any:
        if place.is_constant:
            return self._network.constants[place.number]
        key = (place.number, max(size, 1))
        if key not in self._parts:
            self._parts[key] = self._arena.get_sub_region(*key)
        return self._parts[key]

    def write(self, port: Port, array: Array) -> None:
        self._network.upload(self._part(port.place, port.nbytes), array)

    def read(self, port: Port, array: Array) -> None:
        self._network.download(array, self._part(port.place, port.nbytes))

    def run(self) -> None:
        for kernel, buffers in self._calls:
            kernel.launch(buffers)

    def finish(self) -> None:
        self._calls[0][0].finish()

    @property
    def cache_bytes(self) -> int:
        return self._network.target.l2_bytes

    def flush(self, nbytes: int) -> None:
        self._calls[0][0].flush(nbytes)

    def time(self, number: int) -> float:
        self.finish()
        start_s = time.perf_counter()
        for _ in range(number):
            self.run()
        self.finish()
        return time.perf_counter() - start_s

    def time_steps(self) -> list[float]:
        return [kernel.time(buffers, 1) for kernel, buffers in self._calls]


def _sizes(network: OpenClNetwork) -> list[list[int]]:
    """Return the bytes of each argument and workspace of each kernel."""
    found = []
    for kernel in network.kernels:
        source = kernel.artifact.kernel
        sizes = [int(np.prod(a.shape, dtype=np.int64)) * np.dtype(a.dtype).itemsize for a in source.arguments]
        found.append([*sizes, *source.workspaces])
    return found


def load(package: Package, index: int = 0) -> OpenClNetwork:
    """Load a network's kernels on a device by its number."""
    return OpenClNetwork(package, index)
