"""Padding and indexing on tensors of a network, shared by dialects."""

from __future__ import annotations

from collections.abc import Sequence

from ....graph.network import Value
from ....graph.operators.formula import number
from ..node import Builder, known_values
from ._padded_read import PaddedRead


def pad_value(value: Value) -> Value | float:
    """Return the number that a constant tensor of one element is, or the tensor."""
    known = value.constant
    return value if known is None or known.size != 1 else known.reshape(()).item()


def padded(
    build: Builder,
    x: Value,
    value: Value | float,
    low: Sequence[int],
    high: Sequence[int],
    between: Sequence[int] | None = None,
) -> Value:
    """Pad, with `between` elements behind each but the last; negative numbers cut off."""
    gaps = list(between or [0] * len(low))
    if not any((*low, *high, *gaps)):
        return x
    if isinstance(value, float | int) and x.dtype != "bool" and not any(gaps) and min(*low, *high) >= 0:
        made: Value = build.apply("pad", x, before=tuple(low), after=tuple(high), value=float(value))
        return made
    shape = [(n - 1) * (g + 1) + 1 + a + b for n, g, a, b in zip(x.shape, gaps, low, high, strict=True)]
    read = PaddedRead()
    places = []
    for axis, (n, gap, first) in enumerate(zip(x.shape, gaps, low, strict=True)):
        places.append(read.place(f"i{axis}", n, gap + 1, first, shape[axis] - 1))
    read.element(places, read.line("read:1") if isinstance(value, Value) else number(value, x.dtype))
    tensors = [x, build.reshape(value, ())] if isinstance(value, Value) else [x]
    made = build.apply("map_formula", *tensors, shape=tuple(shape), lines=tuple(read.lines))
    return made


def taken(build: Builder, x: Value, places: Value, axis: int) -> Value:
    """Return the slices of a tensor at places along an axis; by slicing where the places are known and in a row."""
    known = None
    if places.constant is not None and len(places.shape) <= 1:
        known = [int(p) for p in known_values(places, "places").reshape(-1)]
    if known and all(0 <= p < x.shape[axis] for p in known) and known == list(range(known[0], known[0] + len(known))):
        begin, end = [0] * len(x.shape), list(x.shape)
        begin[axis], end[axis] = known[0], known[-1] + 1
        part = build.slice(x, begin, end, [1] * len(begin))
        return build.reshape(part, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))
    if places.dtype not in ("int32", "int64"):
        places = build.cast(places, "int32")
    made: Value = build.apply("take", x, places, axis=axis)
    return made
