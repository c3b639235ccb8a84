"""Concatenations along outer axes as memory that kernels write parts of, and transposes that convolutions take in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.graph.tasks import grouping_for

TARGET = "llvm cores=1"
Net = Any
pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


def labels_of(net: lw.Network) -> list[str]:
    return [
        op.label.data
        for op in net.transform(grouping_for(resolve_target(TARGET))).module.walk()
        if isinstance(op, GroupOp)
    ]


def operators_of(net: lw.Network, pipeline: str) -> list[str]:
    return [op.operator.data for op in net.transform(pipeline).module.walk() if isinstance(op, ApplyOp)]


def check_right(net: lw.Network, folder: Path) -> lw.CompiledNetwork:
    """In an arena, from a file, and on arrays of a caller's; returns the network."""
    feeds = feeds_of(net)
    wanted = net.evaluate(**feeds)
    compiled = lw.compile(net, TARGET, processes=1)
    compiled.save(folder / "net.lw")
    for network in (compiled, lw.load_network(folder / "net.lw")):
        executor = network.executor()
        executor.run(**feeds)
        for k, want in enumerate(wanted):
            np.testing.assert_allclose(executor.get_output(k), want, rtol=1e-5, atol=1e-5)
    found = [np.zeros_like(want) for want in wanted]
    loaded: Any = compiled.loaded()
    loaded.frame().run([array.ctypes.data for array in (*feeds.values(), *found)])
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return compiled


def recurrent(steps: int, batch: int = 2, size: int = 64) -> lw.Network:
    """States that the next step and the output read, one on top of the other along a new axis."""
    random, net = np.random.default_rng(0), lw.Network("recurrent")
    made: Net = net
    weight = net.constant(random.standard_normal((size, size), np.float32) * 0.1, "weight")
    state, states = made.input("state", (batch, size)), []
    for _ in range(steps):
        state = made.tanh(made.dense(state, weight))
        states.append(state)
    made.output(made.exp(made.stack(*states, axis=0)), state)
    return net


def test_states_of_steps_are_written_where_they_are_joined(tmp_path: Path) -> None:
    net: Net = recurrent(4)
    compiled = check_right(net, tmp_path)
    assert labels_of(net) == ["dense_tanh"] * 4 + ["cast", "exp"], "an output is no part, but copied to one"
    assert len(compiled.plan.steps) == 6

    first = lw.Network("first")
    made: Net = first
    random = np.random.default_rng(1)
    x = made.input("x", (3, 64))
    parts = [made.dense(x, random.standard_normal((64, 64), np.float32)) for _ in range(3)]
    inner = made.concatenate(made.relu(parts[0]), made.reshape(parts[1], shape=(3, 64)), axis=0)
    outer = made.concatenate(inner, made.exp(made.multiply(parts[2], 0.01)), axis=0)
    made.output(
        made.softmax(outer, axis=1), made.softmax(made.strided_slice(outer, begin=[2], end=[5], axes=[0]), axis=1)
    )
    compiled = check_right(first, tmp_path)
    assert not any("concatenate" in step.label for step in compiled.plan.steps)
    written = [step.places[-1].kind for step in compiled.plan.steps]
    assert written.count("part") == 3 and written.count("arena") == 2


def joining(axis: int, rows: int, *, output: bool = False, twice: bool = False, constant: bool = False) -> lw.Network:
    net = lw.Network("joining")
    made: Net = net
    x = made.input("x", (1, rows, 64))
    first, second = made.softmax(x, axis=2), made.relu(x)
    if constant:
        second = net.constant(np.ones((1, rows, 64), np.float32), "token")
    joined = made.concatenate(first, first if twice else second, axis=axis)
    made.output(made.softmax(joined, axis=2), *[first] * output)
    return net


@pytest.mark.parametrize(
    ("net", "is_placed"),
    [
        (joining(1, 4), True),
        (joining(0, 4), True),
        (joining(2, 4), False),  # rows of one lie between those of the other
        (joining(2, 1), True),
        (joining(1, 4, output=True), True),
        (joining(1, 4, twice=True), True),
        (joining(1, 4, constant=True), True),
        (joining(1, 4, constant=True, output=True), False),  # nothing would be left to write
    ],
)
def test_only_what_kernels_write_side_by_side_is_placed(net: lw.Network, is_placed: bool, tmp_path: Path) -> None:
    assert ("joined" in operators_of(net, "lw-graph-place-joins")) == is_placed
    check_right(net, tmp_path)


def test_what_starts_between_cache_lines_is_copied() -> None:
    net: Net = lw.Network("narrow")
    x = net.input("x", (3, 20))
    net.output(net.softmax(net.concatenate(net.softmax(x, axis=1), net.relu(x), axis=0), axis=1))
    assert "joined" not in operators_of(net, "lw-graph-place-joins")


def test_an_output_may_be_joined(tmp_path: Path) -> None:
    net: Net = lw.Network("whole")
    x = net.input("x", (4, 64))
    net.output(net.concatenate(net.softmax(x, axis=1), net.softmax(net.relu(x), axis=1), axis=0))
    compiled = check_right(net, tmp_path)
    assert len(compiled.plan.steps) == 2


def test_memory_that_is_joined_is_no_operator_of_a_network() -> None:
    net: Net = lw.Network("net")
    x = net.input("x", (4, 64))
    with pytest.raises(ValueError, match="is memory that a pass lays out"):
        net.apply("joined", x, x, shape=(8, 64))


@pytest.mark.parametrize("target", [TARGET, "llvm cores=2", "llvm cores=1 vector_bytes=64 vector_registers=32"])
@pytest.mark.slow(1)
def test_an_image_is_padded_as_it_lies(target: str) -> None:
    """Ahead of a convolution of large windows, whose kernel pads it once: in rows of pixels, which fill vectors."""
    random, net = np.random.default_rng(0), lw.Network("stem")
    made: Net = net
    image = made.transpose(made.input("x", (1, 3, 58, 61)), axes=(0, 2, 3, 1))
    net.output(
        made.conv2d(image, random.standard_normal((7, 7, 3, 64), np.float32), stride=2, padding=3, layout="NHWC")
    )
    feeds = feeds_of(net)
    compiled = lw.compile(net, target, processes=1)
    (kernel,) = compiled.kernels
    assert 'lw-transform-layout{block="pad_temp" buffer="pad_temp" layout="i0","i3","i1","i2"}' in kernel.schedule
    executor = compiled.executor()
    executor.run(**feeds)
    (want,) = net.evaluate(**feeds)
    np.testing.assert_allclose(executor.get_output(0), want, rtol=1e-4, atol=1e-4)


def test_a_convolution_takes_in_the_transpose_of_few_channels(tmp_path: Path) -> None:
    """Of an input alone: what a kernel computed is moved once rather than where it is read."""
    random, net = np.random.default_rng(0), lw.Network("stem")
    made: Net = net
    x = made.input("x", (1, 3, 11, 13))
    image = made.transpose(x, axes=(0, 2, 3, 1))
    stem = made.conv2d(image, random.standard_normal((3, 3, 3, 24), np.float32), stride=2, padding=1, layout="NHWC")
    again = made.transpose(
        made.max_pool(made.transpose(made.relu(stem), axes=(0, 3, 1, 2)), kernel=(2, 2)), axes=(0, 2, 3, 1)
    )
    net.output(made.conv2d(again, random.standard_normal((1, 1, 24, 8), np.float32), layout="NHWC"))
    assert labels_of(net)[0] == "transpose_conv2d_relu" and labels_of(net)[-1] == "conv2d"
    check_right(net, tmp_path)
    many: Net = lw.Network("many")
    image = many.transpose(many.input("x", (1, 64, 5, 5)), axes=(0, 2, 3, 1))
    many.output(many.conv2d(image, random.standard_normal((1, 1, 64, 8), np.float32), layout="NHWC"))
    assert labels_of(many) == ["transpose", "conv2d"]
    narrow: Net = lw.Network("narrow")
    image = narrow.transpose(narrow.input("x", (1, 9, 9, 64)), axes=(0, 3, 1, 2))
    narrow.output(narrow.conv2d(image, random.standard_normal((8, 64, 1, 1), np.float32)))
    assert labels_of(narrow) == ["transpose", "conv2d"], "rows are short, not pixels"
