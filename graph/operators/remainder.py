"""Remainders, quotients and logic of two tensors, beyond NumPy's."""

from __future__ import annotations

import math

from ... import te
from ...te import Tensor, broadcast
from ...te.expr import Expr
from ..operator import elementwise


def _truncated(x: Expr, y: Expr) -> Expr:
    """The quotient of absolute values, with the sign of the exact one."""
    quotient = te.abs(x) // te.abs(y)
    return te.select(te.any(te.all(x < 0, y > 0), te.all(x > 0, y < 0)), -quotient, quotient)


def _truncate_divide(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_truncate_divide", _truncated, a, b)


def _fmod(a: Tensor, b: Tensor) -> Tensor:
    def element(x: Expr, y: Expr) -> Expr:
        if "float" not in x.dtype:
            return x - _truncated(x, y) * y
        infinite = te.const(math.inf, y.dtype)  # a finite number is its own remainder by infinity
        return te.select(te.any(te.abs(y) != infinite, te.abs(x) == infinite), te.fmod(x, y), x)

    return broadcast("T_fmod", element, a, b)


def _logical_xor(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_logical_xor", lambda x, y: x != y, a, b)


truncate_divide = elementwise(_truncate_divide)
fmod = elementwise(_fmod)
logical_xor = elementwise(_logical_xor)
