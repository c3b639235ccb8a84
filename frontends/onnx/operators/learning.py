"""Operators of the domain ai.onnx.ml on numbers: features chosen, scaled and added up."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Array, Node
from .indexing import Gather

DOMAIN = "ai.onnx.ml"
_LEAST = 1e-30
"""Rows are divided by no less than this, as ONNX's reference implementation does it."""


def ArrayFeatureExtractor(node: Node) -> Value:
    """The elements of the last axis at some places, (..., F) -> (..., n); of a vector a row, (F,) -> (1, n)."""
    x, places = node.value(), node.operand(1)
    count = prod(places.shape)
    flat = places.reshape(count) if isinstance(places, np.ndarray) else node.net.reshape(places, shape=(count,))
    found = Gather(replace(node, operands=[x, flat], attributes={"axis": -1}))
    return found if len(x.shape) > 1 else node.net.reshape(found, shape=(1, count))


def Binarizer(node: Node) -> Value:
    x = node.value()
    above = node.net.greater(x, node.number_like(float(node.get("threshold", 0.0)), x))
    return node.apply("cast", above, dtype=x.dtype)


def Scaler(node: Node) -> Value:
    """(x - offset) * scale in single precision, both one number or one a feature."""
    x = _single(node)
    for name, operator in (("offset", "subtract"), ("scale", "multiply")):
        if name in node.attributes:
            x = node.apply(operator, x, _numbers(node, name))
    return x


def Normalizer(node: Node) -> Value:
    """Rows of (N, F) over their largest size (MAX), the sum of their sizes (L1) or their length (L2)."""
    x, net, norm = _single(node), node.net, str(node.get("norm", "MAX"))
    if norm not in ("MAX", "L1", "L2"):
        raise UnsupportedNode(f"norm {norm} is not supported; norms are MAX, L1 and L2")
    axis = len(x.shape) - 1
    if norm == "L2":
        size = net.sqrt(net.sum(net.square(x), axis=axis, keepdims=True))
    else:
        size = net.apply("max" if norm == "MAX" else "sum", net.abs(x), axis=axis, keepdims=True)
    return node.apply("divide", x, net.maximum(size, np.float32(_LEAST)))


def LinearRegressor(node: Node) -> Value:
    """x w^T + b in single precision: (N, F) -> (N, targets)."""
    after, targets = str(node.get("post_transform", "NONE")), int(node.get("targets", 1))
    if after != "NONE":
        raise UnsupportedNode(f"post_transform {after} is not supported")
    weights = _numbers(node, "coefficients").reshape(targets, -1)
    y = node.apply("matmul", _single(node), weights, transpose_b=True)
    return node.net.add(y, _numbers(node, "intercepts")) if "intercepts" in node.attributes else y


def Imputer(node: Node) -> Value:
    """(N, F) with one value in the place of NaN, or of a number: the same for all features, or one a feature."""
    x = node.value()
    kind = "float" if "float" in x.dtype else "int64"
    if f"imputed_value_{kind}s" not in node.attributes:
        raise UnsupportedNode(f"imputed_value_{kind}s is missing for data of {x.dtype}")
    given = np.asarray(node.get(f"imputed_value_{kind}s"), x.dtype)
    replaced = node.get(f"replaced_value_{kind}", 0)
    gone = node.net.is_nan(x) if np.isnan(replaced) else node.net.equal(x, node.number_like(replaced, x))
    return node.apply("where", gone, node.net.constant(given, "imputed"), x)


def _single(node: Node) -> Value:
    x = node.value()
    return x if x.dtype == "float32" else node.net.cast(x, dtype="float32")


def _numbers(node: Node, name: str) -> Array:
    return np.asarray(node.get(name), np.float32)
