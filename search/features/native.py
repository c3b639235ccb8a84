"""Programs over columns, run by a loop over their operations in machine code, as NumPy's calls cost more than sums."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...backends.llvm.function_text import FunctionText
from ...backends.llvm.jit import kept_function
from ...passes.parametric.program import OPERANDS, Program

LANES = 8
"""Rows that are computed at once: those of an AVX-512 register of doubles; LLVM takes two or four of smaller ones."""
BLOCK_ROWS, BLOCK_BYTES = 128, 1 << 20
"""Rows that an operation takes before the next one begins, at least, and the bytes of all slots of more: hundreds of
slots of these stay in a second-level cache. Each block costs some 20 us beside its operations."""
_VECTOR = f"<{LANES} x double>"
_MASK = f"<{LANES} x i1>"
_SYMBOL = "lw_program"
_CODE = f"[{2 + max(OPERANDS.values())} x i32]"

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_UNARY = {"absolute": "llvm.fabs", "log2": "llvm.log2", "floor": "llvm.floor", "sqrt": "llvm.sqrt"}
_COMPARED = {"less": "olt", "equal": "oeq", "at_most": "ole"}

_FUNCTIONS = f"""
declare {_VECTOR} @llvm.fabs.v{LANES}f64({_VECTOR})
declare {_VECTOR} @llvm.log2.v{LANES}f64({_VECTOR})
declare {_VECTOR} @llvm.floor.v{LANES}f64({_VECTOR})
declare {_VECTOR} @llvm.sqrt.v{LANES}f64({_VECTOR})
declare i64 @llvm.fptoui.sat.i64.f64(double)
declare double @llvm.fabs.f64(double)

define internal double @divisor(double %a, double %b) {{
entry:
  %x = call double @llvm.fabs.f64(double %a)
  %y = call double @llvm.fabs.f64(double %b)
  %first = call i64 @llvm.fptoui.sat.i64.f64(double %x)
  %second = call i64 @llvm.fptoui.sat.i64.f64(double %y)
  br label %loop
loop:
  %m = phi i64 [ %first, %entry ], [ %n, %next ]
  %n = phi i64 [ %second, %entry ], [ %left, %next ]
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %next
next:
  %left = urem i64 %m, %n
  br label %loop
end:
  %found = uitofp i64 %m to double
  ret double %found
}}

define internal {_VECTOR} @divisors({_VECTOR} %a, {_VECTOR} %b) {{
entry:
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %following, %loop ]
  %before = phi {_VECTOR} [ zeroinitializer, %entry ], [ %found, %loop ]
  %x = extractelement {_VECTOR} %a, i32 %lane
  %y = extractelement {_VECTOR} %b, i32 %lane
  %one = call double @divisor(double %x, double %y)
  %found = insertelement {_VECTOR} %before, double %one, i32 %lane
  %following = add i32 %lane, 1
  %done = icmp eq i32 %following, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret {_VECTOR} %found
}}
"""


NumberT = TypeVar("NumberT", np.float32, np.float64)


def run_program(
    program: Program,
    columns: Mapping[str, npt.NDArray[Any]],
    rows: int,
    kind: type[NumberT] = np.float32,  # type: ignore[assignment]  # mypy takes no default for a type variable
) -> npt.NDArray[NumberT]:
    """The outputs `(outputs, rows)` of a program for columns `(rows,)`, as numbers of a kind.

    A search asks for the features of some 150 rows thousands of times, an untuned choice a dozen times. Of 4,000 to
    5,700 operations (an H200's convolutions) 128 rows take 0.5 to 0.6 ms, a NumPy call each 6 to 9 (a Zen 5 core with
    neighbours). Machine code of a program's own took 0.3 to 0.6 for 8 to 15 on a slower one, and 0.1 to 0.25 s to
    compile, which a choice of a single schedule paid for, too.
    """
    result = np.empty((program.outputs, rows), dtype=kind)
    places = program.results
    slots = max(1, program.slots + len(program.constants))
    size = min(max(BLOCK_ROWS, BLOCK_BYTES // 8 // slots // LANES * LANES), max(1, -(-rows // LANES)) * LANES)
    memory = np.empty((slots, size))
    memory[program.slots :] = program.constants[:, None]
    given = [columns[name] for name in program.columns]
    run = partial(_function(), program.code.ctypes.data, len(program.code), memory.ctypes.data, size)
    for start in range(0, rows, size):
        count = min(rows - start, size)
        for place, column in zip(memory, given, strict=False):
            place[:count] = column[start : start + count]
        if count < size:
            memory[: len(given), count:] = memory[: len(given), :1]
        run()
        result[:, start : start + count] = memory[places, :count]
    return result


@cache
def _function() -> Callable[..., None]:
    """The loop over operations, optimized."""
    place, whole = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, place, whole, place, whole)
    return kept_function(_Writer().module(), _SYMBOL, kind)


class _Writer(FunctionText):
    """Writes the LLVM IR of a loop over operations, each a case of its own, and in it over the rows of a block."""

    def module(self) -> str:
        """Return a function of operations `(n, 5)`, memory `(slots, rows)`, and rows, a multiple of `LANES`."""
        step = self.loop("step", "entry", "%steps", "end")
        numbers = [self._number(step, place) for place in range(2 + max(OPERANDS.values()))]
        rows = [self.element("double", "%memory", self.put(f"mul i64 {n}, %rows")) for n in numbers[1:]]
        chosen = self.put(f"trunc i64 {numbers[0]} to i32")
        cases = " ".join(f"i32 {number}, label %{op}" for number, op in enumerate(OPERANDS))
        self.do(f"switch i32 {chosen}, label %step.next [ {cases} ]")
        for op, count in OPERANDS.items():
            self.start_block(op)
            row = self.loop(f"{op}.row", op, "%vectors", "step.next")
            index = self.put(f"mul i64 {row}, {LANES}")
            places = [self.element("double", at, index) for at in rows[:count]]
            operands = [self.put(f"load {_VECTOR}, ptr {at}, align 8") for at in places]
            found = self._operation(op, operands)
            self.do(f"store {_VECTOR} {found}, ptr {self.element('double', rows[-1], index)}, align 8")
            self.do(f"br label %{op}.row.next")
        self.start_block("end")
        self.do("ret void")
        self.allocas.append(f"  %vectors = udiv i64 %rows, {LANES}")
        head = f"define void @{_SYMBOL}(ptr %code, i64 %steps, ptr %memory, i64 %rows)"
        return f"{_FUNCTIONS}\n{self.text(head)}\n"

    def _number(self, step: str, place: int) -> str:
        address = self.put(f"getelementptr {_CODE}, ptr %code, i64 {step}, i64 {place}")
        return self.put(f"sext i32 {self.put(f'load i32, ptr {address}')} to i64")

    def _operation(self, op: str, args: list[str]) -> str:
        if op in _BINARY:
            return self.put(f"{_BINARY[op]} {_VECTOR} {args[0]}, {args[1]}")
        if op in _UNARY:
            return self.put(f"call {_VECTOR} @{_UNARY[op]}.v{LANES}f64({_VECTOR} {args[0]})")
        if op in _COMPARED:
            return self.put(f"uitofp {_MASK} {self._compare(_COMPARED[op], *args)} to {_VECTOR}")
        return _OTHERS[op](self, *args)

    def _compare(self, predicate: str, a: str, b: str) -> str:
        return self.put(f"fcmp {predicate} {_VECTOR} {a}, {b}")

    def _select(self, mask: str, yes: str, no: str) -> str:
        return self.put(f"select {_MASK} {mask}, {_VECTOR} {yes}, {_VECTOR} {no}")

    def _floordiv(self, a: str, b: str) -> str:
        return self._operation("floor", [self._operation("div", [a, b])])

    def _mod(self, a: str, b: str) -> str:
        return self._operation("sub", [a, self._operation("mul", [self._floordiv(a, b), b])])

    def _minimum(self, a: str, b: str) -> str:
        return self._extreme("ult", a, b)

    def _maximum(self, a: str, b: str) -> str:
        return self._extreme("ugt", a, b)

    def _extreme(self, predicate: str, a: str, b: str) -> str:
        """The one or the other, or whichever is not a number, as NumPy has it."""
        found = self._select(self._compare(predicate, a, b), a, b)
        return self._select(self._compare("uno", b, b), b, found)

    def _gcd(self, a: str, b: str) -> str:
        return self.put(f"call {_VECTOR} @divisors({_VECTOR} {a}, {_VECTOR} {b})")

    def _where(self, condition: str, yes: str, no: str) -> str:
        return self._select(self._compare("une", condition, "zeroinitializer"), yes, no)


_OTHERS: dict[str, Callable[..., str]] = {
    "floordiv": _Writer._floordiv,
    "mod": _Writer._mod,
    "minimum": _Writer._minimum,
    "maximum": _Writer._maximum,
    "gcd": _Writer._gcd,
    "where": _Writer._where,
}
