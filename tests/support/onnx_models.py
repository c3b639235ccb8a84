"""Small ONNX models for tests, and random weights for those that come without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Image networks of the onnx package, whose weights are all alike."""


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    weights: Mapping[str, npt.ArrayLike] | None = None,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
) -> ModelProto:
    """A model of nodes; inputs are of one type, weights arrays."""
    graph = helper.make_graph(
        list(nodes),
        "tested",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def small_network(seed: int = 0, open_batch: bool = False) -> ModelProto:
    """A convolution, relu, pool and a product: (1, 3, 12, 12) -> (1, 5)."""
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["y"], transB=1),
    ]
    shapes = {"w": (8, 3, 3, 3), "b": (8,), "fw": (5, 8), "fb": (5,)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return model(nodes, {"x": ["N" if open_batch else 1, 3, 12, 12]}, ["y"], weights)


def with_random_weights(light: ModelProto, seed: int = 0) -> ModelProto:
    """A model whose weights are ConstantOfShape nodes with random ones, scaled so that activations keep their size."""
    rng: Any = np.random.default_rng(seed)
    known = {tensor.name: tensor for tensor in light.graph.initializer}
    readers: dict[str, tuple[NodeProto, int]] = {}
    for node in light.graph.node:
        for position, name in enumerate(node.input):
            readers.setdefault(name, (node, position))
    kept = []
    for node in light.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(numpy_helper.to_array(known[node.input[0]]).tolist())
        reader, position = readers.get(node.output[0], (node, 0))
        while reader.op_type == "Unsqueeze":
            reader, position = readers[reader.output[0]]
        array = _drawn(rng, shape, reader, position).astype(np.float32)
        light.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
    del light.graph.node[:]
    light.graph.node.extend(kept)
    light.ir_version = 8  # in which initializers need not be inputs
    return light


def without_softmax(light: ModelProto) -> ModelProto:
    """A model that ends before its softmax, which hides differences."""
    (last,) = (node for node in light.graph.node if node.output[0] == light.graph.output[0].name)
    if last.op_type == "Softmax":
        light.graph.node.remove(last)
        light.graph.output[0].name = last.input[0]
    return light


def _drawn(rng: Any, shape: tuple[int, ...], reader: NodeProto, position: int) -> Any:
    if len(shape) > 1 and reader.op_type in ("Conv", "Gemm"):
        gain = 2.0 if reader.op_type == "Conv" else 0.1
        return rng.normal(0.0, np.sqrt(gain / np.prod(shape[1:])), shape)
    if (reader.op_type == "BatchNormalization" and position in (1, 4)) or reader.op_type == "Mul":
        return rng.uniform(0.5, 1.5, shape)
    return rng.normal(0.0, 0.1, shape)
