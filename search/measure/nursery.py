"""Processes that are forked with their imports done, by one that has imported what they all import.

A builder spends three times as long on imports as on a candidate (0.65 s of CPU of a Zen 5, 0.2 s): sixteen of them,
one a core, have built 48 candidates fewer for it when a search ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from .guard import end_with_parent
from .spawn import search_path, spawn

_MOST_BYTES = 1 << 20
"""Of an order, an environment for the most part; as much of those that wait while imports are done is asked for."""
_END_WITHIN_S = 2.0
"""Seconds in which it ends where it is not at its imports. A choice: it has nothing to do then."""
_NUMBER = struct.Struct("=i")


class Forked:
    """A process that a nursery forks, in what a measurer asks of a `subprocess.Popen`."""

    def __init__(self, stdin: IO[bytes], told: int, wake: Callable[[], None] = lambda: None) -> None:
        """Take its input, the pipe by which its nursery tells of it, and what has a nursery that was stopped go on."""
        self.stdin: IO[bytes] | None = stdin
        self.returncode: int | None = None
        self._told, self._wake = told, wake
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Its number, which is waited for; ProcessLookupError where its nursery or input ended before it was forked."""
        if self._pid is None and self.returncode is None and self._is_told(0.0 if self._is_let_go else None):
            self._pid = self._next()
        if self._pid is None:
            raise ProcessLookupError("the process was never forked")
        return self._pid

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; subprocess.TimeoutExpired where it has not in so many seconds.

        One that ends with its nursery counts as killed: it was not its doing. So does one whose input is closed before
        it is forked, which it is not any more then: a nursery that hangs would be waited for without end.
        """
        until_s = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            is_pid = self._pid is None
            if not is_pid:
                self._wake()
            left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            let_go = is_pid and self._is_let_go
            if self._is_told(0.0 if let_go else left_s):
                number = self._next()
            elif let_go:
                number = None
            else:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            if number is not None and is_pid:
                self._pid = number
            else:
                self.returncode = -signal.SIGKILL if number is None else os.waitstatus_to_exitcode(number)
                os.close(self._told)
        return self.returncode

    @property
    def _is_let_go(self) -> bool:
        return self.stdin is not None and self.stdin.closed

    def _is_told(self, timeout: float | None) -> bool:
        return bool(select.select([self._told], [], [], timeout)[0])

    def _next(self) -> int | None:
        told = os.read(self._told, _NUMBER.size)
        return _NUMBER.unpack(told)[0] if told else None


class Nursery:
    """A process that imports `modules`, and has them do what they do to warm up builders; then it forks.

    It ends with this process, or when it is closed, and has what it forked ended by its guards before.
    """

    def __init__(self, modules: Sequence[str], env: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            try:
                files = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)  # this process may have none
                self._process = spawn(__name__, modules, theirs, env, start_new_session=True, **files)
            except OSError:
                self._orders.close()
                raise

    def spawn(
        self, module: str, arguments: Sequence[str], connection: socket.socket, env: Mapping[str, str], **options: Any
    ) -> Forked | subprocess.Popen[bytes]:
        """Fork what `spawn` would start, with a pipe as standard input; start it where the nursery is no more."""
        order = {"module": module, "arguments": [*arguments], "env": {**os.environ, **env, "PYTHONPATH": search_path()}}
        stdin, ours = os.pipe()
        told, teller = os.pipe()
        try:
            files = [connection.fileno(), stdin, options["stdout"].fileno(), teller]
            socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        except OSError:
            for file in (ours, told):
                os.close(file)
            return spawn(module, arguments, connection, env, **options)
        finally:
            for file in (stdin, teller):
                os.close(file)
        return Forked(os.fdopen(ours, "wb"), told, lambda: self._process.send_signal(signal.SIGCONT))

    def close(self) -> None:
        """End it; harmless when repeated."""
        self._orders.close()
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:  # it is at its imports
            self._process.kill()
            self._process.wait()


# -- in the nursery ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Fork what is asked for until nobody is left to ask."""
    *modules, descriptor = sys.argv[1:]
    orders, measurer = socket.socket(fileno=int(descriptor)), os.getppid()
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    end_with_parent(signal.SIGUSR1)  # where children of the measurer hold the other end of the socket
    gc.disable()  # while imports make what stays
    for name in modules:
        with contextlib.suppress(Exception):  # who is forked meets it again, and says it
            _warm_up(name)
    gc.freeze()  # or who is forked would copy what its collector walks
    gc.enable()
    living: dict[int, int] = {}
    while os.getppid() == measurer:
        ready = select.select([orders.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell_who_ended(living)
        if orders.fileno() in ready:
            order, files, _, _ = socket.recv_fds(orders, _MOST_BYTES, 4)
            if not order:
                break
            _start(json.loads(order), files, living)
    for pid in living:
        os.kill(pid, signal.SIGTERM)
    while living:
        select.select([woken], [], [])
        os.read(woken, 4096)
        _tell_who_ended(living)


def _start(order: Mapping[str, Any], files: list[int], living: dict[int, int]) -> None:
    """Fork one process, unless it was let go while it waited; others live on where it cannot be."""
    *given, teller = files
    try:
        if _is_closed(given[1]):
            raise OSError("it was let go before")
        pid = _fork(order, *given)
    except OSError as error:
        os.write(given[2], f"the process cannot be forked: {error}".encode())
        os.close(teller)
    else:
        living[pid] = teller
        _tell(teller, pid)
    for file in given:
        os.close(file)


def _is_closed(stdin: int) -> bool:
    """True where nobody holds the other end of a pipe."""
    poll = select.poll()
    poll.register(stdin, 0)
    return bool(poll.poll(0))


def _warm_up(name: str) -> None:
    """Import a module, and of a backend what builders need: all primitives too, whose versions each of them tells."""
    module = importlib.import_module(name)
    if (warm_up := getattr(module, "warm_up", None)) is not None:
        warm_up("builder")
    if (versions := getattr(module, "versions", None)) is not None:
        versions()


def _tell_who_ended(living: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            file = living.pop(ended[0], None)
            if file is not None:  # what was imported may have started others
                _tell(file, ended[1])
                os.close(file)


def _tell(file: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(file, _NUMBER.pack(number))


def _fork(order: Mapping[str, Any], connection: int, stdin: int, output: int) -> int:
    """Fork one process; returns its number, and in itself never."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        end_with_parent(0)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        for file, place in ((stdin, 0), (output, 1), (output, 2)):
            os.dup2(file, place)
        kept = os.dup2(connection, 3)
        os.closerange(kept + 1, min(os.sysconf("SC_OPEN_MAX"), 4096))
        os.environ.clear()
        os.environ.update(order["env"])
        tempfile.tempdir = None
        sys.path[:0] = order["env"]["PYTHONPATH"].split(os.pathsep)
        sys.argv = [order["module"], *order["arguments"], str(kept)]
        status = importlib.import_module(order["module"]).main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
