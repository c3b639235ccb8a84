"""CHLO: functions of one tensor that JAX leaves to the compiler."""

from __future__ import annotations

import numpy as np

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from . import _scalar
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
erf = same("erf")
erf_inv = by(_scalar.erf_inv)
erfc = by(_scalar.erfc)
is_inf = same("is_inf")
sinh = same("sinh")
square = same("square")
tan = same("tan")
broadcast_add = by(_scalar.add)
broadcast_and = _scalar.both("logical_and", "bitwise_and")
broadcast_divide = by(_scalar.divide)
broadcast_maximum = same("maximum")
broadcast_minimum = same("minimum")
broadcast_multiply = by(_scalar.multiply)
broadcast_or = _scalar.both("logical_or", "bitwise_or")
broadcast_power = by(_scalar.power)
broadcast_remainder = by(_scalar.remainder)
broadcast_select = same("where")
broadcast_subtract = same("subtract")
broadcast_compare = _compare
constant = _constant


@Converter
def is_neg_inf(node: Node) -> Value:
    return node.build.elementwise("equal", node.value(), node.build.like(-np.inf, node.value()))


@Converter
def is_pos_inf(node: Node) -> Value:
    return node.build.elementwise("equal", node.value(), node.build.like(np.inf, node.value()))


@Converter
def top_k(node: Node) -> list[Value]:
    """Rank elements: each one's place is the number of those before it, which are larger, or equal and earlier."""
    x, build, count = node.value(), node.build, node.ints("k")[0]
    if not x.shape or x.shape[-1] > 1024:
        raise UnsupportedOperation("it is done for rows of up to 1024 elements")
    n, lead = x.shape[-1], x.shape[:-1]
    left, right = build.reshape(x, (*lead, n, 1)), build.reshape(x, (*lead, 1, n))
    earlier = build.constant(np.arange(n)[None, :] < np.arange(n)[:, None])
    ahead = build.elementwise("greater", right, left)
    ties = build.elementwise("logical_and", build.elementwise("equal", right, left), earlier)
    ranks = build.cast(build.elementwise("logical_or", ahead, ties), "int32")
    rank = build.apply("sum", ranks, axis=-1)
    hit = build.elementwise(
        "equal", build.reshape(rank, (*lead, 1, n)), build.constant(np.arange(count, dtype="int32")[:, None])
    )
    wide = build.reshape(x, (*lead, 1, n))
    places = build.constant(np.arange(n, dtype="int32"))
    values = build.apply("sum", build.elementwise("where", hit, wide, build.like(0, x)), axis=-1)
    found = build.apply("sum", build.elementwise("where", hit, places, build.like(0, places)), axis=-1)
    return [values, found]
