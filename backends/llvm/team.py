"""Teams of threads that stay together for many parallel loops: one gathering for all kernels of a call.

The thread that calls runs the kernels, and hands their parallel loops to the others, its helpers. A loop waits for no
helper that has not come to it: who comes late takes part in what is left of it, or in the next one. Helpers wait for
the next loop awake for some microseconds, then asleep. Systems without pthreads have no helpers: who calls runs all.

Helpers are threads of PyTorch's OpenMP runtime where PyTorch is loaded, for the length of a call: others beside them
would compete with them for the cores. Else they are threads of our own, which stay for the next call. None is kept to a
CPU, but a helper leaves that of its caller. A region of OpenMP's ends when all its threads have come to it, which takes
milliseconds where there is more work than cores: after a call that has waited so for nothing, others have our own
threads for a while.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from threading import Lock

from .cpu import architecture
from .jit import LoadedSymbols, compile_text
from .runtime import OpenMp, openmp_of_torch
from .symbols import TEAM_SYMBOL
from .team_branches import BRANCHES_TEXT, RUN_BRANCHES
from .team_text import HAND_OUT, IN_TEAM, OTHERS, OWNERS, OWNERS_BYTES, RUN, team_text
from .team_waiting import CONDITION_AT, FUTEX, MONITOR
from .without_team import KERNELS, RUN_KERNELS

_SPINS = 2000
"""Turns of `pause`, 45 ns each on a Xeon (Emerald Rapids), that a thread waits awake: 0.1 ms, longer than kernels
mostly take that one thread runs. OpenMP's wait for 14 ms. A choice: nobody measured others."""
_LATE_NS = 1_000_000
"""Nanoseconds after its own work that a caller waits for OpenMP's threads, from which on others have their cores: who
sleeps is awake after 0.1 ms, and a process that has a core keeps it for some milliseconds."""
_ASIDE_S, _MOST_ASIDE_S = 0.1, 3.2
"""Seconds that calls do without OpenMP's threads after one that they were late for, doubled by each that follows right
behind, and the most. A choice: one call in a hundred or fewer waits then, of those of some milliseconds."""


class Team:
    """Threads that help those that call, as what runs tables of kernels; `table` points to what kernels call.

    Without `threaded` there are none. They sleep by Linux's system call of the number `futex`, else by pthreads.
    """

    def __init__(self, openmp: OpenMp | None, threaded: bool, futex: int | None) -> None:
        text = team_text(architecture(), openmp is not None, futex) + BRANCHES_TEXT if threaded else KERNELS
        shared = (HAND_OUT, IN_TEAM, OTHERS, OWNERS, MONITOR)
        names = (RUN, RUN_KERNELS, RUN_BRANCHES, *shared) if threaded else (RUN_KERNELS,)
        code = LoadedSymbols(compile_text(text).object_code, names, openmp.symbols if openmp and threaded else ())
        code.keep()
        self._alone = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.addresses[RUN_KERNELS])
        self.table = (ctypes.c_void_p * 1)(code.addresses.get(HAND_OUT))
        self.branches = code.addresses.get(RUN_BRANCHES)
        """The address of the kernel that runs tables beside each other; None where there are no threads for it."""
        self._futex, self._aside_s, self._back_at_s = futex, 0.0, 0.0
        self._ours: Team | None = None
        self._making = Lock()
        self._others = ctypes.c_void_p.from_address(code.addresses[OTHERS]) if threaded and openmp is not None else None
        if threaded:
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32)
            self._run = kind(code.addresses[RUN])
            self._in_team = code.addresses[IN_TEAM]
            self._start_anew(code.addresses[OWNERS], code.addresses[MONITOR])
            if openmp is not None:
                openmp.make_forkable(self.table)

    def _start_anew(self, owners: int, monitor: int) -> None:
        """Make the state of a process with no helpers, now and in each child that is forked."""

        def make() -> None:
            self._making = Lock()  # a child's is free, whoever had that of its parent
            ctypes.memset(owners, 0, OWNERS_BYTES)
            library.pthread_mutex_init(ctypes.c_void_p(monitor), None)
            library.pthread_cond_init(ctypes.c_void_p(monitor + CONDITION_AT), None)

        library = ctypes.CDLL(None)
        make()
        os.register_at_fork(after_in_child=make)

    def runner(self, threads: int) -> Callable[[int, int], None]:
        """Return what runs the kernels of a table in order, any number of times, with so many threads."""
        spins = _SPINS if threads <= _cpus() else 0

        def run(table: int, number: int) -> None:
            if not self.table[0]:
                self._alone(table, number)
            elif self._back_at_s and time.monotonic() < self._back_at_s:
                self._own._run(table, number, threads, spins)
            elif self._run(table, number, threads, spins) > _LATE_NS:
                self._leave_aside()
            else:
                self._aside_s = 0.0

        return run

    def _leave_aside(self) -> None:
        """Have calls do without OpenMP's threads for a while."""
        assert self._others is not None, "our own threads are waited for by no one"
        self._others.value = self._own._in_team
        self._aside_s = min(max(_ASIDE_S, 2 * self._aside_s), _MOST_ASIDE_S)
        self._back_at_s = time.monotonic() + self._aside_s

    @property
    def _own(self) -> Team:
        """Threads of our own, for callers whom OpenMP's would keep waiting; one team, whoever asks at once."""
        with self._making:
            self._ours = self._ours or Team(None, True, self._futex)
            return self._ours


def team() -> Team:
    """Return the team for kernels that are loaded now."""
    return _team(openmp_of_torch())


def symbols_of_team() -> tuple[tuple[str, int], ...]:
    """Return the addresses of what kernels on several threads call, by symbol."""
    return ((TEAM_SYMBOL, ctypes.addressof(team().table)),)


@cache
def _team(openmp: OpenMp | None) -> Team:
    return Team(openmp, os.name == "posix", FUTEX.get(architecture()) if sys.platform == "linux" else None)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
