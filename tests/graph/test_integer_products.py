"""Quantised networks are computed on integers, within one quantisation step of what they say operator by operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from onnx_models import model
from onnxruntime.quantization import QuantFormat, QuantType
from quantised_models import Array, as_written, bert, inputs_of, quantised, quantised_in_each_run, small_cnn

import loopwright as lw
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.graph.passes.integer_products import WORDS
from loopwright.graph.tasks import grouping_for, words_for
from loopwright.graph.types import dtype_of

PRODUCTS = ("conv2d", "depthwise_conv2d", "dense", "matmul", "batch_matmul")


def on_integers(net: lw.Network, words: str = "int16") -> lw.Network:
    pipeline = f"lw-graph-simplify,cse,lw-graph-integer-products{{words={words}}},dce,lw-graph-simplify,cse,dce"
    after = net.transform(f"{pipeline},lw-graph-fold-constants,dce")
    after.module.verify()
    return after


def factors(net: lw.Network) -> list[tuple[str, ...]]:
    """The element types that each product multiplies."""
    found = [op for op in net.module.walk() if isinstance(op, ApplyOp) and op.operator.data in PRODUCTS]
    return [tuple(dtype_of(v) for v in op.inputs) for op in found]


def steps_apart(got: Array, wanted: Array) -> float:
    """The largest difference in steps of the wanted values, which are whole multiples of one."""
    levels = np.diff(np.unique(wanted))
    return float(np.abs(got - wanted).max() / levels[levels > 1e-6 * np.abs(wanted).max()].min())


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("data", [QuantType.QUInt8, QuantType.QInt8], ids=["u8", "s8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.few(2)
def test_a_network_of_convolutions(words: str, data: QuantType, layout: str) -> None:
    """Windows, by channel too, a residual sum, pooling, limits, a scale of each output channel, padding."""
    proto = quantised(small_cnn(), data=data)
    net, feeds = lw.from_onnx(proto, layout=layout), inputs_of(proto)
    after = on_integers(net, words)
    weights = "int16" if words == "int16" else "int8"
    assert factors(after) == [(words, weights)] * 5
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert steps_apart(got, wanted) < 1.01
    names = [op.operator.data for op in after.module.walk() if isinstance(op, ApplyOp)]
    assert names.count("dequantize") == 2  # before the mean of each channel, and of the result
    assert names.count("divide") == 2  # of the input, and of those means
    assert not {"relu", "clip", "maximum", "minimum", "quantize", "center"} & {*names}


def test_the_same_as_kernels() -> None:
    proto = quantised(small_cnn())
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    executor = lw.compile(net, "llvm cores=1").executor()
    executor.set_input("x", feeds["x"])
    executor.run()
    target = lw.resolve_target("llvm cores=1")
    (wanted,) = net.transform(grouping_for(target)).evaluate(**feeds)
    np.testing.assert_array_equal(executor.get_output(0), wanted)
    grouped = [op.label.data for op in net.transform(grouping_for(target)).module.walk() if isinstance(op, GroupOp)]
    assert "conv2d_scaled_sum_saturate_scaled_sum_saturate" in grouped  # product, residual sum, both roundings


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.few(2)
def test_weights_of_bytes_without_a_sign(words: str) -> None:
    """Around 128 they are weights of int8; around anything else products are of int16."""
    proto = quantised(small_cnn(), weights=QuantType.QUInt8, per_channel=False)
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert steps_apart(got, wanted) < 1.01
    assert {len({*types}) for types in factors(after)} <= {1, 2}
    assert all("float32" not in types for types in factors(after))


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.few(2)
def test_operators_with_scales_of_their_own(words: str) -> None:
    """QLinearConv, and what onnxruntime's quantiser writes in its own domain: sums, means and products."""
    proto = quantised(small_cnn(), form=QuantFormat.QOperator, reduce_range=True)
    kinds = {node.op_type for node in proto.graph.node}
    assert {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"} <= kinds
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    weights = "int16" if words == "int16" else "int8"
    assert factors(after) == [(words, weights)] * 5
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert steps_apart(got, wanted) < 1.01


@pytest.mark.parametrize("words", WORDS)
def test_data_that_are_quantised_in_each_run(words: str) -> None:
    """Their zero points are known then: padding with them is not, so that padded convolutions are of int16."""
    proto = quantised_in_each_run(small_cnn())
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    padded, plain = ("int16", "int16"), ("int16", "int16") if words == "int16" else (words, "int8")
    assert factors(after) == [padded, padded, plain, padded, plain]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.few(1)
def test_attention_multiplies_data_with_data(words: str) -> None:
    """Those products are of int16 where zero points are not 0; moves of elements are of integers."""
    proto = quantised(bert(1, 32, 8, 2))
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    assert len(factors(after)) == 8 and all("float32" not in types for types in factors(after))
    moved = [op for op in after.module.walk() if isinstance(op, ApplyOp) and op.operator.data == "transpose"]
    assert moved and all(dtype_of(op.outputs[0]) == words for op in moved)
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert np.abs(got - wanted).max() < 0.02 * np.abs(wanted).max()


def one_product(bias: bool, limits: tuple[float, float] | None, **types: Any) -> ModelProto:
    """A product between quantised numbers, in the form of quantising tools."""
    random = np.random.default_rng(3)
    weights: dict[str, Any] = {
        "xs": np.float32(0.03),
        "xz": types.get("xz", np.uint8(113)),
        "w": random.integers(-127, 128, (24, 10)).astype(np.int8),
        "ws": random.uniform(0.001, 0.02, 10).astype(np.float32),
        "wz": types.get("wz", np.zeros(10, np.int8)),
        "b": random.standard_normal(10).astype(np.float32),
        "ys": np.float32(0.05),
        "yz": np.uint8(90),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], axis=1),
        helper.make_node("MatMul", ["d", "dw"], ["m"]),
    ]
    last = "m"
    if bias:
        nodes.append(helper.make_node("Add", [last, "b"], ["s"]))
        last = "s"
    if limits is not None:
        weights |= {"low": np.float32(limits[0]), "high": np.float32(limits[1])}
        nodes.append(helper.make_node("Clip", [last, "low", "high"], ["c"]))
        last = "c"
    nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"]))
    return model(nodes, {"x": (2, 5, 24)}, ["y"], weights)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("limits", [None, (-1.0, 2.0)])
@pytest.mark.few(6)
def test_one_product_gives_bytes(words: str, bias: bool, limits: tuple[float, float] | None) -> None:
    proto = one_product(bias, limits)
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert got.dtype == np.uint8 and (got == wanted).mean() > 0.97
    assert np.abs(got.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("words", WORDS)
def test_zero_points_of_each_column_of_weights(words: str) -> None:
    proto = one_product(True, None, wz=np.arange(10, dtype=np.int8))
    net, feeds = lw.from_onnx(proto), inputs_of(proto)
    after = on_integers(net, words)
    assert factors(after) == [("int16", "int16")]
    (got,), (wanted,) = after.evaluate(**feeds), as_written(proto, feeds)
    assert np.abs(got.astype(int) - wanted).max() <= 1


def test_the_units_of_a_target_say_which_integers() -> None:
    assert words_for(lw.resolve_target("llvm model=haswell")) == "int16"
    assert words_for(lw.resolve_target("llvm model=icelake-server")) == "uint8"
    assert words_for(lw.resolve_target("llvm model=sapphirerapids")) == "uint8"
    assert words_for(lw.resolve_target("cuda")) == "int8" and words_for(lw.Target("opencl")) == "int16"
    with pytest.raises(Exception, match="words are one of int16, uint8, int8, got 'int4'"):
        lw.from_onnx(one_product(True, None)).transform("lw-graph-integer-products{words=int4}")
