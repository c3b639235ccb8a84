"""Operators that onnxruntime's optimizer and quantisers write, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnxruntime: Any = pytest.importorskip("onnxruntime")

from onnx import ModelProto, TensorProto, helper, numpy_helper  # noqa: E402

import loopwright as lw  # noqa: E402

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype("float32")


def model(operator: str, given: list[Any], results: int = 1, **attributes: Any) -> ModelProto:
    """One operator of com.microsoft, of which all inputs but the first are constants."""
    names = ["x", *(f"c{k}" if each is not None else "" for k, each in enumerate(given[1:]))]
    outputs = ["y", "", "", "total"][:results] if results > 1 else ["y"]
    node = helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "microsoft",
        [info("x", helper.np_dtype_to_tensor_dtype(given[0].dtype), given[0].shape)],
        [info(name, TensorProto.FLOAT, None) for name in outputs if name],
        [numpy_helper.from_array(each, n) for n, each in zip(names[1:], given[1:], strict=True) if each is not None],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def agrees(proto: ModelProto, x: Any, limit: float = 1e-5) -> None:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    wanted, found = peer.run(None, {"x": x}), lw.from_onnx(proto).evaluate(x=x)
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        largest = 1.0 if a.dtype == np.uint8 else np.abs(a).max()
        np.testing.assert_allclose(b.astype("float64"), a.astype("float64"), rtol=0, atol=limit * largest)


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [("", None), ("Relu", None), ("LeakyRelu", [0.2]), ("HardSigmoid", [0.3, 0.4]), ("Clip", [-0.5, 0.5])],
)
@pytest.mark.parametrize("added", [False, True])
def test_convolutions_with_what_is_behind_them(activation: str, numbers: list[float] | None, added: bool) -> None:
    attributes: dict[str, Any] = {"activation": activation} if activation else {}
    attributes |= {"activation_params": numbers} if numbers else {}
    x, more = drawn(1, 3, 6, 5), [drawn(1, 4, 6, 5)] if added else []
    agrees(model("FusedConv", [x, drawn(4, 3, 3, 3), drawn(4), *more], pads=[1] * 4, **attributes), x)


@pytest.mark.parametrize(("first", "second", "alpha"), [(0, 1, 0.5), (1, 0, 1.0), (1, 1, 2.0), (0, 0, 0.125)])
def test_products_of_turned_factors(first: int, second: int, alpha: float) -> None:
    x, w = drawn(*((2, 4, 3) if first else (2, 3, 4))), drawn(*((2, 5, 4) if second else (2, 4, 5)))
    agrees(model("FusedMatMul", [x, w], transA=first, transB=second, alpha=alpha), x)


def test_products_with_an_activation() -> None:
    x = drawn(3, 4)
    agrees(model("FusedGemm", [x, drawn(5, 4), drawn(5)], transB=1, activation="Relu"), x)


@pytest.mark.parametrize(
    ("operator", "more"),
    [("BiasGelu", [(6,)]), ("FastGelu", [(6,)]), ("FastGelu", []), ("QuickGelu", []), ("Gelu", [])],
)
def test_gelus(operator: str, more: list[tuple[int, ...]]) -> None:
    x = drawn(2, 3, 6)
    agrees(model(operator, [x, *(drawn(*shape) for shape in more)]), x, 1e-4)


@pytest.mark.parametrize("results", [1, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_norms_of_sums(results: int, bias: bool) -> None:
    x, last = drawn(2, 3, 6), [drawn(6)] if bias else []
    agrees(model("SkipLayerNormalization", [x, drawn(2, 3, 6), drawn(6), drawn(6), *last], results, epsilon=1e-5), x)
    simple = model("SkipSimplifiedLayerNormalization", [x, drawn(2, 3, 6), drawn(6), *last], results, epsilon=1e-5)
    agrees(simple, x)


@pytest.mark.parametrize("zeros", ["none", "bytes", "floats"])
@pytest.mark.parametrize(("depth", "block"), [(64, 32), (40, 16)])
def test_weights_of_four_bits(zeros: str, depth: int, block: int) -> None:
    columns, blocks = 6, -(-depth // block)
    packed = RANDOM.integers(0, 256, (columns, blocks, block // 2), dtype=np.uint8)
    scales = RANDOM.uniform(0.01, 0.1, columns * blocks).astype("float32")
    points = {
        "none": [],
        "bytes": [RANDOM.integers(0, 256, columns * -(-blocks // 2), dtype=np.uint8)],
        "floats": [RANDOM.uniform(4, 11, columns * blocks).astype("float32")],
    }[zeros]
    x = drawn(2, 3, depth)
    sizes = {"K": depth, "N": columns, "bits": 4, "block_size": block}
    agrees(model("MatMulNBits", [x, packed, scales, *points], **sizes), x, 1e-4)


@pytest.mark.parametrize("bias", [False, True])
def test_data_made_bytes_in_each_run(bias: bool) -> None:
    x, w = drawn(3, 8), RANDOM.integers(-127, 128, (8, 5), dtype=np.int8)
    last = [drawn(5)] if bias else []
    proto = model("DynamicQuantizeMatMul", [x, w, np.array([0.02], np.float32), np.array([0], np.int8), *last])
    agrees(proto, x, 1e-5)
    made = str(lw.from_onnx(proto).transform("lw-graph-simplify,cse,lw-graph-integer-products,dce"))
    assert "tensor<8x5xi16>) -> tensor<3x5xi32>" in made  # a product of integers


@pytest.mark.parametrize(("version", "axis"), [(13, 1), (9, 1), (13, -1)])
def test_softmax_of_bytes(version: int, axis: int) -> None:
    """onnxruntime takes exponentials from a table, and is a step of 1/255 apart in places."""
    x = RANDOM.integers(0, 256, (2, 3, 6), dtype=np.uint8)
    scales = [np.float32(0.02), np.uint8(128), np.float32(1 / 255), np.uint8(0)]
    proto = model("QLinearSoftmax", [x, *scales], axis=axis, opset=version)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    agrees(proto, x, 1.0)


@pytest.mark.parametrize("wide", [1, 12])
def test_lstms_with_weights_of_bytes(wide: int) -> None:
    """onnxruntime rounds data to bytes, too, so that results are some of their steps apart."""
    x, hidden, scales = drawn(5, 2, 4), 3, RANDOM.uniform(0.003, 0.006, (2, 1, wide)).astype("float32")[:, 0]
    weights = [RANDOM.integers(-127, 128, (1, n, 4 * hidden), dtype=np.int8) for n in (4, hidden)]
    zero = np.zeros((1, wide), np.int8) if wide > 1 else np.zeros((1,), np.int8)
    own = [s.reshape(1, wide) if wide > 1 else s.reshape(1) for s in scales]
    given = [x, *weights, drawn(1, 8 * hidden), None, None, None, None, own[0], zero, own[1], zero]
    agrees(model("DynamicQuantizeLSTM", given, hidden_size=hidden), x, 3e-2)


def test_what_is_not_supported_is_said() -> None:
    x, w = drawn(2, 3, 4), drawn(3, 2, 5)
    with pytest.raises(lw.OnnxImportError, match="batches that are turned are not supported"):
        lw.from_onnx(model("FusedMatMul", [x, w], transBatchA=1))
    with pytest.raises(lw.OnnxImportError, match="activation Softsign is not supported"):
        lw.from_onnx(model("FusedGemm", [drawn(3, 4), drawn(4, 5), drawn(5)], activation="Softsign"))
