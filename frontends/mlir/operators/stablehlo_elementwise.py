"""StableHLO's operations element by element."""

from __future__ import annotations

from ....dialects.numpy_types import FLOATS
from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from . import _scalar
from ._scalar import both, by, same

abs = same("abs")
add = by(_scalar.add)
and_ = both("logical_and", "bitwise_and")
atan2 = by(_scalar.atan2)
cbrt = by(_scalar.cbrt)
ceil = same("ceil")
count_leading_zeros = by(_scalar.leading_zeros)
cosine = same("cos")
divide = by(_scalar.divide)
exponential = same("exp")
exponential_minus_one = by(_scalar.expm1)
floor = same("floor")
is_finite = by(_scalar.is_finite)
log = same("log")
log_plus_one = by(_scalar.log1p)
logistic = same("sigmoid")
maximum = same("maximum")
minimum = same("minimum")
multiply = by(_scalar.multiply)
negate = by(_scalar.negate)
not_ = both("logical_not", "bitwise_not")
or_ = both("logical_or", "bitwise_or")
popcnt = by(_scalar.count_bits)
power = by(_scalar.power)
remainder = by(_scalar.remainder)
round_nearest_afz = by(_scalar.round_away)
round_nearest_even = same("round")
rsqrt = same("rsqrt")
shift_left = same("shift_left")
shift_right_arithmetic = same("shift_right")
shift_right_logical = by(_scalar.logical_shift)
sign = by(_scalar.sign)
sine = same("sin")
sqrt = same("sqrt")
subtract = same("subtract")
tan = same("tan")
tanh = same("tanh")
xor = both("logical_xor", "bitwise_xor")


@Converter
def select(node: Node) -> Value:
    return node.build.elementwise("where", *node.operands)


@Converter
def clamp(node: Node) -> Value:
    low, x, high = node.operands
    return _scalar.clamp(node.build, low, x, high)


@Converter
def compare(node: Node) -> Value:
    direction = str(node.need("comparison_direction")).split()[-1]
    x, y = node.value(0), node.value(1)
    if "TOTALORDER" in str(node.get("compare_type")) and x.dtype in FLOATS:
        return _scalar.in_total_order(node.build, direction, x, y)
    return _scalar.compare(node.build, direction, x, y)


@Converter
def convert(node: Node) -> Value:
    return node.build.cast(node.value(), node.dtype)


@Converter
def bitcast_convert(node: Node) -> Value:
    if node.shape != node.value().shape:
        raise UnsupportedOperation("it changes the width of elements")
    return node.build.elementwise("bitcast", node.value(), dtype=node.dtype)


@Converter
def reduce_precision(node: Node) -> Value:
    bits = node.ints("exponent_bits") + node.ints("mantissa_bits")
    spelled = str(node.get("format", ""))
    kinds = {"[8, 23]": "float32", "[8, 7]": "bfloat16", "[5, 10]": "float16", "[11, 52]": "float64"}
    kinds |= {"e8m23": "float32", "e8m7": "bfloat16", "e5m10": "float16", "e11m52": "float64"}
    kind = kinds.get(str(bits)) or kinds.get(spelled)
    if kind is None:
        raise UnsupportedOperation(f"floats of {spelled or bits} are not known")
    return node.build.cast(node.build.cast(node.value(), kind), node.value().dtype)


@Converter
def map(node: Node) -> object:
    if len(node.ints("dimensions")) != len(node.shape):
        raise UnsupportedOperation("it maps over some axes only")
    return node.inline(node.region(), node.operands)


@Converter
def optimization_barrier(node: Node) -> object:
    return list(node.operands)
