"""Sessions of models whose last results are sized by values, which NumPy computes: they give what onnxruntime gives."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model

import loopwright as lw
from loopwright.frontends.onnx.tail import DividedModel


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def detector(extents: Any = 12) -> onnx.ModelProto:
    """A convolution whose pixels are boxes with scores, the best of them, and a label that is not sized by values."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((6, 3, 3, 3)).astype(np.float32),
        "flat": np.array([1, 6, -1]),
        "four": np.array([4, 2]),
        "most": np.array([5]),
        "overlap": np.array([0.3], np.float32),
        "least": np.array([0.1], np.float32),
        "third": np.array([2]),
    }
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[3, 3]),
        node("Reshape", "c flat", "f"),
        node("Split", "f four", "corners scores", axis=1),
        node("Transpose", "corners", "boxes", perm=[0, 2, 1]),
        node("NonMaxSuppression", "boxes scores most overlap least", "chosen", center_point_box=1),
        node("Gather", "chosen third", "places", axis=1),
        node("Squeeze", "boxes", "all"),
        node("GatherND", "all places", "found"),
        node("ReduceMax", "scores", "label", keepdims=0),
    ]
    proto = model(nodes, {"x": [1, 3, extents, extents]}, ["found", "label"], weights, 17)
    shapes: list[list[Any]] = [["n", 4], []]
    for info, shape in zip(proto.graph.output, shapes, strict=True):
        info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, shape))
    return proto


def both(proto: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    session = lw.onnx.InferenceSession(proto)
    assert isinstance(session._versions, DividedModel)
    return session.run(None, feeds), onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)


@pytest.mark.parametrize("extents", [12, "pixels"])
def test_boxes_are_chosen_after_the_kernels(extents: Any) -> None:
    random = np.random.default_rng(1)
    for _ in range(2):
        ours, theirs = both(detector(extents), {"x": random.standard_normal((1, 3, 12, 12)).astype(np.float32)})
        assert len(theirs[0]) > 1
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.dtype == other.dtype and mine.shape == other.shape
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_branches_run_after_them_too_and_known_places_are_compiled() -> None:
    branch = helper.make_graph([node("NonZero", "r", "some")], "then", [], [onnx.ValueInfoProto(name="some")])
    other = helper.make_graph([node("Identity", "known", "rest")], "else", [], [onnx.ValueInfoProto(name="rest")])
    nodes = [
        node("Relu", "x", "r"),
        node("ReduceMax", "r", "most", keepdims=0),
        node("Greater", "most two", "ask"),
        node("If", "ask", "y", then_branch=branch, else_branch=other),
        node("NonZero", "known", "places"),
        node("Transpose", "places", "rows", perm=[1, 0]),
        node("GatherND", "r rows", "z"),
    ]
    weights: dict[str, Any] = {"two": np.float32(2), "known": np.array([[0, 0, 1, 0], [1, 0, 0, 1]])}
    proto = model(nodes, {"x": [2, 4]}, ["y", "z"], weights, 17)
    types: list[tuple[int, list[Any]]] = [(TensorProto.INT64, [2, "n"]), (TensorProto.FLOAT, [3])]
    for info, (kind, shape) in zip(proto.graph.output, types, strict=True):
        info.CopyFrom(helper.make_tensor_value_info(info.name, kind, shape))
    for data in ([[1, -2, 3, 4], [0, 1, 2, 3]], [[1, -2, 0, 1], [0, 1, 2, 0]]):
        ours, theirs = both(proto, {"x": np.array(data, np.float32)})
        for mine, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_a_model_of_such_a_node_alone_has_no_kernels() -> None:
    proto = model([node("NonZero", "x", "y")], {"x": [2, 3]}, ["y"], None, 17)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, [2, "n"]))
    ours, theirs = both(proto, {"x": np.array([[0, 1, 0], [2, 0, 3]], np.float32)})
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_what_is_refused_before_them_is_refused() -> None:
    proto = model([node("Unknown", "x", "u"), node("NonZero", "u", "y")], {"x": [2, 3]}, ["y"], None, 17)
    with pytest.raises(lw.OnnxImportError):
        lw.onnx.InferenceSession(proto)


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("given", ["most overlap least", "most overlap", "number overlap"])
def test_the_same_boxes_are_chosen_as_by_onnxruntime(given: str, centred: int) -> None:
    random = np.random.default_rng(2)
    boxes = random.integers(-4, 5, (2, 30, 4)).astype(np.float32)  # flipped, empty and equal ones among them
    scores = random.integers(0, 6, (2, 3, 30)).astype(np.float32) / 8
    if centred:
        boxes = np.abs(boxes)
    weights = {
        "most": np.array([7]),
        "number": np.array(4),
        "overlap": np.array([0.25], np.float32),
        "least": np.array([0.25], np.float32),
    }
    nodes = [node("NonMaxSuppression", f"boxes scores {given}", "y", center_point_box=centred)]
    used = {name: weights[name] for name in given.split()}
    proto = model(nodes, {"boxes": boxes.shape, "scores": scores.shape}, ["y"], used, 17)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 3]))
    ours, theirs = both(proto, {"boxes": boxes, "scores": scores})
    np.testing.assert_array_equal(ours[0], theirs[0])


_HALVES = {"w": np.ones((3, 2, 2, 2), np.float32) / 8, "v": np.arange(12, dtype=np.float32).reshape(4, 3) / 9}
_BOXES: dict[str, tuple[list[onnx.NodeProto], dict[str, Any]]] = {
    "pooled": ([node("RoiAlign", "maps some which", "y", output_height=3, output_width=2)], {}),
    "pooled by two samples": ([node("RoiAlign", "maps some which", "y", output_width=3, sampling_ratio=2)], {}),
    "pooled from their corners": (
        [node("RoiAlign", "maps some which", "y", coordinate_transformation_mode="output_half_pixel")],
        {},
    ),
    "the largest": ([node("RoiAlign", "maps some which", "y", sampling_ratio=1, mode="max")], {}),
    "convolved": (
        [
            node("RoiAlign", "maps some which", "r", output_height=4, output_width=4, sampling_ratio=1),
            node("Conv", "r w", "c", strides=[2, 2]),
            node("ConvTranspose", "c w", "y"),
        ],
        _HALVES,
    ),
    "multiplied": ([node("Gemm", "some v", "g"), node("Transpose", "v", "t"), node("MatMul", "g t", "y")], _HALVES),
    "multiplied by weights": ([node("MatMul", "some v", "y")], _HALVES),
    "scattered": (
        [
            node("Shape", "some", "shape"),
            node("ConstantOfShape", "shape", "zeros"),
            node("ArgMax", "some", "best", axis=1),
            node("Neg", "best", "minus"),
            node("ReduceMax", "some", "top", axes=[1]),
            node("ScatterElements", "zeros minus top", "y", axis=1),
        ],
        {},
    ),
}


@pytest.mark.parametrize("name", _BOXES)
def test_boxes_that_are_chosen_are_read_as_by_onnxruntime(name: str) -> None:
    """Several numbers of boxes, none among them, go through operators with weights, whose kernels are for 1, 2, 4 .."""
    behind, weights = _BOXES[name]
    nodes = [
        node("NonZero", "asked", "at"),
        node("Squeeze", "at zero", "places"),
        node("Gather", "boxes places", "some"),
        node("Gather", "images places", "which"),
        *behind,
    ]
    inputs = {"maps": [2, 2, 6, 5], "boxes": [7, 4], "images": [7], "asked": [7]}
    proto = model(nodes, inputs, ["y"], {"zero": np.array([0]), **weights}, 17)
    proto.graph.input[2].type.tensor_type.elem_type = TensorProto.INT64
    random = np.random.default_rng(3)
    corners = random.uniform(-2, 5, (7, 2))
    boxes = np.concatenate([corners, corners + random.uniform(0, 6, (7, 2))], axis=1).astype(np.float32)
    session = lw.onnx.InferenceSession(proto)
    theirs = onnxruntime.InferenceSession(proto.SerializeToString())
    for count in (5, 7, 0):
        feeds = {
            "maps": random.standard_normal((2, 2, 6, 5)).astype(np.float32),
            "boxes": boxes,
            "images": np.arange(7) % 2,
            "asked": (np.arange(7) < count).astype(np.float32),
        }
        (found,), (wanted,) = session.run(None, feeds), theirs.run(None, feeds)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
