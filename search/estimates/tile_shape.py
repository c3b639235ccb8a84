"""Shape of a reduction in tiles on a CPU, as array expressions over a population: what is counted, and limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

import numpy.typing as npt

from ...dialects.target import Target
from ..sketch import arrays as np
from ..sketch.hole import Columns, once
from .cache_traffic import Loop, Operand

Array = npt.NDArray[np.float64]

MOST_COPIES = 256
"""Multiply-adds of whole vectors that the innermost code writes out, at most. With 128 and 512 eight and six of 58
default schedules change, in 1.04 and 1.01 of the time (Zen 3)."""
MOST_WASTE = 1.6
"""Work done over work asked for, at most. With 1.3 and 2.5 five and three of 58 default schedules change, in 1.05 and
0.96 of the time (0.76 to 1.13, Zen 3)."""
MOST_WASTE_OVER_NARROWEST = 1.25
"""The same over what the narrowest vectors must do. With 1.1 none of 58 default schedules changes; with 1.6 two do, in
0.93 of the time (0.76 and 1.13, Zen 3)."""


@dataclass(frozen=True)
class TiledAxis:
    """A spatial axis and the names of its tile factors, from the middle to the innermost."""

    name: str
    extent: int
    middle: str
    inner: str


@dataclass(frozen=True)
class ReduceAxis:
    """A reduce axis; `middle` is empty where it is not blocked."""

    name: str
    extent: int
    middle: str
    unroll: str


@dataclass(frozen=True, kw_only=True)
class TileShape:
    """A tiled reduction: its axes with their holes, along which of them each operand moves, and what a tile has of all.

    `outer` are axes that are not tiled, and their extents. Axes that became lanes together are one axis here, under one
    name. Tasks are in the order of the vectors where these are `vector_first`, else of the rows.
    """

    target: Target
    outer: tuple[tuple[str, int], ...]
    rows: tuple[TiledAxis, ...]
    vector: TiledAxis
    lanes: str
    fewest_lanes: int
    reduce: tuple[ReduceAxis, ...]
    element_bytes: int
    operands: tuple[Operand, ...]
    vector_first: bool = False

    def limit_registers(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The accumulators of a register tile, what it reads in vectors, and one broadcast fit the registers."""
        return np.asarray(self._registers(c) <= self.target.vector_registers)

    @once
    def _registers(self, c: Columns) -> Array:
        vectors = c[self.vector.inner] * self._registers_a_vector(c)
        tile = self._row_tile(c) * vectors
        read = [self._loads(c, o, vectors.astype(np.float64)) for o in self.operands if self.vector.name in o.axes]
        again = [self._read_again(c, o) for o in self.operands if self.vector.name not in o.axes]
        return np.asarray(tile + np.sum(read, axis=0) + np.maximum(1, np.sum(again, axis=0)))

    @once
    def _read_again(self, c: Columns, operand: Operand) -> Array:
        """Elements that several of the steps written out read for all lanes: each is loaded once, and kept until then.

        Pixels that taps share, with lanes along channels: of 3 taps for 14 pixels in a row 16 are kept beside the 28
        sums, of which LLVM spills some in each step (512x28x28 by 2: 44 GF/s, 100 of 14 sums; one core of an Emerald
        Rapids).
        """
        cover = self._register_tile(c) | {a.name: c[a.unroll].astype(np.float64) for a in self.reduce}
        reads, elements = np.ones(len(c[self.lanes])), np.ones(len(c[self.lanes]))
        for terms in operand.dimensions:
            places = prod((cover[axis] for axis, _ in terms), start=np.ones(()))
            apart = gcd(*(step for _, step in terms)) or 1
            span = 1.0 + sum(abs(step) // apart * (cover[axis] - 1.0) for axis, step in terms)
            reads, elements = reads * places, elements * np.minimum(places, span)
        return np.asarray(np.minimum(elements, reads - elements))

    def limit_code(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The replicated body stays within a few hundred multiply-adds."""
        return np.asarray(self._row_tile(c) * c[self.vector.inner] * self._unrolled(c) <= MOST_COPIES)

    def limit_waste(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tails add not too much to the work, or little to what the narrowest vectors must, and no factor is idle."""
        narrowest = -(-self.vector.extent // self.fewest_lanes) * self.fewest_lanes / self.vector.extent
        mask = self._waste(c) <= max(MOST_WASTE, MOST_WASTE_OVER_NARROWEST * narrowest)
        for axis in self.rows:
            mask &= c[axis.inner] * c[axis.middle] < 2 * axis.extent
        span = c[self.vector.inner] * c[self.lanes]
        mask &= (c[self.vector.middle] == 1) | (span * c[self.vector.middle] < 2 * self.vector.extent)
        mask &= (c[self.vector.inner] == 1) | (c[self.lanes] * (c[self.vector.inner] - 1) < self.vector.extent)
        return np.asarray(mask)

    @once
    def _registers_a_vector(self, c: Columns) -> npt.NDArray[np.int64]:
        return np.maximum(1, c[self.lanes] * self.element_bytes // self.target.vector_bytes)

    @once
    def _row_tile(self, c: Columns) -> npt.NDArray[np.int64]:
        return prod((c[axis.inner] for axis in self.rows), start=np.ones_like(c[self.lanes]))

    @once
    def _unrolled(self, c: Columns) -> npt.NDArray[np.int64]:
        return prod((c[axis.unroll] for axis in self.reduce), start=np.ones_like(c[self.lanes]))

    @once
    def _waste(self, c: Columns) -> Array:
        """Work done over work asked for."""
        waste = np.ones(len(c[self.lanes]))
        for axis in self.rows:
            tile = c[axis.inner]
            waste = waste * (-(-axis.extent // tile) * tile / axis.extent)
        step = c[self.vector.inner] * c[self.lanes]
        return np.asarray(waste * (-(-self.vector.extent // step) * step / self.vector.extent))

    @once
    def _tasks(self, c: Columns) -> Array:
        tasks = np.full(len(c[self.lanes]), float(prod(extent for _, extent in self.outer)))
        for axis in self.rows:
            tasks = tasks * -(-axis.extent // (c[axis.middle] * c[axis.inner]))
        step = c[self.vector.middle] * c[self.vector.inner] * c[self.lanes]
        return np.asarray(tasks * -(-self.vector.extent // step))

    def _register_tiles(self, c: Columns) -> Array:
        """Register tiles that are computed: cache tiles are trimmed to their axes when they are compiled."""
        tiles = np.full(len(c[self.lanes]), float(prod(extent for _, extent in self.outer)))
        for axis in self.rows:
            tiles = tiles * -(-axis.extent // c[axis.inner])
        return np.asarray(tiles * -(-self.vector.extent // (c[self.vector.inner] * c[self.lanes])))

    @once
    def _depth(self, c: Columns) -> tuple[Array, Array]:
        """Reduction steps in all, and between two visits of an accumulator."""
        total = np.ones(len(c[self.lanes]))
        block = np.ones(len(c[self.lanes]))
        for axis in self.reduce:
            total = total * axis.extent
            block = block * (np.minimum(c[axis.middle] * c[axis.unroll], axis.extent) if axis.middle else axis.extent)
        return total, block

    def _loads(self, c: Columns, operand: Operand, vectors: Array) -> Array:
        """Loads of an operand for one reduction step of the register tile."""
        loads = vectors.copy() if self.vector.name in operand.axes else np.ones(len(vectors))
        for axis in self.rows:
            if axis.name in operand.axes:
                loads = loads * c[axis.inner]
        return loads

    @once
    def _register_tile(self, c: Columns) -> dict[str, Array]:
        """The iterations of each axis in one reduction step of a register tile."""
        one = np.ones(len(c[self.lanes]))
        cover = {name: one for name, _ in self.outer} | {axis.name: one for axis in self.reduce}
        cover |= {axis.name: c[axis.inner] * one for axis in self.rows}
        return cover | {self.vector.name: c[self.vector.inner] * c[self.lanes] * one}

    def _loops(self, c: Columns) -> list[Loop]:
        """The loops around a register tile, the innermost first: steps, cache tile, blocks of steps, tasks."""
        one = np.ones(len(c[self.lanes]))
        blocks = [(a, np.minimum(c[a.middle] * c[a.unroll], a.extent) if a.middle else a.extent) for a in self.reduce]
        width = c[self.vector.middle] * c[self.vector.inner] * c[self.lanes]
        vectors = [Loop(self.vector.name, np.ceil(self.vector.extent / (width * one)))]
        rows = [Loop(a.name, np.ceil(a.extent / (c[a.middle] * c[a.inner] * one))) for a in reversed(self.rows)]
        return [
            *(Loop(axis.name, block * one) for axis, block in reversed(blocks)),
            *(Loop(axis.name, c[axis.middle] * one) for axis in reversed(self.rows)),
            Loop(self.vector.name, c[self.vector.middle] * one),
            *(Loop(axis.name, np.ceil(axis.extent / (block * one))) for axis, block in reversed(blocks)),
            *(rows + vectors if self.vector_first else vectors + rows),
            *(Loop(name, extent * one) for name, extent in reversed(self.outer)),
        ]

    @property
    def _all(self) -> dict[str, Array]:
        """The iterations of each axis in all."""
        extents = dict(self.outer) | {axis.name: axis.extent for axis in self.rows}
        extents |= {self.vector.name: self.vector.extent} | {axis.name: axis.extent for axis in self.reduce}
        return {name: np.asarray(float(extent)) for name, extent in extents.items()}
