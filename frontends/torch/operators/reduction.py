"""Reductions along axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

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


@aten("prod.dim_int")
def product(node: Node) -> Any:
    return _reduced(node, "prod", node.cast(node.value(), node.dtype))


@aten("amax.default")
def largest(node: Node) -> Any:
    return _reduced(node, "max", _number(node))


@aten("amin.default")
def smallest(node: Node) -> Any:
    return _reduced(node, "min", _number(node))


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
    x, axes = node.value(), _axes(node)
    count = prod(x.shape[d] for d in axes)
    correction = 1 if node["correction"] is None else node["correction"]
    if count - correction <= 0:
        raise UnsupportedNode("a variance without degrees of freedom stays PyTorch's")
    centred = node.net.subtract(x, node.net.mean(x, axis=tuple(axes), keepdims=True))
    summed = node.net.sum(node.net.square(centred), axis=tuple(axes), keepdims=bool(node["keepdim"]))
    return node.apply("multiply", summed, np.asarray(1.0 / (count - correction), dtype=x.dtype))


@aten("linalg_vector_norm.default")
def vector_norm(node: Node) -> Any:
    if node["ord"] != 2:
        raise UnsupportedNode("norms other than the Euclidean one stay PyTorch's")
    return node.apply("sqrt", _reduced(node, "sum", node.net.square(node.cast(node.value(), node.dtype))))


@aten("cumsum.default")
def cumulative_sum(node: Node) -> Any:
    x = node.value()
    if not x.shape or x.shape[node.axis()] > _MOST_SUMMED:
        raise UnsupportedNode(f"sums so far of more than {_MOST_SUMMED} elements are faster in PyTorch")
    return node.apply("cumsum", node.cast(x, node.dtype), axis=node.axis())


_MOST_SUMMED = 32
"""Each element of `cumsum` looks at all of its row."""
