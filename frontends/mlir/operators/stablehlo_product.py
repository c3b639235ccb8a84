"""StableHLO's matrix products and convolutions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ....graph.network import Value
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from ..reader import name_of
from ..values import attributes, named_lists, python
from ._products import Convolution, contracted, convolved


@Converter
def dot_general(node: Node) -> Value:
    known: dict[str, list[int]] = {}
    if "dot_dimension_numbers" in node.attributes:
        known = named_lists(str(node.need("dot_dimension_numbers")))
    for key in ("lhs_batching_dimensions", "rhs_batching_dimensions"):
        known.setdefault(key, node.ints(key))
    for key in ("lhs_contracting_dimensions", "rhs_contracting_dimensions"):
        known.setdefault(key, node.ints(key))
    batch = (known["lhs_batching_dimensions"], known["rhs_batching_dimensions"])
    summed = (known["lhs_contracting_dimensions"], known["rhs_contracting_dimensions"])
    x, y, count = node.value(0), node.value(1), len(batch[0])
    own = len(x.shape) - count - len(summed[0])
    if not _is_turned(node, count, own):
        return contracted(node.build, x, y, batch, summed, node.dtype)
    made = contracted(node.build, y, x, batch[::-1], summed[::-1], node.dtype)
    rank = len(made.shape)
    return node.build.transpose(made, [*range(count), *range(rank - own, rank), *range(count, rank - own)])


def _is_turned(node: Node, batch: int, own: int) -> bool:
    """True where all that reads a product is a transpose that ends with an axis of its first operand.

    JAX puts the operand with fewer axes first, and moves its axes back: the product is then the other way round.
    """
    users = {use.operation for use in node.op.results[0].uses}
    op = next(iter(users), None)
    if op is None or len(users) > 1 or name_of(op) != "stablehlo.transpose":
        return False
    order = [int(v) for v in np.asarray(python(attributes(op)["permutation"], node.program.resources)).reshape(-1)]
    return bool(order) and batch <= order[-1] < batch + own


@Converter
def dot(node: Node) -> Value:
    x, y = node.value(0), node.value(1)
    return contracted(node.build, x, y, ([], []), ([len(x.shape) - 1], [0]), node.dtype)


@Converter
def convolution(node: Node) -> Value:
    x, w, build = node.value(0), node.value(1), node.build
    parts = re.findall(r"\[([^\]]*)\]", str(node.need("dimension_numbers")))
    if len(parts) != 3:
        raise UnsupportedOperation(f"dimension numbers {node.need('dimension_numbers')} are not understood")
    lhs, rhs, out = ([word.strip() for word in part.split(",")] for part in parts)
    count = len(x.shape) - 2
    data = _places(lhs, "b", "f", count)
    weight = _places(rhs, "o", "i", count)
    result = _places(out, "b", "f", count)
    groups = (node.ints("feature_group_count") or [1])[0]
    batches = (node.ints("batch_group_count") or [1])[0]
    if batches > 1:
        x, groups = _batches_as_channels(node, x, data, batches), batches
    turned = node.get("window_reversal") or ()
    for axis, is_turned in zip(weight[2], turned, strict=False):
        if is_turned:
            w = build.apply("flip", w, axis=axis)
    ones = [1] * count
    pads = node.ints("padding", [0] * 2 * count)
    how = Convolution(
        data,
        weight,
        result,
        node.ints("window_strides", ones),
        list(zip(pads[::2], pads[1::2], strict=True)),
        node.ints("lhs_dilation", ones),
        node.ints("rhs_dilation", ones),
        groups,
    )
    if not count:
        made = contracted(build, x, w, ([], []), ([data[1]], [weight[1]]), node.dtype)
        return build.transpose(made, [1, 0]) if result[0] == 1 else made
    return convolved(build, x, w, how, node.dtype)


def _places(words: list[str], first: str, second: str, count: int) -> tuple[int, int, tuple[int, ...]]:
    return words.index(first), words.index(second), tuple(words.index(str(k)) for k in range(count))


def _batches_as_channels(node: Node, x: Value, data: tuple[int, int, Any], batches: int) -> Value:
    """Return the data with groups of its batch in front of its channels: (N, C) -> (N / G, G * C)."""
    batch, channel, spatial = data
    build = node.build
    x = build.transpose(x, [batch, channel, *spatial])
    n, c = x.shape[:2]
    x = build.reshape(x, (batches, n // batches, c, *x.shape[2:]))
    x = build.transpose(x, [1, 0, *range(2, len(x.shape))])
    x = build.reshape(x, (n // batches, batches * c, *x.shape[3:]))
    now = [batch, channel, *spatial]
    return build.transpose(x, [now.index(d) for d in range(len(now))])
