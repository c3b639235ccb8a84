"""A process that compiles kernels for the one that starts it (`python -m ...build_process BACKEND DESCRIPTOR`)."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from ..dialects.target import target_of
from ..search.measure import wire
from ..search.measure.backend_api import load_backend
from ..search.measure.spawn import spawn


@dataclass(frozen=True)
class Built:
    """A kernel, and the schedule that made it."""

    schedule: str
    artifact: bytes


def build(backend: str, workload: str, schedule: str | None) -> Built:
    """Compile te-level IR text, with its target, under a schedule, or the default one where it is None."""
    if schedule is None:
        from ..backends.scheduled import parsed_workload
        from ..search.task import SearchTask

        module = parsed_workload(workload)
        schedule = SearchTask(module, target=target_of(module)).default_schedule
    return Built(schedule, load_backend(backend).build(workload, schedule))


class BuildProcess:
    """The side that asks: one job after another; OSError where the process has ended."""

    def __init__(self, backend: str) -> None:
        self._socket, theirs = socket.socketpair()
        self._decoder = wire.Decoder()
        with theirs:
            self._process = spawn(__name__, [backend], theirs, {}, stdin=subprocess.DEVNULL)

    def build(self, workload: str, schedule: str | None) -> Built:
        """Compile one kernel as `build` does; RuntimeError says what is wrong with it."""
        self._socket.sendall(wire.encode({"workload": workload, "schedule": schedule}))
        reply = wire.receive(self._socket, self._decoder)
        if reply is None:
            raise ConnectionError(f"a process that compiles kernels ended with status {self._process.wait()}")
        message, artifact = reply
        if message["error"]:
            raise RuntimeError(message["error"])
        return Built(message["schedule"], artifact)

    @property
    def has_ended(self) -> bool:
        """True once the process is gone."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


def main(backend: str, descriptor: int) -> None:
    """Serve compile requests until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm_up(backend)
    connection, decoder = socket.socket(fileno=descriptor), wire.Decoder()
    while (received := wire.receive(connection, decoder)) is not None:
        job, error, built = received[0], "", Built("", b"")
        try:
            built = build(backend, job["workload"], job["schedule"])
        except Exception as failure:  # the process boundary: whoever asked says it
            error = str(failure) or type(failure).__name__
        connection.sendall(wire.encode({"error": error, "schedule": built.schedule}, built.artifact))
        gc.collect()


def _warm_up(backend: str) -> None:
    """Import now what the first job would import; the collector then looks at what a job left, when it is done."""
    from ..search import task  # noqa: F401 (loads it)
    from ..search.sketch.rule import sketch_rules

    sketch_rules()
    with suppress(Exception):  # the process boundary: the first job will say it
        load_backend(backend).warm_up("builder")  # type: ignore[attr-defined]  # not all backends have it
    gc.collect()
    gc.freeze()
    gc.disable()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
