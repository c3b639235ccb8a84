"""Blocks of scalar operations as lines of the graph's formula operators, and the combiners that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ...graph.operators.formula import number
from .errors import UnsupportedOperation
from .reader import Program, name_of
from .values import attributes, python, tensor_dtype

_COMPARISONS = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater"}
_COMPARISONS |= {"GE": "greater_equal"}
STABLEHLO = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "remainder": "remainder",
    "power": "power", "maximum": "maximum", "minimum": "minimum", "and": "and", "or": "or", "xor": "xor", "not": "not",
    "select": "select", "negate": "negative", "abs": "abs", "sign": "sign", "exponential": "exp", "log": "log",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "tanh": "tanh", "sine": "sin", "cosine": "cos", "floor": "floor", "ceil": "ceil",
    "logistic": "sigmoid", "shift_left": "shift_left", "reshape": "identity", "broadcast_in_dim": "identity",
}  # fmt: skip
ARITH = {
    "addf": "add", "addi": "add", "subf": "subtract", "subi": "subtract", "mulf": "multiply", "muli": "multiply",
    "divf": "divide", "divsi": "divide", "floordivsi": "floor_divide", "remsi": "remainder", "remf": "remainder",
    "maximumf": "maximum", "minimumf": "minimum", "maxnumf": "maximum", "minnumf": "minimum", "maxsi": "maximum",
    "minsi": "minimum", "andi": "and", "ori": "or", "xori": "xor", "shli": "shift_left", "shrsi": "shift_right",
    "negf": "negative", "select": "select",
}  # fmt: skip
MATH = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin",
    "cos": "cos", "tan": "tan", "tanh": "tanh", "erf": "erf", "floor": "floor", "ceil": "ceil", "roundeven": "round",
    "trunc": "trunc", "absf": "abs", "absi": "abs", "powf": "power",
}  # fmt: skip
PLAIN = {
    **{f"stablehlo.{k}": v for k, v in STABLEHLO.items()},
    **{f"arith.{k}": v for k, v in ARITH.items()},
    **{f"math.{k}": v for k, v in MATH.items()},
    "chlo.erf": "erf",
}
"""Scalar operations that one function of a formula is."""
_UNSIGNED = {"divui": "divide", "remui": "remainder", "maxui": "maximum", "minui": "minimum", "shrui": "shift_right"}
_CASTS = {
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.extsi", "arith.trunci", "arith.index_cast",
    "stablehlo.convert",
}  # fmt: skip
_CONSTANTS = ("arith.constant", "stablehlo.constant", "tosa.const")
_FLOAT_PREDICATES = ("", "EQ", "GT", "GE", "LT", "LE", "NE", "", "EQ", "GT", "GE", "LT", "LE", "NE", "", "")
"""By the number of arith.cmpf's predicate; ordered and unordered ones are alike but for NaN."""
_INTEGER_PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE", "LT", "LE", "GT", "GE")
_FIRST_UNSIGNED = 6


@dataclass
class Lines:
    """Lines of a formula under construction, and the token of each scalar that is known."""

    program: Program
    tokens: dict[SSAValue, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    axes: Mapping[int, str] = field(default_factory=dict)
    calls: tuple[str, ...] = ()

    def line(self, text: str) -> str:
        """Add a line, and return its token."""
        self.lines.append(text)
        return f"t{len(self.lines) - 1}"

    def block(self, operations: Iterable[Operation]) -> None:
        """Write all operations but the last, which yields."""
        for op in operations:
            if op.next_op is not None:
                self.operation(op)

    def token(self, value: SSAValue) -> str:
        """Return the token of a value, that of a constant outside of the block included."""
        owner = value.owner
        if value not in self.tokens and isinstance(owner, Operation) and name_of(owner) in _CONSTANTS:
            self.operation(owner)
        if value not in self.tokens:
            raise UnsupportedOperation("its block reads a value from outside, which is not known there")
        return self.tokens[value]

    def operation(self, op: Operation) -> None:
        """Write one operation; UnsupportedOperation where no function is it."""
        name = name_of(op)
        words = [self.token(operand) for operand in op.operands]
        if name == "func.call":
            self._call(op, words)
            return
        given = {key: python(a, self.program.resources) for key, a in attributes(op).items()}
        self.tokens[op.results[0]] = self._token(op, name, words, given)

    def _call(self, op: Operation, words: Sequence[str]) -> None:
        """Write the operations of a function in the place of its call."""
        name = python(attributes(op)["callee"], self.program.resources)
        function = self.program.functions.get(name)
        if function is None or len(function.body.blocks) != 1:
            raise UnsupportedOperation(f"function '{name}' has no body of one block")
        if name in self.calls:
            raise UnsupportedOperation(f"function '{name}' calls itself")
        block, before = function.body.block, self.calls
        self.tokens.update(zip(block.args, words, strict=True))
        self.calls = (*before, name)
        self.block(block.ops)
        self.calls = before
        last = block.last_op
        assert last is not None
        self.tokens.update(zip(op.results, [self.token(value) for value in last.operands], strict=True))

    def _token(self, op: Operation, name: str, words: Sequence[str], given: Mapping[str, Any]) -> str:
        dtype = tensor_dtype(op.results[0].type)
        short = name.partition(".")[2]
        if name in _CONSTANTS:
            return number(np.asarray(given["value"]).reshape(()).item(), dtype)
        if name == "linalg.index":
            return self.line(f"cast:int64 {self.axes[int(given['dim'])]}")
        if name in PLAIN:
            return self.line(" ".join([PLAIN[name], *words]))
        if name in _CASTS:
            return self._cast(op, words[0], dtype)
        if name in ("arith.uitofp", "arith.extui", "arith.index_castui", "arith.fptoui"):
            return self._unsigned_cast(op, words[0], dtype)
        if name.startswith("arith.") and short in _UNSIGNED:
            as_unsigned = [self.line(f"bitcast:u{dtype} {word}") for word in words]
            return self.line(f"bitcast:{dtype} " + self.line(" ".join([_UNSIGNED[short], *as_unsigned])))
        if name in ("arith.cmpf", "arith.cmpi", "stablehlo.compare"):
            return self._compare(op, name, words, given)
        if name in ("stablehlo.clamp",):
            return self.line(f"minimum {self.line(f'maximum {words[1]} {words[0]}')} {words[2]}")
        if name == "arith.ceildivsi":
            up = self.line(f"floor_divide {self.line(f'negative {words[0]}')} {words[1]}")
            return self.line(f"negative {up}")
        if name == "math.fma":
            return self.line(f"add {self.line(f'multiply {words[0]} {words[1]}')} {words[2]}")
        return self._function(op, name, words, dtype)

    def _function(self, op: Operation, name: str, words: Sequence[str], dtype: str) -> str:
        one = number(1, dtype)
        if name in ("math.log1p", "stablehlo.log_plus_one"):
            return self.line(f"log {self.line(f'add {words[0]} {one}')}")
        if name in ("math.expm1", "stablehlo.exponential_minus_one"):
            return self.line(f"subtract {self.line(f'exp {words[0]}')} {one}")
        if name in ("math.ipowi", "math.fpowi"):
            exponent = self.line(f"cast:{'float64' if 'int' in dtype else dtype} {words[1]}")
            base = self.line(f"cast:{'float64' if 'int' in dtype else dtype} {words[0]}")
            return self.line(f"cast:{dtype} " + self.line(f"power {base} {exponent}"))
        if name == "math.copysign":
            magnitude = self.line(f"abs {words[0]}")
            below = self.line(f"less {words[1]} {number(0, dtype)}")
            return self.line(f"select {below} {self.line(f'negative {magnitude}')} {magnitude}")
        raise UnsupportedOperation(f"'{name}' within its block is not supported")

    def _cast(self, op: Operation, word: str, dtype: str) -> str:
        source = tensor_dtype(op.operands[0].type)
        if dtype == "bool" and source != "bool":
            bit = self.line(f"and {word} {number(1, source)}") if "int" in source else word
            return self.line(f"not_equal {bit} {number(0, source)}")
        if source == "bool" and name_of(op) in ("arith.sitofp", "arith.extsi"):
            return self.line(f"negative {self.line(f'cast:{dtype} {word}')}")
        return self.line(f"cast:{dtype} {word}")

    def _unsigned_cast(self, op: Operation, word: str, dtype: str) -> str:
        source = tensor_dtype(op.operands[0].type)
        if source.startswith("int"):
            word = self.line(f"bitcast:u{source} {word}")
        if name_of(op) == "arith.fptoui":
            return self.line(f"bitcast:{dtype} " + self.line(f"cast:u{dtype} {word}"))
        return self.line(f"cast:{dtype} {word}")

    def _compare(self, op: Operation, name: str, words: Sequence[str], given: Mapping[str, Any]) -> str:
        kind = tensor_dtype(op.operands[0].type)
        if name == "stablehlo.compare":
            direction = str(given["comparison_direction"]).split()[-1]
        elif name == "arith.cmpf":
            place = int(given["predicate"])
            if place in (7, 14):  # ordered, unordered: whether neither, or one, is NaN
                nan = [self.line(f"not_equal {word} {word}") for word in words]
                either = self.line(f"or {nan[0]} {nan[1]}")
                return either if place == 14 else self.line(f"not {either}")
            direction = _FLOAT_PREDICATES[place]
        else:
            place = int(given["predicate"])
            direction = _INTEGER_PREDICATES[place]
            if place >= _FIRST_UNSIGNED and kind.startswith("int"):
                words = [self.line(f"bitcast:u{kind} {word}") for word in words]
        if not direction:
            raise UnsupportedOperation(f"'{name}' compares by a predicate that is not supported")
        if "TOTALORDER" in str(given.get("compare_type", "")) and "float" in kind:
            return self._in_total_order(direction, words)
        if kind == "bool" and direction not in ("EQ", "NE"):
            words = [self.line(f"cast:int8 {word}") for word in words]
        return self.line(f"{_COMPARISONS[direction]} {words[0]} {words[1]}")

    def _in_total_order(self, direction: str, words: Sequence[str]) -> str:
        """Compare floats as sorting does: NaN is larger than all else, and equal to itself; zeros are equal."""
        x, y = words if direction in ("LT", "GE", "EQ", "NE") else words[::-1]
        if direction in ("EQ", "NE"):
            none = self.line(f"and {self.line(f'not_equal {x} {x}')} {self.line(f'not_equal {y} {y}')}")
            found = self.line(f"or {self.line(f'equal {x} {y}')} {none}")
        else:
            last = self.line(f"and {self.line(f'equal {x} {x}')} {self.line(f'not_equal {y} {y}')}")
            found = self.line(f"or {self.line(f'less {x} {y}')} {last}")
        return found if direction in ("EQ", "LT", "GT") else self.line(f"not {found}")


NAMED = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "or": "max", "and": "min"}
"""Combiners of reductions by the function of a formula that they are; of conditions, or is max and and is min."""


def combiner_of(block: Block, program: Program) -> str | None:
    """Return add, mul, max or min where a block joins its two arguments by that alone; `and` and `or` of conditions."""
    operations = list(block.ops)
    if len(operations) != 2 or len(block.args) != 2 or set(operations[0].operands) != set(block.args):
        return None
    function = PLAIN.get(name_of(operations[0]))
    dtype = tensor_dtype(block.args[0].type)
    if function in ("and", "or") and dtype != "bool":
        return None
    if dtype == "bool":
        function = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}.get(function or "", function)
    return NAMED.get(function or "")


def custom_combiner(block: Block, program: Program, held_first: bool = True) -> tuple[list[str], list[str]]:
    """Return lines that join `a0, a1, ..` with `b0, b1, ..`, halves of a block's arguments, and what they give.

    The first half is what was reduced so far, or the second one.
    """
    count = len(block.args) // 2
    lines = Lines(program)
    for position, argument in enumerate(block.args):
        held = (position < count) == held_first
        lines.tokens[argument] = f"{'a' if held else 'b'}{position % count}"
    lines.block(block.ops)
    last = block.last_op
    assert last is not None
    results = [lines.token(value) for value in last.operands]
    return lines.lines, results
