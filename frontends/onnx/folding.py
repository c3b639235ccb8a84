"""Nodes whose inputs are all known are evaluated by ONNX's own reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...dialects.numpy_types import ELEMENT_TYPES
from .errors import UnsupportedNode
from .node import numpy_type

if TYPE_CHECKING:
    from onnx import NodeProto

Array = npt.NDArray[Any]

_BY_CHANCE = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
_ALONG = {"Softmax", "LogSoftmax", "Hardmax"}
_HERE = frozenset({"BatchNormalization", "DynamicQuantizeLinear", "Range", "Unsqueeze", *_ALONG, *_BY_CHANCE})
"""Operators that are left to their converters, or have none.

The reference implementation trains in batch normalisations of version 9, does not join axes before version 13, has a
scale of its own for zeros, and inserts axes one after the other, where negative ones count from the end of them all.
"""


def foldable(node: NodeProto) -> bool:
    """True where the node gives the same for the same inputs."""
    training = node.op_type == "Dropout" and len(node.input) > 2
    loops = any(attribute.HasField("g") for attribute in node.attribute)  # which may run without end
    return node.domain in ("", "ai.onnx") and node.op_type not in _HERE and not training and not loops


def evaluate(
    node: NodeProto, inputs: Mapping[str, Array], opsets: Mapping[str, int], dtypes: Sequence[str | None] | None = None
) -> Sequence[Array]:
    """Return the results of a node; UnsupportedNode where the reference implementation does not know them.

    `dtypes` are the results' element types where they are known: the reference implementation sums integers of 32 bits
    in 64, and leaves it at that.
    """
    from onnx import TypeProto, helper
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_value_info(name, TypeProto()) for name in inputs],
        [helper.make_value_info(name, TypeProto()) for name in node.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    try:
        found = ReferenceEvaluator(model).run(None, dict(inputs))
    except Exception as error:  # whatever the reference implementation raises for a node that it cannot evaluate
        raise UnsupportedNode(f"its constant inputs cannot be evaluated: {error}") from error
    if not all(isinstance(value, np.ndarray | np.generic) for value in found):
        raise UnsupportedNode("it gives a sequence or an optional value, not a tensor")
    results = iter([np.asarray(value) for value in found])
    arrays = [next(results) if name else np.zeros(0) for name in node.output]
    return [_of_type(array, dtype) for array, dtype in zip(arrays, dtypes or [None] * len(arrays), strict=True)]


def _of_type(array: Array, dtype: str | None) -> Array:
    return array.astype(numpy_type(dtype), copy=False) if dtype in ELEMENT_TYPES else array
