"""The measurer's side of one worker process: start it under a guard, talk to it, have it ended with all it started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

from ...dialects.errors import Error
from . import wire
from .spawn import spawn

_SEND_TIMEOUT_S = 10.0
"""Seconds until an order that a worker does not read counts as lost: artifacts of megabytes take milliseconds."""
_END_TIMEOUT_S = 15.0
"""For a guard to end all that its worker started."""
_GOING_S = 2.0
"""For a process that has closed its socket to end, so that it is not taken for killed."""
_LAST_WORDS = 3000
"""Bytes of a worker's output that are quoted where it ends: some 40 lines."""
_USUAL = f"{__package__}.worker"


class Started(Protocol):
    """A process that was started, by what is asked of a `subprocess.Popen`."""

    stdin: IO[bytes] | None
    returncode: int | None

    @property
    def pid(self) -> int: ...

    def wait(self, timeout: float | None = None) -> int: ...


class Starter(Protocol):
    """A function that starts a process as `spawn` does."""

    def __call__(
        self, module: str, arguments: Sequence[str], connection: socket.socket, env: Mapping[str, str], **options: Any
    ) -> Started: ...


class WorkerStartError(Error):
    """A worker process cannot start, so nothing can be measured."""


class WorkerGone(Exception):
    """The worker process has ended."""


class WorkerProcess:
    """A builder or runner process, or another of `module`, whose `main` it runs; files that it makes go to `folder`.

    Its parent is a guard, which ends it with all that it started when we close the guard's input or are no more. The
    guard is started by `start`, a process of its own unless told otherwise.
    """

    def __init__(
        self,
        role: str,
        backend: str,
        env: Mapping[str, str],
        nice: int = 0,
        folder: str = "",
        module: str = _USUAL,
        start: Starter | None = None,
    ) -> None:
        if not sys.executable:
            raise WorkerStartError("this interpreter does not know its executable, so no worker can be started")
        self.role = role
        self.ready = False
        self.job: int | None = None
        self.jobs_done = 0
        self.task_number = 0
        self.deadline_s = float("inf")
        self.timeout_s = float("inf")
        self.started_s = time.monotonic()
        self._decoder = wire.Decoder()
        with contextlib.ExitStack() as undo:
            try:
                self._output = undo.enter_context(tempfile.TemporaryFile(dir=folder or None))
                self._socket, theirs = socket.socketpair()
                undo.callback(self._socket.close)
                with theirs:
                    self._process = self._started(start or spawn, module, backend, theirs, env, nice, folder)
            except OSError as error:
                raise WorkerStartError(f"the {role} process cannot start: {error.strerror or error}") from error
            undo.pop_all()

    def _started(
        self,
        start: Starter,
        module: str,
        backend: str,
        theirs: socket.socket,
        env: Mapping[str, str],
        nice: int,
        folder: str,
    ) -> Started:
        return start(
            f"{__package__}.guard",
            [module, "--nice", str(nice), self.role, backend],
            theirs,
            {**({"TMPDIR": folder} if folder else {}), **env},
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )

    @property
    def idle(self) -> bool:
        """True where it can be given a job."""
        return self.ready and self.job is None

    @property
    def pid(self) -> int:
        """The process id of its guard."""
        return self._process.pid

    @property
    def killed_from_outside(self) -> bool:
        """True where SIGKILL ended it, which no program does to itself."""
        return self._process.returncode == -signal.SIGKILL

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def send(self, message: wire.Message, blob: bytes = b"") -> None:
        """Send one message; raises WorkerGone when it is not taken."""
        self._socket.settimeout(_SEND_TIMEOUT_S)
        try:
            self._socket.sendall(wire.encode(message, blob))
        except OSError as error:
            raise WorkerGone from error

    def begin(self, job: int, timeout_s: float) -> None:
        """Count the job that was sent as begun, to be answered within `timeout_s` seconds."""
        self.job, self.started_s = job, time.monotonic()
        self.deadline_s = self.started_s + timeout_s

    def receive(self) -> list[tuple[wire.Message, bytes]]:
        """Return the messages that have arrived, without blocking; raises WorkerGone at the end of the stream."""
        self._socket.setblocking(False)
        try:
            data = self._socket.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError as error:
            raise WorkerGone from error
        if not data:
            raise WorkerGone
        self._decoder.feed(data)
        messages = []
        while (message := self._decoder.pop()) is not None:
            messages.append(message)
        return messages

    def let_go(self) -> None:
        """Have the guard end the process and all that it started, without waiting for it; harmless when repeated."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # first: the number of one that was not forked yet is not waited for then
        with contextlib.suppress(OSError):
            if self._process.returncode is None:
                os.kill(self._process.pid, signal.SIGCONT)
        self._socket.close()

    def kill(self) -> None:
        """End the process and all that it started, and release what it held; harmless when repeated."""
        self.let_go()
        self._wait(_END_TIMEOUT_S)
        self._output.close()

    def exit_reason(self) -> str:
        """End what is left of a worker that has gone; return how it ended and the last it wrote."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GOING_S)
        self.let_go()
        code = self._wait(_END_TIMEOUT_S)
        ended = f"exited with status {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _LAST_WORDS))
        words = self._output.read().decode("utf-8", "replace").strip()
        self._output.close()
        return f"{ended}; its output:\n{words}" if words else ended

    def _wait(self, timeout_s: float) -> int:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:  # who would tell of its end hangs
            return -signal.SIGKILL
