"""CHLO: functions of one tensor that JAX leaves to the compiler."""

from __future__ import annotations

import numpy as np

from ....graph.network import Value
from ..discovery import Converter
from ..node import Node
from . import _scalar, _special
from ._scalar import by, same
from .stablehlo_elementwise import compare as _compare
from .stablehlo_shape import constant as _constant

acos = same("acos")
acosh = same("acosh")
asin = same("asin")
asinh = same("asinh")
atan = same("atan")
atanh = same("atanh")
cosh = same("cosh")
digamma = by(_special.digamma)
erf = same("erf")
erf_inv = by(_special.erf_inv)
erfc = by(_scalar.erfc)
is_inf = same("is_inf")
lgamma = by(_special.lgamma)
next_after = by(_special.next_after)
sinh = same("sinh")
square = same("square")
tan = same("tan")
broadcast_add = by(_scalar.add)
broadcast_atan2 = by(_scalar.atan2)
broadcast_and = _scalar.both("logical_and", "bitwise_and")
broadcast_divide = by(_scalar.divide)
broadcast_maximum = same("maximum")
broadcast_minimum = same("minimum")
broadcast_multiply = by(_scalar.multiply)
broadcast_or = _scalar.both("logical_or", "bitwise_or")
broadcast_power = by(_scalar.power)
broadcast_remainder = by(_scalar.remainder)
broadcast_select = same("where")
broadcast_shift_left = same("shift_left")
broadcast_shift_right_arithmetic = same("shift_right")
broadcast_shift_right_logical = by(_scalar.logical_shift)
broadcast_subtract = same("subtract")
broadcast_xor = _scalar.both("logical_xor", "bitwise_xor")
broadcast_compare = _compare
constant = _constant


@Converter
def is_neg_inf(node: Node) -> Value:
    return node.build.elementwise("equal", node.value(), node.build.like(-np.inf, node.value()))


@Converter
def is_pos_inf(node: Node) -> Value:
    return node.build.elementwise("equal", node.value(), node.build.like(np.inf, node.value()))


@Converter
def top_k(node: Node) -> object:
    return node.build.apply("top_k", node.value(), k=node.ints("k")[0])


@Converter
def constant_like(node: Node) -> Value:
    return node.build.broadcast(node.build.number(node.need("value"), node.dtype), node.shape)
