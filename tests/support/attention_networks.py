"""Blocks of transformers as PyTorch takes them apart: scales of both factors, transposes, rows that a mask empties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import loopwright as lw

Net = Any
Heads = Callable[[Net, Any, "Block"], list[Any]]


@dataclass(frozen=True)
class Block:
    """Extents of a block of attention, and how it is written: its mask, and where queries, keys and values are from."""

    batch: int = 2
    rows: int = 16
    heads: int = 3
    size: int = 8
    mask: str = "none"
    form: str = "three"

    @property
    def width(self) -> int:
        return self.heads * self.size


def drawn(net: Net, name: str, *shape: int) -> Any:
    random = np.random.default_rng(len(name) + sum(shape))
    return net.constant((random.standard_normal(shape) * 0.3).astype(np.float32), name)


def projected(net: Net, x: Any, name: str, columns: int, given: int) -> Any:
    made = net.dense(x, drawn(net, f"{name}_weight", columns, given))
    return net.bias_add(made, drawn(net, f"{name}_bias", columns))


def three_products(net: Net, x: Any, block: Block) -> list[Any]:
    """Queries, keys and values as products of their own, (batch, heads, rows, size)."""
    made = [projected(net, x, name, block.width, block.width) for name in ("query", "key", "values")]
    apart = [net.reshape(v, shape=(block.batch, block.rows, block.heads, block.size)) for v in made]
    return [net.transpose(v, axes=(0, 2, 1, 3)) for v in apart]


def one_product(net: Net, x: Any, block: Block) -> list[Any]:
    """Queries, keys and values as parts of the columns of one product, as GPT-2 has them."""
    made = net.reshape(projected(net, x, "all", 3 * block.width, block.width), shape=(block.batch, block.rows, -1))
    parts = []
    for k in range(3):
        begin, end = k * block.width, (k + 1) * block.width
        part = net.strided_slice(made, begin=[begin], end=[end], strides=[1], axes=[2])
        part = net.reshape(part, shape=(block.batch, block.rows, block.heads, block.size))
        parts.append(net.transpose(part, axes=(0, 2, 1, 3)))
    return parts


def turned_product(net: Net, x: Any, block: Block) -> list[Any]:
    """Queries, keys and values as parts of one product with its axes turned, as ViT and Swin have them."""
    made = projected(net, x, "all", 3 * block.width, block.width)
    apart = net.reshape(made, shape=(block.batch, block.rows, 3, block.heads, block.size))
    turned = net.transpose(apart, axes=(2, 0, 3, 1, 4))
    parts = [net.strided_slice(turned, begin=[k], end=[k + 1], strides=[1], axes=[0]) for k in range(3)]
    return [net.reshape(v, shape=(block.batch, block.heads, block.rows, block.size)) for v in parts]


FORMS: dict[str, Heads] = {"three": three_products, "one": one_product, "turned": turned_product}


def mask_of(net: Net, block: Block) -> Any:
    """A mask to add: "causal" of constants, "padding" of an input, "empty" of constants with a row of -inf alone."""
    shape = (block.batch, 1, block.rows, block.rows)
    if block.mask == "padding":
        kept = net.input("kept", (block.batch, 1, 1, block.rows), "bool")
        return net.where(net.broadcast_to(kept, shape=shape), 0.0, -np.inf)
    added = np.where(np.tri(block.rows, dtype=bool), 0, -np.inf).astype(np.float32)[None, None]
    if block.mask == "empty":
        added[..., 1, :] = -np.inf
    return net.constant(added, "mask")


def safe_softmax(net: Net, scores: Any) -> Any:
    """PyTorch's: rows of -inf alone give 0."""
    held = net.cast(net.logical_not(net.equal(scores, -np.inf)), dtype="int8")
    empty = net.logical_not(net.not_equal(net.max(held, axis=3, keepdims=True), 0))
    zeros = net.broadcast_to(net.constant(np.zeros((1, 1, 1, 1), np.float32)), shape=scores.shape)
    return net.where(empty, zeros, net.softmax(scores, axis=3))


def attended(net: Net, x: Any, block: Block) -> Any:
    """Attention on (batch * rows, width), each factor of the scores scaled by the square root of the scale."""
    q, k, v = FORMS[block.form](net, x, block)
    scale = float(block.size**-0.25)
    flat = block.batch * block.heads
    keys = net.multiply(net.transpose(k, axes=(0, 1, 3, 2)), scale)
    scores = net.batch_matmul(
        net.reshape(net.multiply(q, scale), shape=(flat, block.rows, block.size)),
        net.reshape(keys, shape=(flat, block.size, block.rows)),
    )
    scores = net.reshape(scores, shape=(block.batch, block.heads, block.rows, block.rows))
    if block.mask != "none":
        scores = net.add(scores, mask_of(net, block))
    shares = net.reshape(safe_softmax(net, scores), shape=(flat, block.rows, block.rows))
    made = net.batch_matmul(shares, net.reshape(v, shape=(flat, block.rows, block.size)))
    made = net.reshape(made, shape=(block.batch, block.heads, block.rows, block.size))
    return net.reshape(net.transpose(made, axes=(0, 2, 1, 3)), shape=(block.batch * block.rows, block.width))


def attention_network(block: Block) -> lw.Network:
    """Attention and the product behind it, on an input x of (batch * rows, width)."""
    net: Net = lw.Network("attention")
    x = net.input("x", (block.batch * block.rows, block.width))
    net.output(net.add(projected(net, attended(net, x, block), "out", block.width, block.width), x))
    return net
