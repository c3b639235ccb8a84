"""ONNX models become networks that compute the same; what cannot be imported is listed whole."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from gpu_programs import opencl_device
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model, small_network

import loopwright as lw
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.frontends.onnx import weights
from loopwright.graph.tasks import GROUPED

Array = npt.NDArray[Any]


def agrees(proto: ModelProto, **feeds: Array) -> lw.Network:
    """Import, evaluate, compare with ONNX's reference implementation; return the network."""
    net = lw.from_onnx(proto, {name: array.shape for name, array in feeds.items()})
    expected = ReferenceEvaluator(proto).run(None, feeds)
    for got, wanted in zip(net.evaluate(**feeds), expected, strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)
    return net


def random(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def groups(net: lw.Network) -> list[str]:
    """Return the labels of the kernels that a network becomes."""
    return [op.label.data for op in net.transform(GROUPED).module.walk() if isinstance(op, GroupOp)]


def operators(net: lw.Network) -> list[str]:
    return [op.operator.data for op in net.module.walk() if isinstance(op, ApplyOp)]


def test_a_network_in_every_form_it_may_come_in(tmp_path: Path) -> None:
    proto = small_network()
    net = agrees(proto, x=random(1, 3, 12, 12))
    assert operators(net) == ["conv2d", "bias_add", "relu", "global_avg_pool", "reshape", "dense", "add"]
    assert net.input_names == ["x"] and net.output_names == ["y"]
    path = tmp_path / "small.onnx"
    onnx.save(proto, path)
    assert str(lw.from_onnx(path)).replace("@small", "@tested") == str(net)
    assert str(lw.from_onnx(path.read_bytes())) == str(net)
    assert lw.from_onnx(path).name == "small" and lw.from_onnx(str(path), name="mine").name == "mine"


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    proto, path = small_network(), tmp_path / "external.onnx"
    onnx.save(onnx.ModelProto.FromString(proto.SerializeToString()), path, save_as_external_data=True, size_threshold=0)
    assert path.stat().st_size < 1500
    x = random(1, 3, 12, 12)
    (wanted,) = lw.from_onnx(proto).evaluate(x=x)
    assert np.array_equal(lw.from_onnx(path).evaluate(x=x)[0], wanted)


def test_large_weights_are_never_handed_to_onnx_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checker, shape inference and inliner fail on models of more than 2 GB."""
    proto, path = small_network(), tmp_path / "external.onnx"
    proto.functions.append(twice())
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    proto.graph.node.append(helper.make_node("Twice", ["y"], ["z"], domain="mine"))
    proto.graph.output.append(helper.make_value_info("z", onnx.TypeProto()))
    x = random(1, 3, 12, 12)
    wanted = lw.from_onnx(proto).evaluate(x=x)
    onnx.save(onnx.ModelProto.FromString(proto.SerializeToString()), path, save_as_external_data=True, size_threshold=0)
    monkeypatch.setattr(weights, "LARGE", 5)
    seen: list[ModelProto] = []
    for module, name in ((onnx.checker, "check_model"), (onnx.shape_inference, "infer_shapes")):
        monkeypatch.setattr(module, name, spy(getattr(module, name), seen))
    net = lw.from_onnx(path)
    assert len(seen) >= 2 and not any(np.prod(t.dims) >= 5 for model in seen for t in model.graph.initializer)
    assert net.input_names == ["x"]
    for got, expected in zip(net.evaluate(x=x), wanted, strict=True):
        assert np.array_equal(got, expected)


def spy(function: Callable[..., Any], seen: list[ModelProto]) -> Callable[..., Any]:
    def called(model: ModelProto, *rest: Any, **options: Any) -> Any:
        seen.append(model)
        return function(model, *rest, **options)

    return called


def twice() -> FunctionProto:
    """A function of a model: twice its input."""
    node = helper.make_node("Add", ["a", "a"], ["b"])
    return helper.make_function("mine", "Twice", ["a"], ["b"], [node], [helper.make_opsetid("", 17)])


def test_functions_are_inlined_in_a_fresh_process(tmp_path: Path) -> None:
    proto = model([helper.make_node("Twice", ["x"], ["y"], domain="mine")], {"x": (4,)}, ["y"])
    proto.functions.append(twice())
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    path = tmp_path / "function.onnx"
    path.write_bytes(proto.SerializeToString())
    program = f"import loopwright as lw; print(lw.from_onnx({str(path)!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert 'lw_graph.apply "add"' in done.stdout, done.stderr


def test_weights_that_are_cut_off_are_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    onnx.save(small_network(), path, save_as_external_data=True, size_threshold=0, location="cut.bin")
    data = (tmp_path / "cut.bin").read_bytes()
    (tmp_path / "cut.bin").write_bytes(data[: len(data) - 4])
    with pytest.raises(
        lw.OnnxImportError, match=r"cut.onnx' cannot be imported: External data length .* for tensor 'fb'"
    ):
        lw.from_onnx(path)
    proto = small_network()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[:-4]
    with pytest.raises(lw.OnnxImportError, match=r"is not valid|initializer 'w' cannot be read"):
        lw.from_onnx(proto)


def test_open_extents_are_asked_for_and_given() -> None:
    proto = small_network(open_batch=True)
    with pytest.raises(lw.OnnxImportError, match=r"input 'x' is of shape \(N, 3, 12, 12\): give its extents"):
        lw.from_onnx(proto)
    with pytest.raises(lw.OnnxImportError, match=r"\['N', 3, 12, 12\], \(2, 4, 12, 12\) does not fit"):
        lw.from_onnx(proto, {"x": (2, 4, 12, 12)})
    with pytest.raises(lw.OnnxImportError, match="there is no input 'data'; there are x"):
        lw.from_onnx(proto, {"data": (1, 3, 12, 12)})
    agrees(proto, x=random(2, 3, 12, 12))
    with pytest.raises(
        lw.OnnxImportError, match=r"extents of input 'x' must be whole numbers of at least 0, got \(1.5"
    ):
        lw.from_onnx(proto, {"x": (1.5, 3, 12, 12)})  # type: ignore[dict-item]
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    with pytest.raises(lw.OnnxImportError, match=r"input 'x' is of shape \(\?, 3, 12, 12\): give its extents"):
        lw.from_onnx(proto)
    assert lw.from_onnx(proto, {"x": (2, 3, 12, 12)}).outputs["y"].shape == (2, 5)


def test_everything_that_is_not_supported_is_listed_before_any_work() -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["v"], name="drawn"),
        helper.make_node("NonZero", ["v"], ["n"], name="places"),
        helper.make_node("NonZero", ["x"], ["m"]),
        helper.make_node("Relu", ["n"], ["after"]),
        helper.make_node("Fancy", ["x"], ["f"], domain="com.example"),
        helper.make_node("Det", ["x"], ["h"]),
    ]
    proto = model(nodes, {"x": (2, 3, 3)}, ["after", "f", "h", "m"])
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    proto.graph.input.append(helper.make_tensor_value_info("u", TensorProto.FLOAT8E4M3FN, (2,)))
    proto.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    with pytest.raises(lw.OnnxImportError) as refused:
        lw.from_onnx(proto)
    floats, integers = "float16, bfloat16, float32, float64", "int8, int16, int32, int64, uint8, uint16, uint32, uint64"
    assert refused.value.reasons == (
        f"input 'u' has elements of type float8e4m3fn; supported are {floats}, {integers}, bool",
        "input 's' is no tensor but a sequence",
        "operator Det is not supported (node 'h')",
        "operator NonZero is not supported (2 nodes, the first 'places'): the shape of its result depends on values "
        "that are not known, and shapes are constants",
        "operator RandomNormalLike is not supported (node 'drawn')",
        "operator Fancy of domain com.example is not supported (node 'f')",
    )
    assert str(refused.value).startswith("model 'tested' cannot be imported, for 6 reasons:\n  input 'u' has")


def test_nodes_after_a_refused_one_are_looked_at_too() -> None:
    """A value that follows from unknown ones is no reason of its own: `odd` is not named."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["v"], name="drawn"),
        helper.make_node("Cast", ["v"], ["i"], to=TensorProto.INT64),
        helper.make_node("Relu", ["v"], ["r"]),
        helper.make_node("Resize", ["r", "", "scales"], ["big"], mode="linear", name="crop", exclude_outside=1),
        helper.make_node("Reshape", ["x", "i"], ["odd"]),
        helper.make_node("MaxPool", ["r"], ["p", "where"], kernel_shape=[2, 2], ceil_mode=1, dilations=[0, 1]),
        helper.make_node("Einsum", ["r", "r"], ["e"], equation="abcd,abce->ab", name="product"),
    ]
    weights = {"scales": np.array([1, 1, 2, 2], np.float32)}
    proto = model(nodes, {"x": (1, 2, 3, 4)}, ["big", "odd", "p", "e"], weights)
    with pytest.raises(lw.OnnxImportError) as refused:
        lw.from_onnx(proto)
    pool, drawn = refused.value.reasons
    assert pool.startswith("MaxPool 'p': ") and "dilation takes 2 positive integers" in pool
    assert drawn == "operator RandomNormalLike is not supported (node 'drawn')"


def test_what_does_not_fit_names_its_node() -> None:
    proto = model([helper.make_node("MatMul", ["a", "b"], ["y"], name="product")], {"a": (2, 3), "b": (4, 5)}, ["y"])
    with pytest.raises(lw.OnnxImportError, match=r"MatMul 'product': .*3 columns against 4 rows"):
        lw.from_onnx(proto)
    proto = model([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (2, 3), "s": (2,)}, ["y"])
    with pytest.raises(lw.OnnxImportError, match="Reshape 'y': shape 's' must be a constant"):
        lw.from_onnx(proto)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads_that_are_not_two_for_each_axis_are_refused(mode: str) -> None:
    proto = model(
        [helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)], {"x": (2, 3)}, ["y"], {"p": np.array([1, 2])}
    )
    with pytest.raises(lw.OnnxImportError, match="2 pads, 4 are needed, two for each of 2 axes"):
        lw.from_onnx(proto)


def test_inputs_may_be_made_constants() -> None:
    proto = model([helper.make_node("Expand", ["x", "s"], ["y"])], {"x": (3, 1)}, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, (2,)))
    net = lw.from_onnx(proto, constants={"s": np.array([3, 4])})
    assert net.input_names == ["x"] and net.outputs["y"].shape == (3, 4)
    with pytest.raises(lw.OnnxImportError, match=r"input 's' has the shape \[2\], values of shape \(3,\) do not fit"):
        lw.from_onnx(proto, constants={"s": np.array([3, 4, 5])})
    with pytest.raises(lw.OnnxImportError, match="input 's' has elements of type int64, values of float64 do not fit"):
        lw.from_onnx(proto, constants={"s": np.array([3.0, 4.0])})


def test_an_empty_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (path := tmp_path / "none.onnx").touch()
    with pytest.raises(lw.OnnxImportError) as refusal:
        lw.from_onnx(path)
    assert str(refusal.value) == f"model '{path}' cannot be imported: the file is empty"


@pytest.mark.parametrize("what", [b"no model", b"\x08\x08", "missing.onnx"])
def test_what_is_no_model_is_refused_in_a_sentence(what: bytes | str) -> None:
    with pytest.raises(
        lw.OnnxImportError,
        match=r"this is no ONNX model|it is not valid|'missing.onnx' cannot be imported: No such file",
    ):
        lw.from_onnx(what)


@pytest.mark.slow(1.2)
def test_models_with_flipped_bits_are_read_or_refused_in_a_sentence() -> None:
    data, rng, refused = small_network().SerializeToString(), np.random.default_rng(0), 0
    for _ in range(150):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 2):
            changed[place] ^= 1 << int(rng.integers(0, 8))
        try:
            lw.from_onnx(bytes(changed))
        except lw.OnnxImportError:
            refused += 1
    assert 20 < refused < 130


def test_operator_sets_must_be_named_and_known() -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (2,)}, ["y"], opset=99)
    with pytest.raises(lw.OnnxImportError, match=r"its operator set is 99; the newest that onnx .* knows is"):
        lw.from_onnx(proto)
    del proto.opset_import[:]
    with pytest.raises(lw.OnnxImportError, match="it names no operator set"):
        lw.from_onnx(proto)


def test_a_model_that_is_not_valid_is_refused() -> None:
    proto = model([helper.make_node("Relu", ["nothing"], ["y"])], {"x": (2,)}, ["y"])
    with pytest.raises(lw.OnnxImportError) as refusal:
        lw.from_onnx(proto)
    assert str(refusal.value).endswith(
        "it is not valid: Nodes in a graph must be topologically sorted, however input 'nothing' of node: OpType: Relu "
        "is not output of any previous nodes."
    )


def test_initializers_among_the_inputs_are_constants() -> None:
    """Models of IR version 3 have them so."""
    proto = small_network()
    for tensor in proto.graph.initializer:
        proto.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    assert lw.from_onnx(proto).input_names == ["x"]


def test_shapes_computed_from_shapes_are_constants() -> None:
    """x.reshape(x.shape[0], -1), as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axes"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    weights = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    net = agrees(model(nodes, {"x": (2, 3, 4)}, ["y"], weights), x=random(2, 3, 4))
    assert operators(net) == ["reshape"]


def test_known_branches_are_taken() -> None:
    def branch(name: str, operator: str) -> GraphProto:
        out = helper.make_value_info(name, onnx.TypeProto())
        return helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [out])

    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Neg"))
    for flag, operator in ((True, "relu"), (False, "negative")):
        net = lw.from_onnx(model([node], {"x": (3,)}, ["y"], {"flag": np.array(flag)}))
        assert operators(net) == [operator]


def test_functions_are_inlined_and_definitions_expanded() -> None:
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="mine"), helper.make_node("HardSwish", ["t"], ["y"])]
    proto = model(nodes, {"x": (4,)}, ["y"])
    proto.functions.append(twice())
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    assert operators(agrees(proto, x=random(4)))[0] == "add"
    nodes = [helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)]
    proto = model(nodes, {"x": (2, 4, 3)}, ["y"], {"s": random(4, seed=1), "b": random(4, seed=2)}, opset=21)
    agrees(proto, x=random(2, 4, 3))


def test_old_operator_sets_mean_what_they_meant() -> None:
    """Softmax before version 13 goes over all axes from `axis` on; Upsample lives until version 9."""
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    x = random(2, 3, 4)
    (got,) = lw.from_onnx(model([softmax], {"x": (2, 3, 4)}, ["y"], opset=11)).evaluate(x=x)
    assert np.allclose(got.reshape(2, -1).sum(axis=1), 1)
    (got,) = lw.from_onnx(model([softmax], {"x": (2, 3, 4)}, ["y"], opset=13)).evaluate(x=x)
    assert np.allclose(got.sum(axis=1), 1)
    upsample = helper.make_node("Upsample", ["x", "s"], ["y"], mode="nearest")
    proto = model([upsample], {"x": (1, 1, 2, 2)}, ["y"], {"s": np.array([1, 1, 2, 3], np.float32)}, opset=9)
    net = lw.from_onnx(proto)
    (got,) = net.evaluate(x=np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2))
    assert got[0, 0].tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, 3]] * 2
    assert operators(net) == ["repeat", "repeat"]


def test_resizing_is_linear_in_the_pixels() -> None:
    sizes = np.array([1, 2, 7, 5])
    modes: tuple[tuple[str, dict[str, Any]], ...] = (("cubic", {}), ("linear", {"antialias": 1}), ("linear", {}))
    for mode, extra in modes:
        node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, **extra)
        proto = model([node], {"x": (1, 2, 4, 8)}, ["y"], {"sizes": sizes}, opset=19)
        agrees(proto, x=random(1, 2, 4, 8))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_of_every_rank_both_ways(dims: int) -> None:
    x, spatial = random(2, 4, *[7, 6, 5][:dims]), [7, 6, 5][:dims]
    options: dict[str, Any] = {"strides": [2] * dims, "pads": [1] * dims + [0] * dims, "group": 2}
    options["dilations"] = [1] * (dims - 1) + [2]
    forward = helper.make_node("Conv", ["x", "w", "b"], ["y"], **options)
    weights = {"w": random(6, 2, *[3] * dims), "b": random(6)}
    agrees(model([forward], {"x": (2, 4, *spatial)}, ["y"], weights), x=x)
    backward = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], output_padding=[1] * dims, **options)
    weights = {"w": random(4, 3, *[3] * dims), "b": random(6)}
    proto = model([backward], {"x": (2, 4, *spatial)}, ["y"], weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(lw.from_onnx(proto).evaluate(x=x)[0], session.run(None, {"x": x})[0], atol=1e-4)


@pytest.mark.parametrize("shape", [(32,), (1, 1, 32)])
def test_normalisations_of_rows_are_one_kernel(shape: tuple[int, ...]) -> None:
    weights = {"s": random(*shape), "b": random(*shape, seed=1)}
    layer = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"])
    assert groups(agrees(model([layer], {"x": [2, 32, 32]}, ["y"], weights), x=random(2, 32, 32))) == ["layer_norm"]
    square = helper.make_node("RMSNormalization", ["x", "s"], ["y"])
    proto = model([square], {"x": [2, 32, 32]}, ["y"], {"s": weights["s"]}, opset=23)
    assert groups(agrees(proto, x=random(2, 32, 32))) == ["rms_norm"]


@pytest.mark.parametrize("shape", [(1,), (32, 1), (2, 32, 32)])
def test_scales_of_rows_may_be_of_any_shape_that_broadcasts(shape: tuple[int, ...]) -> None:
    layer = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"])
    for scales in ({"s": random(*shape), "b": random(32)}, {"s": random(32), "b": random(*shape)}):
        agrees(model([layer], {"x": [2, 32, 32]}, ["y"], scales), x=random(2, 32, 32))


def test_images_of_bytes_are_inputs() -> None:
    """Exporters write bytes, converted, scaled, and a mask of the brightest."""
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["f", "range"], ["y"]),
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("BitShift", ["p", "two"], ["s"], direction="RIGHT"),
    ]
    weights: dict[str, npt.ArrayLike] = {"range": np.array(255, np.float32), "two": np.array(2, np.uint8)}
    proto = model(nodes, {"x": (1, 3, 4, 4)}, ["y", "s"], weights, dtype=TensorProto.UINT8)
    agrees(proto, x=np.random.default_rng(0).integers(0, 256, (1, 3, 4, 4), np.uint8))


def quantised(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 255, shape, np.uint8, endpoint=True)


def quantised_weights(*shape: int) -> Array:
    """Weights of 7 bits: sums of two products of 8 saturate in onnxruntime on CPUs without VNNI (AVX2's vpmaddubsw)."""
    return np.random.default_rng(0).integers(-64, 63, shape, np.int8, endpoint=True)


def test_a_quantised_convolution_agrees_with_onnxruntime() -> None:
    """A scale and a zero point of each output channel, of bytes without a sign and with one, and padding."""
    weights: dict[str, npt.ArrayLike] = {
        "xs": np.float32(0.02),
        "xz": np.uint8(117),
        "ys": np.float32(0.4),
        "yz": np.uint8(130),
        "w": quantised_weights(6, 3, 3, 3),
        "ws": np.linspace(0.01, 0.03, 6, dtype=np.float32),
        "wz": np.zeros(6, np.int8),
        "b": np.arange(-300, 300, 100, dtype=np.int32),
    }
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    node = helper.make_node("QLinearConv", inputs, ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    proto = model([node], {"x": (1, 3, 9, 9)}, ["y"], weights, dtype=TensorProto.UINT8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    x = quantised(1, 3, 9, 9)
    (got,), (wanted,) = lw.from_onnx(proto).evaluate(x=x), session.run(None, {"x": x})
    assert got.dtype == np.uint8 and np.abs(got.astype(int) - wanted).max() <= 1 and (got == wanted).mean() > 0.98


def test_quantised_and_back_around_a_product() -> None:
    """Quantising tools write it so: every tensor is quantised and read back."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"], axis=1),
        helper.make_node("MatMul", ["d", "dw"], ["y"]),
    ]
    weights: dict[str, npt.ArrayLike] = {
        "xs": np.float32(0.03),
        "xz": np.uint8(128),
        "w": quantised_weights(16, 5),
        "ws": np.linspace(0.01, 0.03, 5, dtype=np.float32),
    }
    proto, x = model(nodes, {"x": (4, 16)}, ["y"], weights), random(4, 16)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(lw.from_onnx(proto).evaluate(x=x)[0], session.run(None, {"x": x})[0], rtol=1e-5)
    proto = model(
        [helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=TensorProto.INT4)],
        {"x": (3,)},
        ["y"],
        {"s": np.float32(1)},
        opset=21,
    )
    with pytest.raises(lw.OnnxImportError, match="numbers are quantised to int8, uint8, int16, uint16, not to int4"):
        lw.from_onnx(proto)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scattered_elements_of_less_than_the_data(reduction: str) -> None:
    """Places are read only where there are updates; of several at one place the last counts, or all do."""
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction)
    places = np.array([[4, -1, 0], [2, 2, 3]]) if reduction != "none" else np.array([[4, -2, 0], [2, 1, 3]])
    proto = model([node], {"x": (3, 5)}, ["y"], {"i": places, "u": random(2, 3, seed=1)}, opset=18)
    agrees(proto, x=random(3, 5))


def test_scattered_slices_and_truth_values() -> None:
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    weights = {"i": np.array([[[1, 0]], [[0, 2]]]), "u": random(2, 1, 4) > 0}
    x = random(2, 3, 4, seed=1) > 0
    agrees(model([node], {"x": (2, 3, 4)}, ["y"], weights, opset=18, dtype=TensorProto.BOOL), x=x)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_tensors_without_elements_are_known(tmp_path: Path) -> None:
    """A value computed of one is known, and may be an output, also of a network that was saved."""
    nodes = [
        helper.make_node("Slice", ["x", "from", "to"], ["nothing"]),
        helper.make_node("ReduceSum", ["nothing", "axes"], ["zero"]),
        helper.make_node("Concat", ["nothing", "x"], ["same"], axis=0),
        helper.make_node("Add", ["same", "zero"], ["y"]),
    ]
    weights = {name: np.array([value]) for name, value in (("from", 7), ("to", 9), ("axes", 0))}
    proto, x = model(nodes, {"x": (2, 3)}, ["nothing", "y"], weights), random(2, 3)
    agrees(proto, x=x)
    for target in ("llvm cores=1", "opencl"):
        if target == "opencl":
            opencl_device()
        path = tmp_path / "empty.lw"
        lw.compile(lw.from_onnx(proto), target, processes=1).save(path)
        nothing, y = lw.load_network(path).executor()(x)
        assert nothing.shape == (0, 3) and np.array_equal(y, x)
