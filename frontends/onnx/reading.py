"""Nodes, attributes and shapes of an ONNX model as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .folding import foldable

if TYPE_CHECKING:
    from onnx import NodeProto


def fits(shape: Sequence[int], declared: list[int | str] | None) -> bool:
    """True where a shape is one that a model declares, as far as it does."""
    if declared is None:
        return True
    pairs = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(n == d for n, d in pairs if isinstance(d, int))


def value_of(attribute: Any) -> Any:
    """Return an attribute as a Python value: texts decoded, tensors as arrays."""
    from onnx import TensorProto, helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value


def is_known(node: NodeProto, operands: Sequence[object]) -> bool:
    """True where a node can be evaluated now."""
    present = zip(operands, node.input, strict=True)
    known = foldable(node) and all(isinstance(o, np.ndarray) for o, name in present if name)
    return known and not _is_quantised(node, operands)


def _is_quantised(node: NodeProto, operands: Sequence[object]) -> bool:
    """True for the numbers of quantised bytes, with a scale of the tensor or of an axis: networks compute on bytes."""
    if node.op_type != "DequantizeLinear":
        return False
    data, scale = operands[:2]
    assert isinstance(data, np.ndarray) and isinstance(scale, np.ndarray)
    return data.dtype.name in ("int8", "uint8") and scale.ndim < 2


def label_of(node: NodeProto) -> str:
    """Return the name of a node, else that of its first result."""
    return node.name or next((name for name in node.output if name), node.op_type)


def place_of(node: NodeProto) -> str:
    """Return a node in the words of a refusal."""
    return f"{node.op_type} '{label_of(node)}'"


def identifier(name: str) -> str:
    """Return a name with an underscore for each character that the IR does not take."""
    return "".join(c if c.isalnum() or c in "_.$-" else "_" for c in name) or "model"
