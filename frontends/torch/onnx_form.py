"""Operators of ATen by the converters of their ONNX forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph.network import Value
from ..onnx.errors import UnsupportedNode as UnsupportedOnnxNode
from ..onnx.node import Array
from ..onnx.node import Node as OnnxNode
from .errors import UnsupportedNode
from .node import Node

_VERSION = 22
"""The operator set whose words are used."""


def as_onnx(
    node: Node, convert: Any, operands: Sequence[Value | Array | None], attributes: dict[str, Any], results: int = 1
) -> Any:
    """Convert a node by the function of an ONNX operator, given its operands, attributes and number of results."""
    onnx = OnnxNode(
        net=node.net,
        operator=convert.__name__,
        version=_VERSION,
        label=node.label,
        names=[operand.name if isinstance(operand, Value) else node.label for operand in operands],
        operands=operands,
        attributes=attributes,
        results=[node.label] * results,
        lift=node.net.constant,
    )
    try:
        return convert(onnx)
    except UnsupportedOnnxNode as error:
        raise UnsupportedNode(str(error)) from None
