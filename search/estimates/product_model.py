"""Estimate of a tiled product of two matrices on a CPU: what its register tiles take, cut ones too, and what is far.

Its numbers are of three sets of candidates: A, 2,358 of 40 products of 2 to 120 million multiply-adds, one core of an
Emerald Rapids on a quiet host; B, 1,500 of 45 products there, others beside; C, 850 of 23 products on a Zen 5 and 640
of 16 on an Emerald Rapids, others beside, the only ones that add up all terms at once. Of A what is estimated least
takes 1.033 times the fastest one's time in geometric mean, by the estimates of other reductions 1.23 times, by the cost
model that ships 1.15 times. Where a docstring compares values, figures are such factors of the set that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy.typing as npt

from ...dialects.target import LINE_BYTES
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .cache_traffic import KEPT, Operand, bytes_into, in_all
from .tile_model import (
    CYCLES_PER_S,
    FAR_L2,
    FAR_RUN_CYCLES,
    FMA_LATENCY,
    L1_WAY_BYTES,
    L2_WAYS,
    PANELS_KEPT,
    TURNED_CYCLES,
    TileModel,
)
from .tile_shape import Array

ISSUED_PER_CYCLE = 2.75
"""Multiply-adds and loads of whole vectors that begin in a cycle, together. Of C near-best candidates are estimated
0.071, 0.068 and 0.068 of their time off with 2.75, 3.2 and 4 on the Zen 5, 0.068, 0.067 and 0.067 on the Emerald
Rapids. Tiles of 14 x 2, 10 x 2, 12 x 2, 8 x 3, 9 x 3, 8 x 2 and 7 x 2 (rows x vectors) all take 162 to 170 us for 448
x 88 x 320 there, and 103 to 107 on the Zen 5: what decides between them is what caches deliver. With 3.2 most odd
products are in tiles of 14 x 2; of 22 that are chosen otherwise with this, most in tiles of 8 x 3 and 6 x 4, the
Emerald Rapids takes 1 / 1.04 of the time (1 / 0.89 to 1 / 1.28, seeds 1 and 2 of mixed operators and the lists), of 12
the Zen 5 the same (1 / 0.93 to 1 / 1.03); with two threads 777 x 1025 x 513 takes 3.8 ms in tiles of 6 x 4, 3.9 of 9 x
3, 4.6 of 14 x 2 there."""
CUT_BESIDE_OTHERS = 3.0
"""Factor of the steps of a tile of which the last vector is cut, where others of its cache tile lie beside it (a Zen 5:
688 x 279 x 64 in tiles of 4 rows x 6 vectors runs at 84 GFLOP/s in pairs, at 242 one by one, of 6 x 4 and 4 x 4 at 179
and 109 in pairs, of 8 x 3 at 229). Why is not known."""
STEP_CYCLES = 1.3
"""Cycles of the loop around the steps that are written out."""
VISIT_CYCLES = 1.0
"""Cycles to load and store a vector of sums for a block of steps, where the first-level cache has it."""
VISIT_L2_CYCLES, VISIT_FAR_CYCLES = 6.0, 12.0
"""The same beyond, where the sums of a cache tile take more than half of the first-level cache, or of the second; also
of results that are stored at once, of which the next tile's are then on other pages (an Emerald Rapids: 2112 x 1312 x
24 runs at 104 GFLOP/s down its columns, at 127 along its rows, 312 x 3187 x 64 at 116 and 137)."""
OUT_CYCLES = 17.0
"""Cycles to store a line of results that is copied from the sums of several register tiles: stores of one go on beside
the next one's sums. Of 256 x 64 x 3424 tiles of 12 rows x 2 vectors take 698 us, the fastest of several of them 834.
Twice as many where rows begin anywhere: each vector is of two lines."""
ACROSS_LINES = 1.8
"""Loads more of a vector in place whose rows do not begin at multiples of one."""
SHARED_SET_CYCLES = 0.4
"""Cycles to load a line again in each step, where rows of a register tile share a set that has not the ways for them:
of 14 rows a page apart, with 1024 terms, 11.5 ms, of 10 rows 7.7."""
FREE_WAYS = 10
"""Lines of a set of the first-level cache that are left to such rows, of 12 on current Intel cores (a choice)."""
L3_BYTES_PER_CYCLE, MEMORY_BYTES_PER_CYCLE = 12.0, 5.0
"""Bytes from the cache that cores share, and from memory, of each core: streams of 3 to 64 MB come at 24 GB/s, of 256
MB at 14, which is 8 and 5 bytes in a cycle of 3 GHz; with 8 and 16 from the shared cache the estimates rank 3,400
candidates of 80 products no better (the host of an H200)."""
SHARED_BYTES = 64 << 20
"""Of the cache that cores share, so much holds what one program reads again, at most: of 300 MB that a virtual machine
says it has (the same; 32 MB on another machine, others beside)."""
SPILLED_PANEL_CYCLES = 2.0
"""Cycles more to lay out an element in a tile, where its panel takes the whole second-level cache and more: it goes
out, and comes again. 128 x 768 to 3072 in panels of 1024 columns takes 7.0 ms, of 48 columns 6.0 (one core of an
Emerald Rapids that others use)."""
PAGES_APART = 1.5
"""Factor of that where vectors are read in place from rows a page apart or more, as nothing fetches them ahead, and a
part of it where several are on a page, and the more of a page is read at a time. With 1 and 2 what is estimated least
takes 1.043 and 1.047 times the fastest one's time, 1.040 with this; 128 x 124 x 3663 in tiles of 14 x 2 was estimated
at 1.2 ms with 1, and takes 2.1 to 2.7. In panels that are used once or twice 4 x 2000 x 3000 takes 1.9 ms, in place 512
columns at a time 0.4, 2 x 4097 x 4095 6.9 and 2.2, 13 x 3000 x 1700 3.9 and 0.9 (one core of a Zen 5; onnxruntime 2.7,
7.7 and 2.5).
"""
RUN_CYCLES, ASKED_RUN_CYCLES = (1.0, 30.0), (2.0, 5.0)
"""Cycles to begin a run of lines of a row that is read in place, on another page than the row before, from beyond the
first and from beyond the second-level cache, and the same where runs are asked for ahead (in part a choice). An Emerald
Rapids: 27 x 1001 x 984 in tiles of 14 x 2 vectors takes 850 us in blocks of 143 terms, 676 in blocks of 60, 524 with 8
tiles side by side; 64 x 2752 x 1664, asked for ahead, 7.6 ms in blocks of 1376 terms, 5.4 in blocks of 64. Of B 0, 10
and 20 from beyond the second-level cache give 1.051, 1.051 and 1.054, 4 and 8 from beyond the first 1.07; of C 0 and 1
from beyond the first, and 20 to 30 from beyond the second, rank as well."""
NEAR_PAGES = 64
"""Pages of a block of steps up to which the tiles beside go on with its runs from beyond the second-level cache (a
choice)."""
ROW_RUN_CYCLES = (0.0, FAR_RUN_CYCLES)
"""`RUN_CYCLES` of rows that are read element by element, whose runs are the terms of a block."""
KEPT_L1 = 0.85
"""Part of the first-level cache that keeps a panel: 0.5, 0.75 and 1 rank alike. A panel of 4 vectors by 143 terms is
three quarters of it, and stays."""
L2_BYTES_PER_CYCLE, WAITED_FOR_L2 = 64.0, 0.4
"""Bytes from the second-level cache in a cycle (Software Optimization Guides of Intel and AMD), and the part of them
that arithmetic does not hide: tiles of 4 rows x 6 vectors read twice as many as those of 8 x 3, and take 1.1 times as
long for 1024 cubed (a Zen 5)."""
WAITED_FOR, SHOWN = 0.4, 0.15
"""Part of what the shared cache and memory deliver that arithmetic does not hide, both 0.55 where arithmetic takes
longer (fitted), and the part of the shorter of both that is beside the longer one (a choice): else tiles of one row
each and of both are alike for 2 x 4097 x 154, and take 68 and 35 us (one core of a Zen 5)."""
ASKED_FOR = 0.3
"""Of that, what is left where the next block of a panel is asked for while one is in use: 2048 cubed in tiles of 64
rows and blocks of 128 terms takes 88.6 ms without, 73.9 with, of 128 rows 79.7 and 71.8, all registers alone 68 (one
core of a Zen 5)."""
PACKED_IN_CYCLES, PACKED_APART_CYCLES, PACKED_FAR_CYCLES = 0.45, 2.0, 4.0
"""Cycles to lay out an element in vectors or lines (fitted), apart from its neighbours (a choice), and more where it
goes through memory (a Zen 5: with 9 rows of 128 x 3077 were not laid out for 464 columns of weights, but these, 194
GFLOP/s, where rows as lanes run at 243)."""
FULL_REGISTERS = 1.2
"""Factor where sums, vectors and broadcasts take every register (fitted)."""
SHARPNESS = 8.0
"""Power of the norm by which arithmetic, loads and latency are joined: near their maximum, above it where two are."""


@dataclass(frozen=True, kw_only=True)
class ProductModel(TileModel):
    """The shape of a product of matrices; tiles that the edges cut take what is left of them.

    Sums that are complete `at_once` are stored by their register tile.
    """

    at_once: bool = False

    def seconds(self, c: Columns) -> Array:
        """A rough time: steps of all register tiles, visits of sums, results, packing, and what is far."""
        total, block = self._depth(c)
        visits = np.ceil(total / np.maximum(block, 1.0))
        steps, tiles, sums = self._tiled(c)
        work = steps * total * np.where(self._registers(c) >= self.target.vector_registers, FULL_REGISTERS, 1.0)
        work = work + tiles * total * (STEP_CYCLES / self._unrolled(c) + SHARED_SET_CYCLES * self._lines_lost(c))
        work = work + visits * sums * self._visit_cycles(c) + self._results(c)
        far, asked = self._far(c)
        work = work + WAITED_FOR_L2 * self._near(c)
        left = far - (1.0 - ASKED_FOR) * asked
        waited = np.where(self._panels_ahead(c), 0.0, WAITED_FOR * left + SHOWN * np.minimum(work, left))
        cycles = np.maximum(work, far) + waited + self._packing(c, visits) + self.turning
        tasks = self._tasks(c)
        cores = self.target.cores
        return np.asarray(cycles * (np.ceil(tasks / cores) / tasks) / CYCLES_PER_S)

    def _tiled(self, c: Columns) -> tuple[Array, Array, Array]:
        """Cycles of a step of all register tiles, how many of these there are, and their vectors of sums."""
        one = np.ones(len(c[self.lanes]))
        rows = [whole_and_cut(axis.extent, c[axis.inner] * one) for axis in self.rows]
        lanes, registers = c[self.lanes] * one, self._registers_a_vector(c) * one
        columns = whole_and_cut(self.vector.extent, c[self.vector.inner] * lanes)
        outer = float(prod(extent for _, extent in self.outer))
        steps, tiles, sums = 0.0 * one, 0.0 * one, 0.0 * one
        for *sides, (count, width) in product(*rows, columns):
            vectors = np.ceil(width / lanes) * registers
            height = prod((size for _, size in sides), start=one)
            number = prod((n for n, _ in sides), start=outer * count * one)
            slower = np.where((width % lanes > 0) & (c[self.vector.middle] > 1), CUT_BESIDE_OTHERS, 1.0)
            steps = steps + number * self._step(c, height, vectors) * slower
            tiles, sums = tiles + number, sums + number * height * vectors
        return steps, tiles, sums

    def _step(self, c: Columns, rows: Array, vectors: Array) -> Array:
        """Cycles of one step of a register tile."""
        fmas = rows * vectors
        loads = rows + vectors * (1.0 + ACROSS_LINES * self._is_across)
        issued = (fmas + loads + 2 / self._unrolled(c)) / ISSUED_PER_CYCLE
        parts = (fmas / self.target.fma_per_cycle, loads / self.target.loads_per_cycle, issued)
        return np.asarray(sum(one**SHARPNESS for one in (*parts, FMA_LATENCY)) ** (1 / SHARPNESS))

    @property
    def _is_across(self) -> bool:
        """True where vectors are read in place, and rows begin anywhere."""
        moving = [o for o in self.operands if self.vector.name in o.axes]
        return any(stride % self.target.vector_bytes for o in moving for stride in o.strides[:-1])

    @property
    def _pages_a_row(self) -> float:
        """Pages from a row to the next, one at most, where vectors are read in place; else 0."""
        moving = [o for o in self.operands if self.vector.name in o.axes]
        return max((min(1.0, stride / L1_WAY_BYTES) for o in moving for stride in o.strides[-2:-1]), default=0.0)

    def _lines_lost(self, c: Columns) -> Array:
        """Lines of rows of a register tile that share a set beyond its ways."""
        cover = self._register_tile(c) | {a.name: c[a.unroll].astype(np.float64) for a in self.reduce}
        lost = np.zeros(len(c[self.lanes]))
        for operand in self.operands:
            if operand.strides and self.vector.name not in operand.axes:
                lines, together = operand.lines_a_set(cover, L1_WAY_BYTES)
                lost = lost + np.where(together > FREE_WAYS, lines, 0.0)
        return lost

    def _visit_cycles(self, c: Columns) -> Array:
        sums_bytes = self._cache_tile(c) * self.element_bytes
        beyond = np.where(sums_bytes <= self.target.l2_bytes / 2, VISIT_L2_CYCLES, VISIT_FAR_CYCLES)
        return np.asarray(VISIT_CYCLES + np.where(sums_bytes <= self.target.l1_bytes / 2, 0.0, beyond))

    def _cache_tile(self, c: Columns) -> Array:
        """Results of a cache tile."""
        rows = prod(
            (np.minimum(c[a.middle] * c[a.inner], a.extent) for a in self.rows), start=np.ones(len(c[self.lanes]))
        )
        width = c[self.vector.inner] * c[self.lanes]
        return np.asarray(rows * np.minimum(c[self.vector.middle] * width, -(-self.vector.extent // width) * width))

    def _results(self, c: Columns) -> Array:
        """Cycles to store results that nothing hides."""
        if self.turned:
            return (OUT_CYCLES + TURNED_CYCLES) * self._turned_vectors(c)[0]
        several = (c[self.vector.middle] > 1) & (not self.at_once)
        for axis in () if self.at_once else self.rows:
            several = several | ((c[axis.middle] > 1) & (axis.extent > c[axis.inner]))
        results = prod(int(extent) for extent in self._all.values()) / prod(a.extent for a in self.reduce)
        lines = results * self.element_bytes / LINE_BYTES
        lines *= 1 + bool(self.vector.extent * self.element_bytes % self.target.vector_bytes)
        return np.asarray(np.where(several, OUT_CYCLES * lines, 0.0))

    def _far(self, c: Columns) -> tuple[Array, Array]:
        """Cycles of what comes from beyond the second-level cache, and of those what blocks of panels are asked for.

        What all fits a cache stays there between runs.
        """
        shared_bytes = min(self.target.l3_bytes_a_core, SHARED_BYTES)
        levels = [(self.target.l2_bytes, L3_BYTES_PER_CYCLE if shared_bytes else MEMORY_BYTES_PER_CYCLE)]
        levels += [(shared_bytes, MEMORY_BYTES_PER_CYCLE)] if shared_bytes else []
        touched = (*self.operands, self.result)
        ways = (L2_WAYS, 0)[: len(levels)]
        moved = bytes_into([size for size, _ in levels], touched, self._register_tile(c), self._loops(c), ways)
        once = sum(float(operand.footprint(self._all)) for operand in touched)
        found, asked = np.zeros(len(c[self.lanes])), np.zeros(len(c[self.lanes]))
        for each, (size, rate) in zip(moved, levels, strict=True):
            if once > KEPT * size:
                found = found + np.sum(each, axis=0) / rate
                asked = asked + sum(each[place] for place in self.blocks_asked) / rate
        found = found * self._apart(c) + self._begun(c)
        return np.asarray(found), np.where(self._block_kept(c), asked, 0.0)

    def _apart(self, c: Columns) -> Array:
        """Factor of what is far where vectors are read in place, a part of a page at a time."""
        moving = [o for o in self.operands if o.strides and self.vector.name in o.axes and self._has_runs(o)]
        part = self._run_bytes(c, moving[-1], True) / L1_WAY_BYTES if moving else np.zeros(len(c[self.lanes]))
        return np.asarray(1.0 + (PAGES_APART - 1.0) * self._pages_a_row * (1.0 - part))

    def _block_kept(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where the second-level cache keeps a block of a panel beside the next one."""
        _, block = self._depth(c)
        panel = block * c[self.vector.inner] * c[self.lanes] * self.element_bytes
        return np.asarray(2 * panel <= PANELS_KEPT * self.target.l2_bytes)

    def _near(self, c: Columns) -> Array:
        """Cycles of what comes from the second-level cache."""
        touched = (*self.operands, self.result)
        (moved,) = in_all(
            bytes_into([self.target.l1_bytes], touched, self._register_tile(c), self._loops(c), kept=(KEPT_L1,))
        )
        return np.asarray(moved / L2_BYTES_PER_CYCLE)

    def _begun(self, c: Columns) -> Array:
        """Cycles to begin runs of lines of rows that are read in place, and come from beyond a cache of the core's."""
        along = ASKED_RUN_CYCLES if self.asked else RUN_CYCLES
        sizes, found = (self.target.l1_bytes, self.target.l2_bytes), np.zeros(len(c[self.lanes]))
        for operand in self.operands:
            if len(operand.strides) < 2 or not self._has_runs(operand):
                continue
            cycles = along if self.vector.name in operand.axes else ROW_RUN_CYCLES
            moved = in_all(bytes_into(sizes, (operand,), self._register_tile(c), self._loops(c), (0, L2_WAYS)))
            once, apart = float(operand.footprint(self._all)), min(1.0, operand.strides[-2] / L1_WAY_BYTES)
            for place, (size, one) in enumerate(zip(sizes, moved, strict=True)):
                if once > KEPT * size:
                    found = found + apart * cycles[place] * one / self._run_bytes(c, operand, place > 0)
        return found

    def _has_runs(self, operand: Operand) -> bool:
        """True where neighbours in a row are lanes, or terms."""
        along = {self.vector.name, *(axis.name for axis in self.reduce)}
        return not along.isdisjoint(axis for axis, _ in operand.dimensions[-1])

    def _run_bytes(self, c: Columns, operand: Operand, is_far: bool) -> Array:
        """Bytes of a run of a row's lines: across the tiles beside, or along the terms of a block."""
        _, block = self._depth(c)
        if self.vector.name not in operand.axes:
            return np.asarray(np.clip(block * self.element_bytes, LINE_BYTES, L1_WAY_BYTES))
        near = self._pages_a_row * block <= NEAR_PAGES
        wide = np.minimum(c[self.vector.inner] * c[self.lanes] * self.element_bytes, L1_WAY_BYTES)
        return np.asarray(np.minimum(wide * (np.where(near, c[self.vector.middle], 1) if is_far else 1), L1_WAY_BYTES))

    def _packing(self, c: Columns, visits: Array) -> Array:
        """Cycles to lay operands out, in each tile and before all of them."""
        each = PACKED_IN_CYCLES if self.pack_cycles < PACKED_APART_CYCLES else PACKED_APART_CYCLES
        found = np.zeros(len(c[self.lanes]))
        if self.panels:
            elements = self._packed_in_tiles(c) / self.pack_cycles
            spilled = np.clip(elements * self.element_bytes / max(1, self.target.l2_bytes) - KEPT, 0.0, KEPT) / KEPT
            found = found + elements * (each + SPILLED_PANEL_CYCLES * spilled) * visits * self._tasks(c)
        far = min(1.0, self.packed * self.element_bytes / (FAR_L2 * max(1, self.target.l2_bytes)))
        return np.asarray(found + self.packed * (each + PACKED_FAR_CYCLES * far))


def whole_and_cut(extent: Array | int, size: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The numbers of whole tiles and of cut ones along an axis, one at most, and how long they are."""
    left = extent % size
    return (extent // size, size), (np.sign(left), left)
