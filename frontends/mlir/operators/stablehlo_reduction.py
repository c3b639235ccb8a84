"""StableHLO's reductions, over axes and over windows."""

from __future__ import annotations

from ....graph.network import Value
from ..bodies import combiner_of
from ..discovery import Converter
from ..node import Node
from ._reductions import joined, reduce_node
from ._windows import Windows, window_reduced, windows_joined


@Converter
def reduce(node: Node) -> list[Value]:
    return reduce_node(node, sorted(node.ints("dimensions")))


@Converter
def reduce_window(node: Node) -> list[Value]:
    count, block = len(node.operands) // 2, node.region()
    data, starts = node.operands[:count], node.operands[count:]
    rank = len(data[0].shape)
    pads = node.ints("padding", [0] * 2 * rank)
    windows = Windows(
        node.ints("window_dimensions"),
        node.ints("window_strides", [1] * rank),
        node.ints("window_dilations", [1] * rank),
        node.ints("base_dilations", [1] * rank),
        list(zip(pads[::2], pads[1::2], strict=True)),
    )
    combiner = combiner_of(block, node.program)
    if count != 1 or combiner is None:
        return windows_joined(node, block, data, starts, windows)
    return [joined(node.build, combiner, window_reduced(node.build, combiner, data[0], windows), starts[0])]
