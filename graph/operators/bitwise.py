"""Operations on the bits of integers."""

from __future__ import annotations

from ... import te
from ...te import Tensor, broadcast
from ..operator import elementwise


def _bitwise_and(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_bitwise_and", te.bitwise_and, a, b)


def _bitwise_or(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_bitwise_or", te.bitwise_or, a, b)


def _bitwise_xor(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_bitwise_xor", te.bitwise_xor, a, b)


def _bitwise_not(a: Tensor) -> Tensor:
    return broadcast("T_bitwise_not", te.bitwise_not, a)


def _shift_left(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_shift_left", te.shift_left, a, b)


def _shift_right(a: Tensor, b: Tensor) -> Tensor:
    return broadcast("T_shift_right", te.shift_right, a, b)


def _bitcast(a: Tensor, *, dtype: str) -> Tensor:
    return broadcast("T_bitcast", lambda x: te.bitcast(x, dtype), a)


bitwise_and = elementwise(_bitwise_and)
bitwise_or = elementwise(_bitwise_or)
bitwise_xor = elementwise(_bitwise_xor)
bitwise_not = elementwise(_bitwise_not)
shift_left = elementwise(_shift_left)
shift_right = elementwise(_shift_right)
bitcast = elementwise(_bitcast)
