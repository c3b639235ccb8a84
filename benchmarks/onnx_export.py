"""Networks of channels-first operators as ONNX models, for onnxruntime to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

import loopwright as lw
from loopwright.dialects.graph import ApplyOp, ConstantOp
from loopwright.graph.operator import operator
from loopwright.graph.types import shape_of

OPSET = 20


def to_onnx(net: lw.Network) -> Any:
    """The network as a model; ValueError for an operator or a layout without an ONNX form here."""
    from onnx import TensorProto, helper

    export = _Export()
    inputs = []
    for name, value in net.inputs.items():
        export.names[value.ssa] = name
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape))
    for op in net.function.body.block.ops:
        if isinstance(op, ConstantOp):
            export.names[op.result] = export.constant(net.constant_values(op), op.label.data)
        elif isinstance(op, ApplyOp):
            export.add(op)
        elif isinstance(op, ReturnOp):
            outputs = [
                helper.make_tensor_value_info(export.names[v], TensorProto.FLOAT, shape_of(v)) for v in op.operands
            ]
    graph = helper.make_graph(export.nodes, net.name, inputs, outputs, export.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


class _Export:
    """Nodes and initializers as they are made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[SSAValue, str] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def constant(self, array: Any, name: str) -> str:
        from onnx import numpy_helper

        unique = f"{name}.{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(array), unique))
        return unique

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind}.{len(self.nodes)}"
        kept = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, inputs, [name], **kept))
        return name

    def add(self, op: ApplyOp) -> None:
        name = op.operator.data
        options = {**operator(name).defaults, **op.options.values}
        if name not in _FORMS or (str(options.get("layout", "NC")).endswith("C") and "layout" in options):
            raise ValueError(f"operator '{name}' with {op.options.values} has no ONNX form here")
        self.names[op.outputs[0]] = _FORMS[name](self, op, [self.names[v] for v in op.inputs], options)


def _window(op: ApplyOp, options: dict[str, Any], count: int) -> dict[str, Any]:
    def spread(value: Any) -> list[int]:
        return [value] * count if isinstance(value, int) else list(value)

    pads = spread(options["padding"])
    return {"pads": pads * 2 if len(pads) == count else pads, "strides": spread(options["stride"])}


def _conv(e: _Export, op: ApplyOp, given: list[str], options: dict[str, Any]) -> str:
    return e.node("Conv", given, group=options["groups"], **_window(op, options, len(shape_of(op.inputs[0])) - 2))


def _pool(kind: str) -> Callable[..., str]:
    def pool(e: _Export, op: ApplyOp, given: list[str], options: dict[str, Any]) -> str:
        extra = {"count_include_pad": int(options["count_include_pad"])} if kind == "AveragePool" else {}
        kernel = options["kernel"]
        shape = [kernel, kernel] if isinstance(kernel, int) else list(kernel)
        window = _window(op, options, 2)
        return e.node(kind, given, kernel_shape=shape, ceil_mode=int(options["ceil_mode"]), **window, **extra)

    return pool


def _bias_add(e: _Export, op: ApplyOp, given: list[str], options: dict[str, Any]) -> str:
    rank, axis = len(shape_of(op.inputs[0])), options["axis"] % len(shape_of(op.inputs[0]))
    shape = e.constant(np.array([-1 if d == axis else 1 for d in range(rank)], np.int64), "shape")
    return e.node("Add", [given[0], e.node("Reshape", [given[1], shape])])


def _batch_matmul(e: _Export, op: ApplyOp, given: list[str], options: dict[str, Any]) -> str:
    turned = [options["transpose_a"], options["transpose_b"]]
    return e.node(
        "MatMul", [e.node("Transpose", [x], perm=[0, 2, 1]) if t else x for x, t in zip(given, turned, strict=True)]
    )


def _plain(kind: str, **attributes: Any) -> Callable[..., str]:
    return lambda e, op, given, options: e.node(kind, given, **attributes)


_FORMS: dict[str, Callable[..., str]] = {
    "conv2d": _conv,
    "conv3d": _conv,
    "conv2d_transpose": _conv,
    "max_pool": _pool("MaxPool"),
    "avg_pool": _pool("AveragePool"),
    "global_avg_pool": _plain("GlobalAveragePool"),
    "batch_norm": lambda e, op, given, o: e.node("BatchNormalization", given, epsilon=o["epsilon"]),
    "layer_norm": lambda e, op, given, o: e.node("LayerNormalization", given, axis=-1, epsilon=o["epsilon"]),
    "bias_add": _bias_add,
    "dense": _plain("Gemm", transB=1),
    "batch_matmul": _batch_matmul,
    "add": _plain("Add"),
    "multiply": _plain("Mul"),
    "relu": _plain("Relu"),
    "relu6": lambda e, op, given, o: e.node(
        "Clip", [*given, e.constant(np.float32(0), "low"), e.constant(np.float32(6), "high")]
    ),
    "tanh": _plain("Tanh"),
    "gelu": lambda e, op, given, o: e.node("Gelu", given, approximate=o["approximate"]),
    "softmax": lambda e, op, given, o: e.node("Softmax", given, axis=o["axis"]),
    "flatten": _plain("Flatten"),
    "reshape": lambda e, op, given, o: e.node("Reshape", [*given, e.constant(np.array(o["shape"], np.int64), "shape")]),
    "transpose": lambda e, op, given, o: e.node("Transpose", given, perm=list(o["axes"])),
    "concatenate": lambda e, op, given, o: e.node("Concat", given, axis=o["axis"]),
}
_FORMS["conv2d_transpose"] = lambda e, op, given, o: e.node(
    "ConvTranspose", given, group=o["groups"], **_window(op, o, 2)
)
