"""Kernels in sequence, run by one native call: between two of them there is no Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from ..arrays import CACHE_LINE_BYTES
from .jit import kept_function
from .team import team
from .team_branches import BRANCH_TABLES, BRANCHES, TEAM_AT, TEAM_PART, TEAM_SIZE
from .without_team import KERNELS, RUN_KERNELS

_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


class KernelSequence:
    """Kernels, by their addresses, and the pointers that each takes; it keeps neither kernels nor arrays in memory.

    `pointers` are those of all kernels, one kernel's behind the other's, from the index `first[k]` on for kernel k.
    They may be changed between runs. On several `threads` these stay together for all kernels of a run. `branches` are
    kernels in a row of which some run beside others: the numbers at which each branch begins, and the end of the last.
    These have no parallel loops, and depend on no other branch.
    """

    def __init__(
        self, calls: Sequence[tuple[int, Sequence[int]]], threads: int = 1, branches: Sequence[Sequence[int]] = ()
    ) -> None:
        heads = 2 * len(calls) + 1
        self.first: list[int] = []
        flat: list[int] = []
        for _, arguments in calls:
            self.first.append(heads + len(flat))
            flat += arguments
        self.pointers = (ctypes.c_void_p * (heads + len(flat)))(*[None] * heads, *flat)
        start = ctypes.addressof(self.pointers)
        for number, (kernel, _) in enumerate(calls):
            self.pointers[2 * number] = kernel
            self.pointers[2 * number + 1] = start + _POINTER_BYTES * self.first[number]
        self._run = runner(threads)
        self._kept: list[ctypes.Array[ctypes.c_void_p] | ctypes.Array[ctypes.c_char]] = []
        self._table = self._with_branches(len(calls), threads, branches) if threads > 1 and branches else start

    def _with_branches(self, count: int, threads: int, branches: Sequence[Sequence[int]]) -> int:
        """Return the table of all kernels in which branches are one, that runs them beside each other."""
        helpers = team()
        if helpers.branches is None:
            return ctypes.addressof(self.pointers)
        entries: list[int | None] = []
        done = 0
        for bounds in branches:
            entries += self.pointers[2 * done : 2 * bounds[0]]
            tables = [self._keep(self.pointers[2 * low : 2 * high]) for low, high in pairwise(bounds)]
            context = ctypes.create_string_buffer(BRANCH_TABLES + _POINTER_BYTES * len(tables) + CACHE_LINE_BYTES)
            at = -(-ctypes.addressof(context) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
            ctypes.c_int32.from_address(at + BRANCHES).value = len(tables)
            ctypes.c_int32.from_address(at + TEAM_SIZE).value = threads
            ctypes.c_int32.from_address(at + TEAM_PART).value = min(threads, len(tables))
            ctypes.c_void_p.from_address(at + TEAM_AT).value = ctypes.addressof(helpers.table)
            for number, table in enumerate(tables):
                ctypes.c_void_p.from_address(at + BRANCH_TABLES + _POINTER_BYTES * number).value = table
            self._kept.append(context)
            entries += [helpers.branches, self._keep([at])]
            done = bounds[-1]
        return self._keep([*entries, *self.pointers[2 * done : 2 * count]])

    def _keep(self, words: Sequence[int | None]) -> int:
        """Put words into memory, a null behind them; returns their address."""
        array = (ctypes.c_void_p * (len(words) + 1))(*words, None)
        self._kept.append(array)
        return ctypes.addressof(array)

    def run(self) -> None:
        """Run each kernel once, in order."""
        self._run(self._table, 1)

    def run_often(self, number: int) -> None:
        """Run all kernels in order, `number` times."""
        self._run(self._table, number)

    def run_one(self, number: int) -> None:
        """Run one kernel by itself."""
        one = (ctypes.c_void_p * 3)(*self.pointers[2 * number : 2 * number + 2], None)
        self._run(ctypes.addressof(one), 1)


def runner(threads: int) -> Callable[[int, int], None]:
    """Return what runs the kernels of a table in order, any number of times, on so many threads."""
    return _alone() if threads == 1 else team().runner(threads)


@cache
def _alone() -> Callable[[int, int], None]:
    """Return what runs a table of kernels, which have no parallel loops."""
    return kept_function(KERNELS, RUN_KERNELS, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64))
