"""The networks of `lw.testing` so small that they run in no time, and inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopwright as lw
from loopwright.dialects.graph import ApplyOp, ConstantOp
from loopwright.dialects.numpy_types import FLOATS
from loopwright.graph.network import Value

SMALL: dict[str, dict[str, Any]] = {
    "resnet-18": {"image": 32, "width": 0.125, "classes": 10},
    "resnet-34": {"image": 32, "width": 0.125, "classes": 10},
    "resnet-50": {"image": 32, "width": 0.125, "classes": 10},
    "resnet-101": {"image": 32, "width": 0.0625, "classes": 10},
    "resnet-152": {"image": 32, "width": 0.0625, "classes": 10},
    "resnet-200": {"image": 32, "width": 0.0625, "classes": 10},
    "resnet-269": {"image": 32, "width": 0.0625, "classes": 10},
    "resnet3d-18": {"image": 16, "frames": 4, "width": 0.125, "classes": 10},
    "resnet3d-34": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "resnet3d-50": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "resnet3d-101": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "resnet3d-152": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "resnet3d-200": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "resnet3d-269": {"image": 16, "frames": 4, "width": 0.0625, "classes": 10},
    "mobilenet": {"image": 32, "width": 0.25, "classes": 10},
    "mobilenet_v2": {"image": 32, "width": 0.25, "classes": 10},
    "vgg-11": {"image": 64, "width": 0.0625, "classes": 10},
    "vgg-13": {"image": 32, "width": 0.0625, "classes": 10},
    "vgg-16": {"image": 32, "width": 0.0625, "classes": 10},
    "vgg-19": {"image": 32, "width": 0.0625, "classes": 10},
    "squeezenet_v1.1": {"image": 48, "width": 0.25, "classes": 10},
    "inception_v3": {"image": 75, "width": 0.125, "classes": 10},
    "densenet-121": {"image": 32, "width": 0.125, "classes": 10},
    "dcgan": {"width": 0.0625},
    "dqn": {"image": 36, "width": 0.125},
    "mlp": {},
    "lstm": {"steps": 5, "features": 12, "hidden": 16},
    "transformer_encoder": {"sequence": 7, "hidden": 32, "heads": 4, "inner": 48, "layers": 2},
    "transformer_decoder": {"sequence": 6, "memory": 9, "hidden": 32, "heads": 4, "inner": 48, "layers": 2},
    "bert_encoder_layer": {"sequence": 12, "hidden": 32, "heads": 4, "inner": 64},
}
"""Options under which a network runs in no time."""


def feeds_of(net: lw.Network, seed: int = 0) -> dict[str, Any]:
    """Random arrays for the inputs of a network, by name."""
    random = np.random.default_rng(seed)

    def drawn(value: Value) -> Any:
        if value.dtype == "bool":
            return random.random(value.shape) < 0.7
        return random.standard_normal(value.shape).astype(value.dtype)

    return {name: drawn(value) for name, value in net.inputs.items()}


def in_type(net: lw.Network, dtype: str) -> lw.Network:
    """The same network of float elements with those of another type; its constants are converted."""
    made, values = lw.Network(net.name), {}
    for name, value in net.inputs.items():
        values[value.ssa] = made.input(name, value.shape, dtype if value.dtype in FLOATS else value.dtype).ssa
    for op in net.function.body.block.ops:
        if isinstance(op, ConstantOp):
            array = net.constant_values(op)
            array = array.astype(dtype) if array.dtype.name in FLOATS else array
            values[op.result] = made.constant(array, op.label.data).ssa
        elif isinstance(op, ApplyOp):
            inputs = [Value(made, values[v]) for v in op.inputs]
            options: dict[str, Any] = dict(op.options.values)
            results = made.apply(op.operator.data, *inputs, **options)
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(op.outputs, (r.ssa for r in results), strict=True))
    made.output(*(Value(made, values[v.ssa]) for v in net.outputs.values()), names=list(net.outputs))
    return made
