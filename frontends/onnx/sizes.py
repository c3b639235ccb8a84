"""Sizes of the results of nodes, before anything is allocated for them, and what does not fit into memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backends.host_memory import host_memory_bytes
from ...dialects.numpy_types import ELEMENT_TYPES
from ...graph.network import Value
from . import weights
from .errors import TooLargeError, UnsupportedNode
from .inference import infer
from .node import Array, Operand, numpy_type
from .types import type_name

if TYPE_CHECKING:
    from onnx import NodeProto

MOST_CONSTANT_BYTES = 2 << 30
"""So many bytes may a tensor take that nodes compute from constants: what protobuf lets a tensor of a model hold."""


@dataclass(frozen=True)
class TensorSize:
    """The element type and the shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes; of types that networks do not have, a byte for each element."""
        itemsize = np.dtype(numpy_type(self.dtype)).itemsize if self.dtype in ELEMENT_TYPES else 1
        return int(prod(self.shape) * itemsize)

    @property
    def empty(self) -> bool:
        return 0 in self.shape


def require_memory(what: str, size: TensorSize, constant: bool = False) -> None:
    """TooLargeError, with the bytes, for a tensor that no network can have."""
    if any(n < 0 for n in size.shape):
        raise TooLargeError(f"{what} has an extent that 64 bits do not hold")
    most = min(MOST_CONSTANT_BYTES, host_memory_bytes()) if constant else host_memory_bytes()
    if size.nbytes <= most:
        return
    limit = f"a constant may take {most:,}" if constant else f"this machine has {most:,}"
    raise TooLargeError(f"{what}, of shape {size.shape}, takes {size.nbytes:,} bytes, {limit}")


def range_length(start: Array, limit: Array, step: Array) -> int:
    """Count Range's numbers: max(ceil((limit - start) / step), 0); UnsupportedNode where that is no number."""
    first, last, by = (value.reshape(()).item() for value in (start, limit, step))
    if isinstance(first, int) and isinstance(last, int) and isinstance(by, int) and by:
        return max(-((first - last) // by), 0)
    steps = (last - first) / by if by else math.nan
    if not math.isfinite(steps):
        raise UnsupportedNode(f"from {first} to {last} in steps of {by} there is no number of steps")
    return max(math.ceil(steps), 0)


def inferred_sizes(
    node: NodeProto, operands: Mapping[str, Operand], opsets: Mapping[str, int]
) -> Sequence[TensorSize | None]:
    """Infer each result's size by onnx for these inputs; None where it does not, or leaves an extent open."""
    import onnx
    from onnx import helper, numpy_helper

    if node.op_type == "Range" or any(_far(operand) for operand in operands.values()):
        return [None] * len(node.output)  # of what 64 bits do not hold, onnx infers no elements
    infos, known = [], []
    for name, operand in operands.items():
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(numpy_type(_dtype(operand))))
        infos.append(helper.make_tensor_value_info(name, dtype, operand.shape))
        if isinstance(operand, np.ndarray) and operand.size < weights.LARGE:
            known.append(numpy_helper.from_array(operand, name))
    results = [helper.make_value_info(name, onnx.TypeProto()) for name in node.output]
    graph = helper.make_graph([node], "node", infos, results, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    try:
        found = infer(model)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return [None] * len(node.output)
    return [_size(info.type.tensor_type) for info in found.graph.output]


def _far(operand: Operand) -> bool:
    """True where an operand holds whole numbers so large that their products wrap around, as ends of slices may."""
    if not isinstance(operand, np.ndarray) or operand.dtype != np.int64 or operand.size >= weights.LARGE:
        return False
    return bool((np.abs(operand.astype(np.float64)) >= 2.0**62).any())


def _dtype(operand: Operand) -> str:
    return operand.dtype if isinstance(operand, Value) else operand.dtype.name


def _size(kind: Any) -> TensorSize | None:
    if not kind.elem_type or not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim):
        return None
    return TensorSize(type_name(kind.elem_type), tuple(d.dim_value for d in kind.shape.dim))
