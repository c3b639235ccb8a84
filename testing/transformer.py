"""Encoder and decoder of a transformer (Vaswani et al. 2017): attention and feed-forward layers, batch first."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network, Value
from ._layers import Layers

_MASKED = -3e4
"""Score of a masked position: all float types hold it, and exp(_MASKED) is 0. A row that is all masked stays finite."""


@dataclass(frozen=True)
class Blocks:
    """Blocks on rows (batch * sequence, hidden), each added to what it reads and normalised.

    With `norm` "post" the sum is normalised, as published; with "pre" what the block reads, and the sum is left.
    """

    layers: Layers
    batch: int
    hidden: int
    heads: int
    inner: int
    norm: str = "post"
    activation: str = "gelu"
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        name = self.layers.net.name
        if self.hidden % self.heads:
            raise ValueError(f"{name}: {self.hidden} hidden units do not divide among {self.heads} heads")
        if self.norm not in ("pre", "post"):
            raise ValueError(f"{name}: norm is 'pre' or 'post', got '{self.norm}'")
        if self.activation not in ("relu", "gelu"):
            raise ValueError(f"{name}: activation is 'relu' or 'gelu', got '{self.activation}'")

    def rows(self, x: Value) -> Value:
        """(batch, sequence, hidden) as rows."""
        found: Value = self.layers.net.apply("reshape", x, shape=(x.shape[0] * x.shape[1], self.hidden))
        return found

    def sequences(self, x: Value, label: str) -> Value:
        """Rows as (batch, sequence, hidden)."""
        shape = (self.batch, x.shape[0] // self.batch, self.hidden)
        found: Value = self.layers.net.apply("reshape", x, shape=shape, label=label)
        return found

    def attend(self, x: Value, prefix: str = "", memory: Value | None = None, mask: Value | None = None) -> Value:
        """Attention of `x` to `memory` (None: to itself); `mask` stretches to (batch, heads, rows of x, of memory)."""
        y = self._before(x, f"{prefix}attention_norm")
        y = self._attention(y, y if memory is None else memory, prefix, mask)
        return self._after(
            self.layers.dense(y, f"{prefix}attention_output", self.hidden) + x, f"{prefix}attention_norm"
        )

    def feed_forward(self, x: Value, prefix: str = "") -> Value:
        """Two dense layers with the activation between them."""
        y = self._before(x, f"{prefix}output_norm")
        y = self.layers.act(self.layers.dense(y, f"{prefix}intermediate", self.inner), self.activation)
        return self._after(self.layers.dense(y, f"{prefix}output", self.hidden) + x, f"{prefix}output_norm")

    def last(self, x: Value) -> Value:
        """The end of the network: with "pre" the sum of all blocks is normalised once."""
        return self._before(x, "last_norm")

    def _before(self, x: Value, name: str) -> Value:
        return self._normal(x, name) if self.norm == "pre" else x

    def _after(self, x: Value, name: str) -> Value:
        return self._normal(x, name) if self.norm == "post" else x

    def _normal(self, x: Value, name: str) -> Value:
        layers = self.layers
        gamma = layers.net.constant(layers.uniform((self.hidden,), 0.8, 1.2), f"{name}_gamma")
        beta = layers.net.constant(layers.normal((self.hidden,), 0.1), f"{name}_beta")
        y: Value = layers.net.apply("layer_norm", x, gamma, beta, epsilon=self.epsilon, label=name)
        return y

    def _attention(self, x: Value, memory: Value, prefix: str, mask: Value | None) -> Value:
        net, depth = self.layers.net, self.hidden // self.heads
        query = self._heads(self.layers.dense(x, f"{prefix}query", self.hidden))
        key = self._heads(self.layers.dense(memory, f"{prefix}key", self.hidden))
        value = self._heads(self.layers.dense(memory, f"{prefix}value", self.hidden))
        scores = net.apply("batch_matmul", query, key, transpose_b=True) * (1 / sqrt(depth))
        if mask is not None:
            shape = scores.shape
            scores = net.apply("reshape", scores, shape=(self.batch, self.heads, *shape[1:]))
            scores = net.apply("reshape", net.apply("where", mask, scores, _MASKED), shape=shape)
        context = net.apply("batch_matmul", net.apply("softmax", scores), value)
        apart = net.apply("reshape", context, shape=(self.batch, self.heads, *context.shape[1:]))
        joined = net.apply("transpose", apart, axes=(0, 2, 1, 3))
        rows: Value = net.apply("reshape", joined, shape=x.shape)
        return rows

    def _heads(self, value: Value) -> Value:
        """Rows as (batch * heads, sequence, depth)."""
        net, depth, sequence = self.layers.net, self.hidden // self.heads, value.shape[0] // self.batch
        apart = net.apply("reshape", value, shape=(self.batch, sequence, self.heads, depth))
        moved = net.apply("transpose", apart, axes=(0, 2, 1, 3))
        found: Value = net.apply("reshape", moved, shape=(self.batch * self.heads, sequence, depth))
        return found


@knows_classic_words
def transformer_encoder(
    batch: int = 1,
    sequence: int = 128,
    hidden: int = 512,
    heads: int = 8,
    inner: int = 2048,
    layers: int = 6,
    norm: str = "post",
    activation: str = "relu",
    layout: str = "NCHW",
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """`layers` encoder layers on `data` (batch, sequence, hidden); the layout makes no difference.

    `mask` (batch, sequence), of bool, is true for the tokens that are attended to.
    """
    made = Layers("transformer_encoder", layout, seed, dtype)
    blocks = Blocks(made, batch, hidden, heads, inner, norm, activation)
    x = blocks.rows(made.input("data", (batch, sequence, hidden)))
    mask = _over_heads(made, made.net.input("mask", (batch, sequence), "bool"))
    for number in range(layers):
        prefix = f"layer{number}."
        x = blocks.feed_forward(blocks.attend(x, prefix, mask=mask), prefix)
    return made.finish(blocks.sequences(blocks.last(x), "hidden"))


@knows_classic_words
def transformer_decoder(
    batch: int = 1,
    sequence: int = 128,
    memory: int = 128,
    hidden: int = 512,
    heads: int = 8,
    inner: int = 2048,
    layers: int = 6,
    norm: str = "post",
    activation: str = "relu",
    layout: str = "NCHW",
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """`layers` decoder layers on `data` (batch, sequence, hidden) and an encoder's `memory` (batch, memory, hidden).

    A token attends to those before it and to itself, then to the memory, as far as `mask` (batch, memory), of bool, is
    true. The layout makes no difference.
    """
    made = Layers("transformer_decoder", layout, seed, dtype)
    blocks = Blocks(made, batch, hidden, heads, inner, norm, activation)
    x = blocks.rows(made.input("data", (batch, sequence, hidden)))
    given = blocks.rows(made.input("memory", (batch, memory, hidden)))
    mask = _over_heads(made, made.net.input("mask", (batch, memory), "bool"))
    earlier = made.net.constant(np.tri(sequence, dtype=bool).reshape(1, 1, sequence, sequence), "earlier")
    for number in range(layers):
        prefix = f"layer{number}."
        x = blocks.attend(x, f"{prefix}self_", mask=earlier)
        x = blocks.attend(x, f"{prefix}cross_", given, mask)
        x = blocks.feed_forward(x, prefix)
    return made.finish(blocks.sequences(blocks.last(x), "hidden"))


def _over_heads(made: Layers, mask: Value) -> Value:
    """A mask (batch, sequence) for all heads and rows."""
    batch, sequence = mask.shape
    found: Value = made.net.apply("reshape", mask, shape=(batch, 1, 1, sequence))
    return found
