"""TopK beside onnxruntime and NumPy, with ties and NaN; operators that are known by their definitions alone."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

KINDS = {"float32": 1, "float64": 11, "int64": 7, "int32": 6}


def top(shape: tuple[int, ...], k: int, dtype: str = "float32", **attributes: Any) -> ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["v", "i"], **attributes)],
        "top",
        [info("x", KINDS[dtype], shape)],
        [info("v", KINDS[dtype], None), info("i", TensorProto.INT64, None)],
        [numpy_helper.from_array(np.array([k]), "k")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis", "k"), [((3, 17), -1, 5), ((7, 5, 3), 0, 7), ((2, 9, 4), 1, 1), ((6,), 0, 6)])
def test_chosen_elements_are_those_of_onnxruntime(
    dtype: str, largest: int, shape: tuple[int, ...], axis: int, k: int
) -> None:
    proto = top(shape, k, dtype, axis=axis, largest=largest)
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)  # few different ones: ties
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    for got, theirs in zip(lw.from_onnx(proto).evaluate(x=x), wanted, strict=True):
        assert got.dtype == theirs.dtype and np.array_equal(got, theirs)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_compiled_rows_are_sorted_with_nan_and_zeros() -> None:
    x = np.array([[1, np.nan, -np.inf, 3, 3, np.inf, -0.0], [0, -1, np.nan, np.nan, 2, -np.inf, 5]], np.float32)
    net = lw.Network()
    net.output(*net.top_k(net.input("x", x.shape), k=7, largest=False))
    run = lw.compile(net, "llvm cores=1", processes=1).executor()
    run.run(x=x)
    order = np.argsort(x, axis=1, kind="stable")
    assert np.array_equal(run.get_output(1), order)
    assert np.array_equal(run.get_output(0), np.take_along_axis(x, order, 1), equal_nan=True)
    assert np.array_equal(np.signbit(run.get_output(0)), np.signbit(np.take_along_axis(x, order, 1)))
    with pytest.raises(ValueError, match=r"top_k: axis -1 of data \(2, 7\) has no 8 elements to choose"):
        net.top_k(net.inputs["x"], k=8)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "axis", "k"), [((2, 150), -1, 3), ((517, 2), 0, 2), ((1, 400), 1, 40)])
def test_long_rows_are_chosen_from_in_blocks(shape: tuple[int, ...], axis: int, k: int, largest: bool) -> None:
    rng = np.random.default_rng(k)
    for x in (rng.integers(-9, 9, shape).astype(np.float32), rng.integers(-9, 9, shape).astype(np.int32)):
        if x.dtype == np.float32:
            x[rng.random(shape) < 0.02] = np.nan if largest else np.inf
            x[rng.random(shape) < 0.02] = -np.inf
        net = lw.Network()
        net.output(*net.top_k(net.input("x", shape, x.dtype.name), k=k, axis=axis, largest=largest))
        values, places = net.evaluate(x=x)
        key = np.where(np.isnan(x), -np.inf, -x) if largest else x
        order = np.argsort(key, axis=axis, kind="stable").take(range(k), axis)
        assert np.array_equal(places, order)
        assert np.array_equal(values, np.take_along_axis(x, order, axis), equal_nan=x.dtype == np.float32)


def test_not_a_number_is_last_of_a_short_last_block() -> None:
    x = np.full((1, 130), np.nan, np.float32)
    x[0, ::3] = np.inf
    net = lw.Network()
    net.output(*net.top_k(net.input("x", x.shape), k=60, largest=False))
    values, places = net.evaluate(x=x)
    order = np.argsort(x, axis=1, kind="stable")[:, :60]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, 1), equal_nan=True)


@pytest.mark.parametrize("left_out", [["", "", ""], ["", "past_key", "past_value"]], ids=["no mask", "with a past"])
def test_definitions_are_inlined_where_inputs_are_left_out(left_out: list[str]) -> None:
    """onnx's inliner asks for the type of an input that is left out before one that is there."""
    info, rng = helper.make_tensor_value_info, np.random.default_rng(0)
    shapes = {
        "q": (2, 4, 3, 8),
        "k": (2, 2, 5, 8),
        "v": (2, 2, 5, 8),
        "past_key": (2, 2, 6, 8),
        "past_value": (2, 2, 6, 8),
    }
    used = ["q", "k", "v", *filter(None, left_out)]
    attributes: dict[str, Any] = {"is_causal": 1} if "past_key" in left_out else {}
    outputs = ["y", "present_key", "present_value"] if "past_key" in left_out else ["y"]
    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v", *left_out], outputs, **attributes)],
        "attention",
        [info(name, TensorProto.FLOAT, shapes[name]) for name in used],
        [info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    feeds = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in used}
    wanted = ReferenceEvaluator(proto).run(None, feeds)
    for got, theirs in zip(lw.from_onnx(proto).evaluate(**feeds), wanted, strict=True):
        np.testing.assert_allclose(got, theirs, rtol=1e-4, atol=1e-5)
