"""The math dialect on tensors and scalars."""

from __future__ import annotations

from ....graph.network import Value
from ..discovery import Converter
from ..node import Node
from . import _scalar
from ._scalar import by, same

absf = absi = same("abs")
acos = same("acos")
acosh = same("acosh")
asin = same("asin")
asinh = same("asinh")
atan = same("atan")
atan2 = by(_scalar.atan2)
atanh = same("atanh")
cbrt = by(_scalar.cbrt)
ceil = same("ceil")
cos = same("cos")
cosh = same("cosh")
ctlz = by(_scalar.leading_zeros)
ctpop = by(_scalar.count_bits)
erf = same("erf")
erfc = by(_scalar.erfc)
exp = same("exp")
exp2 = same("exp2")
expm1 = by(_scalar.expm1)
floor = same("floor")
ipowi = by(_scalar.power)
isfinite = by(_scalar.is_finite)
isinf = same("is_inf")
isnan = same("is_nan")
log = same("log")
log1p = by(_scalar.log1p)
log2 = same("log2")
powf = by(_scalar.power)
round = by(_scalar.round_away)
roundeven = same("round")
rsqrt = same("rsqrt")
sin = same("sin")
sinh = same("sinh")
sqrt = same("sqrt")
tan = same("tan")
tanh = same("tanh")
trunc = same("trunc")


@Converter
def log10(node: Node) -> Value:
    x = node.value()
    return node.build.elementwise("multiply", node.build.elementwise("log", x), node.build.like(0.43429448190325176, x))


@Converter
def fma(node: Node) -> Value:
    a, b, c = node.operands
    return node.build.elementwise("add", node.build.elementwise("multiply", a, b), c)


@Converter
def copysign(node: Node) -> Value:
    x, y = node.operands
    magnitude, below = node.build.elementwise("abs", x), node.build.elementwise("less", y, node.build.like(0, y))
    return node.build.elementwise("where", below, node.build.elementwise("negative", magnitude), magnitude)


@Converter
def fpowi(node: Node) -> Value:
    x, y = node.operands
    return _scalar.power(node.build, x, node.build.cast(y, x.dtype))
