"""Bytes that a nest of loops moves into a cache, as array expressions over a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from ...dialects.target import LINE_BYTES

Array = npt.NDArray[np.float64]

KEPT = 0.5
"""Part of a cache that keeps what is used again: the rest streams through (Goto and van de Geijn, Anatomy of
High-Performance Matrix Multiplication). With 0.25 and 0.75 27 and 26 of 58 default schedules change, in 0.95 and 0.98
of the time (0.65 to 1.22, Zen 3): it is flat."""


@dataclass(frozen=True)
class Operand:
    """The places that a nest touches: of each dimension the axes that move along it, and by how many elements.

    One that `is_packed` lies in memory in the order it is read in; of any other, whole lines are moved, and `strides`
    are the bytes from one place of a dimension to the next. Rows that are skipped, as taps of a dilated filter do, are
    not touched where it `skips`; else all from the first to the last are, as the model that ships was told.
    """

    dimensions: tuple[tuple[tuple[str, int], ...], ...]
    element_bytes: int
    is_packed: bool = False
    strides: tuple[int, ...] = ()
    skips: bool = False

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes that it moves along."""
        return frozenset(axis for terms in self.dimensions for axis, _ in terms)

    def _spans(self, cover: Mapping[str, Array]) -> list[Array]:
        """Return the elements of each dimension from the first to the last that is touched."""
        return [
            np.asarray(1.0 + sum(abs(step) * (cover[axis] - 1.0) for axis, step in terms)) for terms in self.dimensions
        ]

    def footprint(self, cover: Mapping[str, Array]) -> Array:
        """Bytes touched while each axis runs over as many iterations as `cover` says, in lines where it is not packed.

        Places of a dimension are one run where the next begins in the lines of the one before: a row of which all is
        touched and the next row, or the taps of a kernel.
        """
        *outer, last = self._spans(cover)
        touched = np.asarray(last * self.element_bytes)
        if self.is_packed:
            return np.asarray(prod(outer, start=touched))
        is_run: npt.NDArray[np.bool_] = np.ones((), dtype=np.bool_)
        dimensions = zip(reversed(self.dimensions[:-1]), reversed(outer), self.strides[-2::-1], strict=True)
        for terms, span, stride in dimensions:
            places = _places(terms, span, cover) if self.skips else span
            lines = np.where(is_run, np.maximum(touched, LINE_BYTES), touched)
            is_run = is_run & ((stride <= lines) & (places == span) | (span == 1))
            touched = np.where(is_run, (span - 1.0) * stride + touched, places * lines)
        return np.asarray(np.where(is_run, np.maximum(touched, LINE_BYTES), touched))

    def lines_a_set(self, cover: Mapping[str, Array], way_bytes: int) -> tuple[Array, Array]:
        """Return the lines touched while axes run over `cover`, and how many of them share a set at least, `(n,)` each.

        A cache whose ways have `way_bytes` keeps lines so many bytes apart in one set: strides that are multiples of
        it, or share a large power of two with it, use few of its sets.
        """
        lines, starts, common = np.ones(()), np.ones(()), np.full((), way_bytes)
        outer = zip(self.dimensions[:-1], self.strides[:-1], self._spans(cover)[:-1], strict=True)
        for terms, stride, span in outer:
            places = _places(terms, span, cover)
            shared = gcd(stride, way_bytes)
            lines, starts = lines * places, starts * np.minimum(places, way_bytes / shared)
            common = np.where(places > 1, np.gcd(common, shared), common)
        sets = np.minimum(starts, way_bytes / np.maximum(common, LINE_BYTES))
        return np.asarray(lines), np.asarray(lines / sets)

    def lines_in_fullest(self, cover: Mapping[str, Array], way_bytes: int) -> Array:
        """The lines of the set of a cache that has most of them, `(n,)`, where runs may be several lines long.

        0 where no set has twice what each would have if lines were dealt out evenly.
        """
        lines, together = self.lines_a_set(cover, way_bytes)
        run = np.maximum(1.0, self._spans(cover)[-1] * self.element_bytes / LINE_BYTES)
        fullest = lines * run / np.minimum(way_bytes / LINE_BYTES, lines / together * run)
        return np.asarray(np.where(fullest > 2 * np.maximum(1.0, lines * run * LINE_BYTES / way_bytes), fullest, 0.0))


def _places(terms: tuple[tuple[str, int], ...], span: Array, cover: Mapping[str, Array]) -> Array:
    """The places of a dimension that are touched, of so many from the first to the last."""
    return np.asarray(np.minimum(span, prod((cover[axis] for axis, _ in terms), start=np.ones(()))))


@dataclass(frozen=True)
class Loop:
    """A loop over an axis: how often it runs, as `(n,)`."""

    axis: str
    trips: Array


def bytes_into(
    caches: Sequence[float],
    operands: Sequence[Operand],
    cover: Mapping[str, Array],
    loops: Sequence[Loop],
    ways: Sequence[int] = (),
    kept: Sequence[float] = (),
) -> list[Array]:
    """Return the bytes that loops around a tile, the innermost first, move into caches of some sizes, each `(n,)`.

    `cover` are the iterations of each axis in the tile. An operand that does not move along a loop is moved once for
    all its iterations where what one of them touches fits the cache; one that does has what iterations share once.
    What is touched takes as much of a cache of so many `ways` as of the set that most of its lines share. `kept` are
    the parts of the caches that keep it (`KEPT`).
    """
    around = dict(cover)
    touched = [operand.footprint(around) for operand in operands]
    moved = [list(touched) for _ in caches]
    for loop in loops:
        taken = [_taken(operands, touched, around, *cache) for cache in zip_longest(caches, ways)]
        around[loop.axis] = around[loop.axis] * loop.trips
        touched = [
            o.footprint(around) if loop.axis in o.axes else old for o, old in zip(operands, touched, strict=True)
        ]
        for number, cache_bytes in enumerate(caches):
            fits = taken[number] <= (kept[number] if kept else KEPT) * cache_bytes
            pairs = zip(operands, touched, moved[number], strict=True)
            moved[number] = [
                np.where(fits, now if loop.axis in operand.axes else before, before * loop.trips)
                for operand, now, before in pairs
            ]
    return [np.asarray(sum(one)) for one in moved]


def _taken(
    operands: Sequence[Operand], touched: Sequence[Array], cover: Mapping[str, Array], size: float, ways: int | None
) -> Array:
    """Bytes of a cache that what operands touch takes: of strided ones as much as of the set that most lines share."""
    found = np.asarray(sum(touched))
    for operand, own in zip(operands, touched, strict=True):
        if ways and operand.strides:
            a_set = operand.lines_in_fullest(cover, int(size) // ways)
            found = found + np.maximum(0.0, a_set * size / ways - own)
    return found
