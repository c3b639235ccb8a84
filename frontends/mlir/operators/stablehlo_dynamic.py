"""StableHLO's operations whose sizes are operands: what they give must have a shape that is known."""

from __future__ import annotations

from ....graph.network import Value
from ..discovery import Converter
from ..node import Node
from . import stablehlo_shape as plain
from ._movement import pad_value, padded

dynamic_broadcast_in_dim = Converter(lambda node: plain.broadcast_in_dim(node))
dynamic_iota = Converter(lambda node: plain.iota(node))
dynamic_reshape = Converter(lambda node: plain.reshape(node))


@Converter
def get_dimension_size(node: Node) -> Value:
    return node.build.number(node.value().shape[node.ints("dimension")[0]], node.dtype)


@Converter
def dynamic_pad(node: Node) -> Value:
    low, high, between = ([int(n) for n in node.constant(k, "padding").reshape(-1)] for k in (2, 3, 4))
    return padded(node.build, node.value(0), pad_value(node.value(1)), low, high, between)


@Converter
def real_dynamic_slice(node: Node) -> Value:
    begin, end, strides = ([int(n) for n in node.constant(k, "a place").reshape(-1)] for k in (1, 2, 3))
    return node.build.slice(node.value(0), begin, end, strides)
