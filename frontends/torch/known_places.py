"""Reads at places that are known when a graph is imported, as affine expressions of where the result lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...graph.network import Value
from ...graph.operators.formula import number
from .node import Node

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Line:
    """Places `(start + sum of slope * i) // divisor` of the axes `i` of the places, within bounds, low and high."""

    start: int
    slopes: tuple[int, ...]
    divisor: int = 1
    bounds: tuple[int, int] | None = None

    def lines(self, first: int, known: list[str]) -> str:
        """Add lines of a formula, the axes counted from `first`; returns the token of the place."""

        def line(text: str) -> str:
            known.append(text)
            return f"t{len(known) - 1}"

        place = number(self.start, "int32")
        for axis, slope in enumerate(self.slopes):
            if slope:
                own = f"i{first + axis}"
                scaled = own if slope == 1 else line(f"multiply {own} {number(slope, 'int32')}")
                place = scaled if place == number(0, "int32") else line(f"add {scaled} {place}")
        if self.divisor != 1:
            place = line(f"floor_divide {place} {number(self.divisor, 'int32')}")
        return place

    def within(self, node: Node, x: Value, axis: int, shape: Sequence[int]) -> tuple[_Line, Value]:
        """The data with as many copies of its ends as places are out of bounds, and the places there."""
        if self.bounds is None:
            return self, x
        low, high = self.bounds
        way = sum(slope * (n - 1) for slope, n in zip(self.slopes, shape, strict=True))
        first, last = self.start // self.divisor, (self.start + way) // self.divisor
        parts = [_copies(node, x, axis, low, low - first), _slice(node, x, axis, low, high + 1)]
        parts.append(_copies(node, x, axis, high, last - high))
        kept = [part for part in parts if part is not None]
        wide = kept[0] if len(kept) == 1 else node.apply("concatenate", *kept, axis=axis)
        return _Line(self.start - min(first, low) * self.divisor, self.slopes, self.divisor), wide


def _slice(node: Node, x: Value, axis: int, begin: int, end: int) -> Value:
    made: Value = node.apply("strided_slice", x, begin=[begin], end=[end], axes=[axis])
    return made


def _copies(node: Node, x: Value, axis: int, place: int, times: int) -> Value | None:
    if times <= 0:
        return None
    made: Value = node.net.repeat(_slice(node, x, axis, place, place + 1), repeats=times, axis=axis)
    return made


def read_known(node: Node, x: Value, first: int, places: Sequence[Places]) -> Value | None:
    """Read the axes of `x` from `first` on at known places, which broadcast to the axes in their stead.

    None where places are no such expressions: steps as of windows, or those of resizing.
    """
    extents = x.shape[first : first + len(places)]
    shape = np.broadcast_shapes(*(p.shape for p in places))
    found = [
        _line(p.reshape([1] * (len(shape) - p.ndim) + list(p.shape)), n) for p, n in zip(places, extents, strict=True)
    ]
    lines: list[str] = []
    tokens = []
    if any(each is None for each in found):
        return _in_runs(node, x, first, places[0]) if len(places) == 1 == places[0].ndim else None
    for position, each in enumerate(found):
        assert each is not None
        line, x = each.within(node, x, first + position, shape)
        tokens.append(line.lines(first, lines))
    before = [f"i{d}" for d in range(first)]
    behind = [f"i{first + len(shape) + d}" for d in range(len(x.shape) - first - len(places))]
    lines.append(" ".join(["read:0", *before, *tokens, *behind]))
    whole = (*x.shape[:first], *shape, *x.shape[first + len(places) :])
    made: Value = node.apply("map_formula", x, shape=whole, lines=tuple(lines))
    return made


_MOST_RUNS = 4
"""So many pieces are joined: what mirrored borders and rotations have."""


def _in_runs(node: Node, x: Value, axis: int, places: Places) -> Value | None:
    """Read places that go on in equal steps, and turn a few times, piece by piece."""
    places = np.where(places < 0, places + x.shape[axis], places)
    turns = np.flatnonzero(np.diff(places, 2)) + 2
    begins = [0, *(int(t) for k, t in enumerate(turns) if k == 0 or t > turns[k - 1] + 1)]
    runs = np.split(places, begins[1:])
    if not 1 < len(runs) <= _MOST_RUNS or any(_affine(run) is None for run in runs):
        return None
    parts = [read_known(node, x, axis, [run]) for run in runs]
    made: Value = node.apply("concatenate", *parts, axis=axis)
    return made


def _line(places: Places, extent: int) -> _Line | None:
    """The expression of places along an axis, if there is one; those counted from the end are negative."""
    wrapped = np.where(places < 0, places + extent, places)
    if wrapped.min() < 0 or wrapped.max() >= extent:
        return None
    return _affine(wrapped) or _resizing(wrapped, extent)


def _affine(places: Places) -> _Line | None:
    start = int(places.flat[0])
    corner = places[tuple(slice(0, 1) for _ in places.shape)]
    slopes = []
    for axis, n in enumerate(places.shape):
        second = places[tuple(slice(1, 2) if d == axis else slice(0, 1) for d in range(places.ndim))]
        slopes.append(int(second.flat[0] - corner.flat[0]) if n > 1 else 0)
    whole = np.full(places.shape, start, dtype=np.int64)
    for slope, steps in zip(slopes, np.indices(places.shape), strict=True):
        whole += slope * steps
    return _Line(start, tuple(slopes)) if np.array_equal(whole, places) else None


def _resizing(places: Places, extent: int) -> _Line | None:
    """Places that grow by a ratio along one axis, rounded down, within bounds, as nearest and linear resizing have."""
    moving = [d for d, n in enumerate(places.shape) if n > 1]
    if len(moving) != 1:
        return None
    flat = places.reshape(-1)
    count, steps = len(flat), np.arange(len(flat))
    low, high = int(flat.min()), int(flat.max())
    inner = (flat > low) & (flat < high)
    if not inner.any():
        return None
    for slope, divisor in ((2 * extent, 2 * count), (2 * (extent - 1), 2 * (count - 1)), *_fitted(flat, steps, inner)):
        least = int((flat * divisor - slope * steps)[inner].max())
        most = int(((flat + 1) * divisor - slope * steps)[inner].min())
        for start in {least, (least + most - 1) // 2, most - 1} if least < most else ():
            if np.array_equal(np.clip((start + slope * steps) // divisor, low, high), flat):
                slopes = tuple(slope if d == moving[0] else 0 for d in range(places.ndim))
                return _Line(start, slopes, divisor, (low, high))
    return None


def _fitted(flat: Places, steps: Places, inner: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The ratio of the steepest line between the first and the last place inside, in thousandths."""
    places = np.flatnonzero(inner)
    if len(places) < 2:
        return []
    rise = int(flat[places[-1]] - flat[places[0]])
    run = int(steps[places[-1]] - steps[places[0]])
    return [(rise, run)] if rise > 0 else []
