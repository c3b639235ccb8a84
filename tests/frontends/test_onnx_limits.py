"""ONNX models that ask for more than there is, or for nothing: refused with bytes, or run as onnxruntime does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from gpu_programs import opencl_device
from onnx import FunctionProto, ModelProto, TensorProto, helper, numpy_helper
from onnx_models import model

import loopwright as lw
from loopwright import onnx_backend
from loopwright.frontends.onnx.importer import from_onnx

FAR = 2**40


def one(
    operator: str,
    inputs: Mapping[str, Sequence[int | str]],
    weights: Mapping[str, npt.ArrayLike] | None = None,
    opset: int = 17,
    results: tuple[str, ...] = ("y",),
    dtype: int = TensorProto.FLOAT,
    **attributes: Any,
) -> ModelProto:
    """A model of one node; its inputs are those given and the weights, in this order."""
    node = helper.make_node(operator, [*inputs, *(weights or {})], list(results), **attributes)
    return model([node], inputs, [r for r in results if r], weights, opset, dtype)


def refusal(proto: ModelProto) -> str:
    with pytest.raises(lw.OnnxImportError) as refused:
        from_onnx(proto)
    return str(refused.value)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((0, 2**62, 1), "takes 36,893,488,147,419,103,232 bytes, a constant may take"),
        ((0, -(2**62), -1), "takes 36,893,488,147,419,103,232 bytes"),
        ((-(2**63), 2**63 - 1, 1), "bytes, a constant may take"),
        ((0.0, 1e300, 1.0), "bytes, a constant may take"),
        ((0.0, 1e300, 1e-300), "there is no number of steps"),
        ((0, 5, 0), "in steps of 0"),
        ((0.0, float("nan"), 1.0), "from 0.0 to nan"),
        ((0.0, float("inf"), 1.0), "from 0.0 to inf"),
    ],
)
def test_ranges_without_end_are_refused(bounds: tuple[float, ...], says: str) -> None:
    text = refusal(one("Range", {}, {name: np.array(value) for name, value in zip("abc", bounds, strict=True)}))
    assert says in text


@pytest.mark.parametrize("bounds", [(3, 9, 2), (9, 3, -2), (3, 9, -1), (0.5, 2.0, 0.25), (1.0, 1.0, 1.0)])
def test_ranges_are_those_of_onnxruntime(bounds: tuple[float, ...]) -> None:
    proto = one("Range", {}, {name: np.array(value) for name, value in zip("abc", bounds, strict=True)})
    (got,) = from_onnx(proto).evaluate()
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {})
    assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


LARGE = {
    "ConstantOfShape": one("ConstantOfShape", {}, {"s": np.array([FAR])}),
    "ConstantOfShape beyond 64 bits": one("ConstantOfShape", {}, {"s": np.array([FAR, FAR])}),
    "Expand": one("Expand", {"x": (1, 3)}, {"s": np.array([FAR, 1])}),
    "Expand of a constant": one("Expand", {}, {"x": np.ones((1, 3)), "s": np.array([FAR, 1])}),
    "Tile": one("Tile", {"x": (2, 3)}, {"s": np.array([FAR, 1])}),
    "Tile of a constant": one("Tile", {}, {"x": np.ones((2, 3)), "s": np.array([FAR, 1])}),
    "Pad": one("Pad", {"x": (2, 3)}, {"s": np.array([FAR, 1, 0, 0])}),
    "Pad by edges": one("Pad", {"x": (2, 3)}, {"s": np.array([FAR, 1, 0, 0])}, mode="edge"),
    "Resize": model(
        [helper.make_node("Resize", ["x", "", "", "s"], ["y"])],
        {"x": (1, 1, 2, 3)},
        ["y"],
        {"s": np.array([1, 1, FAR, 3])},
    ),
    "OneHot": one("OneHot", {"x": (2,)}, {"d": np.array(FAR), "v": np.ones(2)}, dtype=TensorProto.INT64),
    "EyeLike": one("EyeLike", {"x": (FAR // 1024, 2**30)}),
    "Conv": one("Conv", {"x": (1, 1, 3, 3)}, {"w": np.ones((1, 1, 3, 3), np.float32)}, pads=[FAR] * 4),
    "ConvTranspose": one(
        "ConvTranspose", {"x": (1, 1, 3, 3)}, {"w": np.ones((1, 1, 3, 3), np.float32)}, strides=[FAR] * 2
    ),
    "outer product": one("Mul", {}, {"a": np.ones((1 << 18, 1)), "b": np.ones((1, 1 << 18))}),
    "input": one("Relu", {"x": (FAR, 3)}),
    "window": one("HannWindow", {}, {"n": np.array(FAR)}),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_memory_does_not_hold_is_refused_with_its_bytes(what: str) -> None:
    text = refusal(LARGE[what])
    assert ",000 bytes" in text or any(c.isdigit() for c in text.partition(" bytes")[0][-3:]), text


def test_constants_of_moderate_size_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.frontends.onnx.importer.host_memory_bytes", lambda: 3000)
    nodes = [helper.make_node("ConstantOfShape", ["s"], [f"c{k}"]) for k in range(9)]
    proto = model([*nodes, helper.make_node("Sum", [n.output[0] for n in nodes], ["y"])], {}, ["y"], {"s": [100]})
    assert "constants computed up to here take 3,200 bytes, too many to hold" in refusal(proto)


def test_inputs_and_weights_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fits alone."""
    monkeypatch.setattr("loopwright.frontends.onnx.importer.host_memory_bytes", lambda: 3000)
    monkeypatch.setattr("loopwright.frontends.onnx.sizes.host_memory_bytes", lambda: 3000)
    said = "inputs up to 'b' take 4,000 bytes together, this machine has 3,000"
    assert said in refusal(one("Add", {"a": (500,), "b": (500,)}))
    said = "inputs and weights up to 'w' take 4,000 bytes together, this machine has 3,000"
    assert said in refusal(one("Add", {"a": (500,)}, {"w": np.ones(500, np.float32)}))
    from_onnx(one("Add", {"a": (250,)}, {"w": np.ones(250, np.float32)}))


SLICE = helper.make_node("Slice", ["x", "from", "to"], ["y"])


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[ModelProto]:
    """The models of which onnx follows the values of shapes: none with a long row, for which it takes gigabytes."""
    seen: list[ModelProto] = []
    infer_shapes = onnx.shape_inference.infer_shapes

    def checked(
        model: ModelProto, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
    ) -> ModelProto:
        found = infer_shapes(model, check_type, strict_mode)
        if not data_prop:
            return found
        infos = (*found.graph.input, *found.graph.value_info, *found.graph.output)
        rows = [dim.dim_value for info in infos for dim in info.type.tensor_type.shape.dim]
        assert max(rows) < 1 << 20
        seen.append(model)
        return infer_shapes(model, check_type, strict_mode, data_prop)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", checked)
    return seen


def test_weights_that_name_more_numbers_than_they_have(followed: list[ModelProto]) -> None:
    """A node that reads them is replaced by a stand-in of the type that onnx infers."""
    nodes = [SLICE, helper.make_node("Relu", ["y"], ["z"])]
    proto = model(nodes, {"x": (4, 6)}, ["z"], {"from": np.array([1]), "to": np.array([3])})
    proto.graph.initializer[0].dims[0] = FAR
    assert refusal(proto).count("initializer 'from' cannot be read") == 1


def test_rows_too_long_to_be_bounds_of_a_slice(followed: list[ModelProto]) -> None:
    proto = one("Slice", {"x": (4, 6), "from": (1 << 22,), "to": (1 << 22,)}, dtype=TensorProto.INT64)
    assert "Slice" in refusal(proto)


def test_rows_that_are_only_known_by_following_shapes(followed: list[ModelProto]) -> None:
    """No row is written down: its length is a product of shapes, which inference without values does not know."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Mul", ["s", "s"], ["length"]),
        helper.make_node("ConstantOfShape", ["length"], ["row"], value=numpy_helper.from_array(np.array([1]), "v")),
        helper.make_node("Slice", ["x", "row", "row"], ["y"]),
    ]
    assert "takes 28,800,000,000 bytes" in refusal(model(nodes, {"x": (60000,)}, ["y"]))
    assert all(node.op_type != "Slice" for proto in followed for node in proto.graph.node)


def test_rows_too_long_to_describe_a_tensor() -> None:
    """Lists of numbers in Python would take ten times the memory that the constant may."""
    row = np.ones(1 << 20, np.int64)
    assert "starts has 1,048,576 numbers, it may have 16,383" in refusal(
        one("Slice", {"x": (4, 6)}, {"a": row, "b": row})
    )


def test_short_rows_are_followed(followed: list[ModelProto]) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
        helper.make_node("Mine", ["y"], ["z"], domain="mine"),
    ]
    proto = model(nodes, {"x": (4, 6)}, ["z"])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    assert "operator Mine of domain mine" in refusal(proto) and followed


def test_weights_of_a_file_that_memory_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    proto = one("Add", {"x": (4,)}, {"w": np.ones(4, np.float32)})
    onnx.save(proto, path, save_as_external_data=True, size_threshold=0, location="wide.bin")
    proto = onnx.load(path, load_external_data=False)
    for entry in proto.graph.initializer[0].external_data:
        if entry.key == "length":
            entry.value = str(FAR * 4)
    proto.graph.initializer[0].dims[0] = FAR
    path.write_bytes(proto.SerializeToString())
    with (tmp_path / "wide.bin").open("r+b") as file:
        file.truncate(FAR * 4)  # without a block on disk
    with pytest.raises(lw.OnnxImportError, match=r"files beside it would take 4,398,046,511,104 bytes, at most"):
        from_onnx(path)
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate(FAR)
    with pytest.raises(lw.OnnxImportError, match=r"large.onnx would take 1,099,511,627,776 bytes, at most 2,147"):
        from_onnx(tmp_path / "large.onnx")


def test_networks_that_memory_does_not_hold_are_refused_when_compiled() -> None:
    """So are those with inputs of 2^38 elements each, of which a machine may hold one but not all."""
    net = lw.Network("wide")
    net.output(net.add(net.input("a", (2**50,)), net.input("b", (2**50,))))
    with pytest.raises(
        ValueError, match=r"network 'wide': computing add takes 13,510,798,882,111,488 bytes, this mach"
    ):
        lw.compile(net, "llvm cores=1")


def test_inputs_are_held_beside_what_a_step_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    net = lw.Network("chain")
    total = net.input("x0", (100,))
    for k in range(1, 5):
        total = net.add(total, net.input(f"x{k}", (100,)))
    net.output(total)
    monkeypatch.setattr("loopwright.graph.compiler.host_memory_bytes", lambda: 2399)
    with pytest.raises(ValueError, match=r"computing \w+ takes 2,400 bytes, this machine has 2,399"):
        lw.compile(net, "llvm cores=1")


def function(name: str, *calls: str) -> FunctionProto:
    nodes = [helper.make_node(c, [f"v{k}"], [f"v{k + 1}"], domain="mine") for k, c in enumerate(calls)]
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, ["v0"], [f"v{len(calls)}"], nodes, domains)


@pytest.mark.parametrize("last", ["F29", "F0"])
def test_functions_that_never_end_are_refused(last: str) -> None:
    """Each calls the one before ten times; or the first calls the last."""
    proto = model([helper.make_node("F29", ["x"], ["y"], domain="mine")], {"x": (4,)}, ["y"])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    proto.functions.extend(function(f"F{k}", *[f"F{k - 1}"] * 10) for k in range(1, 30))
    proto.functions.append(function("F0", "F29") if last == "F29" else twice())
    text = refusal(proto)
    assert "calls itself" in text if last == "F29" else "it has 100,000,000,000,000,000,000,000,000,000 nodes" in text


def twice() -> FunctionProto:
    """A function of a model: twice its input."""
    node = helper.make_node("Add", ["a", "a"], ["b"])
    return helper.make_function("mine", "F0", ["a"], ["b"], [node], [helper.make_opsetid("", 17)])


def test_loops_of_constants_are_not_run() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, (2,)),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, (2,)),
        ],
    )
    node = helper.make_node("Loop", ["n", "c", "v0"], ["y"], body=body)
    weights = {"n": np.array(2**62), "c": np.array(True), "v0": np.ones(2, np.float32)}
    assert "4,611,686,018,427,387,904 iterations or more; a loop is unrolled" in refusal(
        model([node], {}, ["y"], weights)
    )


@pytest.mark.parametrize("depth", [30, 2000])
def test_graphs_nested_deeply_are_refused(depth: int) -> None:
    proto = model([], {"x": (2,)}, ["r"], {"flag": np.array(True)})
    graph = proto.graph
    for _ in range(depth):
        graph.node.add(op_type="If", input=["flag"], output=["r"])
        branch = graph.node[0].attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        graph.node[0].attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g.name = "e"
        graph = branch.g
        graph.output.add(name="r")
    graph.node.add(op_type="Relu", input=["x"], output=["r"])
    assert "cannot be imported" in refusal(proto)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
@pytest.mark.parametrize("target", ["llvm cores=1", "opencl"])
def test_inputs_without_elements_stay_in_the_signature(target: str, tmp_path: Path) -> None:
    """Each of them, read or not, beside its results, as in onnxruntime."""
    if target == "opencl":
        opencl_device()
    nodes = [
        helper.make_node("Concat", ["x", "none"], ["joined"], axis=0),
        helper.make_node("Relu", ["joined"], ["y"]),
        helper.make_node("Add", ["none", "row"], ["also"]),
        helper.make_node("ReduceSum", ["also"], ["zero"], keepdims=0),
    ]
    inputs = {"none": (0, 3), "x": (2, 3), "unread": (4, 0), "row": (1, 3)}
    proto = model(nodes, inputs, ["y", "also", "zero"])
    feeds = {name: np.random.default_rng(0).standard_normal(shape).astype("float32") for name, shape in inputs.items()}
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    net = from_onnx(proto)
    assert {name: value.shape for name, value in net.inputs.items()} == inputs
    lw.compile(net, target, processes=1).save(tmp_path / "none.lw")
    run = lw.load_network(tmp_path / "none.lw").executor()
    assert run.input_names == list(inputs) and run.output_names == ["y", "also", "zero"]
    for name, array in feeds.items():
        run.set_input(name, array)
    run.run()
    for k, array in enumerate(wanted):
        got = run.get_output(k)
        assert got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_allclose(got, array, rtol=1e-6)
    with pytest.raises(ValueError, match=r"input 'none' must have shape \(0, 3\), got \(1, 3\)"):
        run.set_input("none", np.ones((1, 3), np.float32))


EMPTY = {
    "Tile": one("Tile", {"x": (2, 3)}, {"r": np.array([0, 2])}),
    "Expand": one("Expand", {"x": (1, 3)}, {"s": np.array([0, 3])}),
    "Gather": one("Gather", {"x": (2, 3)}, {"i": np.zeros((4, 0), np.int64)}, axis=1),
    "GatherElements": one("GatherElements", {"x": (2, 3)}, {"i": np.zeros((0, 3), np.int64)}),
    "GatherND": one("GatherND", {"x": (2, 3)}, {"i": np.zeros((0, 1), np.int64)}),
    "Pad": one("Pad", {"x": (2, 3)}, {"p": np.array([-1, 0, -1, 0])}),
    "Mul": one("Mul", {"x": (1, 3)}, {"n": np.zeros((0, 1), np.float32)}),
    "Where": one("Where", {"c": (1, 3)}, {"a": np.zeros((0, 1)), "b": np.zeros(1)}, dtype=TensorProto.BOOL),
}


@pytest.mark.parametrize("what", EMPTY)
def test_results_without_elements_are_those_of_onnxruntime(what: str) -> None:
    proto = EMPTY[what]
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, _zeros(proto))
    (got,) = from_onnx(proto).evaluate(**_zeros(proto))
    assert not wanted.size and got.shape == wanted.shape and got.dtype == wanted.dtype


def _zeros(proto: ModelProto) -> dict[str, npt.NDArray[Any]]:
    kinds = {info.name: info.type.tensor_type for info in proto.graph.input}
    return {
        n: np.zeros([d.dim_value for d in k.shape.dim], helper.tensor_dtype_to_np_dtype(k.elem_type))
        for n, k in kinds.items()
    }


def test_the_backend_takes_inputs_without_elements() -> None:
    proto = one("Relu", {"x": ("N", 3)})
    prepared = onnx_backend.prepare(proto)
    assert prepared.run([np.zeros((0, 3), np.float32)])[0].shape == (0, 3)


def test_sums_so_far_of_infinite_numbers() -> None:
    x = np.array([[1, np.inf, 2, -1], [np.nan, 1, 2, 3]], np.float32)
    choices: tuple[dict[str, Any], ...] = ({}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1})
    for attributes in choices:
        proto = one("CumSum", {"x": (2, 4)}, {"a": np.array(1)}, **attributes)
        (got,) = from_onnx(proto).evaluate(x=x)
        (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
        np.testing.assert_allclose(got, wanted)
