"""StableHLO's select_and_scatter: the gradient of pooling by maxima or minima."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....dialects.numpy_types import FLOATS, working_type
from ....graph.network import Value
from ..bodies import combiner_of
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Builder, Node
from ..reader import name_of
from ..values import attributes
from ._padded_read import PaddedRead
from ._reductions import joined

_MOST_AXES = 3


@Converter
def select_and_scatter(node: Node) -> Value:
    """Add each update to the element of its window that was chosen: each element sums the windows that chose it."""
    x, updates, start = node.operands
    rank, build = len(x.shape), node.build
    window = node.ints("window_dimensions", [1] * rank)
    strides = node.ints("window_strides", [1] * rank)
    pads = node.ints("padding", [0] * 2 * rank)
    moving = [d for d in range(rank) if (window[d], strides[d], pads[2 * d], pads[2 * d + 1]) != (1, 1, 0, 0)]
    if not 1 <= len(moving) <= _MOST_AXES:
        raise UnsupportedOperation(f"its windows move along {len(moving)} axes, and 1 to {_MOST_AXES} are supported")
    order = [d for d in range(rank) if d not in moving] + moving

    def gathered(value: Value) -> Value:
        spatial = tuple(value.shape[d] for d in moving)
        return build.reshape(build.transpose(value, order), (prod(value.shape) // prod(spatial), 1, *spatial))

    data = gathered(build.elementwise("negative", x) if _chosen(node) == "LE" else x)
    sizes, steps = [window[d] for d in moving], [strides[d] for d in moving]
    low, high = [pads[2 * d] for d in moving], [pads[2 * d + 1] for d in moving]
    places = build.apply("max_pool_places", data, kernel=sizes, stride=steps, padding=(*low, *high))
    kind = working_type(x.dtype)
    added = _added(build, build.cast(gathered(updates), kind), places, data.shape, (sizes, steps, low))
    made = build.reshape(build.cast(added, x.dtype), tuple(x.shape[d] for d in order))
    return joined(build, "add", build.transpose(made, [order.index(d) for d in range(rank)]), start)


def _chosen(node: Node) -> str:
    """Return the comparison by which an element of a window is preferred to a later one, GE or LE."""
    select, scatter = node.region(0), node.region(1)
    compare = select.first_op
    found = ""
    if compare is not None and name_of(compare) == "stablehlo.compare" and list(compare.operands) == list(select.args):
        found = str(attributes(compare)["comparison_direction"])
    direction = next((word for word in ("GE", "LE") if word in found), "")
    if not direction or combiner_of(scatter, node.program) != "add" or node.value().dtype not in FLOATS:
        raise UnsupportedOperation("it chooses by GE or LE among floats, and adds: other choices are not supported")
    return direction


def _added(
    build: Builder, updates: Value, places: Value, shape: Sequence[int], windows: tuple[list[int], list[int], list[int]]
) -> Value:
    """Sum, for each element of data (rows, 1, spatial), the updates of the windows around it that chose its place."""
    read, at, own = PaddedRead(), ["i0", "i1"], "i0"
    for axis, (size, step, low) in enumerate(zip(*windows, strict=True), 2):
        extent = shape[axis]
        last = size - 1
        here = read.line(f"subtract {read.line(f'add i{axis} {last}:int32')} k{axis - 2}")
        at.append(read.place(here, updates.shape[axis], step, last - low, extent - 1 + last))
        own = read.line(f"add {read.line(f'multiply {own} {extent}:int32')} i{axis}")
    is_own = read.line(f"equal {read.line(' '.join(['read:1', *at]))} {own}")
    read.conditions.append(is_own)
    element = read.element(at, f"0.0:{updates.dtype}")
    made: Value = build.apply(
        "reduce_formula",
        updates,
        places,
        shape=tuple(shape),
        reduced=tuple(windows[0]),
        lines=tuple(read.lines),
        values=(element,),
        combiner=("add",),
    )
    return made
