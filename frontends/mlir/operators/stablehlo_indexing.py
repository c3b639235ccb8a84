"""StableHLO's gather and scatter: windows at places that a tensor gives, by places in the flattened axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import Block

from ....graph.network import Value
from ..bodies import combiner_of
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Builder, Node
from ..reader import name_of
from ..values import named_lists
from ._movement import taken


@dataclass(frozen=True)
class _Windows:
    """Windows in a tensor: the axes that places move them along, sizes, and batch axes of tensor and places."""

    moved: Sequence[int]
    sizes: Sequence[int]
    batched: Sequence[int]
    batches_of_places: Sequence[int]
    vector_axis: int

    def flattened_axes(self, shape: Sequence[int]) -> list[int]:
        """Return the axes that windows do not cover whole, or that places move them along."""
        partial = [d for d, (n, s) in enumerate(zip(shape, self.sizes, strict=True)) if s != n]
        return sorted({*self.moved, *self.batched, *partial})


def _flat_places(
    build: Builder, starts: Value, windows: _Windows, shape: Sequence[int], clamp: bool
) -> tuple[Value, tuple[int, ...]]:
    """Return, for each window and each of its elements, the place in the flattened axes; and the shape of windows.

    A window that does not fit is moved inside (`clamp`), or its places are -1.
    """
    axes = windows.flattened_axes(shape)
    starts = build.cast(starts, "int32") if starts.dtype != "int64" else starts
    if windows.vector_axis == len(starts.shape):
        starts = build.reshape(starts, (*starts.shape, 1))
    order = [d for d in range(len(starts.shape)) if d != windows.vector_axis]
    starts = build.transpose(starts, [*order, windows.vector_axis])
    batch = starts.shape[:-1]
    whole = (*batch, *(windows.sizes[a] for a in axes))
    flat: Value | None = None
    fits: Value | None = None
    for position, axis in enumerate(axes):
        last = shape[axis] - windows.sizes[axis]
        first: Value | None = None
        if axis in windows.moved:
            k = list(windows.moved).index(axis)
            begin, end = [0] * len(starts.shape), list(starts.shape)
            begin[-1], end[-1] = k, k + 1
            first = build.reshape(build.slice(starts, begin, end, [1] * len(begin)), batch)
            if clamp:
                low = build.elementwise("maximum", first, build.like(0, first))
                first = build.elementwise("minimum", low, build.like(last, first))
            else:
                inside = build.elementwise(
                    "logical_and",
                    build.elementwise("greater_equal", first, build.like(0, first)),
                    build.elementwise("less_equal", first, build.like(last, first)),
                )
                fits = inside if fits is None else build.elementwise("logical_and", fits, inside)
        elif axis in windows.batched:
            place = order.index(windows.batches_of_places[list(windows.batched).index(axis)])
            numbers = np.arange(shape[axis]).reshape([-1 if d == place else 1 for d in range(len(batch))])
            first = build.constant(numbers, starts.dtype)
        steps = build.constant(np.arange(windows.sizes[axis]), starts.dtype)
        steps = build.reshape(steps, (windows.sizes[axis], *(1,) * (len(axes) - position - 1)))
        here = steps
        if first is not None:
            wide = build.reshape(first, (*first.shape, *(1,) * len(axes)))
            here = build.elementwise("add", wide, steps) if windows.sizes[axis] > 1 else wide
        flat = (
            here
            if flat is None
            else build.elementwise("add", build.elementwise("multiply", flat, build.like(shape[axis], flat)), here)
        )
    assert flat is not None
    if fits is not None:
        wide = build.reshape(fits, (*fits.shape, *(1,) * len(axes)))
        flat = build.elementwise("where", wide, flat, build.like(-1, flat))
    return build.broadcast(flat, whole), whole


def _front(build: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return a tensor with axes flattened into its first one, the others behind them."""
    rest = [d for d in range(len(x.shape)) if d not in axes]
    x = build.transpose(x, [*axes, *rest])
    return build.reshape(x, (prod(x.shape[: len(axes)]), *x.shape[len(axes) :]))


@Converter
def gather(node: Node) -> Value:
    x, starts, build = node.value(0), node.value(1), node.build
    known = named_lists(str(node.need("dimension_numbers")))
    windows = _Windows(
        known.get("start_index_map", []),
        node.ints("slice_sizes"),
        known.get("operand_batching_dims", []),
        known.get("start_indices_batching_dims", []),
        known.get("index_vector_dim", [0])[0],
    )
    axes = windows.flattened_axes(x.shape)
    if not axes:
        raise UnsupportedOperation("it moves no window")
    places, whole = _flat_places(build, starts, windows, x.shape, clamp=True)
    rest = [d for d in range(len(x.shape)) if d not in axes]
    made = taken(build, _front(build, x, axes), places, 0)  # windows, elements along `axes`, along `rest`
    gone = {*known.get("collapsed_slice_dims", []), *windows.batched}
    count = len(whole) - len(axes)
    names = [*(("window", k) for k in range(count)), *(("axis", a) for a in axes), *(("axis", a) for a in rest)]
    kept = [name for name in names if name[0] == "window" or name[1] not in gone]
    extents = dict(zip(names, made.shape, strict=True))
    made = build.reshape(made, tuple(extents[name] for name in kept))
    offsets, left = known.get("offset_dims", []), [d for d in range(len(x.shape)) if d not in gone]
    order: list[tuple[str, int]] = []
    outer = iter(range(count))
    inner = iter(left)
    for position in range(len(node.shape)):
        order.append(("axis", next(inner)) if position in offsets else ("window", next(outer)))
    return build.transpose(made, [kept.index(name) for name in order])


def _subtracts(block: Block) -> bool:
    """True where a block takes its second argument from its first."""
    first, last = block.first_op, block.last_op
    if first is None or last is None or first.next_op is not last or name_of(first) != "stablehlo.subtract":
        return False
    return list(first.operands) == list(block.args) and list(last.operands) == list(first.results)


@Converter
def scatter(node: Node) -> Value:
    if len(node.operands) != 3:
        raise UnsupportedOperation("it scatters into several tensors at once")
    x, starts, updates = node.operands
    build, block = node.build, node.region()
    known = named_lists(str(node.need("scatter_dimension_numbers")))
    within = known.get("update_window_dims", [])
    inserted = known.get("inserted_window_dims", [])
    batched = known.get("input_batching_dims", [])
    covered = iter([updates.shape[d] for d in within])
    gone = {*inserted, *batched}
    sizes = [1 if d in gone else next(covered) for d in range(len(x.shape))]
    windows = _Windows(
        known.get("scatter_dims_to_operand_dims", []),
        sizes,
        batched,
        known.get("scatter_indices_batching_dims", []),
        known.get("index_vector_dim", [0])[0],
    )
    axes = sorted({*windows.flattened_axes(x.shape), *inserted})
    windows = _Windows([*windows.moved], sizes, batched, windows.batches_of_places, windows.vector_axis)
    if axes != windows.flattened_axes(x.shape):
        raise UnsupportedOperation("an axis of one element that no place moves along is inserted")
    last = block.last_op
    combiner = combiner_of(block, node.program)
    replaces = combiner is None and last is not None and len(list(block.ops)) == 1 and last.operands[0] is block.args[1]
    if combiner is None and _subtracts(block):
        combiner, updates = "add", build.elementwise("negative", updates)
    if combiner is None and not replaces:
        raise UnsupportedOperation(
            "updates replace elements, are subtracted, or joined by an add, a multiply, a maximum or a minimum"
        )
    places, whole = _flat_places(build, starts, windows, x.shape, clamp=False)
    rest = [d for d in range(len(x.shape)) if d not in axes]
    order = [d for d in range(len(updates.shape)) if d not in within]
    names = dict(zip([d for d in range(len(x.shape)) if d not in gone], within, strict=True))
    order += [names[a] for a in axes if a in names] + [names[a] for a in rest]
    extents = tuple(x.shape[d] for d in rest)
    count = prod(whole)
    new = build.reshape(build.transpose(updates, order), (count, *extents))
    flat = _front(build, x, axes)
    at = build.broadcast(build.reshape(places, (count, *(1,) * len(rest))), (count, *extents))
    kind = "int8" if x.dtype == "bool" else x.dtype
    flat, new = build.cast(flat, kind), build.cast(new, kind)
    made: Value = build.apply("scatter_elements", flat, at, new, axis=0, reduction=combiner or "none")
    made = build.cast(made, x.dtype)
    made = build.reshape(made, (*(x.shape[a] for a in axes), *extents))
    now = [*axes, *rest]
    return build.transpose(made, [now.index(d) for d in range(len(now))])
