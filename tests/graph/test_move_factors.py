"""Numbers that scale both factors of a product, gathered into weights, into what is computed, or behind the product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attention_networks import FORMS, Block, attention_network
from small_networks import feeds_of

import loopwright as lw
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.passes._shapes import grouped_axes
from loopwright.graph.pipeline import PREPARE

GATHERED = "lw-graph-simplify,cse,dce,lw-graph-move-factors,dce"


def operators(net: lw.Network) -> list[str]:
    return [op.operator.data for op in net.module.walk() if isinstance(op, ApplyOp)]


def check(net: lw.Network, passes: str) -> lw.Network:
    made, given = net.transform(passes), feeds_of(net)
    for got, wanted in zip(made.evaluate(**given), net.evaluate(**given), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-6)
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 2])
def test_scales_of_attention_go_into_the_weights(form: str, batch: int) -> None:
    net = attention_network(Block(batch=batch, form=form))
    check(net, GATHERED)
    assert "multiply" not in operators(check(net, PREPARE))


def product_of(build: Any) -> lw.Network:
    net: Any = lw.Network("product")
    a, b = build(net, net.input("x", (2, 4, 3)), net.input("y", (2, 3, 5)))
    net.output(net.batch_matmul(a, b))
    return net


def test_an_elementwise_operator_takes_the_number() -> None:
    net = product_of(lambda net, x, y: (net.multiply(x, 0.5), net.divide(net.sin(y), -4.0)))
    made = check(net, GATHERED)
    assert operators(made) == ["sin", "multiply", "batch_matmul"]


def test_else_it_goes_behind_the_product() -> None:
    net = product_of(lambda net, x, y: (net.multiply(2.0, x), net.multiply(y, 0.25)))
    assert operators(check(net, GATHERED)) == ["batch_matmul", "multiply"]


def test_what_others_read_and_one_number_alone_stay() -> None:
    net: Any = lw.Network("shared")
    x, y = net.multiply(net.input("x", (2, 4, 3)), 2.0), net.input("y", (2, 3, 5))
    net.output(net.batch_matmul(x, net.multiply(y, 3.0)), x)
    assert operators(check(net, GATHERED)) == operators(net)
    alone = product_of(lambda net, x, y: (net.multiply(x, 2.0), y))
    assert operators(check(alone, GATHERED)) == operators(alone)


def test_columns_that_another_slice_reads_keep_their_scale() -> None:
    net: Any = lw.Network("overlap")
    weight = net.constant(np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32))
    made = net.reshape(net.dense(net.input("x", (4, 6)), weight), shape=(1, 4, 8))
    first, second = (net.strided_slice(made, begin=[k], end=[k + 4], strides=[1], axes=[2]) for k in (0, 2))
    net.output(net.batch_matmul(net.multiply(first, 2.0), net.input("y", (1, 4, 3))), second)
    assert "concatenate" not in operators(check(net, GATHERED))


@pytest.mark.parametrize(
    ("first", "second", "groups"),
    [
        ((2, 12, 64), (24, 8, 8), [([0, 1], [0]), ([2], [1, 2])]),
        ((1, 17, 12), (17, 1, 3, 4), [([0, 1], [0]), ([2], [1, 2, 3])]),
        ((4, 6), (1, 4, 6), [([0], [0, 1]), ([1], [2])]),
        ((3, 1, 2), (2, 3), [([0, 1, 2], [0, 1])]),
        ((2, 3), (7,), None),
    ],
)
def test_axes_are_grouped(
    first: tuple[int, ...], second: tuple[int, ...], groups: list[tuple[list[int], list[int]]] | None
) -> None:
    assert grouped_axes(first, second) == groups
