"""Shapes as onnx infers them, without the memory that it takes for long rows of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

MOST_FOLLOWED = 1 << 16
"""Numbers of a row that are followed as part of a shape: onnx makes some 70 bytes for each, in each node on its way."""


def infer(model: ModelProto) -> ModelProto:
    """Return the model with the shapes that onnx infers, from the values of shapes too unless one names too long a row.

    Raises what onnx raises: InferenceError, RuntimeError, ValueError.
    """
    from onnx import shape_inference

    found = shape_inference.infer_shapes(model)
    infos = (*found.graph.input, *found.graph.value_info, *found.graph.output)
    if any(map(_is_long, infos)):
        return found
    return shape_inference.infer_shapes(model, data_prop=True)


def _is_long(info: ValueInfoProto) -> bool:
    dims = info.type.tensor_type.shape.dim
    return len(dims) == 1 and dims[0].dim_value > MOST_FOLLOWED
