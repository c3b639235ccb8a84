"""Products that read second factors where they are: turned ones, and those that heads of attention share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import ApplyOp
from loopwright.graph.tasks import grouping_for

CPU = resolve_target("llvm cores=1 vector_bytes=64")


def decode(heads: int, shared: int, cached: int, turned: bool, mask: bool = True) -> lw.Network:
    """A query of each head beside keys and values that heads share."""
    net: Any = lw.Network("decode")
    q = net.input("q", (2, heads, 1, 8))
    k, v = (
        net.reshape(
            net.broadcast_to(
                net.reshape(net.input(name, (2, shared, cached, 8)), shape=(2, shared, 1, cached, 8)),
                shape=(2, shared, heads // shared, cached, 8),
            ),
            shape=(2 * heads, cached, 8),
        )
        for name in "kv"
    )
    queries = net.reshape(q, shape=(2 * heads, 1, 8))
    if turned:
        scores = net.batch_matmul(queries, net.transpose(k, axes=(0, 2, 1)))
    else:
        scores = net.batch_matmul(queries, k, transpose_b=True)
    scores = net.reshape(scores, shape=(2, heads, 1, cached))
    if mask:
        scores = net.add(scores, net.input("mask", (2, 1, 1, cached)))
    weights = net.reshape(net.softmax(scores, axis=3), shape=(2 * heads, 1, cached))
    net.output(net.reshape(net.batch_matmul(weights, v), shape=(2, heads, 1, 8)))
    return net


@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (6, 1), (3, 3)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_keys_are_neither_turned_nor_repeated(heads: int, shared: int, turned: bool, mask: bool) -> None:
    net = decode(heads, shared, 5, turned, mask)
    given = feeds_of(net)
    grouped = net.transform(grouping_for(CPU))
    (got,), (wanted,) = grouped.evaluate(**given), net.evaluate(**given)
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-6)
    found = [op for op in grouped.module.walk() if isinstance(op, ApplyOp)]
    assert not {"transpose", "broadcast_to"} & {op.operator.data for op in found}
    assert sum(op.operator.data == "batch_matmul" for op in found) == 2


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slices_are_written_at_places(count: int, axis: int) -> None:
    """Those out of range nowhere, and the last of several that go to one place."""
    shape = (4, 5, 6)
    given = (*shape[:axis], count, *shape[axis + 1 :])
    net: Any = lw.Network("cache")
    x, places, new = net.input("x", shape), net.input("places", (count,), "int32"), net.input("new", given)
    net.output(net.scatter_slices(x, places, new, axis=axis))
    random = np.random.default_rng(0)
    data, updates = random.standard_normal(shape, np.float32), random.standard_normal(given, np.float32)
    for at in ([2, 0, 3][:count], [3, 3, 3][:count], [9, 1, -1][:count]):
        wanted = np.moveaxis(data.copy(), axis, 0)
        for k, place in enumerate(at):
            if 0 <= place < shape[axis]:
                wanted[place] = np.moveaxis(updates, axis, 0)[k]
        feeds = {"x": data, "places": np.asarray(at, np.int32), "new": updates}
        made = lw.compile(net, "llvm cores=1", processes=1).executor()
        for name, value in feeds.items():
            made.set_input(name, value)
        made.run()
        for got in (net.evaluate(**feeds)[0], made.get_output(0)):
            np.testing.assert_array_equal(np.asarray(got), np.moveaxis(wanted, 0, axis))


@pytest.mark.parametrize("operator", ["scatter_slices", "scatter_elements"])
def test_places_of_a_byte_are_no_others_of_a_long_axis(operator: str) -> None:
    net: Any = lw.Network("bytes")
    x, places, new = net.input("x", (300,)), net.input("places", (2,), "int8"), net.input("new", (2,))
    net.output(getattr(net, operator)(x, places, new, axis=0))
    feeds = {"x": np.zeros(300, np.float32), "places": np.array([7, 90], np.int8), "new": np.ones(2, np.float32)}
    assert np.flatnonzero(net.evaluate(**feeds)[0]).tolist() == [7, 90]


def test_other_shapes_of_slices_are_refused() -> None:
    net: Any = lw.Network("wrong")
    x, places = net.input("x", (4, 5)), net.input("places", (2,), "int32")
    with pytest.raises(ValueError, match=r"updates \(3, 5\) must be slices of axis 0 of data \(4, 5\)"):
        net.scatter_slices(x, places, net.input("new", (3, 5)), axis=0)
