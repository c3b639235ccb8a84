"""Networks under construction: values, names, constants, refusals, and their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser

import loopwright as lw
from loopwright.backends.context import create_context
from loopwright.graph.operator import operator, operators


def net_with_input(*shape: int, dtype: str = "float32") -> tuple[lw.Network, Any]:
    net = lw.Network("net")
    return net, net.input("data", shape, dtype)


def test_shapes_and_types_are_inferred() -> None:
    net, x = net_with_input(2, 3, 8, 8)
    y = net.conv2d(x, net.constant(np.zeros((4, 3, 3, 3), "float32")), stride=2, padding=1, label="first")
    assert (y.shape, y.dtype, y.name) == ((2, 4, 4, 4), "float32", "first")
    assert net.argmax(y, axis=1).dtype == "int32"
    parts = net.split(y, sections=[1, 3], axis=1)
    assert [p.shape for p in parts] == [(2, 1, 4, 4), (2, 2, 4, 4), (2, 1, 4, 4)]
    assert net.reshape(y, shape=(2, -1)).shape == (2, 64)


def test_inputs_and_outputs_have_names_in_order() -> None:
    net = lw.Network("net")
    a, b = net.input("images:0", (2, 2)), net.input("scale", (2, 1), "float32")
    total = a * b + 1.0
    net.output(total, a)
    net.output(b, names=["again"])
    assert net.input_names == ["images:0", "scale"]
    assert net.output_names == [total.name, a.name, "again"]
    assert {n: v.shape for n, v in net.outputs.items()}["again"] == (2, 1)
    first, second, third = net.evaluate(
        **{"images:0": np.ones((2, 2), "float32"), "scale": np.full((2, 1), 3, "float32")}
    )
    assert (first == 4).all() and (second == 1).all() and (third == 3).all()


def test_constants_keep_their_values_and_get_their_own_names() -> None:
    net, x = net_with_input(4)
    first = net.constant(np.arange(4, dtype="float32"), "w")
    second = net.constant(np.ones(4, "float32"), "w")
    number = net.constant(0.1)
    assert [v.name for v in (first, second)] == ["w", "w"]  # SSA names lose their number; the label keeps it
    assert set(net.params) == {"w", "w_1"}
    assert np.array_equal(np.asarray(first.constant), np.arange(4))
    assert number.constant == np.float32(0.1) and number.dtype == "float32"
    assert x.constant is None
    net.output(x + first + second + number)
    (result,) = net.evaluate(data=np.zeros(4, "float32"))
    np.testing.assert_allclose(result, np.arange(4) + 1.1, rtol=1e-6)


def test_numbers_take_the_type_of_the_tensor() -> None:
    net, x = net_with_input(4, dtype="int32")
    y = net.maximum(net.floor_divide(x, 2), 1)
    assert y.dtype == "int32"
    net.output(y)
    assert list(net.evaluate(data=np.array([-4, 1, 5, 9], "int32"))[0]) == [1, 1, 2, 4]


def test_text_is_read_back() -> None:
    net, x = net_with_input(1, 4)
    net.output(net.clip(net.dense(x, net.constant(np.ones((2, 4), "float32"), "w")), low=-1e-5, high=0.5))
    text = str(net)
    module = Parser(create_context(), text).parse_module()
    assert str(module) == text
    again = lw.Network.from_module(module, net.params)
    feeds = {"data": np.ones((1, 4), "float32")}
    assert (again.evaluate(**feeds)[0] == net.evaluate(**feeds)[0]).all()
    without = lw.Network.from_module(module)
    with pytest.raises(ValueError, match="network 'net': the values of constant 'w' are not known"):
        without.evaluate(**feeds)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda n, x: n.apply("conv2", x, x), r"there is no operator 'conv2'; near: conv2d"),
        (lambda n, x: n.relu(x, slope=1), r"operator 'relu' has no option 'slope'; it has none"),
        (
            lambda n, x: n.conv2d(x, x, strides=2),
            r"operator 'conv2d' has no option 'strides'; it has stride, padding, ",
        ),
        (lambda n, x: n.max_pool(x), r"operator 'max_pool' needs the option 'kernel'"),
        (lambda n, x: n.relu(x, x), r"operator relu: operator 'relu' takes 1 tensor\(s\), got 2"),
        (lambda n, x: n.layer_norm(), r"operator layer_norm: operator 'layer_norm' takes 1 to 3 tensor\(s\), got 0"),
        (lambda n, x: n.clip(x, low=object()), r"operator 'clip': option 'low' is a number, a word or several"),
        (
            lambda n, x: n.conv2d(x, n.constant(np.zeros((4, 2, 3, 3), "float32")), label="stem"),
            r"network 'net', operator conv2d 'stem': conv2d_nchw: data \(1, 3, 8, 8\) and kernel \(4, 2, 3, 3\)",
        ),
        (lambda n, x: n.conv2d(x, x, layout="CHWN"), r"conv2d: layout is one of NCHW, NHWC, got CHWN"),
        (lambda n, x: n.input("data", (1,)), r"network 'net' has an input 'data' already"),
        (lambda n, x: n.input("more", (1, 0)), r"input 'more': extents are numbers of at least 1, got \(1, 0\)"),
        (lambda n, x: n.input("more", (1,), "complex64"), r"element type 'complex64' is not one of float16, "),
        (lambda n, x: n.constant(np.zeros((0, 2)), "none"), r"constant 'none': tensors have extents of at least 1"),
        (lambda n, x: n.evaluate(image=0), r"network 'net' has no input 'image'; it has data"),
        (lambda n, x: n.evaluate(), r"network 'net': input 'data' is missing"),
        (
            lambda n, x: n.evaluate(data=np.zeros(3)),
            r"input 'data' must be float32 of shape \(1, 3, 8, 8\), got float64",
        ),
        (lambda n, x: n.transform("lw-graph-fus"), r"pipeline 'lw-graph-fus': .*lw-graph-fus"),
        (lambda n, x: n.transform("lw-graph-fuse{deep=2}"), r"pipeline 'lw-graph-fuse\{deep=2\}': .*deep"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(use: Any, message: str) -> None:
    net, x = net_with_input(1, 3, 8, 8)
    with pytest.raises(ValueError, match=message):
        use(net, x)


def test_an_input_that_is_no_array_is_refused_by_its_name() -> None:
    net, _ = net_with_input(1, 2)
    with pytest.raises(TypeError, match="network 'net': input 'data' must be an array of NumPy's, or what it can read"):
        net.evaluate(data=[[1], [1, 2]])


def test_unknown_operator_as_a_method_is_an_attribute_error() -> None:
    net, _ = net_with_input(1)
    with pytest.raises(AttributeError, match="there is no operator 'reluu'; near: relu"):
        net.reluu  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(net, "_private")


def test_every_operator_says_how_it_is_told() -> None:
    """Options have plain defaults, so that the IR can leave them out; names are those of the variables."""
    assert {"conv2d", "softmax", "add", "transpose"} <= set(operators())
    for name, found in operators().items():
        least, most = found.tensors
        assert least >= 1 and (most is None or most >= least), name
        given = {option: value for option, value in found.defaults.items() if isinstance(value, int | float | str)}
        assert operator(name).options(name, given | _needed(name)) == _needed(name), name


def _needed(name: str) -> dict[str, Any]:
    missing = [o for o, d in operator(name).defaults.items() if isinstance(d, type)]
    return dict.fromkeys(missing, 1)


@pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
def test_operators_that_change_nothing_are_copies() -> None:
    """As padding by nothing is, alone in a network or not."""
    net = lw.Network()
    net.output(net.pad(net.input("x", (2, 3)), before=[0, 0]))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(net.evaluate(x=x)[0], x)
    assert np.array_equal(lw.compile(net, "llvm cores=1", processes=1).executor()(x), x)
