"""Operators that work element by element on several tensors, with PyTorch's promotion of types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.network import Value
from ... import signs
from ..errors import UnsupportedNode
from ..node import Node, aten
from .elementwise import is_below

_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_BITS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}


def _operand(node: Node, name: str, dtype: str) -> Value:
    """A tensor in a type, or a number."""
    found = node[name]
    if isinstance(found, Value):
        return node.cast(found, dtype)
    if found is None:
        raise UnsupportedNode(f"{name} is missing")
    return node.number(found, dtype)


def _pair(node: Node, dtype: str | None = None) -> tuple[Value, Value]:
    kind = dtype or node.dtype
    return _operand(node, "self", kind), _operand(node, "other", kind)


def _scaled(node: Node, operand: Value) -> Value:
    """The second operand of a sum, multiplied by alpha."""
    alpha = node["alpha"]
    return operand if alpha == 1 else node.net.multiply(operand, alpha)


@aten("add.Tensor", "add.Scalar")
def add(node: Node) -> Any:
    a, b = _pair(node)
    if node.dtype == "bool":
        return node.apply("logical_or", a, b)
    return node.apply("add", a, _scaled(node, b))


@aten("sub.Tensor", "sub.Scalar")
def subtract(node: Node) -> Any:
    a, b = _pair(node)
    return node.apply("subtract", a, _scaled(node, b))


@aten("rsub.Scalar", "rsub.Tensor")
def reversed_subtract(node: Node) -> Any:
    a, b = _pair(node)
    return node.apply("subtract", b, _scaled(node, a))


@aten("mul.Tensor", "mul.Scalar")
def multiply(node: Node) -> Any:
    a, b = _pair(node)
    return node.apply("logical_and" if node.dtype == "bool" else "multiply", a, b)


@aten("div.Tensor", "div.Scalar")
def divide(node: Node) -> Any:
    a, b = _pair(node)
    return node.apply("divide", a, b)


@aten("div.Tensor_mode", "div.Scalar_mode")
def divide_rounded(node: Node) -> Any:
    mode = node["rounding_mode"]
    if mode is None:
        return divide(node)
    if "float" in node.dtype:
        return node.apply("trunc", node.net.divide(*_pair(node))) if mode == "trunc" else floor_divide(node)
    return node.apply("truncate_divide" if mode == "trunc" else "floor_divide", *_pair(node))


@aten("floor_divide.default")
def floor_divide(node: Node) -> Any:
    return node.apply("floor_divide", *_pair(node))


@aten("remainder.Tensor", "remainder.Scalar")
def remainder(node: Node) -> Any:
    return node.apply("mod", *_pair(node))


@aten("fmod.Tensor", "fmod.Scalar")
def fmod(node: Node) -> Any:
    return node.apply("fmod", *_pair(node))


@aten("maximum.default", "clamp_min.Tensor")
def maximum(node: Node) -> Any:
    other = "min" if "min" in node.arguments else "other"
    return node.apply("maximum", _operand(node, "self", node.dtype), _operand(node, other, node.dtype))


@aten("minimum.default", "clamp_max.Tensor")
def minimum(node: Node) -> Any:
    other = "max" if "max" in node.arguments else "other"
    return node.apply("minimum", _operand(node, "self", node.dtype), _operand(node, other, node.dtype))


@aten("fmax.default", "fmin.default")
def extreme_number(node: Node) -> Any:
    """The larger or smaller of two, the other one where one is NaN."""
    a, b = _pair(node)
    operator = "maximum" if node.operator.startswith("fmax") else "minimum"
    if "float" not in node.dtype:
        return node.apply(operator, a, b)
    net = node.net
    return node.apply("where", net.is_nan(a), b, net.where(net.is_nan(b), a, net.apply(operator, a, b)))


@aten("pow.Tensor_Tensor")
def power(node: Node) -> Any:
    if "float" not in node.dtype:
        raise UnsupportedNode("powers of whole numbers stay PyTorch's")
    return node.apply("power", _operand(node, "self", node.dtype), _operand(node, "exponent", node.dtype))


@aten(*(f"{name}.{overload}" for name in _COMPARISONS for overload in ("Tensor", "Scalar")))
def compare(node: Node) -> Any:
    a, b = node.value(), node["other"]
    if isinstance(b, Value):
        common = a.dtype if a.dtype == b.dtype else _wider(a, b)
    elif isinstance(b, float) and "float" not in a.dtype:
        common = "float32"
    else:
        common = a.dtype if a.dtype != "bool" else "int64"
    name = _COMPARISONS[node.operator.partition(".")[0]]
    return node.apply(name, *_pair(node, "int8" if common == "bool" else common))


def _wider(a: Value, b: Value) -> str:
    """The type that PyTorch compares two tensors in."""
    if not (a.shape and b.shape):
        raise UnsupportedNode(f"a comparison of {a.dtype} with {b.dtype}, one of them a number, stays PyTorch's")
    floats = [x.dtype for x in (a, b) if "float" in x.dtype]
    if len(floats) == 1:
        return floats[0]
    return str(np.promote_types(a.dtype, b.dtype)) if not floats else "float32"


@aten(*(f"{name}.{overload}" for name in _BITS for overload in ("Tensor", "Scalar")))
def bitwise(node: Node) -> Any:
    name = node.operator.partition(".")[0]
    return node.apply(_BITS[name] if node.dtype == "bool" else name, *_pair(node))


@aten("logical_and.default", "logical_or.default", "logical_xor.default")
def logical(node: Node) -> Any:
    truths = [x if x.dtype == "bool" else node.net.not_equal(x, 0) for x in (node.value(), node.value("other"))]
    return node.apply(node.operator.partition(".")[0], *truths)


@aten("__lshift__.Scalar", "__lshift__.Tensor", "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar")
def shift_left(node: Node) -> Any:
    return node.apply("shift_left", *_pair(node))


@aten("__rshift__.Scalar", "__rshift__.Tensor", "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar")
def shift_right(node: Node) -> Any:
    return node.apply("shift_right", *_pair(node))


@aten("clamp.Tensor")
def clamp_between(node: Node) -> Any:
    x = node.cast(node.value(), node.dtype)
    for name, operator in (("min", "maximum"), ("max", "minimum")):
        if node[name] is not None:
            x = node.apply(operator, x, _operand(node, name, node.dtype))
    return x


@aten("hypot.default")
def hypot(node: Node) -> Any:
    a, b = (node.net.abs(x) for x in _pair(node))
    larger, smaller = node.net.maximum(a, b), node.net.minimum(a, b)
    ratio = node.net.divide(smaller, node.net.maximum(larger, np.asarray(np.finfo(node.dtype).tiny, node.dtype)))
    length = node.net.multiply(larger, node.net.sqrt(node.net.add(node.net.square(ratio), np.asarray(1, node.dtype))))
    endless = node.net.logical_or(node.net.is_inf(a), node.net.is_inf(b))
    return node.apply("where", endless, np.asarray(np.inf, node.dtype), length)


@aten("atan2.default")
def atan2(node: Node) -> Any:
    """The angle of (x, y)."""
    y, x = _pair(node)
    return signs.atan2(node.apply, lambda number: np.asarray(number, node.dtype), y, x)


@aten("copysign.Tensor")
def copysign(node: Node) -> Any:
    a, b = _pair(node)
    magnitude = node.net.abs(a)
    return node.apply("where", is_below(node, b), node.net.negative(magnitude), magnitude)


@aten("where.self")
def where(node: Node) -> Any:
    condition = node.value("condition")
    if condition.dtype != "bool":
        condition = node.net.not_equal(condition, 0)
    return node.apply("where", condition, *_pair(node))


@aten("masked_fill.Scalar")
def masked_fill(node: Node) -> Any:
    x = node.value()
    return node.apply("where", node.value("mask"), node.number(node["value"], x.dtype), x)
