"""A loaded function on a device: what running and timing it takes, whatever the driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ..constants import Constants
from ..device_array import Device
from ..device_lost import DeviceLost
from ..forkable import ForkableLock
from .artifact import Artifact

Array = npt.NDArray[Any]


class Runtime(Device, Protocol):
    """A device and the kernels of one function loaded on it; buffers are what its driver takes for them.

    `replays` says whether `time` takes `graph`.
    """

    replays: bool

    def launch(self, buffers: Sequence[Any]) -> None:
        """Start all kernels of the function, one after the other, on buffers of arguments and workspaces."""

    def finish(self) -> None:
        """Wait for all that was launched."""

    def time(self, buffers: Sequence[Any], number: int, flush_bytes: int = 0, graph: bool = False) -> float:
        """Return the seconds that `number` runs take by the device's clock.

        With `flush_bytes`, so many are written before each run, outside of the timing; with `graph`, the runs are
        recorded once and replayed, so that launching them costs nothing.
        """


class DeviceExecutable:
    """A loaded function; arrays must be contiguous and of the right type and shape.

    Inputs are copied to the device and outputs back; `time` counts neither. Constants in `params` (by name) are on the
    device from the start, and left out of the arrays.
    """

    def __init__(
        self, artifact: Artifact, runtime: Runtime | Callable[[], Runtime], params: Mapping[str, Any] | None = None
    ) -> None:
        """Take a device with the artifact loaded, or what gives one when it is first needed."""
        kernel = artifact.kernel
        self.artifact = artifact
        self._connect = runtime
        self.constants = Constants(kernel.name, kernel.arguments, params)
        self.arguments = self.constants.open
        self._buffers: list[Any] = []
        self._workspaces: list[Any] = []
        self._ready: list[Any] = []
        self._fixed: dict[int, Any] | None = None
        self._lock = ForkableLock()
        self._process = os.getpid()

    @property
    def runtime(self) -> Runtime:
        """The device with the kernels loaded; DeviceLost in a forked child, where drivers hang."""
        if os.getpid() != self._process:
            name = self.artifact.kernel.name
            raise DeviceLost(f"kernel {name}: no device outlives a fork: start processes that use one with 'spawn'")
        return self._connected

    @cached_property
    def _connected(self) -> Runtime:
        return self._connect() if callable(self._connect) else self._connect

    def run(self, args: Sequence[Array]) -> None:
        """Run once on `args`, inputs then outputs; outputs are written in place and complete on return."""
        with self._lock:
            buffers = self._upload(args, again=False)
            self.runtime.launch(buffers)
            count = len(self.artifact.kernel.arguments)
            outputs = [array for argument, array in zip(self.arguments, args, strict=True) if argument.is_output]
            for array, buffer in zip(outputs, buffers[count - len(outputs) : count], strict=True):
                self.runtime.download(array, buffer)

    def time(self, args: Sequence[Array], number: int) -> float:
        """Return the seconds that `number` runs, back to back, take on the device, by its own clock.

        Runs are replayed where the device can, so that launching short kernels costs nothing. Inputs are taken to be
        those of the `run` before.
        """
        with self._lock:
            buffers = self._ready or self._upload(args, again=True)
            return self.runtime.time(buffers, number, graph=self.runtime.replays)

    def run_on(self, buffers: Sequence[Any], args: Sequence[Array]) -> None:
        """Run once on buffers of the open arguments; `args` are the same on the host, for constants that are packed."""
        given = list(buffers)
        with self._lock:
            if self.needs_packing():
                arrays = self.constants.complete(args)
                fixed = self.constants.fixed
                packed = [array for position, array in enumerate(arrays) if position not in fixed]
                for number, (argument, array) in enumerate(zip(self.arguments, packed, strict=True)):
                    if argument.packing is not None:
                        given[number] = self.runtime.allocate(array.nbytes)
                        self.runtime.upload(given[number], array)
        self._ready = self.buffers_for(given)
        self.runtime.launch(self._ready)
        self.runtime.finish()

    def time_on(self, buffers: Sequence[Any], number: int) -> float:
        """Return the seconds that `number` runs take on the buffers of the `run_on` before."""
        with self._lock:
            return self.runtime.time(self._ready, number, graph=self.runtime.replays)

    def buffers_for(self, given: Sequence[Any]) -> list[Any]:
        """Return buffers of all arguments and workspaces from those of the open arguments."""
        with self._lock:
            fixed = self._fixed_buffers()
            arguments = self.artifact.kernel.arguments
            rest = iter(given)
            buffers = [fixed[n] if n in fixed else next(rest) for n in range(len(arguments))]
            return [*buffers, *self._workspace_buffers()]

    def needs_packing(self) -> bool:
        """True where a call's constants must be packed, which is done on the host."""
        return any(argument.packing is not None for argument in self.arguments)

    def _upload(self, args: Sequence[Array], again: bool) -> list[Any]:
        arrays = self.constants.complete(args, again)
        fixed = self._fixed_buffers()
        if not self._buffers:
            self._buffers = [
                fixed[number] if number in fixed else self.runtime.allocate(array.nbytes)
                for number, array in enumerate(arrays)
            ]
        arguments = self.artifact.kernel.arguments
        for number, (argument, array, buffer) in enumerate(zip(arguments, arrays, self._buffers, strict=True)):
            if not argument.is_output and number not in fixed:
                self.runtime.upload(buffer, np.ascontiguousarray(array))
        self._ready = [*self._buffers, *self._workspace_buffers()]
        return self._ready

    def _fixed_buffers(self) -> dict[int, Any]:
        """Return the buffers of the constants that came with `params`, by position; uploaded once."""
        if self._fixed is None:
            self._fixed = {}
            for number, array in self.constants.fixed.items():
                self._fixed[number] = self.runtime.allocate(array.nbytes)
                self.runtime.upload(self._fixed[number], array)
        return self._fixed

    def _workspace_buffers(self) -> list[Any]:
        if not self._workspaces:
            self._workspaces = [self.runtime.allocate(size) for size in self.artifact.kernel.workspaces]
        return self._workspaces
