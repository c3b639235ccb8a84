"""Groups never wait for each other, whatever reads the parts of products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp, GroupOp
from loopwright.graph.tasks import grouping_for

FOR_GPUS = grouping_for(resolve_target("cuda model=h200"))
SIZE = 64
Net = Any


def _dense(net: Net, value: Any, label: str, columns: int = SIZE) -> Any:
    weight = np.random.default_rng(len(label)).standard_normal((columns, SIZE), np.float32) * 0.1
    return net.dense(value, net.constant(weight, label))


def _halves(net: Net, value: Any, label: str) -> list[Any]:
    whole = _dense(net, value, label, 2 * SIZE)
    return [net.strided_slice(whole, begin=[k * SIZE], end=[(k + 1) * SIZE], axes=[1]) for k in range(2)]


def _two(net: Net) -> tuple[list[Any], list[Any]]:
    x = net.input("x", (2, SIZE))
    return _halves(net, x, "a"), _halves(net, net.tanh(x), "b")


def merged() -> lw.Network:
    """An operator reads both products, and another one the first and what comes of the second."""
    net: Net = lw.Network("merged")
    a, b = _two(net)
    net.output(net.add(a[0], b[0]), net.multiply(a[1], _dense(net, net.relu(b[1]), "far")))
    return net


def crossed() -> lw.Network:
    """Each product has a reader of what comes of the other."""
    net: Net = lw.Network("crossed")
    a, b = _two(net)
    net.output(net.multiply(b[0], _dense(net, a[1], "to")), net.multiply(a[0], _dense(net, b[1], "fro")))
    return net


def behind() -> lw.Network:
    """The end of all readers of a product reads a product of one of them, too."""
    net: Net = lw.Network("behind")
    a, _ = _two(net)
    first = net.tanh(a[0])
    far = _dense(net, first, "far")
    net.output(net.add(net.multiply(first, net.sigmoid(a[1])), far))
    return net


@pytest.mark.parametrize(("build", "joined"), [(merged, 1), (crossed, 0), (behind, 1)])
def test_networks_in_circles_are_grouped_right(build: Any, joined: int) -> None:
    """Products are still joined by what does not wait for them."""
    net = build()
    grouped = net.transform(FOR_GPUS)
    groups = [
        [op.operator.data for op in group.body.block.ops if isinstance(op, ApplyOp)]
        for group in grouped.function.body.block.ops
        if isinstance(group, GroupOp)
    ]
    assert sum("dense_parts" in names and len(names) > 1 for names in groups) == joined
    feeds = feeds_of(net)
    for got, want in zip(grouped.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
