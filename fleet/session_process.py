"""The process on a device that holds somebody's arrays, kernels and networks, and runs and times them there."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends.cuda.arrays import cuda
from ..backends.device_kernel import DeviceKernel
from ..backends.kernel_function import Kernel
from ..backends.opencl.arrays import opencl
from ..backends.time_evaluator import BenchmarkResult
from ..dialects.cached_property import cached_property
from ..graph.runtime.network import load_network
from ..search.measure import wire
from ..search.measure.backend_api import load_backend
from .protocol import pack_arrays, unpack_arrays

Reply = tuple[wire.Message, bytes]


class Session:
    """Arrays, kernels and networks by their numbers, on one device."""

    def __init__(self, backend: str) -> None:
        self._backend = load_backend(backend)
        self._held: dict[int, Any] = {}

    def answer(self, message: wire.Message, blob: bytes) -> Reply:
        """Do what a message says; its `op` is the name of a method below."""
        does: dict[str, Callable[..., Any]] = {
            "array": self.array,
            "read": self.read,
            "kernel": self.kernel,
            "network": self.network,
            "run": self.run,
            "benchmark": self.benchmark,
            "profile": self.profile,
            "free": self.free,
        }
        return split_blob(does[message["what"]](**join_blob(message.get("with", {}), blob)))

    def array(self, value: list[dict[str, Any]]) -> dict[str, Any]:
        """Copy an array to the device."""
        (array,) = unpack_arrays(value)
        return {"held": self._hold(array if self._place is None else self._place.array(array))}

    def read(self, held: int) -> dict[str, Any]:
        """Copy an array back."""
        return {"arrays": pack_arrays([_on_host(self._held[held])])}

    def kernel(self, artifact: bytes) -> dict[str, Any]:
        """Load what a backend built."""
        executable: Any = self._backend.load(artifact)
        if hasattr(executable, "artifact"):
            kernel: Kernel = DeviceKernel(executable, str)
        else:
            name = executable.arguments[0].name if executable.arguments else "kernel"
            kernel = Kernel(name, executable.arguments, executable, "", str)
        return {"held": self._hold(kernel), "inputs": [a.name for a in kernel.arguments if not a.is_output]}

    def network(self, package: bytes) -> dict[str, Any]:
        """Load a compiled network."""
        with tempfile.NamedTemporaryFile(suffix=".lw") as file:
            file.write(package)
            file.flush()
            executor = load_network(file.name, trusted=True).executor()  # as native as kernels, which devices run
        return {"held": self._hold(executor), "inputs": executor.input_names}

    def run(self, held: int, arrays: Sequence[Any], keep: bool = False) -> dict[str, Any]:
        """Run on arrays, given or held; returns the outputs, or with `keep` their numbers here."""
        made = self._held[held](*[self._given(array) for array in arrays])
        outputs = made if isinstance(made, tuple) else (made,)
        if keep:
            shapes = [[o.dtype.name, [*o.shape]] for o in outputs]
            return {"outputs": [self._hold(o) for o in outputs], "shapes": shapes}
        return {"arrays": pack_arrays([_on_host(output) for output in outputs])}

    def benchmark(self, held: int, arrays: Sequence[Any], how: dict[str, Any]) -> dict[str, Any]:
        """Time a kernel or a network."""
        timed = self._held[held]
        given = [self._given(array) for array in arrays]
        if given and not isinstance(timed, Kernel):
            timed.set_input(**dict(zip(timed.input_names, given, strict=False)))
            given = []
        found: BenchmarkResult = timed.benchmark(*given, **how)
        return {"times_s": [*found.times_s], "number": found.number}

    def profile(self, held: int, repeat: int) -> dict[str, Any]:
        """Time each step of a network."""
        found = self._held[held].profile(repeat)
        return {"text": str(found), "rows": [[row.label, row.time_s] for row in found]}

    def free(self, held: int) -> dict[str, Any]:
        """Let go of what is held."""
        self._held.pop(held, None)
        return {}

    @cached_property
    def _place(self) -> Any:
        """The device that arrays are copied to; None where that is the host."""
        kind = self._backend.__name__.rpartition(".")[0].rpartition(".")[2]  # type: ignore[attr-defined]
        if kind == "cuda":
            return cuda(0)
        return opencl(0) if kind == "opencl" else None

    def _given(self, array: Any) -> Any:
        return self._held[array] if isinstance(array, int) else unpack_arrays([array])[0]

    def _hold(self, value: Any) -> int:
        number = max(self._held, default=0) + 1
        self._held[number] = value
        return number


def _on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.numpy()


def split_blob(value: Any) -> tuple[Any, bytes]:
    """Return plain data with its bytes replaced by where they lie in one blob, as JSON has none."""
    parts: list[bytes] = []

    def without(each: Any) -> Any:
        if isinstance(each, bytes | bytearray):
            start = sum(map(len, parts))
            parts.append(bytes(each))
            return {"_at": [start, len(each)]}
        if isinstance(each, dict):
            return {name: without(inner) for name, inner in each.items()}
        return [without(inner) for inner in each] if isinstance(each, list | tuple) else each

    text = without(value)
    return text, b"".join(parts)


def join_blob(value: Any, blob: bytes) -> Any:
    """Return the plain data that `split_blob` took apart."""
    if isinstance(value, dict):
        if set(value) == {"_at"}:
            start, size = value["_at"]
            return blob[start : start + size]
        return {name: join_blob(inner, blob) for name, inner in value.items()}
    return [join_blob(inner, blob) for inner in value] if isinstance(value, list) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one device until it closes the connection."""
    parser = argparse.ArgumentParser(description="runs kernels and networks for the device that starts it")
    parser.add_argument("role")
    parser.add_argument("backend")
    parser.add_argument("descriptor", type=int)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(options.nice)
    connection = socket.socket(fileno=options.descriptor)
    connection.set_inheritable(False)
    decoder = wire.Decoder()
    session: Session | None = None
    while (received := wire.receive(connection, decoder)) is not None:
        try:
            session = session or Session(options.backend)
            found, blob = session.answer(*received)
            reply: dict[str, Any] = {"ok": found}
        except Exception as error:  # whoever asked must hear why, whatever it is
            reply, blob = {"error": str(error), "kind": type(error).__name__}, b""
        connection.sendall(wire.encode(reply, blob))
    return 0
