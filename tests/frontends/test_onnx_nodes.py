"""Single nodes and pairs that random graphs found wrong once, compiled, beside onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_models import model

import loopwright as lw

OTHER = {
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
    "float64": TensorProto.DOUBLE,
}
FLOAT = TensorProto.FLOAT


def node(
    operator: str, inputs: Any, weights: Any = None, dtype: str = "float32", opset: int = 17, **attributes: Any
) -> Any:
    """A model of one node, which reads its inputs, then its weights."""
    made = helper.make_node(operator, [*inputs, *(weights or {})], ["y"], **attributes)
    return model([made], inputs, ["y"], weights, opset, OTHER.get(dtype, FLOAT))


def chain(*operators: Any, inputs: Any, weights: Any, opset: int = 17, dtype: str = "float32") -> Any:
    """A model of nodes (operator, names of inputs, attributes) whose results are y0, y1, ..."""
    nodes = [helper.make_node(o, i, [f"y{k}"], **a) for k, (o, i, a) in enumerate(operators)]
    return model(nodes, inputs, [f"y{len(nodes) - 1}"], weights, opset, OTHER.get(dtype, FLOAT))


PADS = np.array([0, 1, 2, 0])
SCALES = {"r": np.zeros(0, np.float32), "s": np.array([1, 1, 2, 2], np.float32)}
ONE = np.array(-1.25, np.float32)
CASES = {
    "whole numbers padded": node("Pad", {"x": (2, 3)}, {"p": PADS}, "int64"),
    "padded with a large number": node("Pad", {"x": (2, 3)}, {"p": PADS, "v": np.array(2**53 + 1)}, "int64"),
    "conditions gathered": node("Gather", {"x": (4, 3)}, {"i": np.array([[0, 2], [3, -1]])}, "bool"),
    "conditions gathered one by one": node("GatherElements", {"x": (4, 3)}, {"i": np.array([[0, 2, 1]])}, "bool"),
    "bytes between bytes": node("Resize", {"x": (1, 2, 3, 4)}, SCALES, "uint8", mode="linear"),
    "whole numbers between": node("Resize", {"x": (1, 2, 3, 4)}, SCALES, "int32", mode="linear"),
    "remainder by a number": node("Mod", {"x": (3, 4)}, {"n": ONE}, fmod=1),
    "a crop to a known shape": node("CenterCropPad", {"x": (3, 4)}, {"s": np.array([2, 7])}, opset=18),
    "cut away and padded": node("Pad", {"x": (1, 4)}, {"p": np.array([-1, -3, 2, 2]), "v": ONE}),
    "resized to an odd extent": node(
        "Resize",
        {"x": (1, 1, 9, 4)},
        {"r": SCALES["r"], "e": SCALES["r"], "n": np.array([1, 1, 13, 3])},
        mode="nearest",
    ),
    "resized between corners": node(
        "Resize",
        {"x": (1, 1, 5, 7)},
        {"r": SCALES["r"], "e": SCALES["r"], "n": np.array([1, 1, 2, 3])},
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="align_corners",
    ),
    "slope of a vector": node("PRelu", {"x": (7,)}, {"s": np.array(0.25, np.float32)}, opset=16),
    "normalised constants": chain(
        ("BatchNormalization", ["c", "a", "b", "b", "a"], {}),
        ("Add", ["y0", "x"], {}),
        inputs={"x": (2, 3)},
        weights={
            "c": np.arange(6, dtype=np.float32).reshape(2, 3),
            "a": np.array([1.5, 2, 3], np.float32),
            "b": np.array([1, -2, 0.5], np.float32),
        },
        opset=12,
    ),
    "whole numbers shrunk": node("Shrink", {"x": (3, 4)}, dtype="int64", bias=0.2, lambd=0.3),
    "zeros quantised by their range": model(
        [
            helper.make_node("Mul", ["x", "z"], ["m"]),
            helper.make_node("DynamicQuantizeLinear", ["m"], ["q", "scale", "p"]),
            helper.make_node("DynamicQuantizeLinear", ["z"], ["zq", "zscale", "zp"]),
            helper.make_node("Add", ["scale", "zscale"], ["y"]),
        ],
        {"x": (2, 3)},
        ["y"],
        {"z": np.zeros(1, np.float32)},
    ),
    "axes of known numbers joined": chain(
        ("Softmax", ["c"], {"axis": 0}),
        ("LogSoftmax", ["c"], {"axis": 1}),
        ("Add", ["y0", "y1"], {}),
        ("Add", ["y2", "x"], {}),
        inputs={"x": (2, 3, 4)},
        weights={"c": np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7},
        opset=12,
    ),
    "squares of known whole numbers added up": chain(
        ("ReduceSumSquare", ["c"], {"axes": [1], "keepdims": 1}),
        ("Add", ["y0", "x"], {}),
        inputs={"x": (2, 3)},
        weights={"c": np.arange(6, dtype=np.int32).reshape(2, 3)},
        dtype="int32",
        opset=12,
    ),
    "norm of columns of one element": chain(
        ("Softsign", ["x"], {}), ("ReduceL1", ["y0"], {"axes": [1]}), inputs={"x": (16, 1)}, weights={}
    ),
    "hard swish of doubles": node("HardSwish", {"x": (4, 5)}, dtype="float64", opset=18),
    "axes of known numbers inserted from both ends": chain(
        ("Unsqueeze", ["c"], {"axes": [1, -3]}),
        ("Add", ["y0", "x"], {}),
        inputs={"x": (1, 1, 2)},
        weights={"c": np.array([1, 4], np.int32)},
        dtype="int32",
        opset=11,
    ),
}


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
@pytest.mark.parametrize("case", CASES)
def test_nodes_give_what_onnxruntime_gives(case: str) -> None:
    proto, rng = CASES[case], np.random.default_rng(0)
    feeds = {}
    for info in proto.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        feeds[info.name] = np.asarray(rng.uniform(0 if kind == np.uint8 else -9, 9, shape)).astype(kind)
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    run = lw.compile(lw.from_onnx(proto), "llvm cores=1", processes=1).executor()
    run.run(**feeds)
    got = run.get_output()
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    close = 1e-12 if got.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(got, wanted, rtol=close, atol=close / 10)
