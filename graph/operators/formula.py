"""Operators whose meaning is an option: scalar programs in lines of text, for what no other operator says.

A line is a function and what it is applied to: `multiply x0 2.0:float32`. `x0` is an element of the first tensor, `t1`
the result of line 1, `i0` an axis of the result, `k0` a reduction axis; `cast:int32`, `read:0 i0 k0` have a parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ... import te
from ...dialects.numpy_types import ELEMENT_TYPES, FLOATS
from ...te import ExpressionError, Tensor, broadcast, compute, reduce_axis
from ...te.expr import Expr
from ..operator import Kind, Operator, elementwise, injective


def _sign(x: Expr) -> Expr:
    one, zero = te.const(1, x.dtype), te.const(0, x.dtype)
    return te.select(x > zero, one, te.select(x < zero, zero - one, x))


def _truncated(x: Expr, y: Expr) -> Expr:
    quotient = te.abs(x) // te.abs(y)
    return te.select((x < 0) != (y < 0), -quotient, quotient) if not x.dtype.startswith("u") else x // y


def _and(x: Expr, y: Expr) -> Expr:
    return te.all(x, y) if x.dtype == "bool" else te.bitwise_and(x, y)


def _or(x: Expr, y: Expr) -> Expr:
    return te.any(x, y) if x.dtype == "bool" else te.bitwise_or(x, y)


def _xor(x: Expr, y: Expr) -> Expr:
    return x != y if x.dtype == "bool" else te.bitwise_xor(x, y)


def _not(x: Expr) -> Expr:
    return te.logical_not(x) if x.dtype == "bool" else te.bitwise_not(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: te.any(x, y) if x.dtype == "bool" else x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: te.all(x, y) if x.dtype == "bool" else x * y,
    "divide": lambda x, y: x / y if x.dtype in FLOATS else _truncated(x, y),
    "remainder": lambda x, y: te.fmod(x, y) if x.dtype in FLOATS else x - _truncated(x, y) * y,
    "floor_divide": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "power": te.power,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "shift_left": te.shift_left,
    "shift_right": te.shift_right,
    "select": te.select,
    "negative": lambda x: -x,
    "abs": te.abs,
    "sign": _sign,
    "identity": lambda x: x,
    **{name: getattr(te, name) for name in (
        "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "floor", "ceil", "round",
        "trunc", "sigmoid",
    )},
}  # fmt: skip
"""Functions of lines, by name."""
_NAMED: dict[str, Callable[..., Any]] = {"add": te.sum, "mul": te.prod, "max": te.max, "min": te.min}
_TOKEN = re.compile(r"([xtikab])(\d+)|([^:]+):(\w+)")


class _Program:
    """Lines under evaluation: what each token stands for."""

    def __init__(self, lines: Sequence[str], names: dict[str, Expr], tensors: Sequence[Tensor] = ()) -> None:
        self.names, self.tensors = dict(names), tensors
        for number, line in enumerate(lines):
            self.names[f"t{number}"] = self._line(line)

    def _line(self, line: str) -> Expr:
        words = line.split()
        if not words:
            raise ExpressionError("formula: a line is empty")
        function, _, parameter = words[0].partition(":")
        operands = [self.value(word) for word in words[1:]]
        if function in ("cast", "bitcast") and len(operands) == 1:
            return te.cast(operands[0], parameter) if function == "cast" else te.bitcast(operands[0], parameter)
        if function == "read" and parameter.isdigit() and int(parameter) < len(self.tensors):
            return self.tensors[int(parameter)][tuple(operands)]
        if function not in FUNCTIONS or parameter:
            raise ExpressionError(f"formula: line '{line}' has no function of '{words[0]}'")
        try:
            result: Expr = FUNCTIONS[function](*operands)
        except TypeError as error:
            raise ExpressionError(f"formula: line '{line}': {error}") from None
        return result

    def value(self, word: str) -> Expr:
        """Return what a token stands for."""
        found = _TOKEN.fullmatch(word)
        if found is None or (found[1] and word not in self.names):
            raise ExpressionError(f"formula: '{word}' is no element, line, axis or number here")
        return self.names[word] if found[1] else _number(found[3], found[4])


def _number(text: str, dtype: str) -> Expr:
    if dtype not in ELEMENT_TYPES:
        raise ExpressionError(f"formula: element type '{dtype}' is not one of {', '.join(ELEMENT_TYPES)}")
    try:
        value = float(text) if dtype in FLOATS else int(text)
    except ValueError:
        raise ExpressionError(f"formula: '{text}' is no number of type {dtype}") from None
    return te.const(value, dtype)


def number(value: float, dtype: str) -> str:
    """Return the token of a number."""
    plain = value.item() if hasattr(value, "item") else value
    if dtype in FLOATS:
        return f"{float(plain)!r}:{dtype}"
    return f"{int(plain)}:{dtype}"


def _formula(*tensors: Tensor, lines: Sequence[str]) -> Tensor:
    """Apply lines to elements, with NumPy's broadcasting; the last line is the result."""

    def element(*values: Expr) -> Any:
        program = _Program(lines, {f"x{n}": value for n, value in enumerate(values)})
        return program.value(f"t{len(lines) - 1}")

    if not lines:
        raise ExpressionError("formula: there are no lines")
    return broadcast("T_formula", element, *tensors)


def _map_formula(*tensors: Tensor, shape: Sequence[int], lines: Sequence[str]) -> Tensor:
    """Compute each element of a tensor of this shape by lines that read tensors at places, as padding does."""

    def element(*axes: Expr) -> Any:
        names = {f"i{n}": axis for n, axis in enumerate(axes)}
        return _Program(lines, names, tensors).value(f"t{len(lines) - 1}")

    if not lines:
        raise ExpressionError("map_formula: there are no lines")
    result: Tensor = compute(tuple(shape), element, "T_formula")
    return result


def _reduce_formula(
    *tensors: Tensor,
    shape: Sequence[int],
    reduced: Sequence[int],
    lines: Sequence[str],
    values: Sequence[str],
    combiner: Sequence[str],
    joined: Sequence[str] = (),
    identity: Sequence[str] = (),
) -> Tensor | list[Tensor]:
    """Combine the tokens `values` over axes of the extents `reduced`.

    `combiner` is add, mul, max or min, or lines in which `a0` and `b0` are two values to join, `joined` the tokens of
    what that gives and `identity` what changes nothing.
    """
    axes = [reduce_axis((0, n), f"k{position}") for position, n in enumerate(reduced)]

    def element(*outer: Expr) -> Any:
        names: dict[str, Expr] = {f"i{n}": axis for n, axis in enumerate(outer)}
        names.update({f"k{n}": axis for n, axis in enumerate(axes)})
        program = _Program(lines, names, tensors)
        found = [program.value(word) for word in values]
        known = _NAMED.get(" ".join(combiner))
        return known(found[0], axis=axes) if known is not None else _custom(found, combiner, joined, identity, axes)

    made: Tensor | list[Tensor] = compute(tuple(shape), element, "T_reduce_formula")
    return made


def _custom(
    values: Sequence[Expr], lines: Sequence[str], joined: Sequence[str], identity: Sequence[str], axes: Sequence[Any]
) -> Any:
    count = len(values)
    if not count or len(joined) != count or len(identity) != count:
        raise ExpressionError(f"reduce_formula: {count} values need as many joined and identity")
    starts = [_Program([], {}).value(word) for word in identity]

    def join(x: Any, y: Any) -> Any:
        old, new = (x, y) if count > 1 else ((x,), (y,))
        names = {f"a{n}": v for n, v in enumerate(old)} | {f"b{n}": v for n, v in enumerate(new)}
        program = _Program(lines, names)
        found = tuple(program.value(word) for word in joined)
        return found if count > 1 else found[0]

    def start(*_: str) -> Any:
        numbers = tuple(getattr(s, "value", math.nan) for s in starts)
        return numbers if count > 1 else numbers[0]

    return te.comm_reducer(join, start, "formula")(tuple(values) if count > 1 else values[0], axis=axes)


formula = elementwise(_formula)
map_formula = injective(_map_formula)
reduce_formula = Operator(_reduce_formula, Kind.ANCHOR)
