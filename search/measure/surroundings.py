"""The process state that a candidate must leave as it was, because others run in the process after it."""

from __future__ import annotations

import os
import resource
import signal

_LIMITS = {name: getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")}
_STANDARD = (0, 1, 2)
"""Descriptors of standard input, output and error (POSIX)."""


class LeftInChild(BaseException):
    """This is a copy of the process that a candidate made, which nobody waits for."""


class Surroundings:
    """The process as it is now, to be compared with what a candidate left."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._has_children = _has_children()
        self._limits = {name: resource.getrlimit(number) for name, number in _LIMITS.items()}
        self._descriptors = [_identity(descriptor) for descriptor in _STANDARD]
        self._folder, self._nice = _folder(), os.nice(0)
        self._cpus = _cpus()

    def changed(self) -> str | None:
        """Return what is no longer as it was, as a sentence's end ("lowered the limit ..."), or None.

        Raises LeftInChild in a process that the candidate forked.
        """
        if os.getpid() != self._process:
            raise LeftInChild
        if not self._has_children and _has_children():
            return "started a process"
        for name, number in _LIMITS.items():
            now = resource.getrlimit(number)
            if any(_less(a, b) for a, b in zip(now, self._limits[name], strict=True)):
                return f"lowered the limit {name} of its process to {now[0]}"
        if [_identity(descriptor) for descriptor in _STANDARD] != self._descriptors:
            return "closed or replaced a standard stream of its process"
        if _folder() != self._folder:
            return "changed the working directory of its process"
        if os.nice(0) != self._nice or _cpus() < self._cpus:
            return "changed the priority or the CPUs of its process"
        if any(signal.getitimer(signal.ITIMER_REAL)):
            return "left a timer running in its process"
        return None


def _less(one: int, other: int) -> bool:
    """True where a limit is lower than another; infinity is -1."""
    return one != other and (other == resource.RLIM_INFINITY or 0 <= one < other)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _folder() -> tuple[int, int] | None:
    try:
        found = os.stat(".")
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _cpus() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
