"""Operators on one tensor, element by element."""

from __future__ import annotations

import math

import numpy as np

from ....dialects.numpy_types import ELEMENT_TYPES
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, Operand, numpy_type
from ..types import type_name


def Abs(node: Node) -> Value:
    return node.apply("abs", node.value())


def Neg(node: Node) -> Value:
    return node.apply("negative", node.value())


def Exp(node: Node) -> Value:
    return node.apply("exp", node.value())


def Log(node: Node) -> Value:
    return node.apply("log", node.value())


def Sqrt(node: Node) -> Value:
    return node.apply("sqrt", node.value())


def Sin(node: Node) -> Value:
    return node.apply("sin", node.value())


def Cos(node: Node) -> Value:
    return node.apply("cos", node.value())


def Tan(node: Node) -> Value:
    return node.apply("tan", node.value())


def Asin(node: Node) -> Value:
    return node.apply("asin", node.value())


def Acos(node: Node) -> Value:
    return node.apply("acos", node.value())


def Atan(node: Node) -> Value:
    return node.apply("atan", node.value())


def Sinh(node: Node) -> Value:
    return node.apply("sinh", node.value())


def Cosh(node: Node) -> Value:
    return node.apply("cosh", node.value())


def Tanh(node: Node) -> Value:
    return node.apply("tanh", node.value())


def Asinh(node: Node) -> Value:
    return node.apply("asinh", node.value())


def Acosh(node: Node) -> Value:
    return node.apply("acosh", node.value())


def Atanh(node: Node) -> Value:
    return node.apply("atanh", node.value())


def Sigmoid(node: Node) -> Value:
    return node.apply("sigmoid", node.value())


def Erf(node: Node) -> Value:
    return node.apply("erf", node.value())


def Floor(node: Node) -> Value:
    return node.apply("floor", node.value())


def Ceil(node: Node) -> Value:
    return node.apply("ceil", node.value())


def Round(node: Node) -> Value:
    return node.apply("round", node.value())


def Sign(node: Node) -> Value:
    return node.apply("sign", node.value())


def Reciprocal(node: Node) -> Value:
    return node.apply("reciprocal", node.value())


def Not(node: Node) -> Value:
    return node.apply("logical_not", node.value())


def Relu(node: Node) -> Value:
    return node.apply("relu", node.value())


def Softplus(node: Node) -> Value:
    return node.apply("softplus", node.value())


def HardSwish(node: Node) -> Value:
    x = node.value()
    if x.dtype != "float64":
        return node.apply("hard_swish", x)
    sixth = float(np.float32(1 / 6))  # as the standard's HardSigmoid has it: attributes are float32
    return node.apply("multiply", x, node.net.hard_sigmoid(x, alpha=sixth, beta=0.5))


def IsNaN(node: Node) -> Value:
    return node.apply("is_nan", node.value())


def Identity(node: Node) -> Operand:
    return node.operand(0)


def Dropout(node: Node) -> Operand | list[Operand]:
    """The data, and a mask of ones: nothing is dropped in inference."""
    training = node.has(2) and bool(node.constant(2, "training_mode").reshape(-1)[0])
    if training and node.number("ratio", 1, 0.5) > 0:
        raise UnsupportedNode("dropout by chance (training_mode) is not supported")
    if len(node.results) < 2 or not node.results[1]:
        return node.operand(0)
    return [node.operand(0), np.ones(node.shape(), dtype=bool)]


def IsInf(node: Node) -> Value:
    return node.apply(
        "is_inf",
        node.value(),
        negative=bool(node.get("detect_negative", 1)),
        positive=bool(node.get("detect_positive", 1)),
    )


def LeakyRelu(node: Node) -> Value:
    return node.apply("leaky_relu", node.value(), alpha=float(node.get("alpha", 0.01)))


def Elu(node: Node) -> Value:
    return node.apply("elu", node.value(), alpha=float(node.get("alpha", 1.0)))


def Celu(node: Node) -> Value:
    return node.apply("celu", node.value(), alpha=float(node.get("alpha", 1.0)))


def Selu(node: Node) -> Value:
    alpha = float(node.get("alpha", 1.67326319217681884765625))
    gamma = float(node.get("gamma", 1.05070102214813232421875))
    return node.apply("elu", node.value(), alpha=alpha) * gamma


def HardSigmoid(node: Node) -> Value:
    alpha, beta = float(node.get("alpha", 0.2)), float(node.get("beta", 0.5))
    return node.apply("hard_sigmoid", node.value(), alpha=alpha, beta=beta)


def ThresholdedRelu(node: Node) -> Value:
    x = node.value()
    above = node.net.greater(x, node.number_like(float(node.get("alpha", 1.0)), x))
    return node.apply("where", above, x, node.number_like(0, x))


def Softsign(node: Node) -> Value:
    x = node.value()
    return node.apply("divide", x, node.net.abs(x) + 1.0)


def Shrink(node: Node) -> Value:
    given, limit, bias = node.value(), float(node.get("lambd", 0.5)), float(node.get("bias", 0.0))
    net, is_whole = node.net, "float" not in given.dtype
    x = net.cast(given, dtype="float64") if is_whole else given
    rest = net.where(net.greater(x, node.number_like(limit, x)), x - bias, node.number_like(0, x))
    below = net.less(x, node.number_like(-limit, x))
    if not is_whole:
        return node.apply("where", below, x + bias, rest)
    return node.apply("cast", net.where(below, x + bias, rest), dtype=given.dtype)


def Gelu(node: Node) -> Value:
    return node.apply("gelu", node.value(), approximate=node.get("approximate", "none"))


def Mish(node: Node) -> Value:
    x = node.value()
    return node.apply("multiply", x, node.net.tanh(node.net.softplus(x)))


def Swish(node: Node) -> Value:
    x = node.value()
    return node.apply("multiply", x, node.net.sigmoid(x * float(node.get("alpha", 1.0))))


def Clip(node: Node) -> Value:
    x = node.value()
    if "min" in node.attributes or "max" in node.attributes:
        low, high = float(node.get("min", -math.inf)), float(node.get("max", math.inf))
        return node.apply("clip", x, low=low, high=high)
    if node.has(1):
        x = node.net.maximum(x, node.value(1))
    return node.net.minimum(x, node.value(2)) if node.has(2) else x


def Cast(node: Node) -> Operand:
    return _cast(node, type_name(int(node.get("to"))))


def CastLike(node: Node) -> Operand:
    return _cast(node, node.dtype(1))


def _cast(node: Node, dtype: str) -> Operand:
    if dtype not in ELEMENT_TYPES:
        raise UnsupportedNode(f"elements of type {dtype} are not supported")
    known = node.operand(0)
    if isinstance(known, np.ndarray):
        return known.astype(numpy_type(dtype))
    x = node.value()
    if x.dtype == dtype:
        return x
    return node.apply("cast", x, dtype=dtype)
