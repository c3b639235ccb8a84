"""`lw.request_device`: a device of a fleet to run and time kernels, networks and arrays on, from here."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.arrays import aligned_copy
from ..backends.time_evaluator import BenchmarkResult
from ..dialects.target import Target
from ..graph.runtime.network import CompiledNetwork
from ..schedule import Schedule
from ..search.measure.backend_api import load_backend
from ..search.task import SearchTask
from .link import Link
from .protocol import FleetError, order, pack_arrays, unpack_arrays
from .security import security_of

Array = npt.NDArray[Any]

_USUAL_S = 60.0
"""For an order of a session, once its turn has come, and for its turn to come."""


class RemoteError(FleetError):
    """A request failed on the device; the text is that of the error there."""


def request_device(
    key: str,
    tracker: str,
    *,
    priority: int = 0,
    timeout: float = _USUAL_S,
    tls_dir: str | os.PathLike[str] | None = None,
) -> RemoteDevice:
    """A device under `key` at a tracker (`HOST:PORT`), the one with the least to do; FleetError where there is none.

    Others go on using it: what runs for us runs between their jobs, one at a time. `timeout` is in seconds, for each
    thing that is asked of it. Use it in a `with` statement, or close it: it holds what was sent there.
    """
    return RemoteDevice(Link(tracker, key, security_of(tls_dir), priority), timeout)


class RemoteDevice:
    """A device of a fleet; see `request_device`."""

    def __init__(self, link: Link, timeout: float = _USUAL_S) -> None:
        self._link, self._timeout_s = link, timeout
        self._session = uuid.uuid4().hex
        self._device = min(link.active or link.devices, key=lambda each: (each.done + each.failed, each.name))
        self._closed = False
        try:
            self._ask_order("open", {})
        except BaseException:
            link.close()
            raise

    @property
    def target(self) -> Target:
        """The target with the limits of its hardware: what to compile and tune for."""
        return self._device.limits

    @property
    def name(self) -> str:
        """The name that it is registered under."""
        return self._device.name

    @property
    def hardware(self) -> str:
        """The name that the device gives itself."""
        return self._device.device

    def __repr__(self) -> str:
        return f"<device '{self.name}' under '{self._device.key}': {self.hardware}, target '{self.target}'>"

    def array(self, values: Any) -> RemoteArray:
        """Copy an array to the device."""
        array = np.asarray(values)
        held = self._ask("array", value=pack_arrays([array]))["held"]
        return RemoteArray(self, held, array.shape, array.dtype)

    def load_kernel(self, kernel: Schedule | SearchTask | bytes, schedule: str | None = None) -> RemoteKernel:
        """Compile here for the device's target, and load it there.

        `kernel` is a schedule; a task with the text of a schedule (the default one where none is given); or what a
        backend built. ScheduleError where it is not legal, RemoteError where the device cannot load it.
        """
        if isinstance(kernel, bytes):
            artifact = kernel
        elif isinstance(kernel, SearchTask):
            text = kernel.default_schedule if schedule is None else schedule
            artifact = load_backend(self._device.backend).build(str(kernel.module), text)
        else:
            artifact = load_backend(self._device.backend).build(str(kernel.workload), kernel.pipeline)
        found = self._ask("kernel", artifact=artifact)
        return RemoteKernel(self, found["held"], tuple(found["inputs"]))

    def load_network(self, network: str | os.PathLike[str] | CompiledNetwork) -> RemoteNetwork:
        """Load a compiled network, or the file of one, on the device."""
        if isinstance(network, CompiledNetwork):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "network.lw"
                network.save(path)
                package = path.read_bytes()
        else:
            package = Path(network).read_bytes()
        found = self._ask("network", package=package)
        return RemoteNetwork(self, found["held"], tuple(found["inputs"]))

    def _ask(self, what: str, **fields: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._ask_order(what, fields).get("result", {})
        return found

    def _ask_order(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
        if self._closed:
            raise RemoteError(f"device '{self.name}' was closed: ask for it again")
        asked = order("session", session=self._session, what=what, timeout_s=self._timeout_s)
        answer = self._link.ask(
            {**asked, "with": fields}, self._device.identity, 2 * self._timeout_s, held=what == "open"
        )
        if answer["status"] != "done":
            raise RemoteError(f"on device '{self.name}': {answer['message']}")
        return answer

    def close(self) -> None:
        """Let go of all that it holds, and of the tracker; harmless when repeated."""
        if not self._closed:
            with contextlib.suppress(FleetError):
                self._ask_order("close", {})
            self._closed = True
            self._link.close()

    def __enter__(self) -> RemoteDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RemoteArray:
    """An array on a device; `numpy()` copies it back."""

    def __init__(self, remote: RemoteDevice, held: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._remote, self.held = remote, held
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def numpy(self) -> Array:
        """Copy it back."""
        return unpack_arrays(self._remote._ask("read", held=self.held)["arrays"])[0]

    def free(self) -> None:
        """Let go of it on the device."""
        self._remote._ask("free", held=self.held)

    def __repr__(self) -> str:
        return f"<{self.dtype}{[*self.shape]} on device '{self._remote.name}'>"


class _RemoteCallable:
    """A kernel or network on a device, which is called with arrays."""

    def __init__(self, remote: RemoteDevice, held: int, inputs: tuple[str, ...]) -> None:
        self._remote, self._held, self.inputs = remote, held, inputs

    def run(self, *arrays: Any) -> Any:
        """Run on inputs, in order: arrays here, whose outputs are copied back, or arrays there, whose outputs stay."""
        keep = bool(arrays) and all(isinstance(array, RemoteArray) for array in arrays)
        found = self._remote._ask("run", held=self._held, arrays=_given(arrays), keep=keep)
        outputs: list[Any]
        if keep:
            pairs = zip(found["outputs"], found["shapes"], strict=True)
            outputs = [RemoteArray(self._remote, held, tuple(shape), dtype) for held, (dtype, shape) in pairs]
        else:
            outputs = [aligned_copy(array) for array in unpack_arrays(found["arrays"])]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    __call__ = run

    def benchmark(
        self,
        *arrays: Any,
        number: int | None = None,
        repeat: int = 5,
        min_repeat_ms: float | None = None,
        flush: bool = False,
    ) -> BenchmarkResult:
        """Time runs there, as `lw.Kernel.benchmark` does here."""
        how = {"number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms, "flush": flush}
        found = self._remote._ask("benchmark", held=self._held, arrays=_given(arrays), how=how)
        return BenchmarkResult(tuple(found["times_s"]), int(found["number"]))


class RemoteKernel(_RemoteCallable):
    """A kernel on a device: `run(*inputs)`, `benchmark()`."""


class RemoteNetwork(_RemoteCallable):
    """A network on a device: `run(*inputs)`, `benchmark()`, `profile()`."""

    def profile(self, repeat: int = 10) -> RemoteProfile:
        """Time each step there: the median of `repeat` runs, after one to warm up."""
        found = self._remote._ask("profile", held=self._held, repeat=repeat)
        return RemoteProfile(tuple((str(label), float(time_s)) for label, time_s in found["rows"]), str(found["text"]))


@dataclass(frozen=True)
class RemoteProfile:
    """The steps of a network and the seconds that each took; `str` is a table, the longest first."""

    rows: tuple[tuple[str, float], ...]
    table: str

    @property
    def total_s(self) -> float:
        """The sum of all steps."""
        return sum(time_s for _, time_s in self.rows)

    def __str__(self) -> str:
        return self.table


def _given(arrays: Sequence[Any]) -> list[Any]:
    """Arrays as a session takes them: the number of one that is there, the data of another."""
    return [a.held if isinstance(a, RemoteArray) else pack_arrays([np.asarray(a)])[0] for a in arrays]
