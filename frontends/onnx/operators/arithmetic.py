"""Operators on several tensors, element by element, with broadcasting."""

from __future__ import annotations

from functools import reduce

from ....dialects.numpy_types import FLOATS
from ....graph.network import Value
from ..node import Node


def _binary(node: Node, operator: str) -> Value:
    return node.apply(operator, node.value(0), node.value(1))


def _folded(node: Node, operator: str) -> Value:
    return reduce(lambda a, b: node.net.apply(operator, a, b, label=node.label), node.values())


def Add(node: Node) -> Value:
    return _binary(node, "add")


def Sub(node: Node) -> Value:
    return _binary(node, "subtract")


def Mul(node: Node) -> Value:
    return _binary(node, "multiply")


def Div(node: Node) -> Value:
    """Divide; quotients of integers are rounded towards zero."""
    return _binary(node, "divide" if node.dtype() in FLOATS else "truncate_divide")


def Mod(node: Node) -> Value:
    """Take the remainder, with the divisor's sign, or with the dividend's (fmod)."""
    if node.get("fmod", 0):
        return _binary(node, "fmod")
    if node.dtype() not in FLOATS:
        return _binary(node, "mod")
    net, rest, divisor = node.net, _binary(node, "fmod"), node.value(1)
    zero = node.number_like(0, divisor)
    unlike = net.less(net.multiply(net.sign(rest), net.sign(divisor)), zero)
    return net.where(unlike, net.add(rest, divisor), rest)


def Pow(node: Node) -> Value:
    """Raise to a power, in the base's type; powers of integers are computed in double precision."""
    base, exponent = node.value(0), node.value(1)
    kind = base.dtype
    if kind not in FLOATS:
        base = node.net.cast(base, dtype="float64")
    if exponent.dtype != base.dtype:
        exponent = node.net.cast(exponent, dtype=base.dtype)
    result = node.apply("power", base, exponent)
    return result if kind in FLOATS else node.net.cast(node.net.round(result), dtype=kind)


def And(node: Node) -> Value:
    return _binary(node, "logical_and")


def Or(node: Node) -> Value:
    return _binary(node, "logical_or")


def Xor(node: Node) -> Value:
    return _binary(node, "logical_xor")


def BitwiseNot(node: Node) -> Value:
    """-1 - x, as two's complement has it."""
    x = node.value()
    return node.apply("subtract", node.net.constant(node.number_like(-1, x), "ones"), x)


def Equal(node: Node) -> Value:
    return _binary(node, "equal")


def Less(node: Node) -> Value:
    return _binary(node, "less")


def LessOrEqual(node: Node) -> Value:
    return _binary(node, "less_equal")


def Greater(node: Node) -> Value:
    return _binary(node, "greater")


def GreaterOrEqual(node: Node) -> Value:
    return _binary(node, "greater_equal")


def Max(node: Node) -> Value:
    return _folded(node, "maximum")


def Min(node: Node) -> Value:
    return _folded(node, "minimum")


def Sum(node: Node) -> Value:
    return _folded(node, "add")


def Mean(node: Node) -> Value:
    return _folded(node, "add") * (1.0 / len(node.operands))


def Where(node: Node) -> Value:
    return node.apply("where", node.value(0), node.value(1), node.value(2))


def PRelu(node: Node) -> Value:
    """The slope broadcasts; models of old exporters have one for each channel."""
    x, slope = node.value(0), node.value(1)
    if len(slope.shape) == 1 and slope.shape == x.shape[1:2] and slope.shape[0] not in (1, x.shape[-1]):
        return node.apply("prelu", x, slope, axis=1)
    below = node.net.multiply(x, slope)
    return node.apply("where", node.net.less(x, node.number_like(0, x)), below, x)
