"""Elementwise functions of scalar expressions, conditions, and the numbers a type can hold."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..dialects.intrinsics_cuda import ROUNDINGS
from ..dialects.numpy_types import FLOATS, INTEGERS, UNSIGNED
from .errors import ExpressionError
from .expr import (
    Binary,
    Bitcast,
    Call,
    Const,
    Expr,
    Logic,
    Not,
    Operand,
    Select,
    bits_of,
    cast,
    const,
    convert,
    integer_range,
    match,
)

_WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64"}
"""The types in which remainders of floats are computed."""


def call(function: str, value: Operand) -> Expr:
    """Apply a function of one float that the `math` dialect has under the same name, such as `exp` or `erf`."""
    operand = convert(value)
    if operand.dtype not in FLOATS:
        raise ExpressionError(f"'{function}' is defined on floats, got {operand.dtype}: cast first")
    return Call(function, operand)


def exp(value: Operand) -> Expr:
    """e to the power of a float."""
    return call("exp", value)


def exp2(value: Operand) -> Expr:
    """2 to the power of a float."""
    return call("exp2", value)


def log(value: Operand) -> Expr:
    """The natural logarithm of a float."""
    return call("log", value)


def log2(value: Operand) -> Expr:
    """The binary logarithm of a float."""
    return call("log2", value)


def sqrt(value: Operand) -> Expr:
    """The square root of a float."""
    return call("sqrt", value)


def rsqrt(value: Operand) -> Expr:
    """One over the square root of a float."""
    return call("rsqrt", value)


def sin(value: Operand) -> Expr:
    """The sine of a float in radians."""
    return call("sin", value)


def cos(value: Operand) -> Expr:
    """The cosine of a float in radians."""
    return call("cos", value)


def tan(value: Operand) -> Expr:
    """The tangent of a float in radians, as sin(x) / cos(x)."""
    return sin(value) / cos(value)


def tanh(value: Operand) -> Expr:
    """The hyperbolic tangent of a float."""
    return call("tanh", value)


def erf(value: Operand) -> Expr:
    """The error function of a float."""
    return call("erf", value)


def floor(value: Operand) -> Expr:
    """A float rounded down."""
    return call("floor", value)


def ceil(value: Operand) -> Expr:
    """A float rounded up."""
    return call("ceil", value)


def round(value: Operand) -> Expr:
    """A float rounded to the nearest whole number, halves to the even one (as NumPy's round)."""
    return call("roundeven", value)


def trunc(value: Operand) -> Expr:
    """A float without its fraction."""
    return call("trunc", value)


def sigmoid(value: Operand) -> Expr:
    """1 / (1 + exp(-x))."""
    operand = convert(value)
    return 1.0 / (1.0 + exp(-operand))


def abs(value: Operand) -> Expr:
    """The magnitude of a float or an integer."""
    operand = convert(value)
    return operand if operand.dtype in UNSIGNED else Call("abs", operand)


def power(base: Operand, exponent: Operand) -> Expr:
    """`base ** exponent` on floats."""
    return Expr.__pow__(*_two(base, exponent))


def fmod(left: Operand, right: Operand) -> Expr:
    """The remainder of a float division, with the sign of `left`, as C's fmod: a finite number by infinity is itself.

    It is x - trunc(x / y) * y in the type of twice the bits, where neither the quotient nor the product is rounded as
    long as the quotient is below 2^28 (of float32). In float64 itself both are: a quotient that was rounded up to a
    whole number is mended, a remainder of 0 may be one that is all but y.
    """
    a, b = match(left, right)
    x, y = (cast(each, _WIDER.get(each.dtype, each.dtype)) for each in (a, b))
    rest = x - trunc(x / y) * y
    if a.dtype not in _WIDER:
        rest = select(_signs_differ(rest, x), rest + select(x < 0, -abs(y), abs(y)), rest)
    infinite = const(math.inf, a.dtype)
    return select(any(abs(b) != infinite, abs(a) == infinite), cast(rest, a.dtype), a)


def floor_mod(left: Operand, right: Operand) -> Expr:
    """The remainder of a division rounded down, with the sign of `right`: of floats as of integers."""
    a, b = match(left, right)
    if a.dtype not in FLOATS:
        return a % b
    rest = fmod(a, b)
    return select(_signs_differ(rest, b), rest + b, rest)


def floor_divide(left: Operand, right: Operand) -> Expr:
    """A quotient rounded down; of floats the whole number nearest to the one without remainder, as NumPy's."""
    a, b = match(left, right)
    if a.dtype not in FLOATS:
        return a // b
    rest = fmod(a, b)
    whole = round((a - rest) / b)
    return select(b == 0, a / b, select(_signs_differ(rest, b), whole - 1, whole))


def _signs_differ(a: Expr, b: Expr) -> Expr:
    return any(all(a < 0, b > 0), all(a > 0, b < 0))


def maximum(left: Operand, right: Operand) -> Expr:
    """The larger of two values; NaN where one is NaN. Of conditions, true where one of them is."""
    a, b = match(left, right)
    return a | b if a.dtype == "bool" else Binary("max", a, b)


def minimum(left: Operand, right: Operand) -> Expr:
    """The smaller of two values; NaN where one is NaN. Of conditions, true where both of them are."""
    a, b = match(left, right)
    return a & b if a.dtype == "bool" else Binary("min", a, b)


def _two(left: Operand, right: Operand) -> tuple[Expr, Expr]:
    return match(left, right)


def select(condition: Operand, yes: Operand, no: Operand) -> Expr:
    """`yes` where the condition holds, else `no`; a read in the branch not taken may lie outside its tensor."""
    test = convert(condition)
    if test.dtype != "bool":
        raise ExpressionError(
            f"select takes a condition first, got a value of type {test.dtype}: compare it, e.g. x > 0"
        )
    if isinstance(test, Const):
        a, b = match(yes, no)
        return a if test.value else b
    return Select(test, *match(yes, no))


if_then_else = select


def all(*conditions: Operand) -> Expr:
    """True where every condition holds."""
    return _join("and", conditions)


def any(*conditions: Operand) -> Expr:
    """True where one condition holds."""
    return _join("or", conditions)


def logical_not(condition: Operand) -> Expr:
    """True where the condition does not hold."""
    return Not(convert(condition))


def _join(op: str, conditions: tuple[Operand, ...]) -> Expr:
    if not conditions:
        return Const(op == "and", "bool")
    result = convert(conditions[0])
    for condition in conditions[1:]:
        result = Logic(op, result, convert(condition))
    return result


def bitwise_and(left: Operand, right: Operand) -> Expr:
    """Bitwise and of two integers."""
    return _bitwise("and", left, right)


def bitwise_or(left: Operand, right: Operand) -> Expr:
    """Bitwise or of two integers."""
    return _bitwise("or", left, right)


def bitwise_xor(left: Operand, right: Operand) -> Expr:
    """Bitwise exclusive or of two integers."""
    return _bitwise("xor", left, right)


def bitwise_not(value: Operand) -> Expr:
    """An integer with all bits inverted."""
    operand = convert(value)
    return _bitwise("xor", operand, Const(_range(operand.dtype)[1] if operand.dtype in UNSIGNED else -1, operand.dtype))


def bitcast(value: Operand, dtype: str) -> Expr:
    """Reinterpret the bits of a number as another type of the same width."""
    operand = convert(value)
    return operand if operand.dtype == dtype else Bitcast(operand, dtype)


def round_to(value: Operand, kind: str = "tf32") -> Expr:
    """The nearest number of 10 mantissa bits, ties to even: what `cvt.rn.tf32.f32` gives (PTX ISA).

    Products of numbers that are rounded so are exact in float32, and tensor cores compute them. With `tf32x3` it is
    that of 22 bits, one less than float32 has: tensor cores compute their products as three.
    """
    operand = convert(value)
    rounding = ROUNDINGS.get(kind)
    if rounding is None:
        raise ExpressionError(f"numbers are rounded to {' or '.join(map(repr, ROUNDINGS))}, got {kind!r:.40}")
    if operand.dtype != "float32":
        raise ExpressionError(f"{kind} has the range of float32, got {operand.dtype}: cast first")
    bits = bitcast(operand, "int32")
    last = bitwise_and(_bitwise("shr", bits, rounding.bits), 1)
    rounded = bitwise_and(bits + (last + rounding.below_half), rounding.mask)
    return select(operand == operand, bitcast(rounded, "float32"), operand)


def shift_left(value: Operand, count: Operand) -> Expr:
    """Shift an integer left by another, which is not negative; 0 where that is the width or more."""
    operand, by = match(value, count)
    width = bits_of(operand.dtype) if operand.dtype in INTEGERS else 0
    return select(by < width, _bitwise("shl", operand, by), Const(0, operand.dtype))


def shift_right(value: Operand, count: Operand) -> Expr:
    """Shift an integer right by another, which is not negative: division by a power of two, rounded down."""
    operand, by = match(value, count)
    last = (bits_of(operand.dtype) if operand.dtype in INTEGERS else 1) - 1
    beyond = _bitwise("shr", operand, last) if operand.dtype not in UNSIGNED else Const(0, operand.dtype)
    return select(by <= last, _bitwise("shr", operand, by), beyond)


def _bitwise(op: str, left: Operand, right: Operand) -> Expr:
    a, b = match(left, right)
    if a.dtype not in INTEGERS:
        raise ExpressionError(f"operations on bits are defined on integers, got {a.dtype}")
    return Binary(op, a, b)


def min_value(dtype: str) -> Const:
    """The smallest value of a type: minus infinity for floats."""
    return Const(-math.inf if dtype in FLOATS else _range(dtype)[0], dtype)


def max_value(dtype: str) -> Const:
    """The largest value of a type: infinity for floats."""
    return Const(math.inf if dtype in FLOATS else _range(dtype)[1], dtype)


def _range(dtype: str) -> tuple[int, int]:
    if dtype not in INTEGERS:
        raise ExpressionError(f"type '{dtype}' has no smallest and largest value here")
    return integer_range(dtype)


UFUNCS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "absolute": abs,
    "ceil": ceil,
    "cos": cos,
    "exp": exp,
    "exp2": exp2,
    "floor": floor,
    "fmod": fmod,
    "log": log,
    "log2": log2,
    "maximum": maximum,
    "minimum": minimum,
    "rint": round,
    "sin": sin,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
    "trunc": trunc,
}
"""Universal functions of NumPy, by name, and what each is on expressions."""


def function_of(ufunc: Any, method: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that stands for a call of one of NumPy's; TypeError where there is none."""
    name = str(ufunc.__name__)
    if name not in UFUNCS:
        raise TypeError(f"te has no np.{name}: it has {', '.join(sorted(UFUNCS))}")
    if method != "__call__" or options:
        what = f"np.{name}.{method}" if method != "__call__" else f"np.{name} with {', '.join(options)}"
        raise TypeError(f"{what} is for arrays: reduce te expressions with te.sum, te.max and their like")
    return UFUNCS[name]


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, which leaves arithmetic to expressions; all else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
