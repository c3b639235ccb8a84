"""Elementwise operators of two or three operands, with NumPy's broadcasting."""

from __future__ import annotations

from typing import TypeAlias

from .. import te
from ..te import Tensor, broadcast

Value: TypeAlias = Tensor | int | float


def add(a: Value, b: Value) -> Tensor:
    """a + b."""
    return broadcast("T_add", lambda x, y: x + y, a, b)


def subtract(a: Value, b: Value) -> Tensor:
    """a - b."""
    return broadcast("T_subtract", lambda x, y: x - y, a, b)


def multiply(a: Value, b: Value) -> Tensor:
    """a * b."""
    return broadcast("T_multiply", lambda x, y: x * y, a, b)


def divide(a: Value, b: Value) -> Tensor:
    """a / b, on floats."""
    return broadcast("T_divide", lambda x, y: x / y, a, b)


def floor_divide(a: Value, b: Value) -> Tensor:
    """a / b rounded down; integers and floats."""
    return broadcast("T_floor_divide", te.floor_divide, a, b)


def mod(a: Value, b: Value) -> Tensor:
    """a - floor(a / b) * b; integers and floats."""
    return broadcast("T_mod", te.floor_mod, a, b)


def power(a: Value, b: Value) -> Tensor:
    """a to the power of b, on floats."""
    return broadcast("T_power", lambda x, y: te.power(x, y), a, b)


def maximum(a: Value, b: Value) -> Tensor:
    """The larger of a and b."""
    return broadcast("T_maximum", te.maximum, a, b)


def minimum(a: Value, b: Value) -> Tensor:
    """The smaller of a and b."""
    return broadcast("T_minimum", te.minimum, a, b)


def equal(a: Value, b: Value) -> Tensor:
    """a == b, of type bool."""
    return broadcast("T_equal", lambda x, y: x == y, a, b)


def not_equal(a: Value, b: Value) -> Tensor:
    """a != b, of type bool."""
    return broadcast("T_not_equal", lambda x, y: x != y, a, b)


def less(a: Value, b: Value) -> Tensor:
    """a < b, of type bool."""
    return broadcast("T_less", lambda x, y: x < y, a, b)


def less_equal(a: Value, b: Value) -> Tensor:
    """a <= b, of type bool."""
    return broadcast("T_less_equal", lambda x, y: x <= y, a, b)


def greater(a: Value, b: Value) -> Tensor:
    """a > b, of type bool."""
    return broadcast("T_greater", lambda x, y: x > y, a, b)


def greater_equal(a: Value, b: Value) -> Tensor:
    """a >= b, of type bool."""
    return broadcast("T_greater_equal", lambda x, y: x >= y, a, b)


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """Logical and of two conditions (tensors of type bool)."""
    return broadcast("T_logical_and", te.all, a, b)


def logical_or(a: Tensor, b: Tensor) -> Tensor:
    """Logical or of two conditions (tensors of type bool)."""
    return broadcast("T_logical_or", te.any, a, b)


def where(condition: Tensor, yes: Value, no: Value) -> Tensor:
    """`yes` where the condition (bool, or a number that is not 0) holds, else `no`."""
    return broadcast("T_where", lambda c, x, y: te.select(te.cast(c, "bool"), x, y), condition, yes, no)
