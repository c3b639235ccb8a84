"""Remainders, quotients and logic of two tensors, beyond NumPy's."""

from __future__ import annotations

from ... import te
from ...te import Tensor, broadcast
from ...te.expr import Expr
from ..operator import elementwise


def _truncated(x: Expr, y: Expr) -> Expr:
    """The quotient rounded down, or the one after it, where that is below 0 and not exact."""
    quotient = x // y
    return te.select(te.all(quotient < 0, quotient * y != x), quotient + 1, quotient)


def _truncate_divide(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_truncate_divide", _truncated, a, b)


def _fmod(a: Tensor, b: Tensor) -> Tensor:
    def element(x: Expr, y: Expr) -> Expr:
        return te.fmod(x, y) if "float" in x.dtype else x - _truncated(x, y) * y

    return broadcast("T_fmod", element, a, b)


def _logical_xor(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_logical_xor", lambda x, y: x != y, a, b)


truncate_divide = elementwise(_truncate_divide)
fmod = elementwise(_fmod)
logical_xor = elementwise(_logical_xor)
