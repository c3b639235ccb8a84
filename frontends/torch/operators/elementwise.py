"""Operators that work element by element on one tensor."""

from __future__ import annotations

import math
from typing import Any

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten

_SAME_NAME = (
    "relu",
    "sigmoid",
    "tanh",
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "abs",
    "sin",
    "cos",
    "tan",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "reciprocal",
    "silu",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "asin",
    "acos",
    "atan",
    "log1p",
    "hardswish",
)
_NAMES = {"hardswish": "hard_swish"}


def _operand(node: Node) -> Value:
    """The operand in the type of the result, as PyTorch promotes it."""
    return node.cast(node.value(), node.dtype)


@aten(*(f"{name}.default" for name in _SAME_NAME))
def same_name(node: Node) -> Value:
    name = node.operator.partition(".")[0]
    made: Value = node.apply(_NAMES.get(name, name), _operand(node))
    return made


@aten("neg.default")
def neg(node: Node) -> Any:
    return node.apply("negative", _operand(node))


@aten("square.default")
def square(node: Node) -> Any:
    return node.apply("square", _operand(node))


@aten("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
def same(node: Node) -> Any:
    return node.apply("identity", node.value())


@aten("_to_copy.default")
def to_copy(node: Node) -> Any:
    x = node.value()
    if x.dtype == "bool" and node.dtype != "bool":
        return node.cast(x, node.dtype)
    if node.dtype == "bool" and x.dtype != "bool":
        return node.apply("not_equal", x, 0)
    return node.apply("cast", x, dtype=node.dtype) if x.dtype != node.dtype else node.apply("identity", x)


@aten("logical_not.default")
def logical_not(node: Node) -> Any:
    x = node.value()
    return node.apply("logical_not", x) if x.dtype == "bool" else node.apply("equal", x, 0)


@aten("bitwise_not.default")
def bitwise_not(node: Node) -> Any:
    return node.apply("logical_not" if node.dtype == "bool" else "bitwise_not", node.value())


@aten("isnan.default")
def isnan(node: Node) -> Any:
    return node.apply("is_nan", _float(node))


@aten("isinf.default")
def isinf(node: Node) -> Any:
    return node.apply("is_inf", _float(node))


def _float(node: Node) -> Value:
    x = node.value()
    if "float" not in x.dtype:
        raise UnsupportedNode(f"elements of type {x.dtype} are tested by PyTorch")
    return x


@aten("gelu.default")
def gelu(node: Node) -> Any:
    return node.apply("gelu", node.value(), approximate=node["approximate"])


@aten("leaky_relu.default")
def leaky_relu(node: Node) -> Any:
    return node.apply("leaky_relu", node.value(), alpha=float(node["negative_slope"]))


@aten("elu.default")
def elu(node: Node) -> Any:
    if node["scale"] != 1 or node["input_scale"] != 1:
        raise UnsupportedNode("scaled elu stays PyTorch's")
    return node.apply("elu", node.value(), alpha=float(node["alpha"]))


@aten("hardsigmoid.default")
def hardsigmoid(node: Node) -> Any:
    return node.apply("hard_sigmoid", node.value(), alpha=1 / 6, beta=0.5)


@aten("hardtanh.default")
def hardtanh(node: Node) -> Any:
    return _clipped(node, _operand(node), node["min_val"], node["max_val"])


@aten("clamp.default")
def clamp(node: Node) -> Any:
    return _clipped(node, _operand(node), node["min"], node["max"])


@aten("clamp_min.default")
def clamp_min(node: Node) -> Any:
    return _clipped(node, _operand(node), node["min"], None)


@aten("clamp_max.default")
def clamp_max(node: Node) -> Any:
    return _clipped(node, _operand(node), None, node["max"])


def _clipped(node: Node, x: Value, low: float | None, high: float | None) -> Any:
    if low == 0 and high is None:
        return node.apply("relu", x)
    if "float" in x.dtype:
        return node.apply("clip", x, low=-math.inf if low is None else low, high=math.inf if high is None else high)
    if low is not None:
        x = node.apply("maximum", x, low)
    return x if high is None else node.apply("minimum", x, high)


@aten("pow.Tensor_Scalar")
def power(node: Node) -> Any:
    x, exponent = _operand(node), node["exponent"]
    names = {1: "identity", 2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if exponent in names and ("float" in x.dtype or exponent in (1, 2)):
        return node.apply(names[exponent], x)
    if "float" not in x.dtype:
        raise UnsupportedNode("powers of whole numbers stay PyTorch's")
    if exponent == 3:
        return node.apply("multiply", node.net.square(x), x)
    return node.apply("power", x, float(exponent))
