"""Passes over networks keep their meaning: on the networks of `lw.testing`, and on random ones."""

from __future__ import annotations

from cProfile import Profile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import SMALL, feeds_of
from xdsl.parser import Parser

import loopwright as lw
from loopwright.backends.context import create_context
from loopwright.dialects.graph import ApplyOp, ConstantOp, GroupOp
from loopwright.graph.operator import Kind, operator
from loopwright.graph.pipeline import PREPARE
from loopwright.graph.tasks import GROUPED

PIPELINES = [
    "lw-graph-simplify,dce",
    "lw-graph-fold-batch-norm,cse,dce",
    "lw-graph-simplify,lw-graph-sink-views,dce",
    "lw-graph-fold-constants,dce",
    "lw-graph-skip-padding{by_taps=true},dce",
    "lw-graph-fuse",
    "lw-graph-convert-layout{layout=NHWC},lw-graph-simplify,cse,dce",
    "lw-graph-convert-layout{layout=NCHW},lw-graph-simplify,cse,dce",
    GROUPED,
]


def check_same(net: lw.Network, pipeline: str, feeds: dict[str, Any]) -> lw.Network:
    """Transform a network, and hold the result to the original."""
    after = net.transform(pipeline)
    after.module.verify()
    text = str(after)
    assert str(Parser(create_context(), text).parse_module()) == text
    assert (after.input_names, after.output_names) == (net.input_names, net.output_names)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, atol=2e-5 * max(1.0, float(np.abs(want).max())), rtol=1e-3)
    return after


@pytest.mark.parametrize("name", ["mobilenet_v2", "squeezenet_v1.1", "resnet-18", "dcgan"])
@pytest.mark.few(1)
def test_grouped_networks_mean_the_same(name: str) -> None:
    net = lw.testing.network(name, **SMALL[name])
    after = check_same(net, GROUPED, feeds_of(net))
    outside = [op for op in after.function.body.block.ops if isinstance(op, ApplyOp)]
    assert all(operator(op.operator.data).kind is Kind.VIEW for op in outside)
    assert not any(op.operator.data == "batch_norm" for op in after.module.walk() if isinstance(op, ApplyOp))


@pytest.mark.parametrize(
    ("given", "first", "between", "second", "left"),
    [
        ((1, 128, 12), (0, 2, 1), (1, 12, 8, 16), (0, 2, 3, 1), 0),  # tokens as a feature map, channels last
        ((1, 4, 3, 8), (0, 3, 1, 2), (1, 8, 12), (0, 2, 1), 0),  # and back
        ((2, 3, 4), (2, 0, 1), (4, 6), (1, 0), 0),
        ((2, 3, 4), (1, 0, 2), (3, 8), (1, 0), 1),
        ((3, 8), (1, 0), (2, 4, 3), (1, 0, 2), 2),  # axes that the reshape makes of one
        ((2, 3, 4, 5), (0, 2, 1, 3), (2, 4, 15), (2, 1, 0), 1),
        ((3, 1, 4), (2, 1, 0), (4, 3, 1, 1), (3, 1, 0, 2), 0),
    ],
)
def test_transposes_on_both_sides_of_a_reshape_are_one(
    given: Any, first: Any, between: Any, second: Any, left: int
) -> None:
    net: Any = lw.Network("turned")
    turned = net.reshape(net.transpose(net.input("data", given), axes=first), shape=between)
    net.output(net.relu(net.transpose(turned, axes=second)))
    after = check_same(net, "lw-graph-simplify,cse,dce", feeds_of(net))
    assert [op.operator.data for op in after.module.walk() if isinstance(op, ApplyOp)].count("transpose") == left


def test_transposed_convolutions_channels_last_take_in_what_follows() -> None:
    net = lw.testing.dcgan(layout="NHWC", **SMALL["dcgan"])
    after = check_same(net, GROUPED, feeds_of(net))
    labels = [op.label.data for op in after.module.walk() if isinstance(op, GroupOp)]
    assert labels[-4:] == [*["conv2d_transpose_add_relu"] * 3, "conv2d_transpose_tanh"]
    converted = check_same(net, "lw-graph-convert-layout{layout=NCHW},lw-graph-simplify,cse,dce", feeds_of(net))
    assert 'layout = "NHWC"' not in str(converted)


def test_every_convolution_takes_in_what_follows() -> None:
    net = lw.testing.network("resnet-50", **SMALL["resnet-50"]).transform(GROUPED)
    labels = [op.label.data for op in net.module.walk() if isinstance(op, GroupOp)]
    assert set(labels) == {
        *("conv2d_add_relu", "conv2d_add_add_relu", "conv2d_add"),
        *("max_pool", "global_avg_pool", "dense_add", "softmax"),
    }
    assert labels.count("conv2d_add_add_relu") == 16
    assert labels.count("conv2d_add") == 4  # the shortcuts


def labels_of(net: lw.Network) -> list[str]:
    """Names of the kernels of a grouped network."""
    return [op.label.data for op in net.module.walk() if isinstance(op, GroupOp)]


@pytest.mark.parametrize("shared", [False, True])
def test_batch_norm_of_halves_folds_in_single_precision(shared: bool) -> None:
    """Into weights and a bias, and as operators of its own where something else reads the convolution."""
    random, half = np.random.default_rng(0), np.float16
    net = lw.Network("halves")
    x = net.input("x", (2, 8, 9, 9), "float16")
    bias, weight = random.standard_normal(16).astype(half), (random.standard_normal((16, 8, 1, 1)) / 3).astype(half)
    conv = net.bias_add(net.conv2d(x, net.constant(weight, "w")), net.constant(bias, "b"))
    vectors = [random.uniform(0.3, 2, 16).astype(half) for _ in range(4)]
    normal = net.batch_norm(conv, *(net.constant(v, name) for v, name in zip(vectors, "gbmv", strict=True)))
    net.output(normal, *[conv] * shared)
    feeds = feeds_of(net)
    wide = np.einsum("bcyx,fc->bfyx", feeds["x"].astype(np.float64), weight[:, :, 0, 0].astype(np.float64))
    gamma, beta, mean, variance, added = (v.astype(np.float64).reshape(16, 1, 1) for v in (*vectors, bias))
    exact = (wide + added - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    folded = net.transform("lw-graph-simplify,lw-graph-fold-batch-norm,lw-graph-fold-constants,dce")
    errors = [float(np.abs(n.evaluate(**feeds)[0] - exact).mean()) for n in (net, folded)]
    assert errors[1] < (1.05 if shared else 1.25) * errors[0] < 3e-3
    names = [op.operator.data for op in folded.module.walk() if isinstance(op, ApplyOp)]
    assert ("multiply" in names) == shared


@pytest.mark.parametrize("kind", ["gelu", "silu"])
def test_activations_of_several_operators_join_a_product_of_three_axes(kind: str) -> None:
    net = lw.Network("block")
    random = np.random.default_rng(0)
    x = net.input("data", (2, 5, 6))
    y = net.matmul(net.reshape(x, shape=(10, 6)), random.standard_normal((6, 8), dtype="float32"))
    y = net.reshape(y, shape=(2, 5, 8)) + net.constant(random.standard_normal(8, dtype="float32"))
    net.output(y * (net.erf(y / 2.0**0.5) + 1.0) * 0.5 if kind == "gelu" else y * net.sigmoid(y))
    after = check_same(net, GROUPED, feeds_of(net))
    assert labels_of(after) == ["matmul_add_divide_erf_add_and_2" if kind == "gelu" else "matmul_add_sigmoid_multiply"]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "options", [{"padding": "SAME", "stride": 2}, {"groups": 4}, {"padding": (0, 1), "dilation": 2}]
)
def test_zeros_around_a_convolution_become_its_padding(layout: str, options: dict[str, Any]) -> None:
    net, last = lw.Network("padded"), layout == "NHWC"
    x = net.input("data", (1, 7, 7, 4) if last else (1, 4, 7, 7))
    around = (0, 2, 1, 0) if last else (0, 0, 2, 1)
    y = net.pad(net.pad(x, before=around), before=(0, 0, 0, 0), after=around)
    depth = 4 // int(options.get("groups", 1))
    weight = np.random.default_rng(0).standard_normal((3, 3, depth, 4) if last else (4, depth, 3, 3), dtype="float32")
    net.output(net.conv2d(y, weight, layout=layout, **options))
    assert len(labels_of(check_same(net, GROUPED, feeds_of(net)))) == 1
    video = lw.Network("video")
    x = video.input("data", (1, 2, 5, 5, 5))
    y = video.pad(x, before=(0, 0, 1, 0, 2))
    video.output(video.conv3d(y, np.ones((2, 2, 3, 3, 3), "float32")))
    assert labels_of(check_same(video, GROUPED, feeds_of(video))) == ["conv3d"]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("stretched", ["by its own shape", "by an operator", "not at all"])
def test_batches_of_products_by_one_matrix_are_one_product(turned: bool, stretched: str) -> None:
    random = np.random.default_rng(0)
    batches = 4 if stretched == "not at all" else 1
    shape = (batches, 7, 6) if turned else (batches, 6, 7)
    net = lw.Network()
    weight = net.constant(random.standard_normal(shape, dtype="float32"))
    if stretched == "by an operator":
        weight = net.broadcast_to(weight, shape=(4, *shape[1:]))
    net.output(net.batch_matmul(net.input("data", (4, 5, 6)), weight, transpose_b=turned))
    after = check_same(net, "lw-graph-simplify,dce", feeds_of(net))
    names = [op.operator.data for op in after.function.body.block.ops if isinstance(op, ApplyOp)]
    assert ("batch_matmul" in names) == (stretched == "not at all") and "broadcast_to" not in names
    assert ("matmul" in names) == (stretched != "not at all")


@pytest.mark.parametrize("which", [0, 1])
def test_factors_of_products_that_are_stretched_stay_as_they_are(which: int) -> None:
    random = np.random.default_rng(0)
    net = lw.Network()
    weight = net.constant(random.standard_normal((5, 6), dtype="float32"))
    factors = [net.broadcast_to(weight, shape=(4, 5, 6)), net.input("data", (4, 5, 7))]
    net.output(net.batch_matmul(*(factors if which else factors[::-1]), transpose_a=True))
    after = check_same(net, "lw-graph-simplify,dce", feeds_of(net))
    assert not any(op.operator.data == "broadcast_to" for op in after.module.walk() if isinstance(op, ApplyOp))


def rows_net(kind: str) -> lw.Network:
    """Elementwise operators around one over rows."""
    net, random = lw.Network("rows"), np.random.default_rng(0)
    x, y = net.input("x", (2, 6, 40)), net.input("y", (2, 6, 40))
    mask, gamma = (net.constant(random.standard_normal(s, dtype="float32")) for s in ((1, 1, 40), (40,)))
    made = {
        "multiply_add_softmax": lambda: net.softmax(x * 0.5 + mask),
        "add_layer_norm_gelu": lambda: net.gelu(net.layer_norm(x + y, gamma, gamma)),
        "silu_multiply_rms_norm": lambda: net.rms_norm(net.silu(x) * y, gamma),
        "log_softmax_multiply": lambda: net.log_softmax(x, axis=1) * y,
    }
    net.output(made[kind]())
    return net


@pytest.mark.parametrize("target", ["llvm cores=1", "cuda model=h200"])
@pytest.mark.parametrize(
    "label", ["multiply_add_softmax", "add_layer_norm_gelu", "silu_multiply_rms_norm", "log_softmax_multiply"]
)
@pytest.mark.few(2)
def test_operators_over_rows_are_one_kernel_with_what_is_around_them(label: str, target: str) -> None:
    net = rows_net(label)
    feeds = feeds_of(net)
    after = check_same(net, GROUPED, feeds)
    assert labels_of(after) == [label]
    compiled = lw.compile(net, target)
    (kernel,) = compiled.kernels
    if target.startswith("llvm"):
        np.testing.assert_allclose(compiled.executor()(*feeds.values()), net.evaluate(**feeds)[0], atol=1e-5)
        assert "lw-cache-read" not in kernel.schedule  # rows are no matrix product, whatever is stretched over them


def written_out(kind: str, axes: tuple[int, ...]) -> lw.Network:
    """A normalisation in simpler operators, with scale and shift."""
    net, random = lw.Network("norm"), np.random.default_rng(0)
    x = net.input("x", (2, 5, 6, 7))
    g, b = (net.constant(random.standard_normal(7, dtype="float32")) for _ in range(2))

    def mean(v: Any) -> Any:
        return net.mean(v, axis=axes, keepdims=True)

    d = x - mean(x)
    made = {
        "divide": lambda: d / net.sqrt(mean(net.power(d, 2.0)) + 1e-5),
        "rsqrt": lambda: d * net.rsqrt(mean(d * d) + 1e-5),
        "rms": lambda: x * net.divide(1.0, net.sqrt(mean(net.square(x)) + 1e-5)),
        "reciprocal": lambda: net.reciprocal(net.sqrt(net.add(1e-5, mean(net.power(x, 2.0))))) * x,
    }
    net.output(made[kind]() * g + b)
    return net


@pytest.mark.parametrize("axes", [(3,), (-1, 2), (1, 2)])
@pytest.mark.parametrize("kind", ["divide", "rsqrt", "rms", "reciprocal"])
def test_normalisations_that_are_written_out_are_one_kernel(kind: str, axes: tuple[int, ...]) -> None:
    net = written_out(kind, axes)
    after = check_same(net, GROUPED, feeds_of(net))
    norm = "layer_norm" if kind in ("divide", "rsqrt") else "rms_norm"
    assert labels_of(after) == [f"{norm}_multiply_add"]


@pytest.mark.parametrize("kind", ["conv2d", "depthwise", "transposed", "dense", "matmul", "shared", "whole"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.few(7)
def test_factors_of_channels_go_into_the_weights(kind: str, layout: str) -> None:
    net, random = lw.Network("scaled"), np.random.default_rng(0)
    last = layout == "NHWC"

    def constant(*shape: int) -> Any:
        return net.constant(random.standard_normal(shape, dtype="float32"))

    channel: tuple[int, ...]
    if kind in ("dense", "matmul"):
        x, channel = net.input("x", (3, 6)), (6,)
        y = net.dense(x, constant(6, 6)) if kind == "dense" else net.matmul(x, constant(6, 6))
    else:
        x, channel = net.input("x", (2, 5, 5, 6) if last else (2, 6, 5, 5)), (6,) if last else (6, 1, 1)
        depth = 1 if kind == "depthwise" else 6
        weight = constant(3, 3, depth, 6) if last else constant(*((6, depth) if kind != "transposed" else (6, 6)), 3, 3)
        name, groups = ("conv2d_transpose" if kind == "transposed" else "conv2d"), 6 if kind == "depthwise" else 1
        y = net.apply(name, x, weight, layout=layout, groups=groups)
    first = constant(*(y.shape if kind == "whole" else channel)) * y
    net.output(net.add(constant(*channel), first + constant(*channel)), *([y] if kind == "shared" else []))
    after = check_same(net, GROUPED, feeds_of(net))
    left = sum(op.operator.data == "multiply" for op in after.module.walk() if isinstance(op, ApplyOp))
    assert left == (kind in ("shared", "whole"))
    if not left:
        assert [label.rsplit("_", 1)[1] for label in labels_of(after)] == ["add"]


@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 4, 5), 3), ((1, 4, 9), 1), ((3, 4, 2, 2, 2), 4)])
def test_group_normalisation_is_one_kernel_with_its_scale(shape: tuple[int, ...], groups: int) -> None:
    """Also with a residual tensor and what comes behind; a scale that cuts through groups stays by itself."""
    net, random = lw.Network(), np.random.default_rng(0)
    x, residual = net.input("x", shape), net.input("r", shape)
    rows = net.reshape(x, shape=(shape[0], groups, -1))
    normal = net.reshape(net.layer_norm(rows), shape=shape)
    channels = (shape[1], *(1,) * (len(shape) - 2))
    scale, shift = (net.constant(random.standard_normal(channels, np.float32), name) for name in ("scale", "shift"))
    net.output(net.relu(net.add(net.add(net.multiply(normal, scale), shift), residual)))
    after = check_same(net, GROUPED, feeds_of(net))
    assert [op.label.data for op in after.module.walk() if isinstance(op, GroupOp)] == [
        "layer_norm_multiply_add_add_relu"
    ]


def test_views_are_sunk_in_time_that_grows_as_networks_do() -> None:
    """By the number of calls: sinking looked back to the inputs from each norm."""
    random = np.random.default_rng(0)

    def calls(count: int) -> int:
        net: Any = lw.Network()
        x = net.input("x", (2, 8, 3))
        for number in range(count):
            normal = net.reshape(net.layer_norm(net.reshape(x, shape=(2, 4, 6))), shape=(2, 8, 3))
            x = net.add(x, net.multiply(normal, net.constant(random.standard_normal((8, 1), np.float32), f"s{number}")))
        net.output(x)
        profile = Profile()
        profile.runcall(net.transform, "lw-graph-split-norms,lw-graph-sink-views")
        return int(sum(entry.callcount for entry in profile.getstats()))

    calls(2)  # what is imported and kept
    assert calls(40) < 2.5 * calls(20)


def test_a_view_of_many_readers_is_sunk_in_time_that_grows_as_they_do() -> None:
    """By the number of calls: each reader asked all others if they can read what the view is of."""

    def calls(count: int) -> int:
        net: Any = lw.Network()
        view = net.reshape(net.tanh(net.input("x", (4, 6))), shape=(8, 3))
        numbers = [net.constant(np.full((1, 3), n, np.float32), f"n{n}") for n in range(count)]
        net.output(*(net.relu(net.add(view, number)) for number in numbers))
        profile = Profile()
        profile.runcall(net.transform, "lw-graph-sink-views")
        return int(sum(entry.callcount for entry in profile.getstats()))

    calls(2)  # what is imported and kept
    assert calls(160) < 2.3 * calls(80)


def test_constants_do_not_outlive_their_use() -> None:
    net = lw.testing.network("mobilenet", **SMALL["mobilenet"])
    after = net.transform(PREPARE)
    named = {op.label.data for op in after.module.walk() if isinstance(op, ConstantOp)}
    assert set(after.params) == named
    assert len(named) == 2 * 28  # a weight and a bias for each of 27 convolutions and the dense layer
    assert all(net.params[label] is array for label, array in after.params.items() if label in net.params)


def test_numbers_that_were_computed_are_in_the_text() -> None:
    net = lw.Network("net")
    x = net.input("data", (3,))
    half = net.exp(net.constant(np.zeros(1, "float32"), "zero")) * 0.5
    net.output(x * half)
    after = net.transform(PREPARE)
    assert "= 0.5 : tensor<1xf32>" in str(after) and not after.params
    assert list(after.evaluate(data=np.full(3, 2, "float32"))[0]) == [1, 1, 1]


class RandomNet:
    """A network of a few operators on tensors of four axes, drawn by Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.net = lw.Network("random")
        self.random = np.random.default_rng(draw(st.integers(0, 1000)))
        self.layout = draw(st.sampled_from(["NCHW", "NHWC"]))
        self.last = self.layout == "NHWC"
        shape = (1, 4, 4, 4)
        self.values = [self.net.input("a", shape), self.net.input("b", shape)]
        for _ in range(draw(st.integers(1, 10))):
            step = draw(
                st.sampled_from([self.unary, self.binary, self.conv, self.norm, self.move, self.reduce, self.shape])
            )
            self.values.append(step(draw(st.sampled_from(self.values))))
        outputs = self.draw(st.lists(st.sampled_from(self.values[2:]), min_size=1, max_size=3, unique_by=id))
        self.net.output(*outputs)

    def constant(self, *shape: int) -> Any:
        return self.net.constant(self.random.uniform(0.5, 1.5, shape).astype("float32"), "c")

    def channel(self, count: int) -> tuple[int, ...]:
        return (1, 1, 1, count) if self.last else (1, count, 1, 1)

    def unary(self, x: Any) -> Any:
        return self.net.apply(self.draw(st.sampled_from(["relu", "sigmoid", "negative", "identity"])), x)

    def binary(self, x: Any) -> Any:
        like = [v for v in self.values if v.shape == x.shape]
        count = x.shape[3 if self.last else 1]
        other = self.draw(st.sampled_from([*like, self.constant(*self.channel(count)), 0.5, self.constant(1)]))
        return self.net.apply(self.draw(st.sampled_from(["add", "multiply", "maximum"])), x, other)

    def conv(self, x: Any) -> Any:
        count = x.shape[3 if self.last else 1]
        depthwise = self.draw(st.booleans())
        weight = (3, 3, 1 if depthwise else count, count) if self.last else (count, 1 if depthwise else count, 3, 3)
        options = {"padding": 1, "layout": self.layout, "groups": count if depthwise else 1}
        return self.net.conv2d(x, self.constant(*weight) * 0.1, **options)

    def norm(self, x: Any) -> Any:
        axis = 3 if self.last else 1
        return self.net.batch_norm(x, *(self.constant(x.shape[axis]) for _ in range(4)), axis=axis)

    def move(self, x: Any) -> Any:
        kind = self.draw(st.sampled_from(["transpose", "concatenate", "flip", "bias_add", "pool"]))
        axis = 3 if self.last else 1
        if kind == "transpose":
            order = self.draw(st.permutations(range(4)))
            return self.net.transpose(self.net.transpose(x, axes=order), axes=np.argsort(order).tolist())
        if kind == "concatenate":
            return self.net.split(self.net.concatenate(x, x, axis=axis), sections=2, axis=axis)[1]
        if kind == "bias_add":
            return self.net.bias_add(x, self.constant(x.shape[axis]), axis=axis)
        if kind == "pool":
            return self.net.max_pool(x, kernel=3, stride=1, padding=1, layout=self.layout)
        return self.net.flip(x, axis=self.draw(st.integers(0, 3)))

    def reduce(self, x: Any) -> Any:
        return x * self.net.mean(x, axis=[1, 2, 3], keepdims=True)

    def shape(self, x: Any) -> Any:
        flat = self.net.reshape(self.net.reshape(x, shape=(4, -1)), shape=x.shape)
        return self.net.relu(self.net.reshape(self.net.squeeze(flat, axis=0), shape=x.shape))


@given(st.data())
@settings(deadline=None, max_examples=25)
def test_random_networks_mean_the_same(data: Any) -> None:
    net = RandomNet(data.draw).net
    check_same(net, data.draw(st.sampled_from(PIPELINES)), feeds_of(net))
