"""A lock that is free in a forked child, whatever thread of the parent held it at that moment."""

from __future__ import annotations

import os
import threading


class ForkableLock:
    """A reentrant lock, to be used in a `with` statement, for what each process has a copy of its own of.

    A child has the locks as they were at the fork, but only the thread that forked: an ordinary lock that another
    thread held stays closed for ever.
    """

    def __init__(self) -> None:
        self._by_process: dict[int, threading.RLock] = {}

    def __enter__(self) -> None:
        self._mine().acquire()

    def __exit__(self, *_: object) -> None:
        self._mine().release()

    def _mine(self) -> threading.RLock:
        process = os.getpid()
        found = self._by_process.get(process)
        return found or self._by_process.setdefault(process, threading.RLock())
