"""Bytes that a nest of loops moves into a cache, as array expressions over a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import gcd, prod

import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...dialects.target import LINE_BYTES
from ..sketch import arrays as np
from ..sketch.expression import is_nowhere

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

    def spans(self, cover: Mapping[str, Array]) -> list[Array]:
        """Return the elements of each dimension from the first to the last that is touched."""
        return [reach(terms, cover) for terms in self.dimensions]

    def footprint(self, cover: Mapping[str, Array], spans: Sequence[Array] | None = None) -> Array:
        """Bytes touched while each axis runs over as many iterations as `cover` says, in lines where it is not packed.

        Places of a dimension are one run where the next begins in the lines of the one before: a row of which all is
        touched and the next row, or the taps of a kernel. `spans` are those of `cover`, where they are known.
        """
        *outer, last = self.spans(cover) if spans is None else spans
        touched = np.asarray(last * self.element_bytes)
        if self.is_packed:
            return np.asarray(prod(outer, start=touched))
        is_run: npt.NDArray[np.bool_] | None = None  # everywhere
        dimensions = zip(reversed(self.dimensions[:-1]), reversed(outer), self.strides[-2::-1], strict=True)
        for terms, span, stride in dimensions:
            places = _places(terms, span, cover) if self.skips else span
            whole = np.maximum(touched, LINE_BYTES)
            lines = whole if is_run is None else np.where(is_run, whole, touched)
            goes_on = (stride <= lines) & (places == span) | (span == 1)
            is_run = goes_on if is_run is None else is_run & goes_on
            touched = np.where(is_run, (span - 1.0) * stride + touched, places * lines)
        whole = np.maximum(touched, LINE_BYTES)
        return np.asarray(whole if is_run is None else np.where(is_run, whole, touched))

    def lines_a_set(
        self, cover: Mapping[str, Array], way_bytes: int, spans: Sequence[Array] | None = None
    ) -> tuple[Array, Array]:
        """Return the lines touched while axes run over `cover`, and how many of them share a set at least, `(n,)` each.

        A cache whose ways have `way_bytes` keeps lines so many bytes apart in one set: strides that are multiples of
        it, or share a large power of two with it, use few of its sets.
        """
        lines, starts, common = np.ones(()), np.ones(()), np.full((), way_bytes)
        outer = zip(self.dimensions[:-1], self.strides[:-1], (spans or self.spans(cover))[:-1], strict=True)
        for terms, stride, span in outer:
            places = _places(terms, span, cover)
            shared = gcd(stride, way_bytes)
            lines, starts = lines * places, starts * np.minimum(places, way_bytes / shared)
            common = np.where(places > 1, np.gcd(common, shared), common)
        sets = np.minimum(starts, way_bytes / np.maximum(common, LINE_BYTES))
        return np.asarray(lines), np.asarray(lines / sets)

    def lines_in_fullest(
        self, cover: Mapping[str, Array], way_bytes: int, spans: Sequence[Array] | None = None
    ) -> Array:
        """The lines of the set of a cache that has most of them, `(n,)`, where runs may be several lines long.

        0 where no set has twice what each would have if lines were dealt out evenly.
        """
        spans = spans or self.spans(cover)
        lines, together = self.lines_a_set(cover, way_bytes, spans)
        run = np.maximum(1.0, spans[-1] * self.element_bytes / LINE_BYTES)
        fullest = lines * run / np.minimum(way_bytes / LINE_BYTES, lines / together * run)
        return np.asarray(np.where(fullest > 2 * np.maximum(1.0, lines * run * LINE_BYTES / way_bytes), fullest, 0.0))


def reach(terms: tuple[tuple[str, int], ...], sizes: Mapping[str, Array]) -> Array:
    """Return the elements of a dimension from the first to the last that is touched while its axes run so far.

    `terms` are axes with their steps.
    """
    if len(terms) == 1 and abs(terms[0][1]) == 1:
        return np.asarray(sizes[terms[0][0]], dtype=np.float64)
    return np.asarray(sum((abs(step) * (sizes[axis] - 1.0) for axis, step in terms), 1.0))


def _places(terms: tuple[tuple[str, int], ...], span: Array, cover: Mapping[str, Array]) -> Array:
    """The places of a dimension that are touched, of so many from the first to the last."""
    return np.asarray(np.minimum(span, prod((cover[axis] for axis, _ in terms), start=np.ones(()))))


@dataclass(frozen=True)
class Loop:
    """A loop over an axis: how often it runs, as `(n,)`."""

    axis: str
    trips: Array


def in_all(moved: Sequence[Sequence[Array]]) -> list[Array]:
    """Return the bytes of all operands, `(n,)`, that `bytes_into` finds to be moved into each cache."""
    return [np.asarray(sum(each)) for each in moved]


def bytes_into(
    caches: Sequence[float],
    operands: Sequence[Operand],
    cover: Mapping[str, Array],
    loops: Sequence[Loop],
    ways: Sequence[int] = (),
    kept: Sequence[float] = (),
) -> list[list[Array]]:
    """Return the bytes of each operand, `(n,)`, that loops around a tile, innermost first, move into each cache.

    `cover` are the iterations of each axis in the tile. An operand that does not move along a loop is moved once for
    all its iterations where what one of them touches fits the cache; one that does has what iterations share once.
    What is touched takes as much of a cache of so many `ways` as of the set that most of its lines share. `kept` are
    the parts of the caches that keep it (`KEPT`).
    """
    around = dict(cover)
    spans = [operand.spans(around) for operand in operands]
    touched = [operand.footprint(around, own) for operand, own in zip(operands, spans, strict=True)]
    moved = [list(touched) for _ in caches]
    for loop in loops:
        fits = [
            _fits(operands, touched, around, spans, size, number_of_ways, (KEPT if part is None else part) * size)
            for size, number_of_ways, part in zip_longest(caches, ways, kept)
        ]
        around[loop.axis] = around[loop.axis] * loop.trips
        for number, operand in enumerate(operands):
            if loop.axis in operand.axes:
                spans[number] = operand.spans(around)
                touched[number] = operand.footprint(around, spans[number])
        for level, fitting in enumerate(fits):
            again = np.where(fitting, 1.0, loop.trips)
            moved[level] = [
                np.where(fitting, now, before * loop.trips) if loop.axis in operand.axes else before * again
                for operand, now, before in zip(operands, touched, moved[level], strict=True)
            ]
    return moved


def _fits(
    operands: Sequence[Operand],
    touched: Sequence[Array],
    cover: Mapping[str, Array],
    spans: Sequence[Sequence[Array]],
    size: float,
    ways: int | None,
    kept_bytes: float,
) -> npt.NDArray[np.bool_]:
    """True where what operands touch takes no more of a cache than is kept.

    Strided ones take as much as of the set that most of their lines share, which is asked where the rest would fit.
    """
    found = np.asarray(sum(touched))
    if not ways or is_nowhere(found <= kept_bytes):
        return np.asarray(found <= kept_bytes)
    for operand, own, each in zip(operands, touched, spans, strict=True):
        if operand.strides:
            a_set = operand.lines_in_fullest(cover, int(size) // ways, each)
            found = found + np.maximum(0.0, a_set * size / ways - own)
    return np.asarray(found <= kept_bytes)
