"""The guard of a worker: a process between it and the measurer, which ends it and all that it started.

`python -m ...measure.guard MODULE ARGUMENTS`: the worker runs the `main` of a module. It is a child, and this process
ends as it did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""Of Linux's prctl.h."""
_MOST_PROCESSES = 256
"""More than a compiler and what it calls have; a kernel that forks without end soon has thousands."""
_LOOK_EVERY_MS = 500
"""Milliseconds between two counts of a worker's processes. A choice: before a kernel that forks has thousands, and rare
enough to cost nothing."""
_END_WITHIN_S = 10.0
"""Seconds in which processes that were killed must be gone. A choice: they are at once, unless the kernel waits for a
device."""
_STARTED_TOO_MANY = 1
"""Exit code of a worker that was ended for that."""


def main() -> int:
    """Start the worker and watch over it; its return value is the worker's own, where it returns one."""
    measurer, guard = os.getppid(), os.getpid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what the worker starts is our child once its parent has gone
    worker = os.fork()
    if worker:
        os.close(int(sys.argv[-1]))  # or the measurer would not see when the worker closes it
        _end_as(_guard(worker, measurer))
    os.setsid()  # so that one that kills its group spares us
    end_with_parent(signal.SIGKILL)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # so that it notices that a candidate started a process
    if os.getppid() != guard:
        return 1
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    import importlib

    return int(importlib.import_module(sys.argv.pop(1)).main())


def _guard(worker: int, measurer: int) -> int:
    """Wait until the worker or the measurer has gone; return the worker's status when nothing of it is left."""
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    end_with_parent(signal.SIGUSR1)  # where children of the measurer hold the other end of our input
    poll = select.poll()
    for descriptor in (0, woken):
        poll.register(descriptor, select.POLLIN)
    status = _reap(worker)
    while status is None and os.getppid() == measurer:
        ready = [descriptor for descriptor, _ in poll.poll(_LOOK_EVERY_MS)]
        status = _reap(worker)
        if 0 in ready or signal.SIGTERM in _signals(woken):
            break
        if _count(worker) > _MOST_PROCESSES:
            print(f"it started more than {_MOST_PROCESSES} processes", file=sys.stderr, flush=True)
            _end_all(worker)
            return _STARTED_TOO_MANY << 8
    found = _end_all(worker)
    return found if status is None else status


def _signals(woken: int) -> bytes:
    """The numbers of the signals that came since."""
    try:
        return os.read(woken, 4096)
    except BlockingIOError:
        return b""


def _reap(worker: int) -> int | None:
    """Take leave of all children that have ended; the worker's wait status, if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found = ended[1] if ended[0] == worker else found
    return found


def _count(worker: int) -> int:
    """The number of processes that the worker started and that live, themselves or by others."""
    found, known = [worker], 0
    while known < len(found) <= _MOST_PROCESSES + 1:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{found[known]}/task"):
                with open(f"/proc/{found[known]}/task/{thread}/children") as children:
                    found += map(int, children.read().split())
        known += 1
    return len(found) - 1


def _end_all(worker: int) -> int:
    """Kill the worker and everything below us until nothing is left; the worker's wait status, 0 if it was known."""
    status = 0
    until_s = time.monotonic() + _END_WITHIN_S
    for group in (worker, -worker):
        with contextlib.suppress(OSError):
            os.kill(group, signal.SIGKILL)
    while time.monotonic() < until_s:
        try:
            ended, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == worker:
            status = how
        if not ended:
            time.sleep(0.001)
            for process in _below(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
    return status


def _below(ancestor: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")) if os.path.isdir("/proc/self") else ():
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            children.setdefault(int(stat.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    found = list(children.get(ancestor, ()))
    for process in found:
        found += children.get(process, ())
    return found


def _end_as(status: int) -> None:
    """End this process as another one did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def end_with_parent(number: int) -> None:
    """Have this process sent a signal when its parent ends; 0 for none."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main())
