"""Attention, for which PyTorch has kernels of its own on CUDA devices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dialects.element import DTYPES, element_bytes, is_float
from ....graph.network import Value
from ..bounds import MOST_HALF_ATTENTION_TERMS, MOST_SCORES
from ..errors import UnsupportedNode
from ..node import Node, aten

_FLASH = "_scaled_dot_product_flash_attention.default"
ATTENTION = (
    _FLASH,
    "_scaled_dot_product_efficient_attention.default",
    "_scaled_dot_product_cudnn_attention.default",
)
"""Operators that `scaled_dot_product_attention` is on CUDA devices, by types, shapes and what was built in."""


@aten(*ATTENTION)
def attention(node: Node) -> list[Any]:
    """softmax(q k^T * scale + bias) v of q (N, H, L, E), k (N, H, S, E), v (N, H, S, V)."""
    q, k, v = (node.value(name) for name in ("query", "key", "value"))
    _require_plain(node, q, k)
    _require_quick(node, q, k, v)
    scores = _scores(node, q, k)
    if node["is_causal"]:
        earlier = node.net.constant(np.tri(*scores.shape[2:], dtype=bool), "earlier")
        scores = node.apply("where", earlier, scores, -math.inf)
    weights = node.apply("softmax", scores, axis=3)
    if _bias(node) is not None:
        weights = _without_empty_rows(node, scores, weights)
    flat = (_heads_as_samples(node, weights), _heads_as_samples(node, v))
    made = node.reshaped(node.apply("batch_matmul", *flat), (*q.shape[:3], v.shape[3]))
    return [made, *[None] * (len(node.results) - 1)]


def _require_plain(node: Node, q: Value, k: Value) -> None:
    """Refuse what is more than a product of weights and values, or differs between PyTorch's kernels."""
    if node["dropout_p"]:
        raise UnsupportedNode("attention with dropout stays PyTorch's")
    if node.used != {0}:
        raise UnsupportedNode("attention whose gradients read its sums stays PyTorch's")
    if q.shape[:2] != k.shape[:2]:
        raise UnsupportedNode(f"attention of {q.shape[1]} heads of queries to {k.shape[1]} of keys stays PyTorch's")
    if node["is_causal"] and node.operator == _FLASH and q.shape[2] != k.shape[2]:
        raise UnsupportedNode("causal attention of other queries than keys stays PyTorch's")


def _require_quick(node: Node, q: Value, k: Value, v: Value) -> None:
    """Refuse what PyTorch's kernels are faster at, where they can run it."""
    element = DTYPES[q.dtype]
    if not is_float(element):
        raise UnsupportedNode(f"attention of {q.dtype} stays PyTorch's")
    if not node.is_optional:
        return
    is_half, tile = element_bytes(element) == 2, node.units.attention_tile
    if is_half and q.dtype not in node.units.factors:
        raise UnsupportedNode(f"attention of {q.dtype} stays PyTorch's, for want of matrix units that schedules use")
    scores = math.prod(q.shape[:3]) * k.shape[2]
    terms = scores * max(q.shape[3], v.shape[3])
    is_one = is_half and tile and _bias(node) is None and not any(n % tile for n in (*q.shape[2:], *v.shape[2:]))
    if is_one and terms >= MOST_HALF_ATTENTION_TERMS:
        raise UnsupportedNode(f"attention of {q.dtype} with {terms:,} terms a product is faster in PyTorch")
    if not is_one and scores > MOST_SCORES:
        raise UnsupportedNode(f"attention of {q.dtype} with {scores:,} scores is faster in PyTorch")


def _scores(node: Node, q: Value, k: Value) -> Value:
    """Return q k^T * scale + bias, (N, H, L, S).

    The number is divided between both factors, as PyTorch does, so that products of 16-bit floats stay in range; that
    of keys is a power of two, which rounds nothing.
    """
    scale = q.shape[3] ** -0.5 if node["scale"] is None else float(node["scale"])
    of_keys = 2.0 ** round(math.log2(abs(scale)) / 2) if scale else 1.0
    numbers = ((q, scale / of_keys), (k, of_keys))
    factors = [
        _heads_as_samples(node, node.net.multiply(x, np.asarray(number, dtype=x.dtype))) for x, number in numbers
    ]
    product = node.apply("batch_matmul", *factors, transpose_b=True)
    scores = node.reshaped(product, (*q.shape[:3], k.shape[2]))
    bias = _bias(node)
    return scores if bias is None else node.apply("add", scores, bias)


def _without_empty_rows(node: Node, scores: Value, weights: Value) -> Value:
    """Return weights with 0 in rows of which a bias leaves nothing."""
    net = node.net
    is_lowest = net.equal(scores, np.asarray(-math.inf, dtype=scores.dtype))
    empty = net.min(net.cast(is_lowest, dtype="int32"), axis=3, keepdims=True)
    made: Value = node.apply(
        "where", net.not_equal(empty, np.asarray(0, dtype="int32")), np.asarray(0, dtype=weights.dtype), weights
    )
    return made


def _bias(node: Node) -> Value | None:
    """Return what is added to scores, of shape (N, H, L, S), if anything is."""
    found: Value | None = node.arguments.get("attn_bias")
    return found


def _heads_as_samples(node: Node, x: Value) -> Value:
    """(N, H, rows, elements) -> (N * H, rows, elements)."""
    return node.reshaped(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
