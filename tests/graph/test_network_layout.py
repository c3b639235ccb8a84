"""Networks in another layout: the same numbers, inputs and outputs as they were, tasks that are those compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.layout import in_layout
from loopwright.graph.types import shape_of

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import model  # noqa: E402

TARGET = "llvm cores=1"
AMX = "llvm model=sapphirerapids cores=1"


def chain(depth: int = 3, shuffled: bool = False) -> Any:
    """Convolutions with relu behind each, (1, 3, 16, 16) -> (1, 8, 8, 8); `shuffled` moves channels between them."""
    random = np.random.default_rng(0)
    nodes, weights, last, channels = [], {}, "x", 3
    for k in range(depth):
        weights[f"w{k}"] = random.standard_normal((8, channels, 3, 3)).astype("float32") * 0.2
        nodes += [
            helper.make_node("Conv", [last, f"w{k}"], [f"c{k}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{k}"], [f"r{k}"]),
        ]
        last, channels = f"r{k}", 8
        if shuffled:
            weights |= {"apart": np.array([1, 2, 4, 16, 16]), "together": np.array([1, 8, 16, 16])}
            nodes += [
                helper.make_node("Reshape", [last, "apart"], [f"a{k}"]),
                helper.make_node("Transpose", [f"a{k}"], [f"t{k}"], perm=[0, 2, 1, 3, 4]),
                helper.make_node("Reshape", [f"t{k}", "together"], [f"s{k}"]),
            ]
            last = f"s{k}"
    nodes.append(helper.make_node("MaxPool", [last], ["y"], kernel_shape=[2, 2], strides=[2, 2]))
    return model(nodes, {"x": [1, 3, 16, 16]}, ["y"], weights)


def layouts(net: lw.Network) -> list[str]:
    """The layout of each operator that has one."""
    ops = [op for op in net.module.walk() if isinstance(op, ApplyOp) and op.operator.data in ("conv2d", "max_pool")]
    return [str(op.options.values.get("layout", "NCHW")) for op in ops]


def keys(net: lw.Network, **options: Any) -> list[str]:
    tasks, _ = lw.extract_tasks(net, TARGET, include_simple_tasks=True, **options)
    return sorted(task.workload_key for task in tasks)


def test_models_are_brought_into_the_layout_that_suits_them() -> None:
    plain = lw.from_onnx(chain(), layout=None)
    net = lw.from_onnx(chain())
    assert layouts(net) == ["NHWC"] * 4 and layouts(plain) == ["NCHW"] * 4
    assert (net.inputs["x"].shape, net.outputs["y"].shape) == ((1, 3, 16, 16), (1, 8, 8, 8))
    assert sum(op.operator.data == "transpose" for op in net.module.walk() if isinstance(op, ApplyOp)) == 3 + 2
    feeds = feeds_of(plain)
    np.testing.assert_allclose(net.evaluate(**feeds)[0], plain.evaluate(**feeds)[0], atol=1e-5)
    assert layouts(lw.from_onnx(chain(1))) == layouts(lw.from_onnx(chain(), layout="NCHW"))[:2] == ["NCHW"] * 2
    assert layouts(lw.from_onnx(chain(1), layout="NHWC")) == ["NHWC"] * 2
    assert layouts(lw.from_onnx(chain(4, shuffled=True))) == ["NCHW"] * 5


@pytest.mark.parametrize(
    ("dtype", "channels", "groups", "target", "layout"),
    [
        ("bfloat16", 32, 1, AMX, "NHWC"),
        ("bfloat16", 2, 1, AMX, "NCHW"),
        ("bfloat16", 32, 8, AMX, "NCHW"),
        ("float32", 32, 1, AMX, "NCHW"),
        ("bfloat16", 32, 1, "llvm cores=1 model=haswell", "NCHW"),
        ("bfloat16", 32, 1, None, "NCHW"),
        ("float16", 64, 1, "cuda model=h200", "NHWC"),
        ("bfloat16", 32, 1, "cuda model=h200", "NCHW"),
        ("float32", 64, 1, "cuda model=h200", "NCHW"),
    ],
)
def test_convolutions_on_matrix_units_pay_for_transposes_around_them(
    dtype: str, channels: int, groups: int, target: str | None, layout: str
) -> None:
    net = lw.Network("one")
    data = net.input("data", (2, channels, 8, 8), dtype)
    weight = net.constant(np.ones((channels, channels // groups, 3, 3), np.float32), name="weight")
    net.output(net.conv2d(data, net.cast(weight, dtype=dtype), padding=1, groups=groups))
    resolved = None if target is None else resolve_target(target)
    assert layouts(in_layout(net, "auto", resolved)) == [layout]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "auto", None])
@pytest.mark.slow(1.2)
@pytest.mark.few(1)
def test_tasks_are_those_that_are_compiled(layout: str | None) -> None:
    net = lw.testing.network("squeezenet_v1.1", **SMALL["squeezenet_v1.1"])
    compiled = lw.compile(net, TARGET, layout=layout, processes=1)
    assert sorted(kernel.workload_key for kernel in compiled.kernels) == keys(net, layout=layout)
    (data,) = feeds_of(net).values()
    want = net.evaluate(data=data)[0]
    np.testing.assert_allclose(compiled.executor()(data), want, atol=1e-5, rtol=1e-3)
    other = {"NHWC": "NCHW", "auto": "NCHW"}.get(layout or "", "NHWC")
    assert keys(net, layout=layout) != keys(net, layout=other)


@pytest.mark.parametrize("name", ["mobilenet", "resnet-18", "bert_encoder_layer"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_network_that_is_in_its_layout_is_left_as_it_is(name: str) -> None:
    net = lw.testing.network(name, layout="NHWC", **SMALL[name])
    assert keys(net) == keys(net, layout="auto") == keys(net, layout="NHWC")


def test_other_words_are_refused() -> None:
    net = lw.testing.mlp()
    with pytest.raises(ValueError, match="layout is one of NCHW, NHWC, auto or None, got 'CHWN'"):
        lw.compile(net, TARGET, layout="CHWN")
    with pytest.raises(ValueError, match="layout is one of NCHW, NHWC, auto or None, got 'nhwc'"):
        lw.extract_tasks(net, TARGET, layout="nhwc")


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_tensors_of_fewer_axes_beside_those_of_more(layout: str) -> None:
    """Their axes are other ones there: maps of one spatial axis are broadcast along two, those of two along three."""
    net = lw.Network()
    x, volume = net.input("x", (3, 4, 2, 5)), net.input("v", (2, 3, 4, 2, 5))
    maps, deep = net.max_pool(x, kernel=1, layout="NCHW"), net.max_pool(volume, kernel=1, layout="NCDHW")
    line = net.max_pool(net.input("l", (4, 2, 5)), kernel=1, layout="NCW")
    net.output(net.multiply(maps, deep), net.add(line, maps), net.add(line, deep), maps)
    feeds = {name: np.random.default_rng(0).standard_normal(v.shape).astype("f4") for name, v in net.inputs.items()}
    passes = f"lw-graph-convert-layout{{layout={layout}}},lw-graph-simplify,cse,dce"
    after = net.transform(passes)
    assert layout == "NCHW" or "NDHWC" in str(after)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("rows", "norm", "stays"),
    [
        ((2, 1, 120), "layer_norm", False),
        ((2, 120), "rms_norm", False),
        ((2, 2, 60), "layer_norm", True),
        ((1, 1, 240), "layer_norm", True),
        ((2, 1, 120), "softmax", True),
    ],
)
def test_samples_that_are_normalised_as_a_whole(rows: tuple[int, ...], norm: str, stays: bool, layout: str) -> None:
    """A row of each is one of the same elements in any layout; rows of groups, and of all samples, stay as they are."""
    net = lw.Network()
    x = net.input("x", (2, 6, 4, 5) if layout == "NHWC" else (2, 4, 5, 6))
    kernel = net.constant(np.random.default_rng(0).standard_normal((6, 6, 1, 1), np.float32), name="w")
    kernel = kernel if layout == "NHWC" else net.transpose(kernel, axes=(2, 3, 1, 0))
    before = net.conv2d(x, kernel, layout="NCHW" if layout == "NHWC" else "NHWC")
    flat = net.reshape(before, shape=rows)
    maps = net.reshape(getattr(net, norm)(flat), shape=before.shape)
    net.output(
        net.conv2d(net.relu(maps), kernel, layout="NCHW" if layout == "NHWC" else "NHWC"), net.sum(flat, axis=-1)
    )
    after = net.transform(f"lw-graph-convert-layout{{layout={layout}}},lw-graph-simplify,cse,dce")
    moved = [op for op in after.module.walk() if isinstance(op, ApplyOp) and op.operator.data == "transpose"]
    whole = sum(shape_of(op.outputs[0]) in ((2, 6, 4, 5), (2, 4, 5, 6)) for op in moved)
    assert whole == 2 + 1 + stays, "the input, the output, and what is summed or normalised in the old layout"
    feeds = {"x": np.random.default_rng(1).standard_normal(x.shape).astype("f4")}
    want = net.evaluate(**feeds)
    for got, right in zip(after.evaluate(**feeds), want, strict=True):
        np.testing.assert_allclose(got, right, atol=1e-4, rtol=1e-4)
    for got, right in zip(lw.compile(after, TARGET, processes=1).executor()(feeds["x"]), want, strict=True):
        np.testing.assert_allclose(got, right, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_group_normalisation_as_pytorch_exports_it(shift: float) -> None:
    """One group, as an instance of one channel: without a shift of its own it is a normalisation of whole samples."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((8, 8, 1, 1)).astype("float32"),
        "row": np.array([0, 1, -1]),
        "maps": np.array([2, 8, 5, 5]),
        "one": np.ones(1, np.float32),
        "shift": np.full(1, shift, np.float32),
        "gamma": random.standard_normal((8, 1, 1)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "row"], ["r"]),
        helper.make_node("InstanceNormalization", ["r", "one", "shift"], ["n"]),
        helper.make_node("Reshape", ["n", "maps"], ["m"]),
        helper.make_node("Mul", ["m", "gamma"], ["s"]),
        helper.make_node("Conv", ["s", "w"], ["y"]),
    ]
    proto = model(nodes, {"x": [2, 8, 5, 5]}, ["y"], weights)
    net = lw.from_onnx(proto, layout="NHWC")
    moved = [op for op in net.module.walk() if isinstance(op, ApplyOp) and op.operator.data == "transpose"]
    assert sum(2 in shape_of(op.outputs[0]) for op in moved) == (2 if shift == 0 else 4)
    x = random.standard_normal((2, 8, 5, 5)).astype("float32")
    wanted: Any = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(net.evaluate(x=x)[0], wanted[0], atol=1e-4, rtol=1e-4)


def test_group_normalisation_of_onnx_follows_the_layout() -> None:
    """Of one group, with a scale and a shift for each channel."""
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal(8).astype("float32") for name in ("gamma", "beta")}
    weights["w"] = random.standard_normal((8, 8, 1, 1)).astype("float32")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GroupNormalization", ["c", "gamma", "beta"], ["n"], num_groups=1),
        helper.make_node("Conv", ["n", "w"], ["y"]),
    ]
    proto = model(nodes, {"x": [2, 8, 5, 5]}, ["y"], weights, opset=21)
    net = lw.from_onnx(proto, layout="NHWC")
    moved = [op for op in net.module.walk() if isinstance(op, ApplyOp) and op.operator.data == "transpose"]
    assert sum(2 in shape_of(op.outputs[0]) for op in moved) == 2, "the input and the output"
    x = random.standard_normal((2, 8, 5, 5)).astype("float32")
    wanted: Any = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(net.evaluate(x=x)[0], wanted[0], atol=1e-4, rtol=1e-4)
