"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node, Operand, axis_of


def _axes(node: Node) -> list[int] | None:
    """The axes to reduce; None where nothing is to be reduced."""
    rank = len(node.shape())
    axes = node.ints("axes", 1)
    if axes:
        return sorted({axis_of(a, rank) for a in axes})
    return None if node.get("noop_with_empty_axes", 0) or not rank else list(range(rank))


def _reduced(node: Node, operator: str, x: Value) -> Value:
    axes = _axes(node)
    if axes is None:
        return x
    found = node.apply(operator, x, axis=axes, keepdims=bool(node.get("keepdims", 1)))
    return found if found.dtype == x.dtype else node.net.cast(found, dtype=x.dtype)


def _as_float(node: Node, x: Value, compute: Callable[[Value], Value]) -> Value:
    """Compute in floats and go back to the type of integers."""
    if "float" in x.dtype:
        return compute(x)
    return node.net.cast(compute(node.net.cast(x, dtype="float64")), dtype=x.dtype)


def ReduceSum(node: Node) -> Value:
    return _reduced(node, "sum", node.value())


def ReduceProd(node: Node) -> Value:
    return _reduced(node, "prod", node.value())


def ReduceMax(node: Node) -> Value:
    return _extreme(node, "max")


def ReduceMin(node: Node) -> Value:
    return _extreme(node, "min")


def _extreme(node: Node, operator: str) -> Value:
    x = node.value()
    if x.dtype == "bool":
        return node.net.cast(_reduced(node, operator, node.net.cast(x, dtype="int8")), dtype="bool")
    return _reduced(node, operator, x)


def ReduceMean(node: Node) -> Value:
    return _as_float(node, node.value(), lambda x: _reduced(node, "mean", x))


def ReduceL1(node: Node) -> Value:
    return _reduced(node, "sum", node.net.abs(node.value()))


def ReduceL2(node: Node) -> Value:
    return _as_float(node, node.value(), lambda x: node.net.sqrt(_reduced(node, "sum", node.net.square(x))))


def ReduceSumSquare(node: Node) -> Value:
    x = node.value()
    return _reduced(node, "sum", node.net.multiply(x, x))


def ReduceLogSum(node: Node) -> Value:
    return _as_float(node, node.value(), lambda x: node.net.log(_reduced(node, "sum", x)))


def ReduceLogSumExp(node: Node) -> Value:
    """log(sum(exp(x - m))) + m with m the maximum, so that nothing overflows."""
    axes, net = _axes(node), node.net

    def compute(x: Value) -> Value:
        if axes is None:
            return x
        most = net.max(x, axis=axes, keepdims=True)
        total = net.add(net.log(net.sum(net.exp(net.subtract(x, most)), axis=axes, keepdims=True)), most)
        return total if node.get("keepdims", 1) else net.squeeze(total, axis=axes)

    return _as_float(node, node.value(), compute)


def ArgMax(node: Node) -> Value:
    return _position(node, "argmax")


def ArgMin(node: Node) -> Value:
    return _position(node, "argmin")


def _position(node: Node, operator: str) -> Value:
    x, axis, net = node.value(), axis_of(int(node.get("axis", 0)), len(node.shape())), node.net
    keepdims = bool(node.get("keepdims", 1))
    if not node.get("select_last_index", 0):
        return net.cast(node.apply(operator, x, axis=axis, keepdims=keepdims), dtype="int64")
    from_end = net.cast(node.apply(operator, net.flip(x, axis=axis), axis=axis, keepdims=keepdims), dtype="int64")
    return net.subtract(net.constant(np.asarray(x.shape[axis] - 1, dtype="int64"), "last"), from_end)


def CumProd(node: Node) -> Operand:
    return _so_far(node, "cumprod")


def CumSum(node: Node) -> Operand:
    return _so_far(node, "cumsum")


def _so_far(node: Node, operator: str) -> Operand:
    """Reduce all elements up to each along an axis (a scan)."""
    x = node.value()
    if not x.shape:
        raise UnsupportedNode("a scalar has no axis")
    axis = axis_of(int(node.constant(1, "axis").reshape(-1)[0]), len(x.shape))
    options = {name: bool(node.get(name, 0)) for name in ("exclusive", "reverse")}
    return node.apply(operator, x, axis=axis, **options)
