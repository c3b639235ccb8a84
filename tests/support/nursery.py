"""Worker processes of measurers, forked from a process that has imported what they import.

A builder spends most of a second on imports, and tests start some hundred of them. `spawn` stands in for that of
`search/measure/spawn.py`, with which tests of measuring itself go on; guards and workers are processes with a session,
files and an environment of their own all the same.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO, Any

_IMPORTED = (
    "loopwright.search.measure.worker",
    "loopwright.backends.scheduled",
    "loopwright.backends.llvm.compile",
    "loopwright.backends.llvm.device",
)
_MOST_BYTES = 1 << 20
_STATUS = struct.Struct("=i")


class Forked:
    """A forked process, in what a measurer asks of a `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes], status: int) -> None:
        self.pid, self.stdin = pid, stdin
        self.returncode: int | None = None
        self._status = status

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; subprocess.TimeoutExpired where it has not in so many seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(_STATUS.unpack(os.read(self._status, _STATUS.size))[0])
            os.close(self._status)
        return self.returncode


def spawn(
    module: str, arguments: Sequence[str], connection: socket.socket, env: Mapping[str, str], **options: Any
) -> Forked:
    """Fork what `python -m module ARGUMENTS DESCRIPTOR` would be, with a pipe as standard input."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    order = {"module": module, "arguments": [*arguments], "env": {**os.environ, **env, "PYTHONPATH": path}}
    stdin, ours = os.pipe()
    status, told = os.pipe()
    files = [connection.fileno(), stdin, options["stdout"].fileno(), told]
    nursery, _ = _nursery(os.getpid())
    socket.send_fds(nursery, [json.dumps(order).encode()], files)
    for file in (stdin, told):
        os.close(file)
    (pid,) = _STATUS.unpack(nursery.recv(_STATUS.size))
    return Forked(pid, os.fdopen(ours, "wb"), status)


@cache
def _nursery(process: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The nursery of this process, which ends with it, and the socket to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with theirs:
        nursery = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
    atexit.register(_end, ours, nursery)
    return ours, nursery


def _end(ours: socket.socket, nursery: subprocess.Popen[bytes]) -> None:
    ours.close()
    nursery.wait()


# -- in the nursery ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Fork what is asked for until nobody is left to ask."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    for name in _IMPORTED:
        importlib.import_module(name)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    living: dict[int, int] = {}
    while True:
        ready = select.select([orders.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell_who_ended(living)
        if orders.fileno() in ready:
            order, files, _, _ = socket.recv_fds(orders, _MOST_BYTES, 4)
            if not order:
                return
            pid = _fork(json.loads(order), *files[:3])
            living[pid] = files[3]
            for file in files[:3]:
                os.close(file)
            orders.send(_STATUS.pack(pid))


def _tell_who_ended(living: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            file = living.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(file, _STATUS.pack(ended[1]))
            os.close(file)


def _fork(order: Mapping[str, Any], connection: int, stdin: int, output: int) -> int:
    """Fork one process; returns its number, and in itself never."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file, number in ((stdin, 0), (output, 1), (output, 2)):
            os.dup2(file, number)
        kept = os.dup2(connection, 3)
        os.closerange(kept + 1, min(os.sysconf("SC_OPEN_MAX"), 4096))
        os.environ.clear()
        os.environ.update(order["env"])
        sys.path[:0] = order["env"]["PYTHONPATH"].split(os.pathsep)
        sys.argv = [order["module"], *order["arguments"], str(kept)]
        status = importlib.import_module(order["module"]).main()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
