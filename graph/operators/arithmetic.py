"""Operators that work element by element on several tensors, with NumPy's broadcasting."""

from __future__ import annotations

from ... import topi
from ...te import Tensor
from ..operator import Kind, Operator, axis_moves, elementwise


def _bias_add(data: Tensor, bias: Tensor, *, axis: int = 1) -> Tensor:
    return topi.nn.bias_add(data, bias, axis)


def _prelu(data: Tensor, slope: Tensor, *, axis: int = 1) -> Tensor:
    return topi.nn.prelu(data, slope, axis)


add = elementwise(topi.add)
subtract = elementwise(topi.subtract)
multiply = elementwise(topi.multiply)
divide = elementwise(topi.divide)
floor_divide = elementwise(topi.floor_divide)
mod = elementwise(topi.mod)
power = elementwise(topi.power)
maximum = elementwise(topi.maximum)
minimum = elementwise(topi.minimum)
equal = elementwise(topi.equal)
not_equal = elementwise(topi.not_equal)
less = elementwise(topi.less)
less_equal = elementwise(topi.less_equal)
greater = elementwise(topi.greater)
greater_equal = elementwise(topi.greater_equal)
logical_and = elementwise(topi.logical_and)
logical_or = elementwise(topi.logical_or)
where = elementwise(topi.where)
bias_add = Operator(_bias_add, Kind.ELEMENTWISE, axis_moves)
prelu = Operator(_prelu, Kind.ELEMENTWISE, axis_moves)
