"""Matrix products."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.network import Value
from ..node import Node


def MatMul(node: Node) -> Value:
    """NumPy's matmul: vectors are promoted, leading axes broadcast."""
    net, a, b = node.net, node.value(0), node.value(1)
    row, column = len(a.shape) == 1, len(b.shape) == 1
    if row:
        a = net.reshape(a, shape=(1, *a.shape))
    if column:
        b = net.reshape(b, shape=(*b.shape, 1))
    y = _product(node, a, b)
    shape = list(y.shape)
    if column:
        shape.pop()
    if row:
        shape.pop(-1 if column else -2)
    return net.reshape(y, shape=shape) if row or column else y


def _product(node: Node, a: Value, b: Value) -> Value:
    net = node.net
    if len(b.shape) == 2:
        flat = a if len(a.shape) == 2 else net.reshape(a, shape=(prod(a.shape[:-1]), a.shape[-1]))
        y = node.apply("matmul", flat, b)
        return y if len(a.shape) == 2 else net.reshape(y, shape=(*a.shape[:-1], b.shape[-1]))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def flattened(x: Value) -> Value:
        if prod(x.shape[:-2]) == 1:
            return net.reshape(x, shape=(1, *x.shape[-2:]))
        wide = (*batch, *x.shape[-2:])
        if x.shape != wide:
            x = net.broadcast_to(x, shape=wide)
        return net.reshape(x, shape=(prod(batch), *x.shape[-2:]))

    y = node.apply("batch_matmul", flattened(a), flattened(b))
    return net.reshape(y, shape=(*batch, a.shape[-2], b.shape[-1]))


def Gemm(node: Node) -> Value:
    net, a, b = node.net, node.value(0), node.value(1)
    first, second = bool(node.get("transA", 0)), bool(node.get("transB", 0))
    alpha, beta = float(node.get("alpha", 1.0)), float(node.get("beta", 1.0))
    if second and not first:
        y = node.apply("dense", a, b)
    else:
        y = node.apply("matmul", a, b, transpose_a=first, transpose_b=second)
    if alpha != 1.0:
        y = net.multiply(y, node.number_like(alpha, y))
    if not node.has(2) or beta == 0.0:
        return y
    c = node.value(2)
    return net.add(y, c if beta == 1.0 else net.multiply(c, node.number_like(beta, c)))


def Einsum(node: Node) -> Value:
    return node.apply("einsum", *node.values(), equation=str(node.get("equation")).replace(" ", ""))
