"""Kernels in sequence, run by one native call: between two of them there is no Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from .jit import LoadedObject, compile_text
from .symbols import RUN_SYMBOL, TIME_SYMBOL

_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_SOURCE = f"""
define void @{RUN_SYMBOL}(ptr %table) {{
entry:
  br label %next
next:
  %at = phi ptr [ %table, %entry ], [ %after, %call ]
  %kernel = load ptr, ptr %at
  %ended = icmp eq ptr %kernel, null
  br i1 %ended, label %end, label %call
call:
  %place = getelementptr ptr, ptr %at, i64 1
  %arguments = load ptr, ptr %place
  call void %kernel(ptr %arguments)
  %after = getelementptr ptr, ptr %at, i64 2
  br label %next
end:
  ret void
}}

define void @{TIME_SYMBOL}(ptr %table, i64 %number) {{
entry:
  %any = icmp sgt i64 %number, 0
  br i1 %any, label %run, label %end
run:
  %count = phi i64 [ 0, %entry ], [ %done, %run ]
  call void @{RUN_SYMBOL}(ptr %table)
  %done = add i64 %count, 1
  %more = icmp slt i64 %done, %number
  br i1 %more, label %run, label %end
end:
  ret void
}}
"""
"""A table holds pairs of a kernel and the pointers that it takes; a null kernel ends it."""


class KernelSequence:
    """Kernels, by their addresses, and the pointers that each takes; it keeps neither kernels nor arrays in memory.

    `pointers` are those of all kernels, one kernel's behind the other's, from the index `first[k]` on for kernel k.
    They may be changed between runs.
    """

    def __init__(self, calls: Sequence[tuple[int, Sequence[int]]]) -> None:
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
        self._run, self._time, self._code = _native()  # threads that ask for it first at once have one each

    def run(self) -> None:
        """Run each kernel once, in order."""
        self._run(self._table)

    def run_often(self, number: int) -> None:
        """Run all kernels in order, `number` times."""
        self._time(self._table, number)

    def arguments_of(self, number: int) -> int:
        """Return the address of the pointers that a kernel takes."""
        return self._table + _POINTER_BYTES * self.first[number]


@cache
def _native() -> tuple[Any, Any, LoadedObject]:
    """Return what runs a table once, what runs it often, and their code, which must outlive both."""
    code = LoadedObject(compile_text(_SOURCE).object_code, threads=1)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.run)
    time = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.time)
    return run, time, code
