"""Reductions along axes."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from ....dialects.numpy_types import working_type
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten


def _axes(node: Node) -> list[int]:
    """The axes to reduce, all where none is named."""
    rank = len(node.value().shape)
    if not rank:
        raise UnsupportedNode("reductions of a number stay PyTorch's")
    named = node.arguments.get("dim")
    return node.axes() if named is not None and named != [] else list(range(rank))


def _reduced(node: Node, operator: str, x: Value) -> Any:
    keepdims = bool(node.arguments.get("keepdim", False))
    return node.apply(operator, x, axis=tuple(_axes(node)), keepdims=keepdims)


@aten("mean.dim", "mean.default")
def mean(node: Node) -> Any:
    return _reduced(node, "mean", node.cast(node.value(), node.dtype))


@aten("sum.dim_IntList", "sum.default")
def total(node: Node) -> Any:
    return _reduced(node, "sum", node.cast(node.value(), node.dtype))


@aten("prod.dim_int", "prod.default")
def product(node: Node) -> Any:
    return _reduced(node, "prod", node.cast(node.value(), node.dtype))


@aten("amax.default", "max.default")
def largest(node: Node) -> Any:
    return _extreme(node, "max")


@aten("amin.default", "min.default")
def smallest(node: Node) -> Any:
    return _extreme(node, "min")


def _extreme(node: Node, operator: str) -> Any:
    if node.value().dtype == "bool":
        return _of_conditions(node, operator)
    return _reduced(node, operator, node.value())


def _number(node: Node) -> Value:
    if node.value().dtype == "bool":
        raise UnsupportedNode("the largest of conditions stays PyTorch's")
    return node.value()


@aten("any.dim", "any.dims", "any.default")
def any_true(node: Node) -> Any:
    return _of_conditions(node, "max")


@aten("all.dim", "all.dims", "all.default")
def all_true(node: Node) -> Any:
    return _of_conditions(node, "min")


def _of_conditions(node: Node, operator: str) -> Any:
    x = node.value()
    truths = node.net.cast(x if x.dtype == "bool" else node.net.not_equal(x, 0), dtype="int8")
    return node.net.not_equal(_reduced(node, operator, truths), 0)


@aten("argmax.default", "argmin.default")
def place(node: Node) -> Any:
    x, name = _number(node), node.operator.partition(".")[0]
    if node["dim"] is None:
        flat = node.reshaped(x, [prod(x.shape)])
        return node.reshaped(node.cast(node.apply(name, flat, axis=0), node.dtype), node.shape)
    found = node.apply(name, x, axis=node.axis(), keepdims=bool(node["keepdim"]))
    return node.cast(found, node.dtype)


@aten("max.dim", "min.dim")
def with_place(node: Node) -> list[Any]:
    x, name = _number(node), node.operator.partition(".")[0]
    if not x.shape:
        raise UnsupportedNode("reductions of a number stay PyTorch's")
    options = {"axis": node.axis(), "keepdims": bool(node["keepdim"])}
    found = node.cast(node.apply(f"arg{name}", x, **options), "int64") if 1 in node.used else None
    return [node.apply(name, x, **options), found]


@aten("var.correction")
def variance(node: Node) -> Any:
    return _variance(node)


@aten("var_mean.correction")
def variance_and_mean(node: Node) -> list[Any]:
    return [_variance(node), _reduced(node, "mean", node.value())]


def _variance(node: Node) -> Any:
    axes = _axes(node)
    x = node.cast(node.value(), working_type(node.value().dtype))
    count = prod(x.shape[d] for d in axes)
    correction = 1 if node["correction"] is None else node["correction"]
    if count - correction <= 0:
        raise UnsupportedNode("a variance without degrees of freedom stays PyTorch's")
    centred = node.net.subtract(x, node.net.mean(x, axis=tuple(axes), keepdims=True))
    summed = node.net.sum(node.net.square(centred), axis=tuple(axes), keepdims=bool(node["keepdim"]))
    made: Value = node.apply("multiply", summed, np.asarray(1.0 / (count - correction), dtype=x.dtype))
    return node.cast(made, node.dtype)


@aten("linalg_vector_norm.default")
def vector_norm(node: Node) -> Any:
    x, order = node.cast(node.value(), node.dtype), float(node["ord"])
    if order == 2:
        return node.apply("sqrt", _reduced(node, "sum", node.net.square(x)))
    if order == 0:
        return _reduced(node, "sum", node.cast(node.net.not_equal(x, 0), node.dtype))
    size = node.net.abs(x)
    if order in (math.inf, -math.inf, 1):
        return _reduced(node, {math.inf: "max", -math.inf: "min", 1.0: "sum"}[order], size)
    return node.apply("power", _reduced(node, "sum", node.net.power(size, order)), 1 / order)


@aten("dist.default")
def distance(node: Node) -> Any:
    if node["p"] != 2:
        raise UnsupportedNode("distances other than the Euclidean one stay PyTorch's")
    apart = node.net.square(node.net.subtract(node.value(), node.value("other")))
    return node.apply("sqrt", node.apply("sum", apart, axis=tuple(range(len(apart.shape)))))


@aten("_cdist_forward.default")
def distances(node: Node) -> Any:
    """Euclidean distances, or sums of absolute differences, of all pairs of rows."""
    a, b = node.value("x1"), node.value("x2")
    if node["p"] not in (1, 2):
        raise UnsupportedNode(f"distances of order {node['p']} stay PyTorch's")
    rows = node.reshaped(a, [*a.shape[:-1], 1, a.shape[-1]])
    columns = node.reshaped(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    apart = node.net.subtract(rows, columns)
    if node["p"] == 1:
        return node.apply("sum", node.net.abs(apart), axis=-1)
    return node.apply("sqrt", node.net.sum(node.net.square(apart), axis=-1))


@aten("cumsum.default", "cumprod.default")
def so_far(node: Node) -> Any:
    x, name = node.value(), node.operator.partition(".")[0]
    if not x.shape:
        return node.apply("identity", node.cast(x, node.dtype))
    if x.shape[node.axis()] > _MOST_IN_A_ROW:
        node.prefer_pytorch(prod(x.shape) * x.shape[node.axis()], _MOST_STEPS)
    wide = "float32" if node.dtype in ("float16", "bfloat16") else node.dtype  # summed, and rounded once
    return node.cast(node.apply(name, node.cast(x, wide), axis=node.axis()), node.dtype)


_MOST_IN_A_ROW = 32
"""Rows of `cumsum` up to this length are taken in any number; each element looks at all of its row. Longer ones are
scanned in parts, 0.7 to 1.1 times as fast as PyTorch's (one core of an Emerald Rapids)."""
_MOST_STEPS = 1 << 18
"""So many looks at elements of a row are taken where rows are longer.

On two threads of a loaded Xeon (2026-11-23) sorting takes 0.05 ms of them (PyTorch 0.01 to 0.03), and sums so far
0.015 ms (PyTorch 0.003).
"""


@aten("topk.default")
def top_k(node: Node) -> list[Any]:
    x = node.value()
    if not x.shape:
        raise UnsupportedNode("the largest of a number stays PyTorch's")
    return _in_order(node, int(node["k"]), bool(node["largest"]))


@aten("sort.default", "sort.stable")
def sort(node: Node) -> list[Any]:
    x = node.value()
    if not x.shape:
        raise UnsupportedNode("sorting a number stays PyTorch's")
    return _in_order(node, x.shape[node.axis()], bool(node["descending"]))


def _in_order(node: Node, count: int, largest: bool) -> list[Any]:
    """The first elements of each row in order, and their places: each is compared with all of its row."""
    x, axis = _number(node), node.axis()
    node.prefer_pytorch(prod(x.shape) * x.shape[axis], _MOST_STEPS)
    values, places = node.apply("top_k", x, k=count, axis=axis, largest=largest)
    return [values, node.cast(places, "int64") if 1 in node.used else None]


@aten("bucketize.Tensor", "searchsorted.Tensor")
def bucketize(node: Node) -> Any:
    """The number of boundaries below each element, or not above it."""
    bounds = node.value("boundaries" if node.operator.startswith("bucketize") else "sorted_sequence")
    x = node.value()
    if len(bounds.shape) != 1 or node.arguments.get("sorter") is not None or node.arguments.get("side") is not None:
        raise UnsupportedNode("a search in several rows stays PyTorch's")
    node.prefer_pytorch(prod(x.shape) * bounds.shape[0], _MOST_STEPS)
    below = node.net.less_equal if node["right"] else node.net.less
    found = below(node.cast(bounds, x.dtype), node.reshaped(x, [*x.shape, 1]))
    return node.cast(node.net.sum(node.net.cast(found, dtype="int32"), axis=-1), node.dtype)
