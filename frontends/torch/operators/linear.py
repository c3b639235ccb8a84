"""Matrix products."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....dialects.graph import ApplyOp
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, aten

MOST_GROUPED_PRODUCTS = 1 << 25
"""Multiplications of rows by matrices of their own, above which PyTorch's product for each group is faster, where there
is one. On one core of a Xeon (AVX-512) 8 rows of 8 groups, 1024 x 2048 (2^24), take 13 ms, NumPy's products 17 to 42 ms
under the same load; 256 rows, 512 x 1024 (2^27), 70 and 27 ms: a row reads its matrix by itself."""


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


@aten("_grouped_mm.default")
def grouped_mm(node: Node) -> Any:
    """Consecutive rows by matrices of their own, as of the experts of a model that tokens are sorted by."""
    if node["bias"] is not None or node["out_dtype"] not in (None, node["self"].dtype):
        raise UnsupportedNode("grouped products with a bias or another type stay PyTorch's")
    return _grouped(node, node.value(), node.value("mat2"), node["offs"])


@aten("transformers::grouped_mm_fallback.default")
def grouped_mm_fallback(node: Node) -> Any:
    """The same of transformers, which takes it where PyTorch's is not compiled."""
    return _grouped(node, node.value("input"), node.value("weight"), node["offs"])


def _grouped(node: Node, rows: Value, matrices: Value, ends: Value | None) -> Any:
    """Rows (M, K), up to each end (E,) by one of the matrices (E, K, N); those behind the last are 0."""
    if ends is None or len(rows.shape) != 2 or len(matrices.shape) != 3:
        raise UnsupportedNode("grouped products of other than rows by a matrix for each group stay PyTorch's")
    (count, depth), (groups, _, columns) = rows.shape, matrices.shape
    _require_products(node, rows, columns)
    node.prefer_pytorch(count * depth * columns, MOST_GROUPED_PRODUCTS)
    net, number = node.net, np.arange(count, dtype=ends.dtype)[:, None]
    ended = net.less_equal(node.reshaped(ends, (1, groups)), net.constant(number, "rows"))
    passed = net.sum(net.cast(ended, dtype="int32"), axis=1)
    weight = _transposed(matrices, (0, 2, 1)) or net.transpose(matrices, axes=(0, 2, 1))
    which = net.minimum(passed, np.asarray(groups - 1, dtype="int32"))
    made = node.apply("chosen_dense", rows, weight, which)
    is_in_group = net.less(node.reshaped(passed, (count, 1)), np.asarray(groups, dtype="int32"))
    return net.where(is_in_group, made, np.asarray(0, dtype=made.dtype))


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
