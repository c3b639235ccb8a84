"""Attention in networks is one kernel on CPUs where its queries fill a vector, and means the same."""

from math import sqrt

import numpy as np
import pytest
from small_networks import feeds_of

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import GroupOp
from loopwright.graph.tasks import extract_tasks, grouping_for

CPU = "llvm cores=2"
BATCH, HEADS, SIZE = 2, 3, 8


def attention(kind: str, queries: int = 20, keys: int = 24) -> lw.Network:
    """Attention as models write it, (batch, heads, rows, size) but in the products."""
    net = lw.Network("attention")
    q, k, v = (net.input(n, (BATCH, HEADS, rows, SIZE)) for n, rows in (("q", queries), ("k", keys), ("v", keys)))
    flat = [net.apply("reshape", x, shape=(BATCH * HEADS, *x.shape[2:])) for x in (q, k, v)]
    scores = net.apply("batch_matmul", flat[0], flat[1], transpose_b=True) * (1 / sqrt(SIZE))
    scores = net.apply("reshape", scores, shape=(BATCH, HEADS, queries, keys))
    if kind == "causal":
        earlier = net.constant(np.tri(queries, keys, keys - queries, dtype=bool), "earlier")
        scores = net.apply("where", earlier, scores, -1e9)
    elif kind == "padding":
        scores = net.apply("where", net.input("mask", (BATCH, 1, 1, keys), "bool"), scores, -1e9)
    elif kind == "bias":
        scores = net.apply("add", scores, net.input("mask", (1, HEADS, queries, keys)))
    elif kind == "each":
        scores = net.apply("add", scores, net.input("mask", (BATCH, 1, queries, keys)))
    weights = net.apply("reshape", net.apply("softmax", scores, axis=3), shape=(BATCH * HEADS, queries, keys))
    net.output(net.apply("reshape", net.apply("batch_matmul", weights, flat[2]), shape=q.shape))
    return net


def groups(net: lw.Network, target: str = CPU) -> list[str]:
    grouped = net.transform(grouping_for(resolve_target(target)))
    return [op.label.data for op in grouped.module.walk() if isinstance(op, GroupOp)]


ONE = {
    "plain": ["batch_matmul_multiply_softmax_batch_matmul"],
    "causal": ["batch_matmul_multiply_where_softmax_batch_matmul"],
    "padding": ["broadcast_to", "batch_matmul_multiply_where_softmax_batch_matmul"],
}


@pytest.mark.parametrize("kind", ["plain", "causal", "padding", "bias", "each"])
@pytest.mark.few(3)
def test_attention_means_the_same(kind: str) -> None:
    net = attention(kind)
    assert (kind in ONE) == (groups(net) == ONE.get(kind))
    given = feeds_of(net)
    (wanted,) = net.evaluate(**given)
    got = lw.compile(net, CPU)(**given)
    np.testing.assert_allclose(np.asarray(got).reshape(wanted.shape), wanted, rtol=2e-5, atol=2e-6)


def test_one_query_and_other_devices_keep_their_kernels() -> None:
    for net, target in ((attention("plain", 1), CPU), (attention("plain"), "cuda model=h200")):
        assert not any("softmax_batch_matmul" in label for label in groups(net, target))


def test_layers_of_networks_have_it() -> None:
    net = lw.testing.bert_encoder_layer(sequence=16, hidden=32, heads=2, inner=64)
    assert "batch_matmul_multiply_softmax_batch_matmul" in groups(net)
    tasks, _ = extract_tasks(net, CPU)
    assert any(task.sketches[0].name == "attention" for task in tasks)
