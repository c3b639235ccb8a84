"""Softmax in the shape of the product that reads it, after steps in any views and with any masks, means the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw

Shape = tuple[int, ...]


def check(net: Any) -> lw.Network:
    after: lw.Network = net.transform("lw-graph-flatten-softmax,lw-graph-simplify,dce")
    after.module.verify()
    feeds = feeds_of(net)
    for got, want in zip(after.evaluate(**feeds), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return after


def views_of(heads: int, rows: Shape) -> list[Shape]:
    """Shapes of so many heads of rows: apart, together, and with an axis of one more."""
    parts = [(n, heads // n) for n in range(1, heads + 1) if heads % n == 0]
    return [(heads, *rows), *((*part, *rows) for part in parts), (1, *parts[-1], *rows), (heads * rows[0], rows[1])]


def mask_of(random: Random, shape: Shape) -> Shape:
    """The shape of what stretches to another."""
    own = tuple(n if random.random() < 0.5 else 1 for n in shape)
    return own[random.randrange(len(own)) :]


def attention(random: Random) -> Any:
    heads, rows, keys = random.choice([1, 4, 6]), random.choice([1, 3, 4]), random.choice([2, 5])
    net: Any = lw.Network("attention")
    views = views_of(heads, (rows, keys))
    value = net.input("scores", random.choice(views[:-1]))
    for number in range(random.randint(1, 4)):
        shape = value.shape
        step = random.randrange(4)
        if step == 0:
            value = net.relu(value)
        elif step == 1:
            value = net.add(value, net.input(f"mask{number}", mask_of(random, shape)))
        elif step == 2:
            value = net.multiply(net.input(f"mask{number}", mask_of(random, shape)), value)
        if random.random() < 0.7:
            value = net.reshape(value, shape=random.choice(views))
    value = net.softmax(net.reshape(value, shape=random.choice(views[:-1])), axis=-1)
    read = random.choice(views[:-1])
    if len(read) == 3:
        net.output(net.batch_matmul(net.reshape(value, shape=read), net.input("values", (heads, keys, 2))))
        return net
    letters = "abcdefg"[: len(read)]
    values = net.input("values", (*read[:-2], keys, 2))
    equation = f"{letters},{letters[:-2]}{letters[-1]}z->{letters[:-1]}z"
    net.output(net.einsum(net.reshape(value, shape=read), values, equation=equation))
    return net


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.few(12)
def test_any_steps_in_any_views(seed: int) -> None:
    check(attention(Random(seed)))


def test_a_mask_of_a_batch_of_one() -> None:
    """As models write it: `scores.view(batch, heads, rows, keys) + mask`, with softmax in the shape of the product."""
    net: Any = lw.Network("attention")
    scores, mask, values = net.input("s", (6, 4, 5)), net.input("m", (1, 1, 4, 5)), net.input("v", (6, 5, 2))
    masked = net.add(net.reshape(net.relu(scores), shape=(1, 6, 4, 5)), mask)
    net.output(net.batch_matmul(net.softmax(net.reshape(masked, shape=(6, 4, 5)), axis=-1), values))
    assert "tensor<1x6x4x5xf32>" not in str(check(net))
