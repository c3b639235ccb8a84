"""Matrix products."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....dialects.graph import ApplyOp
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten


def _transposed(value: Value, axes: tuple[int, ...]) -> Value | None:
    """The tensor that a value is the transpose of, if it is."""
    owner = value.ssa.owner
    if not isinstance(owner, ApplyOp) or owner.operator.data != "transpose":
        return None
    return Value(value.net, owner.inputs[0]) if owner.options.values.get("axes") == axes else None


def _require_products(node: Node, a: Value, columns: int) -> None:
    node.require_products("products of matrices", a.dtype, prod(a.shape) * columns)


def _product(node: Node, a: Value, b: Value) -> Any:
    _require_products(node, a, b.shape[-1])
    weight = _transposed(b, (1, 0))
    return node.apply("matmul", a, b) if weight is None else node.apply("dense", a, weight)


@aten("mm.default")
def mm(node: Node) -> Any:
    return _product(node, node.value(), node.value("mat2"))


@aten("addmm.default")
def addmm(node: Node) -> Any:
    made = _product(node, node.value("mat1"), node.value("mat2"))
    if node["alpha"] != 1:
        made = node.net.multiply(made, np.asarray(node["alpha"], dtype=made.dtype))
    if node["beta"] == 0:
        return made
    bias = node.value()
    if node["beta"] != 1:
        bias = node.net.multiply(bias, np.asarray(node["beta"], dtype=bias.dtype))
    if len(bias.shape) == 1 and bias.shape[0] == made.shape[1]:
        return node.apply("bias_add", made, bias, axis=1)
    return node.apply("add", made, bias)


@aten("bmm.default")
def bmm(node: Node) -> Any:
    a, b = node.value(), node.value("mat2")
    _require_products(node, a, b.shape[-1])
    inner = _transposed(b, (0, 2, 1))
    if inner is not None:
        return node.apply("batch_matmul", a, inner, transpose_b=True)
    return node.apply("batch_matmul", a, b)


@aten("baddbmm.default")
def baddbmm(node: Node) -> Any:
    a, b = node.value("batch1"), node.value("batch2")
    _require_products(node, a, b.shape[-1])
    return _plus(node, node.net.batch_matmul(a, b))


@aten("addbmm.default")
def addbmm(node: Node) -> Any:
    a, b = node.value("batch1"), node.value("batch2")
    _require_products(node, a, b.shape[-1])
    return _plus(node, node.net.sum(node.net.batch_matmul(a, b), axis=0))


@aten("addmv.default")
def addmv(node: Node) -> Any:
    a, v = node.value("mat"), node.value("vec")
    _require_products(node, a, 1)
    return _plus(node, node.reshaped(node.net.dense(node.reshaped(v, [1, *v.shape]), a), a.shape[:1]))


def _plus(node: Node, product: Value) -> Any:
    """alpha times a product, and beta times what is added to it."""
    scaled = []
    for value, name in ((product, "alpha"), (node.value(), "beta")):
        factor = node[name]
        if factor == 0:
            continue
        scaled.append(value if factor == 1 else node.net.multiply(value, np.asarray(factor, dtype=value.dtype)))
    if len(scaled) < 2:
        raise UnsupportedNode("sums of which nothing is left stay PyTorch's")
    return node.apply("add", *scaled)
