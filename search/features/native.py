"""Programs over columns, run by a loop over their operations in machine code, as NumPy's calls cost more than sums."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...backends.llvm.function_text import FunctionText
from ...backends.llvm.jit import kept_function
from .program import OPERANDS, Program

LANES = 8
"""Rows that are computed at once: those of an AVX-512 register of doubles; LLVM takes two or four of smaller ones."""
BLOCK_ROWS, BLOCK_BYTES = 128, 1 << 18
"""Rows that an operation takes before the next one begins, at least, and the bytes of all slots of more: hundreds of
slots of these stay in a second-level cache."""
_VECTOR = f"<{LANES} x double>"
_MASK = f"<{LANES} x i1>"
_SYMBOL = "lw_program"
_WHOLE, _FLOAT, _CHOICE = range(3)
"""Kinds of inputs: columns of whole numbers, of floats, and of positions in choices of a hole, which are floats."""
_INPUT_NUMBERS = 4
"""Whole numbers that an input is written as, by the layout of `_INPUT`."""
_INPUT = f"[{_INPUT_NUMBERS} x i64]"
"""An input: its kind, the place of its first element, the elements from one row to the next, the place of choices."""
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
declare i64 @llvm.umin.i64(i64, i64)

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

define internal double @largest(double %a, double %b) {{
entry:
  %count = call i64 @llvm.fptoui.sat.i64.f64(double %a)
  %most = call i64 @llvm.fptoui.sat.i64.f64(double %b)
  %smaller = call i64 @llvm.umin.i64(i64 %count, i64 %most)
  %none = icmp eq i64 %smaller, 0
  br i1 %none, label %nothing, label %start
nothing:
  ret double 0.0
start:
  %above = add i64 %count, %most
  %end = sub i64 %above, 1
  %least = udiv i64 %end, %most
  br label %parts
parts:
  %n = phi i64 [ %least, %start ], [ %next, %more ]
  %square = mul i64 %n, %n
  %far = icmp ugt i64 %square, %count
  br i1 %far, label %low, label %asked
asked:
  %rest = urem i64 %count, %n
  %whole = icmp eq i64 %rest, 0
  %quotient = udiv i64 %count, %n
  br i1 %whole, label %found, label %more
more:
  %next = add i64 %n, 1
  br label %parts
low:
  %below = sub i64 %n, 1
  %first = call i64 @llvm.umin.i64(i64 %below, i64 %most)
  br label %down
down:
  %d = phi i64 [ %first, %low ], [ %less, %again ]
  %ended = icmp ule i64 %d, 1
  br i1 %ended, label %found, label %again
again:
  %over = urem i64 %count, %d
  %less = sub i64 %d, 1
  %divides = icmp eq i64 %over, 0
  br i1 %divides, label %found, label %down
found:
  %result = phi i64 [ %quotient, %asked ], [ %d, %down ], [ %d, %again ]
  %number = uitofp i64 %result to double
  ret double %number
}}

""" + "".join(
    f"""
define internal {_VECTOR} @{name}s({_VECTOR} %a, {_VECTOR} %b) {{
entry:
  br label %loop
loop:
  %lane = phi i32 [ 0, %entry ], [ %following, %loop ]
  %before = phi {_VECTOR} [ zeroinitializer, %entry ], [ %found, %loop ]
  %x = extractelement {_VECTOR} %a, i32 %lane
  %y = extractelement {_VECTOR} %b, i32 %lane
  %one = call double @{name}(double %x, double %y)
  %found = insertelement {_VECTOR} %before, double %one, i32 %lane
  %following = add i32 %lane, 1
  %done = icmp eq i32 %following, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret {_VECTOR} %found
}}
"""
    for name in ("divisor", "largest")
)


NumberT = TypeVar("NumberT", np.float32, np.float64)


@dataclass(frozen=True)
class Picked:
    """Columns of holes whose values are picked where a program runs: `rows` `(n, k)` hold positions in choices.

    `places` say which column of these is a hole's, and which row of `choices` `(d, most)` it is of; `others` are
    columns `(n,)` that are known.
    """

    rows: npt.NDArray[np.int64]
    choices: npt.NDArray[np.float64]
    places: Mapping[str, tuple[int, int]]
    others: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    known_table: int = 0
    """The place of the choices in memory, where it is known."""

    @property
    def table(self) -> int:
        """The place of the choices in memory."""
        return self.known_table or place_of(self.choices)


def place_of(choices: npt.NDArray[np.float64]) -> int:
    """The place of a table of choices in memory."""
    assert choices.dtype == np.float64 and choices.flags.c_contiguous
    return choices.ctypes.data


def run_program(
    program: Program,
    columns: Mapping[str, npt.NDArray[Any]] | Picked,
    rows: int,
    kind: type[NumberT] = np.float32,  # type: ignore[assignment]  # mypy takes no default for a type variable
) -> npt.NDArray[NumberT]:
    """The outputs `(outputs, rows)` of a program for columns `(rows,)`, as numbers of a kind.

    A search asks for the features of some 150 rows thousands of times, an untuned choice a dozen times. Of 4,000 to
    5,700 operations (an H200's convolutions) 128 rows take 0.5 to 0.6 ms, a NumPy call each 6 to 9 (a Zen 5 core with
    neighbours). Machine code of a program's own took 0.3 to 0.6 for 8 to 15 on a slower one, and 0.1 to 0.25 s to
    compile, which a choice of a single schedule paid for, too.
    """
    slots, constants = program.slots, program.constants
    count = max(1, slots + len(constants))
    size = min(max(BLOCK_ROWS, BLOCK_BYTES // 8 // count // LANES * LANES), max(1, -(-rows // LANES)) * LANES)
    outputs = program.outputs * rows
    memory = np.empty(outputs + count * size)  # one array, as each that machine code is told the place of takes 1 us
    memory[outputs + slots * size :].reshape(-1, size)[:] = constants[:, None]
    inputs, kept = _inputs(program, columns, rows)
    first, code = memory.ctypes.data, program.places
    own = code[0], len(program.code), first + 8 * outputs, size, inputs.buffer_info()[0], len(inputs) // _INPUT_NUMBERS
    _function()(*own, code[1], program.outputs, first, rows)
    del kept
    return memory[:outputs].reshape(program.outputs, rows).astype(kind)


def _inputs(
    program: Program, columns: Mapping[str, npt.NDArray[Any]] | Picked, rows: int
) -> tuple[array[int], list[npt.NDArray[Any]]]:
    """The inputs of a program, and the arrays that they are in, which are to be kept while it runs."""
    found = array("q")
    kept: list[npt.NDArray[Any]] = []
    places: Mapping[str, tuple[int, int]] = {}
    if not isinstance(columns, Picked):
        others = columns
    else:
        places, others = columns.places, columns.others
        positions, choices = np.ascontiguousarray(columns.rows), columns.choices
        assert positions.dtype == np.int64
        kept += [positions, choices]
        first, width = positions.ctypes.data, positions.shape[1]
        table, row_bytes = columns.table, choices.strides[0]
    for name in program.columns:
        if name in places:
            place, hole = places[name]
            found.extend((_CHOICE, first + 8 * place, width, table + row_bytes * hole))
            continue
        column = others[name]
        if column.dtype != np.int64 and column.dtype != np.float64:
            column = column.astype(np.float64)
        kept.append(column)
        (count,), (step,) = column.shape, column.strides
        assert count in (1, rows) and not step % 8, f"column '{name}' has {count} rows of {rows}"
        own_kind = _WHOLE if column.dtype == np.int64 else _FLOAT
        found.extend((own_kind, column.ctypes.data, step // 8 * (count > 1), 0))
    return found, kept


@cache
def _function() -> Callable[..., None]:
    """The loop over blocks and operations, optimized: a program of 78 operations takes 48 us of 2,874 rows for 77."""
    place, whole = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, place, whole, place, whole, place, whole, place, whole, place, whole)
    return kept_function(f"{_FUNCTIONS}\n{_Writer().operations()}\n{_Writer().blocks()}\n", _SYMBOL, kind)


class _Writer(FunctionText):
    """Writes the LLVM IR of loops over blocks of rows, over operations, each a case of its own, and over rows."""

    def blocks(self) -> str:
        """A function that runs operations on blocks of rows: it picks their inputs, and copies their results.

        Memory has `%pitch` rows, a multiple of `LANES`, in each slot; rows up to such a multiple are as the first.
        """
        block = self.loop("block", "entry", "%blocks", "end")
        start = self.put(f"mul i64 {block}, %pitch")
        left = self.put(f"sub i64 %count, {start}")
        rows = self.put(f"select i1 {self.put(f'icmp ult i64 {left}, %pitch')}, i64 {left}, i64 %pitch")
        vectors = self.put(f"udiv i64 {self.put(f'add i64 {rows}, {LANES - 1}')}, {LANES}")
        beyond = self.put(f"sub i64 {self.put(f'mul i64 {vectors}, {LANES}')}, {rows}")
        number = self.loop("input", self.block, "%inputs", "run")
        self._input(number, start, rows, beyond)
        self.start_block("run")
        self.do(f"call void @operations(ptr %code, i64 %steps, ptr %memory, i64 %pitch, i64 {vectors})")
        output = self.loop("output", "run", "%outputs", "block.next")
        place = self.element("i32", "%places", output)
        slot = self.put(f"sext i32 {self.put(f'load i32, ptr {place}')} to i64")
        source = self.element("double", "%memory", self.put(f"mul i64 {slot}, %pitch"))
        target = self.element("double", "%out", self.put(f"mul i64 {output}, %count"))
        target = self.element("double", target, start)
        row = self.loop("copy", self.block, rows, "output.next")
        value = self.put(f"load double, ptr {self.element('double', source, row)}")
        self.do(f"store double {value}, ptr {self.element('double', target, row)}")
        self.do("br label %copy.next")
        self.start_block("end")
        self.do("ret void")
        before = "  %before = sub i64 %pitch, 1", "  %last = add i64 %count, %before"
        self.allocas += [*before, "  %blocks = udiv i64 %last, %pitch"]
        head = "ptr %code, i64 %steps, ptr %memory, i64 %pitch, ptr %sources, i64 %inputs"
        return self.text(f"define void @{_SYMBOL}({head}, ptr %places, i64 %outputs, ptr %out, i64 %count)")

    def _input(self, number: str, start: str, rows: str, beyond: str) -> None:
        """Write the rows of an input that begin at one to its slot, and so many beyond as the first of them."""
        source = self.element(_INPUT, "%sources", number)
        kind, first, step, choices = (
            self.put(f"load i64, ptr {self.put(f'getelementptr {_INPUT}, ptr {source}, i64 0, i64 {place}')}")
            for place in range(_INPUT_NUMBERS)
        )
        slot = self.element("double", "%memory", self.put(f"mul i64 {number}, %pitch"))
        first = self.put(f"inttoptr i64 {first} to ptr")
        first = self.element("i64", first, self.put(f"mul i64 {start}, {step}"))
        choices = self.put(f"inttoptr i64 {choices} to ptr")
        self.do(f"switch i64 {kind}, label %float [ i64 {_WHOLE}, label %whole i64 {_CHOICE}, label %choice ]")
        for name in ("whole", "float", "choice"):
            self.start_block(name)
            row = self.loop(f"{name}.row", name, rows, "pad")
            at = self.element("i64", first, self.put(f"mul i64 {row}, {step}"))
            if name == "float":
                value = self.put(f"load double, ptr {at}")
            else:
                value = self.put(f"load i64, ptr {at}")
            if name == "whole":
                value = self.put(f"sitofp i64 {value} to double")
            if name == "choice":
                value = self.put(f"load double, ptr {self.element('double', choices, value)}")
            self.do(f"store double {value}, ptr {self.element('double', slot, row)}")
            self.do(f"br label %{name}.row.next")
        self.start_block("pad")
        value = self.put(f"load double, ptr {slot}")
        row = self.loop("pad.row", "pad", beyond, "input.next")
        place = self.element("double", slot, self.put(f"add i64 {rows}, {row}"))
        self.do(f"store double {value}, ptr {place}")
        self.do("br label %pad.row.next")

    def operations(self) -> str:
        """A function of operations `(n, 5)`, memory `(slots, pitch)`, and vectors of rows in it."""
        step = self.loop("step", "entry", "%steps", "end")
        numbers = [self._number(step, place) for place in range(2 + max(OPERANDS.values()))]
        rows = [self.element("double", "%memory", self.put(f"mul i64 {n}, %pitch")) for n in numbers[1:]]
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
        head = "ptr %code, i64 %steps, ptr %memory, i64 %pitch, i64 %vectors"
        return self.text(f"define internal void @operations({head})")

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

    def _divisor(self, a: str, b: str) -> str:
        return self.put(f"call {_VECTOR} @largests({_VECTOR} {a}, {_VECTOR} {b})")

    def _where(self, condition: str, yes: str, no: str) -> str:
        return self._select(self._compare("une", condition, "zeroinitializer"), yes, no)


_OTHERS: dict[str, Callable[..., str]] = {
    "floordiv": _Writer._floordiv,
    "mod": _Writer._mod,
    "minimum": _Writer._minimum,
    "maximum": _Writer._maximum,
    "gcd": _Writer._gcd,
    "divisor": _Writer._divisor,
    "where": _Writer._where,
}
