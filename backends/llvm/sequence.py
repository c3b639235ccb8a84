"""Kernels in sequence, run by one native call: between two of them there is no Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

from .jit import kept_function
from .team import team
from .team_text import KERNELS, RUN_KERNELS

_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


class KernelSequence:
    """Kernels, by their addresses, and the pointers that each takes; it keeps neither kernels nor arrays in memory.

    `pointers` are those of all kernels, one kernel's behind the other's, from the index `first[k]` on for kernel k.
    They may be changed between runs. On several `threads` these stay together for all kernels of a run.
    """

    def __init__(self, calls: Sequence[tuple[int, Sequence[int]]], threads: int = 1) -> None:
        heads = 2 * len(calls) + 1
        self.first: list[int] = []
        flat: list[int] = []
        for _, arguments in calls:
            self.first.append(heads + len(flat))
            flat += arguments
        self.pointers = (ctypes.c_void_p * (heads + len(flat)))(*[None] * heads, *flat)
        self._table = ctypes.addressof(self.pointers)
        for number, (kernel, _) in enumerate(calls):
            self.pointers[2 * number] = kernel
            self.pointers[2 * number + 1] = self._table + _POINTER_BYTES * self.first[number]
        self._run = runner(threads)

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
