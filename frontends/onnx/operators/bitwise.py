"""Operators on the bits of integers."""

from __future__ import annotations

from ....graph.network import Value
from ..node import Node


def BitShift(node: Node) -> Value:
    operator = "shift_left" if node.get("direction") == "LEFT" else "shift_right"
    return node.apply(operator, *node.values())


def BitwiseAnd(node: Node) -> Value:
    return node.apply("bitwise_and", *node.values())


def BitwiseOr(node: Node) -> Value:
    return node.apply("bitwise_or", *node.values())


def BitwiseXor(node: Node) -> Value:
    return node.apply("bitwise_xor", *node.values())


def BitwiseNot(node: Node) -> Value:
    return node.apply("bitwise_not", node.value())
