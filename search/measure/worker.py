"""A worker process: builds candidates, or runs and times them, as the measurer asks; its guard starts it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from ...backends.missing import MissingRequirement
from ...backends.time_evaluator import HostCaches
from ..records.file import ErrorCode
from . import wire
from .backend_api import Backend, BackendError, DeviceLost, Executable, load_backend
from .buffers import Buffers
from .device_buffers import DeviceBuffers
from .surroundings import LeftInChild, Surroundings
from .timing import TimingSettings, measure_times
from .tolerance import tolerances_of

_LONGEST_MESSAGE = 6000
"""Characters of an error that are kept, its start and its end: a traceback and a compiler's first errors."""
_MOST_FILE_BYTES = 1 << 30
"""Of a file that a candidate writes, its output among them; compilers' are megabytes."""
_OOM_SCORE = "500"
"""Of at most 1000, added to what memory in use alone would give (proc(5), oom_score_adj)."""
_MOST_IN_TURN = 16
"""Kernels of a race that stay loaded between laps, with their workspaces and packed constants; copies of these are made
anew in each lap, as those of `TimingSettings.constant_bytes` would take so much memory for each kernel. A choice:
run-offs have five, and others are loaded and checked in each lap."""
_OBJECTS = 100_000
"""New objects after which a builder looks for garbage, where Python's 700 have it walk a candidate's IR while that is
made: 18 candidates of a convolution take 72 ms for 78 until they are sources. A choice: some MB."""
_NOT_ITS_DOING = (AssertionError, MemoryError, OSError)
"""Errors of ours or of the machine, which say nothing about the candidate."""
_ROOT = (__package__ or "").partition(".")[0]
_REFUSALS = ((f"{_ROOT}.passes.primitive", "ScheduleError"), ("xdsl.utils.exceptions", "PassFailedException"))
_COMPILER_ERRORS = ((f"{_ROOT}.backends.c_family.artifact", "CompileError"),)
"""Classes by module and name, as importing them here would load what not every worker needs."""

Reply = tuple[wire.Message, bytes]


class BuilderServer:
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

    def work(self, message: wire.Message, blob: bytes, surroundings: Surroundings) -> Reply:
        """Build one schedule."""
        backend = self._backend
        build = getattr(backend, "build_candidate", backend.build)  # optional: as one of many
        artifact = build(self._workload, message["schedule"])
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


class RunnerServer:
    """Holds the device, and runs, checks and times artifacts on the current task's data."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._buffers: Any = None
        self._in_turn: dict[int, Executable] = {}
        """Kernels that are timed in turn, by their jobs: found right in an earlier lap, their constants packed."""

    def hello(self) -> wire.Message:
        """Return what the measurer wants to know first."""
        return {"device": self._backend.device_name()}

    def task(self, message: wire.Message) -> None:
        """Load another task's inputs and expected outputs."""
        tolerances = tolerances_of(message["tolerances"])
        data = (message["inputs"], message["expected"], tolerances, message.get("dtypes", ()))
        checks = getattr(self._backend, "checks", None)
        self._in_turn.clear()
        self._buffers = None  # before others take its place in memory
        self._buffers = Buffers(*data) if checks is None else DeviceBuffers(checks(), *data)

    def work(self, message: wire.Message, blob: bytes, surroundings: Surroundings) -> Reply:
        """Time one artifact, which is loaded and checked before and after, unless it is a later lap of a race."""
        assert self._buffers is not None
        settings, is_race = TimingSettings(**message["timing"]), bool(message.get("alone"))
        if not is_race:
            self._in_turn.clear()
        if is_race and message["id"] in self._in_turn:
            kernel = self._in_turn[message["id"]]
            reply = self._timed(kernel, settings, None)
            _with_new_copies(kernel, settings)
            return reply, b""
        kernel = self._backend.load(blob)
        _with_new_copies(kernel, settings)
        reply = self._checked_and_timed(kernel, settings, message["best_s"], surroundings)
        is_kept = isinstance(self._buffers, Buffers) and len(self._in_turn) < _MOST_IN_TURN
        if is_race and is_kept and reply["code"] == ErrorCode.OK:
            _with_new_copies(kernel, settings)
            self._in_turn[message["id"]] = kernel
        return reply, b""

    def _checked_and_timed(
        self, kernel: Executable, settings: TimingSettings, best_s: float | None, surroundings: Surroundings
    ) -> wire.Message:
        """Run a kernel, check its outputs, time it, and check them again."""
        buffers = self._buffers
        buffers.poison()
        buffers.run(kernel)
        if (change := surroundings.changed()) is not None:  # before it is run a thousand times
            return {"code": ErrorCode.RUNTIME_ERROR, "message": f"the kernel {change}"}
        if (wrong := self._judge(buffers)) is not None:
            return wrong
        reply = self._timed(kernel, settings, best_s)
        if (wrong := self._judge(buffers)) is not None:
            wrong["message"] = "right at first, but after repeated runs: " + wrong["message"]
            return wrong
        return reply

    def _timed(self, kernel: Executable, settings: TimingSettings, best_s: float | None) -> wire.Message:
        flush = HostCaches(settings.flush_bytes).flush if settings.flush_bytes else None
        times_s, stopped = measure_times(lambda n: self._buffers.time(kernel, n), settings, best_s, flush)
        return {"code": ErrorCode.OK, "times_s": times_s, "stopped_early": stopped}

    def _judge(self, buffers: Buffers | DeviceBuffers) -> wire.Message | None:
        if (violation := buffers.memory_violation()) is not None:
            buffers.restore_inputs()
            return {"code": ErrorCode.WRONG_RESULT, "message": f"the kernel {violation}", "tainted": True}
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


def _with_new_copies(kernel: Executable, settings: TimingSettings) -> None:
    """Have a kernel read its constants from copies in turn, where it can: they are made when it is timed next."""
    if settings.constant_bytes and hasattr(kernel, "take_turns"):
        kernel.take_turns(settings.constant_bytes)


def _is_refusal(error: BaseException) -> bool:
    """True where a primitive or a lowering refused the schedule."""
    return _is_one_of(error, _REFUSALS)


def _is_one_of(error: BaseException, classes: Sequence[tuple[str, str]]) -> bool:
    """True where an error is of a class, given by module and name; who raised it has imported its module."""
    kinds = [getattr(sys.modules[home], name) for home, name in classes if home in sys.modules]
    return isinstance(error, tuple(kinds))


def _message_of(error: BaseException) -> str:
    """Return the error as people read it: one that is a sentence by its own words, anything else with its traceback."""
    if _is_refusal(error) or isinstance(error, BackendError | MissingRequirement):
        return _shortened(str(error))
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    return _shortened("".join(traceback.format_exception(error)).strip())


def _shortened(text: str) -> str:
    half = _LONGEST_MESSAGE // 2
    return (
        text if len(text) <= 2 * half else f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"
    )


def _serve(worker: BuilderServer | RunnerServer, connection: socket.socket) -> None:
    decoder = wire.Decoder()
    while (received := wire.receive(connection, decoder)) is not None:
        message, blob = received
        if message["op"] == "task":
            answer, artifact = _take_over(worker, message), b""
        else:
            answer, artifact = _work(worker, message, blob)
            answer["id"] = message["id"]
        connection.sendall(wire.encode(answer, artifact))


def _take_over(worker: BuilderServer | RunnerServer, message: wire.Message) -> wire.Message:
    try:
        worker.task(message)
    except Exception as error:  # the measurer must hear why, whatever it is
        return {"op": "refused", "message": _message_of(error)}
    return {"op": "taken"}


def _work(worker: BuilderServer | RunnerServer, message: wire.Message, blob: bytes) -> Reply:
    """Do one job, and see to it that the process can do the next; a copy of the process that it made ends here."""
    surroundings, start_s = Surroundings(), time.perf_counter()
    reply: wire.Message
    try:
        try:
            reply, artifact = worker.work(message, blob, surroundings)
        except LeftInChild:
            raise
        except BaseException as error:  # the process boundary: whatever a candidate does is its record, not our end
            reply, artifact = {"code": worker.code_of(error), "message": _message_of(error)}, b""
        if (change := surroundings.changed()) is not None:
            reply["tainted"] = True
            if isinstance(worker, RunnerServer) and reply["code"] == ErrorCode.OK:
                reply |= {"code": ErrorCode.RUNTIME_ERROR, "message": f"the kernel {change}"}
    except LeftInChild:
        os._exit(0)
    return reply | {"seconds": time.perf_counter() - start_s}, artifact


def _limit_harm() -> None:
    """Bound what a candidate may write, and be the first that a system without memory ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = min(limit for limit in (soft, hard, _MOST_FILE_BYTES) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(_OOM_SCORE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one measurer until it closes the connection."""
    parser = argparse.ArgumentParser(description="builds or runs candidates for the measurer that starts it")
    parser.add_argument("role", choices=("builder", "runner"))
    parser.add_argument("backend")
    parser.add_argument("descriptor", type=int)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_harm()
    os.nice(options.nice)
    connection = socket.socket(fileno=options.descriptor)
    connection.set_inheritable(False)  # or what a candidate starts would keep it open
    try:
        backend = load_backend(options.backend)
        worker = BuilderServer(backend) if options.role == "builder" else RunnerServer(backend)
        warm_up = getattr(backend, "warm_up", None)  # optional: import now what is imported at the moment of use
        if warm_up is not None:
            warm_up(options.role)
        if options.role == "builder":
            gc.freeze()
            gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
        hello = {"op": "hello", **worker.hello()}
    except Exception as error:  # the measurer must hear why, whatever it is
        connection.sendall(wire.encode({"op": "failed", "message": _message_of(error)}))
        return 1
    connection.sendall(wire.encode(hello))
    _serve(worker, connection)
    return 0
