"""Operators on the bits of integers."""

from __future__ import annotations

import numpy as np

from ....dialects.numpy_types import ELEMENT_TYPES
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..node import Node
from ..types import type_name


def BitShift(node: Node) -> Value:
    """A negative count is out of range, and shifts by the width, as a count of the width or more does."""
    x, count = node.values()
    if count.dtype.startswith("int"):
        zero, width = (np.asarray(n, count.dtype) for n in (0, 8 * np.dtype(count.dtype).itemsize))
        count = node.apply("where", node.net.less(count, zero), width, count)
    return node.apply("shift_left" if node.get("direction") == "LEFT" else "shift_right", x, count)


def BitCast(node: Node) -> Value:
    """The bits of truth values are those of 0 and 1 in a byte."""
    x, dtype = node.value(), type_name(int(node.get("to")))
    if dtype not in ELEMENT_TYPES:
        raise UnsupportedNode(f"elements of type {dtype} are not supported")
    if "bool" in (x.dtype, dtype):
        return node.apply("cast", x, dtype=dtype)
    return node.apply("bitcast", x, dtype=dtype)


def BitwiseAnd(node: Node) -> Value:
    return node.apply("bitwise_and", *node.values())


def BitwiseOr(node: Node) -> Value:
    return node.apply("bitwise_or", *node.values())


def BitwiseXor(node: Node) -> Value:
    return node.apply("bitwise_xor", *node.values())


def BitwiseNot(node: Node) -> Value:
    return node.apply("bitwise_not", node.value())
