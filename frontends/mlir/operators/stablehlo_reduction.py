"""StableHLO's reductions, over axes and over windows."""

from __future__ import annotations

from ....graph.network import Value
from ..bodies import combiner_of
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Node
from ._reductions import joined, reduce_node, window_reduced


@Converter
def reduce(node: Node) -> list[Value]:
    return reduce_node(node, sorted(node.ints("dimensions")))


@Converter
def reduce_window(node: Node) -> list[Value]:
    count = len(node.operands) // 2
    combiner = combiner_of(node.region(), node.program)
    if count != 1 or combiner is None:
        raise UnsupportedOperation("windows are reduced by an add, a multiply, a maximum or a minimum of one tensor")
    x, start = node.operands
    rank = len(x.shape)
    pads = node.ints("padding", [0] * 2 * rank)
    made = window_reduced(
        node.build,
        combiner,
        x,
        node.ints("window_dimensions"),
        node.ints("window_strides", [1] * rank),
        node.ints("window_dilations", [1] * rank),
        node.ints("base_dilations", [1] * rank),
        list(zip(pads[::2], pads[1::2], strict=True)),
    )
    return [joined(node.build, combiner, made, start)]
