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


class _Places:
    """Places of the elements of windows, of which it is known where they begin."""

    def __init__(self, build: Builder, starts: Value, windows: _Windows, shape: Sequence[int]) -> None:
        self._build, self._windows, self._shape = build, windows, shape
        self._axes = windows.flattened_axes(shape)
        starts = build.cast(starts, "int32") if starts.dtype != "int64" else starts
        if windows.vector_axis == len(starts.shape):
            starts = build.reshape(starts, (*starts.shape, 1))
        self._order = [d for d in range(len(starts.shape)) if d != windows.vector_axis]
        self._starts = build.transpose(starts, [*self._order, windows.vector_axis])
        self._batch = self._starts.shape[:-1]

    def flat(self, clamp: bool) -> tuple[Value, tuple[int, ...]]:
        """Return, for each window and each of its elements, the place in the flattened axes; and the shape of windows.

        A window that does not fit is moved inside (`clamp`), or its places are -1.
        """
        build = self._build
        flat: Value | None = None
        fits: Value | None = None
        for position, axis in enumerate(self._axes):
            first = self._first(axis)
            if first is not None and axis in self._windows.moved:
                if clamp:
                    first = self._clamped(first, axis)
                else:
                    inside = self._fits(first, axis)
                    fits = inside if fits is None else build.elementwise("logical_and", fits, inside)
            here = self._along(axis, position, first)
            if flat is not None:
                outer = build.elementwise("multiply", flat, build.like(self._shape[axis], flat))
                here = build.elementwise("add", outer, here)
            flat = here
        assert flat is not None
        if fits is not None:
            flat = build.elementwise("where", self._widened(fits), flat, build.like(-1, flat))
        whole = (*self._batch, *(self._windows.sizes[a] for a in self._axes))
        return build.broadcast(flat, whole), whole

    def _first(self, axis: int) -> Value | None:
        """Return where windows begin along an axis, for each of them; None where all do at its begin."""
        build, starts, windows = self._build, self._starts, self._windows
        if axis in windows.moved:
            k = list(windows.moved).index(axis)
            begin, end = [0] * len(starts.shape), list(starts.shape)
            begin[-1], end[-1] = k, k + 1
            return build.reshape(build.slice(starts, begin, end, [1] * len(begin)), self._batch)
        if axis in windows.batched:
            place = self._order.index(windows.batches_of_places[list(windows.batched).index(axis)])
            along = [-1 if d == place else 1 for d in range(len(self._batch))]
            return build.constant(np.arange(self._shape[axis]).reshape(along), starts.dtype)
        return None

    def _last(self, first: Value, axis: int) -> Value:
        """Return the last place along an axis that a window fits at."""
        return self._build.like(self._shape[axis] - self._windows.sizes[axis], first)

    def _clamped(self, first: Value, axis: int) -> Value:
        low = self._build.elementwise("maximum", first, self._build.like(0, first))
        return self._build.elementwise("minimum", low, self._last(first, axis))

    def _fits(self, first: Value, axis: int) -> Value:
        build = self._build
        above = build.elementwise("greater_equal", first, build.like(0, first))
        below = build.elementwise("less_equal", first, self._last(first, axis))
        return build.elementwise("logical_and", above, below)

    def _along(self, axis: int, position: int, first: Value | None) -> Value:
        """Return the places of a window's elements along an axis, which begin where it does."""
        build, size = self._build, self._windows.sizes[axis]
        steps = build.constant(np.arange(size), self._starts.dtype)
        steps = build.reshape(steps, (size, *(1,) * (len(self._axes) - position - 1)))
        if first is None:
            return steps
        wide = self._widened(first)
        return build.elementwise("add", wide, steps) if size > 1 else wide

    def _widened(self, of_windows: Value) -> Value:
        """Give a value of each window to all of its elements."""
        return self._build.reshape(of_windows, (*of_windows.shape, *(1,) * len(self._axes)))


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
    places, whole = _Places(build, starts, windows, x.shape).flat(clamp=True)
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
    places, whole = _Places(build, starts, windows, x.shape).flat(clamp=False)
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
