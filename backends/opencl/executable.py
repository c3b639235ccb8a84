"""Functions on an OpenCL device: compiled where they are loaded, launched and timed by pyopencl."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..c_family.artifact import Artifact, CompileError
from ..c_family.executable import DeviceExecutable
from .arrays import OpenClDevice
from .language import DOUBLES, SHUFFLE_EXTENSION
from .platform import MissingOpenCl, context_of, describe, device_at, queue_of

Array = npt.NDArray[Any]
_LONGEST_QUEUE = 1000
"""Runs that wait in the queue at most: drivers slow down, or run out of memory, with many events."""


def load(artifact: Artifact, index: int = 0, params: Mapping[str, Any] | None = None) -> DeviceExecutable:
    """Load a function on a device by its number.

    Raises CompileError with the compiler's log, MissingOpenCl where the device or what a kernel needs is missing.
    """
    return DeviceExecutable(artifact, OpenClRuntime(artifact, index), params)


class OpenClRuntime(OpenClDevice):
    """An OpenCL device with the kernels of one function."""

    replays = False

    def __init__(self, artifact: Artifact, index: int) -> None:
        import pyopencl as cl

        super().__init__(index)
        self.artifact = artifact
        self.queue = queue_of(index)
        self._program = build_program(artifact, index)
        self._kernels = [cl.Kernel(self._program, launch.name) for launch in artifact.kernel.launches]
        self._flush: Any = None

    def launch(self, buffers: Sequence[Any]) -> None:
        self._enqueue(buffers)

    def finish(self) -> None:
        self.queue.finish()

    def time(self, buffers: Sequence[Any], number: int, flush_bytes: int = 0, graph: bool = False) -> float:
        if graph:
            raise MissingOpenCl("OpenCL has no graphs to replay; time without graph=True")
        if flush_bytes:
            return sum(self._timed_after_flush(buffers, flush_bytes) for _ in range(number))
        elapsed_s, waiting = 0.0, number
        while waiting:
            runs = min(waiting, _LONGEST_QUEUE)
            self.queue.finish()
            first = last = self._enqueue(buffers)
            for _ in range(runs - 1):
                last = self._enqueue(buffers)
            last[-1].wait()
            elapsed_s += float(last[-1].profile.end - first[0].profile.start) * 1e-9
            waiting -= runs
        return elapsed_s

    def flush(self, flush_bytes: int) -> None:
        """Write so many bytes that no kernel reads, and wait."""
        import pyopencl as cl

        if self._flush is None or self._flush.size < flush_bytes:
            self._flush = self.allocate(flush_bytes)
        cl.enqueue_fill_buffer(self.queue, self._flush, np.zeros(1, np.uint8), 0, flush_bytes)
        self.queue.finish()

    def _timed_after_flush(self, buffers: Sequence[Any], flush_bytes: int) -> float:
        self.flush(flush_bytes)
        events = self._enqueue(buffers)
        events[-1].wait()
        return float(events[-1].profile.end - events[0].profile.start) * 1e-9

    def time_in_kernels(self, buffers: Sequence[Any], number: int) -> float:
        """Return the seconds that kernels run in `number` runs, without the time between one and the next."""
        elapsed_ns = 0
        for _ in range(0, number, _LONGEST_QUEUE):
            runs = [self._enqueue(buffers) for _ in range(min(number, _LONGEST_QUEUE))]
            number -= len(runs)
            self.queue.finish()
            elapsed_ns += sum(event.profile.end - event.profile.start for events in runs for event in events)
        return elapsed_ns * 1e-9

    def _enqueue(self, buffers: Sequence[Any]) -> list[Any]:
        """Put one run into the queue; returns an event for each of its kernels."""
        import pyopencl as cl

        events = []
        for launch, kernel in zip(self.artifact.kernel.launches, self._kernels, strict=True):
            sizes = tuple(blocks * threads for blocks, threads in zip(launch.grid, launch.block, strict=True))
            kernel.set_args(*(buffers[number] for number in launch.buffers))
            events.append(cl.enqueue_nd_range_kernel(self.queue, kernel, sizes, launch.block))
        return events


def lacking(dtype: str, device: Any) -> str | None:
    """The reason why a device does not compute in an element type, in a sentence; None where it does."""
    if dtype != "float64" or DOUBLES in device.extensions:
        return None
    return f"{describe(device)} has no float64 ({DOUBLES}): use float32, float16 or bfloat16"


def _check_limits(artifact: Artifact, device: Any) -> None:
    lack = lacking("float64", device) if DOUBLES in artifact.kernel.source else None
    if lack is not None:
        raise MissingOpenCl(f"kernel '{artifact.kernel.name}' computes in float64: {lack}")
    for launch in artifact.kernel.launches:
        if launch.uses_shuffles and SHUFFLE_EXTENSION not in device.extensions:
            raise MissingOpenCl(f"kernel '{launch.name}' uses {SHUFFLE_EXTENSION}, {describe(device)} has none")
        x, y, z = launch.block
        if x * y * z > device.max_work_group_size:
            raise MissingOpenCl(
                f"kernel '{launch.name}' has {x * y * z} threads a block, {describe(device)} allows "
                f"{device.max_work_group_size}"
            )
        shared_bytes = launch.static_shared_bytes + launch.dynamic_shared_bytes
        if shared_bytes > device.local_mem_size:
            raise MissingOpenCl(
                f"kernel '{launch.name}' has {shared_bytes} shared bytes a block, {describe(device)} allows "
                f"{device.local_mem_size}"
            )


def build_program(artifact: Artifact, index: int) -> Any:
    """Compile an artifact's source, or load its binary where it is for this very device and driver."""
    import pyopencl as cl

    context, device = context_of(index), device_at(index)
    _check_limits(artifact, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if artifact.binary and artifact.architecture == describe(device):
            return cl.Program(context, [device], [artifact.binary]).build(cache_dir=cast(str, False))
        try:
            program = cl.Program(context, artifact.kernel.source)
            return program.build(options=["-cl-std=CL1.2"], cache_dir=cast(str, False))
        except cl.RuntimeError as error:
            name = artifact.kernel.name
            raise CompileError(f"{describe(device)} refuses kernel '{name}':\n{error}") from error
