"""One encoder layer of BERT-base (Devlin et al. 2018)."""

from __future__ import annotations

from math import sqrt

from ..graph.network import Network, Value
from ._layers import Layers


def bert_encoder_layer(
    batch: int = 1,
    sequence: int = 128,
    hidden: int = 768,
    heads: int = 12,
    inner: int = 3072,
    seed: int = 0,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Network:
    """Self-attention and feed-forward on `batch` sequences of `sequence` tokens; no mask, no dropout.

    The input `data` is (batch, sequence, hidden), as is the output. The layout makes no difference.
    """
    if hidden % heads:
        raise ValueError(f"bert_encoder_layer: {hidden} hidden units do not divide among {heads} heads")
    layers = Layers("bert_encoder_layer", layout, seed, dtype)
    net, rows, depth = layers.net, batch * sequence, hidden // heads
    x = net.apply("reshape", layers.input("data", (batch, sequence, hidden)), shape=(rows, hidden))

    def split_heads(value: Value) -> Value:
        apart = net.apply("reshape", value, shape=(batch, sequence, heads, depth))
        moved = net.apply("transpose", apart, axes=(0, 2, 1, 3))
        found: Value = net.apply("reshape", moved, shape=(batch * heads, sequence, depth))
        return found

    query, key, value = (split_heads(layers.dense(x, name, hidden)) for name in ("query", "key", "value"))
    scores = net.apply("batch_matmul", query, key, transpose_b=True) * (1 / sqrt(depth))
    context = net.apply("batch_matmul", net.apply("softmax", scores), value)
    apart = net.apply("reshape", context, shape=(batch, heads, sequence, depth))
    joined = net.apply("reshape", net.apply("transpose", apart, axes=(0, 2, 1, 3)), shape=(rows, hidden))
    x = _normal(layers, layers.dense(joined, "attention_output", hidden) + x, "attention_norm")
    y = layers.act(layers.dense(x, "intermediate", inner), "gelu")
    x = _normal(layers, layers.dense(y, "output", hidden) + x, "output_norm")
    return layers.finish(net.apply("reshape", x, shape=(batch, sequence, hidden), label="hidden"))


def _normal(layers: Layers, x: Value, name: str) -> Value:
    count = x.shape[1]
    gamma = layers.net.constant(layers.uniform((count,), 0.8, 1.2), f"{name}_gamma")
    beta = layers.net.constant(layers.normal((count,), 0.1), f"{name}_beta")
    y: Value = layers.net.apply("layer_norm", x, gamma, beta, epsilon=1e-12, label=name)
    return y
