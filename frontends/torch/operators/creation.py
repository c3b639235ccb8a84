"""Tensors whose elements are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..node import Node, aten


def _filled(node: Node, number: float) -> Any:
    one = node.net.constant(np.asarray(number, dtype=node.dtype), "number")
    return node.stretched(one, node.shape) if node.shape else one


@aten("full.default", "full_like.default")
def full(node: Node) -> Any:
    return _filled(node, node["fill_value"])


@aten("scalar_tensor.default")
def scalar_tensor(node: Node) -> Any:
    return _filled(node, node["s"])


@aten("zeros.default", "zeros_like.default", "new_zeros.default", "empty.memory_format", "empty_permuted.default")
def zeros(node: Node) -> Any:
    """Zeros, as tensors whose elements nobody reads may have them, too."""
    return _filled(node, 0)


@aten("ones.default", "ones_like.default", "new_ones.default")
def ones(node: Node) -> Any:
    return _filled(node, 1)


@aten("arange.start_step")
def arange(node: Node) -> Any:
    values = np.arange(node["start"], node["end"], node["step"])
    return node.net.constant(values.astype(node.dtype), node.label)
