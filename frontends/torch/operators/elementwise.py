"""Operators that work element by element on one tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dialects.numpy_types import working_type
from ....graph.network import Value
from ... import signs
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

_ALL_LOST = -40.0
"""e to the power of this is lost beside 1, in double precision too."""


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


@aten("_to_copy.default", "prims::convert_element_type.default")
def to_copy(node: Node) -> Any:
    x = node.value("a" if "a" in node.arguments else "self")
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
    x, scale = node.value(), float(node["scale"])
    if node["input_scale"] != 1:
        raise UnsupportedNode("elu of scaled data stays PyTorch's")
    made = node.apply("elu", x, alpha=float(node["alpha"]))
    return made if scale == 1 else node.net.multiply(made, np.asarray(scale, x.dtype))


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
    if exponent == 3:
        return node.apply("multiply", node.net.square(x), x)
    if exponent == 4:
        return node.apply("square", node.net.square(x))
    if "float" not in x.dtype:
        raise UnsupportedNode("powers of whole numbers stay PyTorch's")
    return node.apply("power", x, float(exponent))


@aten("pow.Scalar")
def power_of_number(node: Node) -> Any:
    base, exponent = node["self"], node.cast(node.value("exponent"), node.dtype)
    if "float" not in node.dtype or base <= 0:
        raise UnsupportedNode("powers of whole numbers, and of ones below zero, stay PyTorch's")
    if base == 2:
        return node.apply("exp2", exponent)
    return node.apply("exp", node.net.multiply(exponent, np.asarray(math.log(base), node.dtype)))


@aten("expm1.default")
def expm1(node: Node) -> Any:
    """2 sinh(x / 2) e^(x / 2), which loses nothing near 0, of numbers from the one on whose result is -1."""
    kind = working_type(node.dtype)  # 2 sinh of half of it overflows float16 where its product with a power does not
    x = node.net.maximum(node.net.cast(_operand(node), dtype=kind), np.asarray(_ALL_LOST, kind))
    half = node.net.multiply(x, np.asarray(0.5, kind))
    twice = node.net.multiply(node.net.sinh(half), np.asarray(2, kind))
    return node.cast(node.net.multiply(twice, node.net.exp(half)), node.dtype)


@aten("log10.default")
def log10(node: Node) -> Any:
    return node.apply("multiply", node.net.log(_operand(node)), np.asarray(1 / math.log(10), node.dtype))


@aten("erfc.default")
def erfc(node: Node) -> Any:
    """1 - erf(x): of a large x, whose result is all but 0, few digits are right."""
    return node.apply("subtract", np.asarray(1, node.dtype), node.net.erf(_operand(node)))


@aten("round.decimals")
def round_decimals(node: Node) -> Any:
    scale = np.asarray(10.0 ** node["decimals"], node.dtype)
    return node.apply("divide", node.net.round(node.net.multiply(_operand(node), scale)), scale)


@aten("signbit.default")
def signbit(node: Node) -> Any:
    return is_below(node, node.value())


def is_below(node: Node, x: Value) -> Value:
    """Return where numbers have the sign of those below 0, as -0 has."""
    if "float" in x.dtype:
        return signs.is_below(node.apply, lambda number: np.asarray(number, x.dtype), x)
    below: Value = node.net.less(x, np.asarray(0, x.dtype))
    return below
