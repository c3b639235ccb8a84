"""A worker process: builds candidates, or runs and times them, as the measurer asks (`python -m ...search.worker`)."""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..backends.missing import MissingRequirement
from . import wire
from .backend_api import Backend, BackendError, DeviceLost, load_backend
from .records import ErrorCode

if TYPE_CHECKING:
    from .checking import Buffers
    from .device_checking import DeviceBuffers

_LONGEST_MESSAGE = 6000
_NOT_ITS_DOING = (AssertionError, MemoryError, OSError)
"""Errors of ours or of the machine, which say nothing about the candidate."""
_ROOT = (__package__ or "").rpartition(".")[0]
_REFUSALS = ((f"{_ROOT}.passes.primitive", "ScheduleError"), ("xdsl.utils.exceptions", "PassFailedException"))
_COMPILER_ERRORS = ((f"{_ROOT}.backends.c_family.artifact", "CompileError"),)
"""Classes by module and name, as importing them here would load what not every worker needs."""

Reply = tuple[wire.Message, bytes]


class Builder:
    """Turns schedules of the current workload into artifacts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._workload = ""

    def hello(self) -> wire.Message:
        """Return what the measurer wants to know first."""
        return {"versions": self._backend.versions()}

    def task(self, message: wire.Message) -> None:
        """Take over another workload."""
        self._workload = message["workload"]

    def work(self, message: wire.Message, blob: bytes) -> Reply:
        """Build one schedule."""
        backend = self._backend
        artifact = backend.build(self._workload, message["schedule"])
        identity = getattr(backend, "identity", bytes)(artifact)  # optional: what of it decides how it runs
        reply: wire.Message = {"code": ErrorCode.OK, "artifact": hashlib.sha256(identity).hexdigest()[:24]}
        if (resources := getattr(backend, "resources", None)) is not None:
            reply["resources"] = resources(artifact)
        return reply, artifact

    def code_of(self, error: BaseException) -> ErrorCode:
        """Name the failure."""
        if isinstance(error, _NOT_ITS_DOING):
            return ErrorCode.UNKNOWN
        return ErrorCode.INSTANTIATION_ERROR if _is_refusal(error) else ErrorCode.COMPILE_ERROR


class Runner:
    """Holds the device, and runs, checks and times artifacts on the current task's data."""

    def __init__(self, backend: Backend) -> None:
        from . import checking, device_checking, timing  # noqa: F401 (now, and not in a candidate's time)

        self._backend = backend
        self._buffers: Any = None

    def hello(self) -> wire.Message:
        """Return what the measurer wants to know first."""
        return {"versions": self._backend.versions(), "device": self._backend.device_name()}

    def task(self, message: wire.Message) -> None:
        """Load another task's inputs and expected outputs."""
        from .checking import Buffers
        from .device_checking import DeviceBuffers

        data = (message["inputs"], message["expected"], message["atol"], message["rtol"], message.get("dtypes", ()))
        checks = getattr(self._backend, "checks", None)
        self._buffers = None  # before others take its place in memory
        self._buffers = Buffers(*data) if checks is None else DeviceBuffers(checks(), *data)

    def work(self, message: wire.Message, blob: bytes) -> Reply:
        """Load one artifact, check its outputs, time it, and check them again."""
        from .timing import TimingSettings, measure_times

        assert self._buffers is not None
        buffers, settings = self._buffers, TimingSettings(**message["timing"])
        kernel = self._backend.load(blob)
        buffers.poison()
        buffers.run(kernel)
        if (wrong := self._judge(buffers)) is not None:
            return wrong, b""
        flush = _flusher(settings.flush_bytes) if settings.flush_bytes else None
        times_s, stopped = measure_times(lambda n: buffers.time(kernel, n), settings, message["best_s"], flush)
        if (wrong := self._judge(buffers)) is not None:
            wrong["message"] = "right at first, but after repeated runs: " + wrong["message"]
            return wrong, b""
        return {"code": ErrorCode.OK, "times_s": times_s, "stopped_early": stopped}, b""

    def _judge(self, buffers: Buffers | DeviceBuffers) -> wire.Message | None:
        if (trespass := buffers.trespass()) is not None:
            buffers.restore_inputs()
            return {"code": ErrorCode.WRONG_RESULT, "message": f"the kernel {trespass}", "tainted": True}
        if (wrong := buffers.wrong()) is not None:
            return {"code": ErrorCode.WRONG_RESULT, "message": wrong}
        return None

    def code_of(self, error: BaseException) -> ErrorCode:
        """Name the failure; some devices compile what they load."""
        if isinstance(error, DeviceLost):
            return ErrorCode.DEVICE_LOST
        if isinstance(error, _NOT_ITS_DOING):
            return ErrorCode.UNKNOWN
        return ErrorCode.COMPILE_ERROR if _is_one_of(error, _COMPILER_ERRORS) else ErrorCode.RUNTIME_ERROR


def _flusher(size: int) -> Callable[[], None]:
    import numpy as np

    filler = np.zeros(size // 8)

    def flush() -> None:
        filler[...] += 1.0

    return flush


def _is_refusal(error: BaseException) -> bool:
    """Whether a primitive or a lowering refused the schedule."""
    return _is_one_of(error, _REFUSALS)


def _is_one_of(error: BaseException, classes: Sequence[tuple[str, str]]) -> bool:
    """Whether an error is of a class, given by module and name; who raised it has imported its module."""
    kinds = [getattr(sys.modules[home], name) for home, name in classes if home in sys.modules]
    return isinstance(error, tuple(kinds))


def _message_of(error: BaseException) -> str:
    """Return the error as people read it: one that is a sentence by its own words, anything else with its traceback."""
    if _is_refusal(error) or isinstance(error, BackendError | MissingRequirement):
        return _shortened(str(error))
    return _shortened("".join(traceback.format_exception(error)).strip())


def _shortened(text: str) -> str:
    half = _LONGEST_MESSAGE // 2
    return (
        text if len(text) <= 2 * half else f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"
    )


def _serve(worker: Builder | Runner, connection: socket.socket) -> None:
    decoder = wire.Decoder()
    while (received := wire.receive(connection, decoder)) is not None:
        message, blob = received
        start_s = time.perf_counter()
        artifact = b""
        try:
            if message["op"] == "task":
                worker.task(message)
                connection.sendall(wire.encode({"op": "taken"}))
                continue
            reply, artifact = worker.work(message, blob)
        except Exception as error:  # the process boundary: whatever a candidate does is its record, not our end
            reply = {"code": worker.code_of(error), "message": _message_of(error)}
        reply |= {"id": message.get("id"), "seconds": time.perf_counter() - start_s}
        connection.sendall(wire.encode(reply, artifact))


def _die_with_parent(kernel_may_hold_interpreter: bool) -> None:
    """End this process and its children once the parent has gone, which closes the pipe on our standard input."""
    lifeline = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)

    def wait() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
    if kernel_may_hold_interpreter and sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one measurer until it closes the connection."""
    parser = argparse.ArgumentParser(description="builds or runs candidates for the measurer that starts it")
    parser.add_argument("role", choices=("builder", "runner"))
    parser.add_argument("backend")
    parser.add_argument("descriptor", type=int)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args(arguments)
    _die_with_parent(kernel_may_hold_interpreter=options.role == "runner")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(options.nice)
    connection = socket.socket(fileno=options.descriptor)
    try:
        backend = load_backend(options.backend)
        worker = Builder(backend) if options.role == "builder" else Runner(backend)
        warm_up = getattr(backend, "warm_up", None)  # optional: import now what is imported at the moment of use
        if warm_up is not None:
            warm_up(options.role)
        hello = {"op": "hello", **worker.hello()}
    except Exception as error:  # the measurer must hear why, whatever it is
        connection.sendall(wire.encode({"op": "failed", "message": _message_of(error)}))
        return 1
    connection.sendall(wire.encode(hello))
    _serve(worker, connection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
