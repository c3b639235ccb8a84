"""A function for C made of compiled kernels: what it takes, what it calls on what, and the LLVM text that does so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ..arrays import CACHE_LINE_BYTES
from ..signature import Argument
from .bound_calls import Call, Copy, Slot
from .emit import KernelText
from .symbols import RUN_SYMBOL, TEAM_SYMBOL, TIME_SYMBOL
from .without_team import BY_OPENMP, OPENMP_TEXT

Array = npt.NDArray[Any]
CONSTANTS_SECTION = ".rodata.loopwright"
"""The section of an object file that has room for the constants."""
NULL_POINTER, MISALIGNED = 1, 2
"""The codes that a function returns instead of 0 where it does nothing."""
_MOST_CONSTANT_BYTES = 1 << 30
"""Code reaches 2 GiB around itself (x86-64 psABI's and RISC-V's small code models), the program's own data included."""
_CONSTANTS = "@lw.constants"
_OPENMP = (OPENMP_TEXT, f"@{TEAM_SYMBOL} = constant ptr @{BY_OPENMP}")
"""Symbols of kernels on several threads."""


@dataclass(frozen=True)
class CFunction:
    """A function `int lw_<name>(arguments..., void *workspace)`: calls of kernels and copies, in order.

    `what` says what it is to users, a kernel or a network. The workspace is left out where it has no bytes.
    """

    what: str
    name: str
    arguments: tuple[Argument, ...]
    kernels: tuple[KernelText, ...]
    steps: tuple[Call | Copy, ...]
    constants: tuple[Array, ...]
    workspace_bytes: int

    def __str__(self) -> str:
        return f"{self.what} {self.name}"

    @property
    def symbol(self) -> str:
        return f"lw_{self.name}"

    @property
    def threads(self) -> int:
        """The most threads that a kernel runs on, of the OpenMP runtime that the program is linked with."""
        return max((kernel.threads for kernel in self.kernels), default=1)

    @cached_property
    def _starts(self) -> list[int]:
        """The byte of the section that each constant starts at, then the bytes of all."""
        sizes = [-(-array.nbytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES for array in self.constants]
        return list(accumulate(sizes, initial=0))

    @property
    def constant_bytes(self) -> int:
        return self._starts[-1]

    def constant_parts(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the byte of the section that each constant starts at, and its own bytes."""
        for start, array in zip(self._starts, self.constants, strict=False):
            yield start, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    def texts(self) -> list[str]:
        """Return LLVM texts to link: the function, then the kernels; of all symbols only `symbol` is for others."""
        return [self._text(), *(_kernel_text(number, kernel) for number, kernel in enumerate(self.kernels))]

    def with_constants(self, text: str) -> str:
        """Return LLVM IR, made of `texts`, with the values of the constants in their room."""
        data = bytearray(self.constant_bytes)
        for start, part in self.constant_parts():
            data[start : start + len(part)] = part
        room = f"[{self.constant_bytes} x i8] zeroinitializer, section"
        assert room in text
        return text.replace(room, f'[{self.constant_bytes} x i8] c"{_escaped(data)}", section')

    def _text(self) -> str:
        """Return the function's text.

        Constants are room of zeros that stands for values not known to LLVM: their text would take 11 times their
        bytes of memory, and 85 ms a MiB to read (45 and 256 MiB of them, on a core of an AMD EPYC).
        """
        parameters = [f"%a{number}" for number in range(len(self.arguments))]
        alignments = {
            name: np.dtype(argument.dtype).itemsize
            for name, argument in zip(parameters, self.arguments, strict=True)
            if prod(argument.shape)
        }
        if self.workspace_bytes:
            parameters.append("%workspace")
            alignments["%workspace"] = CACHE_LINE_BYTES
        most = max((len(step.slots) for step in self.steps if isinstance(step, Call)), default=1)
        lines = [
            f"define i32 @{self.symbol}({', '.join(f'ptr {name}' for name in parameters)}) nounwind {{",
            f"  %pointers = alloca [{most} x ptr], align 8",
            *_refusals(alignments),
        ]
        for number, step in enumerate(self.steps):
            lines += self._call(number, step) if isinstance(step, Call) else self._copy(number, step)
        outside = [f"declare void @{_run_symbol(number)}(ptr)" for number in range(len(self.kernels))]
        if self.constant_bytes:
            outside.append(
                f"{_CONSTANTS} = internal externally_initialized constant [{self.constant_bytes} x i8] "
                f'zeroinitializer, section "{CONSTANTS_SECTION}", align {CACHE_LINE_BYTES}'
            )
        if self.threads > 1:
            outside += _OPENMP
        outside.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        return "\n".join([*outside, *lines, "  ret i32 0", "}", ""])

    def _pointer(self, slot: Slot, name: str) -> str:
        """Return the instruction that gives a slot's address a name."""
        if slot.kind == "argument":
            return f"  {name} = getelementptr i8, ptr %a{slot.number}, i64 {slot.start}"
        base, start = (
            ("%workspace", slot.number) if slot.kind == "workspace" else (_CONSTANTS, self._starts[slot.number])
        )
        return f"  {name} = getelementptr i8, ptr {base}, i64 {start}"

    def _call(self, number: int, call: Call) -> list[str]:
        lines = []
        for position, slot in enumerate(call.slots):
            value, at = f"%p{number}.{position}", f"%at{number}.{position}"
            lines += [
                self._pointer(slot, value),
                f"  {at} = getelementptr ptr, ptr %pointers, i64 {position}",
                f"  store ptr {value}, ptr {at}, align 8",
            ]
        return [*lines, f"  call void @{_run_symbol(call.kernel)}(ptr %pointers)"]

    def _copy(self, number: int, copy: Copy) -> list[str]:
        source, target = f"%from{number}", f"%to{number}"
        return [
            self._pointer(copy.source, source),
            self._pointer(copy.target, target),
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {copy.nbytes}, i1 false)",
        ]


def require_reach(who: str, constants: Iterable[Array]) -> None:
    """ValueError for more constants than code can reach."""
    nbytes = sum(array.nbytes for array in constants)
    if nbytes > _MOST_CONSTANT_BYTES:
        raise ValueError(
            f"{who} holds {nbytes:,} bytes of constants: a library for C holds at most {_MOST_CONSTANT_BYTES:,}"
        )


def _escaped(data: bytes | bytearray) -> str:
    """Return bytes as LLVM writes them, each a backslash and two digits."""
    return re.sub("..", r"\\\g<0>", data.hex())


def _refusals(alignments: dict[str, int]) -> list[str]:
    """Return a function's first lines, which return a code for pointers that are null or less aligned than given."""
    lines = ["  br label %test0"]
    for number, (name, align) in enumerate(alignments.items()):
        lines += [
            *(f"test{number}:", f"  %null{number} = icmp eq ptr {name}, null"),
            f"  br i1 %null{number}, label %null, label %given{number}",
            *(f"given{number}:", f"  %bits{number} = ptrtoint ptr {name} to i64"),
            f"  %low{number} = and i64 %bits{number}, {align - 1}",
            f"  %odd{number} = icmp ne i64 %low{number}, 0",
            f"  br i1 %odd{number}, label %misaligned, label %test{number + 1}",
        ]
    refused = ["null:", f"  ret i32 {NULL_POINTER}", "misaligned:", f"  ret i32 {MISALIGNED}"]
    return [*lines, *refused, f"test{len(alignments)}:"]


def _run_symbol(number: int) -> str:
    return f"{RUN_SYMBOL}{number}"


def _kernel_text(number: int, kernel: KernelText) -> str:
    """Return a kernel's text with a symbol of its own, and without the one that times it."""
    text = kernel.source.replace(f"define void @{TIME_SYMBOL}(", f"define internal void @{TIME_SYMBOL}(")
    return text.replace(f"@{RUN_SYMBOL}(", f"@{_run_symbol(number)}(")
