"""Analytic model of a CPU tile, as array expressions over a population: an estimate in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy.typing as npt

from ...dialects.target import LINE_BYTES
from ...passes.lower._padded_tiles import MOST_VERSIONS
from ..sketch import arrays as np
from ..sketch.hole import Columns
from ..structure.padding import PaddedWindow
from .cache_traffic import KEPT, Operand, bytes_into, in_all
from .row_reuse import RowWindow, row_windows
from .tile_shape import Array, TiledAxis, TileShape

CYCLES_PER_S = 3.0e9
"""A clock to turn cycles into seconds with; only ratios matter."""
FMA_LATENCY = 4
"""Cycles from an FMA's operands to its result on current x86 cores (Intel and AMD optimisation manuals)."""
L2_BYTES_PER_CYCLE = 32
"""Bytes from the second-level cache in a cycle (Software Optimization Guide for AMD family 19h; Intel's is twice as
wide, and as fast where it is measured)."""
L1_WAY_BYTES = 4096
"""Of the first-level cache: a page, by which caches are indexed before addresses are translated (the same manuals)."""
L2_WAYS = 16
"""Lines of a set of the second-level cache on current Intel cores; on AMD's there are 8 (the same manuals). Rows that
are 8 KiB apart share few of its sets: of 2048 cubed 1024 rows by 128 terms, half a megabyte, came from further away for
each 32 columns, at 80 to 90 GF/s; packed 115 to 128, MKL 140 in the same run (an Emerald Rapids)."""
L3_BYTES_PER_CYCLE = 8
"""Bytes from the cache that cores share, of each: a quarter of what the same guide says. Of 4, 8 and 16 the first two
chose candidates 9% from the best of 16, in geometric mean over ten operators, and the last 20% (Zen 3, one core)."""
MEMORY_BYTES_PER_CYCLE = 5
"""Bytes from memory, of one core: about 16 GB/s (a Zen 3, other work beside) at 3.2 GHz, a clock that is assumed."""
PACK_CYCLES = 1.0
"""Cycles to lay out one element anew where it stays in the caches (measured on a Zen 5). What lies in lines along other
axes and is transposed in registers takes 0.5 to 0.9 (an Emerald Rapids, at an assumed 2.3 GHz)."""
APART_PACK_CYCLES = 5.0
"""The same where neither neighbouring lanes nor terms are neighbours in memory. Fitted, not measured by itself: what
three shown operators on a Zen 3 took beyond the estimate with 1 comes to 2, 6 and 9. With 1 for what is packed ahead of
all tiles, a convolution of 3 channels with stride 2 took 2.7 ms, so it takes 1.2 (Emerald Rapids)."""
ACROSS_PACK_CYCLES = 4.0
"""The same where lanes go on in the next row of pixels, which begins elsewhere: parts of several rows are joined in a
vector. With 1 what is so was estimated at 1 / 1.8 of its time beside other lanes (32 dilated, plain and grouped layers,
a core of a Zen 5): 192x15x15 to 160, 3x3 by 6, takes 3.2 cycles, 112x56x56 3.5, 4x256x28x28 7."""
TURNED_PIXEL_CYCLES = 0.5
"""The same of pixels whose channels become lanes, line by line in registers (8x512x20x20 apart, 5x5/2, takes 0.45 ms in
all on a core of a Zen 5, 0.13 of these by what multiply-adds take)."""
FAR_PACK_CYCLES = 3.0
"""Cycles more for an element that goes through memory, fresh pages included (measured on a Zen 5)."""
LOOP_CYCLES = 2.0
"""Cycles of a loop around the steps that are written out. With 1 and 4 four and eight of 58 default schedules change,
in 1.03 and 0.96 of the time (Zen 3)."""
STORE_CYCLES = 2.0
"""Cycles to load and store an accumulator. With 1 and 4 one and six of 58 default schedules change, in 0.80 and 0.99 of
the time (Zen 3)."""
TAP_STORE_CYCLES = 1.0
"""Cycles to store an accumulator and load it anew between two taps, where nothing waits for either: one store, beside
which two loads are (of 256x33x33 by 6 with 2, 4 and 8 channels between taps, 5.2, 4.7 and 4.4 ms, 0.7 on a Zen 5)."""
ASKED_CYCLES = 1.0
"""Cycles to ask whether a pixel is padding: where it is read from is chosen, it is loaded and broadcast, three
instructions beside its multiply-adds (a count, not a measurement)."""
UNPACKED = 1.1
"""Factor where operands along the vectors are read where they are. With 1 and 1.3 three of 58 default schedules change
each, and take 1.39 and 1.23 of the time (Zen 3)."""
PADDED_INLINE = 1.1
"""Factor where padding is asked for in the innermost code. With 1 and 1.3 none of 58 default schedules changes (Zen 3):
it orders the candidates of a search."""
ALL_REGISTERS = 1.15
"""Factor where accumulators, vectors and a broadcast take every register. A pointwise convolution of 28x28x256 to 256
(Zen 3, one core) runs at 85 GF/s in tiles of 3 vectors x 4 rows, at 92 to 96 in those of 2 x 4 and of 2 x 5."""
SPILLED = 2.5
"""The same, once more, where tiles do not divide the rows: LLVM spills accumulators (33 GF/s where yy is in tiles of
16, 85 in tiles of 14; with 2 x 4 of them 95 and 96)."""
RAGGED = 1.35
"""Factor for each axis that several tiles around register tiles do not divide, beside the waste: of 28 rows in tiles of
2 x 5 or 2 x 3 1.28 and 1.15 beyond it, of 27 in 2 x 2 1.35, of 55 in 4 x 2 1.37, of 13 in 8 x 1 1.7. One tile that is
larger than its axis is trimmed when it is compiled, and register tiles alone are cut off as a whole."""
CUT_TWICE = 1.5
"""Factor where tiles leave two axes or more undivided: of 13x13x512 to 1000 columns tiles of 16 with 4 or 6 rows run at
26 to 30 GF/s, of 8 columns with 7 rows at 75, of 32 with 2 rows at 56. With 2 the choices for ResNet-18 take 61 ms
where they take 48, and 58 by the estimate without caches; those for MobileNet 16 each time, SqueezeNet 11 and 12."""
EASED = 0.5
"""Power of the factors of tails, of tiles that divide badly and of full register files (`RAGGED`, `CUT_TWICE`,
`SPILLED`, `ALL_REGISTERS`) where lanes are along channels. They were fitted before sums of cut tiles were kept in
registers. Of 180 candidates of 6 convolutions with such lanes estimates with 1, 0.5, 0.25 and 0 rank 0.47, 0.52, 0.54
and 0.54, and what is estimated least takes 1.078, 1.070, 1.070 and 1.068 times the best; of 256x50x50 the choice takes
32.8, 35.6 and 37.4 ms with 1, 0.5 and 0.25, of 256x33x33 dilated by 6 14.2, 13.4 and 14.9 (one core of an Emerald
Rapids, others beside)."""
WAITED = 0.5
"""Part of what caches deliver that arithmetic does not hide, where lanes are along channels: pixels of a tap lie apart,
and nothing fetches them ahead. Of 1,388 candidates of 48 convolutions (a host of an Emerald Rapids) what is estimated
least takes 1.37, 1.31, 1.28 and 1.30 times the best one with 0, 0.25, 0.5 and 1; of dilated ones 1.31, 1.21, 1.21 and
1.17."""
TURNED_CYCLES = 10.0
"""Cycles to turn a vector of results whose lanes are along another axis: of four such vectors sixteen loads of a part,
twelve instructions that join these and eight that shuffle (a count, not a measurement)."""
TURNED_RUN_CYCLES = 20.0
"""Cycles to begin a run of such vectors, which is on another page than the one before: with rows of 14 pixels of the
stem of a ResNet, 64 channels of 112x112, 3.07 ms, with whole rows 2.65, one by one 3.77 (an Emerald Rapids; 1.25, 1.07
and 1.37 on a Zen 5)."""
STREAMED_L2_BYTES_PER_CYCLE = 96
"""Bytes from the second-level cache in a cycle that a sum waits for where it is of consecutive channels alone and its
filters are packed ahead: more than the cache delivers (64), as both are read line after line and fetched ahead. Of 550
candidates of 21 layers (two threads of an Emerald Rapids) what is estimated least takes 1.126, 1.076, 1.073 and 1.068
times the best one with 32, 48, 64 and 96. Windows in panels that are asked for ahead have not: by it 14x14x512 3x3/2 is
in tiles of 7 pixels, not 14, and takes 1.2 times as long (two threads of an Emerald Rapids)."""
STREAMED_STORE_CYCLES, STREAMED_ONCE_CYCLES = 8.0, 2.0
"""Cycles to load and store one of their accumulators, which come from the second-level cache: 1.068, 1.061 and 1.057
times the best one with 2, 4 and 8 (as above). Where a register tile is a task of all terms they stay in registers: 32
channels of 112x112 to 64 run at 100 GF/s so, at 79 with four such tiles a task (one core, seconds of the CPU)."""
STREAMED_KEPT = 0.65
"""Part of the second-level cache that keeps their filters, a megabyte of which are 256 channels to 1024: estimates rank
0.59 with 0.5, 0.65 with this and with 0.75 and 0.9 (as above)."""
STREAMED_LOAD_CYCLES = 0.8
"""Cycles of a load from the first-level cache that their arithmetic does not hide: what is estimated least takes 1.057,
1.051, 1.035 and 1.038 times the best one with 0, 0.3, 0.5 and 0.8 (as above). So tiles of 4 vectors by 6 pixels, of 10
loads, come before those of 2 by 14, of 16, as 18 of 19 layers have it on one core (seconds of the CPU)."""
STREAMED_STEP_CYCLES = 1.0
"""Cycles around the arithmetic of a step. Of these candidates, few of which have small tiles, what is estimated least
takes 1.035, 1.042 and 1.046 times the best one with 0, 1 and 2; with 0 tiles of 4 vectors by 4 pixels are chosen, of
which 384 channels of 31x31 to 128 run at 88 GF/s, at 106 in tiles of 4 by 6 (one core, seconds of the CPU)."""
PANELS_KEPT = 0.8
"""Part of the second-level cache that keeps a panel of filters in use and the next one, which is asked for ahead,
beside pixels and results (a choice): by hand panels of a quarter, three eighths and half of it are equally fast, two of
half are all of it (7x7x2048 to 512 on a Zen 5, whose cache has 1 MB)."""
FAR_RUN_CYCLES = 90.0
"""Cycles to begin a run of lines on another page, which come from beyond the second-level cache and are read element by
element: nothing fetches them ahead (57 x 1776 to 1600 with lanes along rows takes 1.5 ms in blocks of 888 terms of the
weight, 3.1 in blocks of 48, a Zen 5: 110 cycles a run; 128 x 3384 to 640 runs at 148 GFLOP/s in blocks of 376, at 95 in
blocks of 188, an Emerald Rapids). With it and with turned results charged by the line (`stored_apart_cycles`), which
alone change three, 15 of 210 cases are chosen otherwise for a Zen 4, and take 1 / 1.10 of the time there: 1024x14x14 to
2048 with stride 2, whose filters were read 32 at a time, 2.8 ms for 5.2, 512x3199 k3/2 27 for 44 to 52, the others 1 /
0.95 to 1 / 1.06, but for 18x64x64 to 36 with stride 2 (1 / 0.85)."""
FAR_L2 = 8
"""Panels of so many second-level caches go through memory whole. With 2 three of 58 default schedules change, in 1.01
of the time; with 32 none (Zen 3)."""


@dataclass(frozen=True, kw_only=True)
class TileModel(TileShape):
    """Time that candidates of a tiled reduction take, by its shape and by how operands and results are moved.

    `packed` are the elements that are laid out anew before the reduction, all at once, `pack_cycles` the cycles of one,
    in a tile or before; `turning` are the cycles of an epilogue that writes along another axis, `copied` those of one
    core for operands that are padded or laid out by phases before all tiles. `panels` are the places of the operands
    that each tile packs for itself, `pixels` that of one which it lays out along channels; axes that are `whole` are
    extended to whole register tiles. Sets of the second-level cache are counted where it `asks_sets`, which is where
    rows may be packed: elsewhere the model that ships chose worse with them (a dilated convolution of 14x14x2048 34.8
    ms for 24.9). Along `windows` a tile leaves
    out the steps in which it reads nothing but padding. Where estimates alone choose among candidates they are `sure`:
    `EASED`, with sets of both caches asked, of trimmed tiles what is left, and `WAITED` for what caches deliver.
    Results that are `turned` are stored along the last rows. What moves along the lanes may be `asked` for ahead.
    `blocks_asked` are the places of operands of whose panels the next block of steps is asked for while one is in use.
    One whose operands lie line after line is `streamed`.
    """

    panel: str
    result: Operand
    padded_inline: bool
    pack_cycles: float = PACK_CYCLES
    packed: int = 0
    turning: float = 0.0
    copied: float = 0.0
    panels: tuple[int, ...] = ()
    pixels: int | None = None
    whole: frozenset[str] = frozenset()
    asks_sets: bool = False
    windows: tuple[PaddedWindow, ...] = ()
    sure: bool = False
    turned: bool = False
    asked: bool = False
    streamed: bool = False
    panels_asked: bool = False
    blocks_asked: tuple[int, ...] = ()

    def _slowed(self, c: Columns) -> Array:
        """Factor of code that keeps no register free, and of tiles that do not divide what they are of."""
        sides: list[tuple[TiledAxis, npt.NDArray[np.int64]]] = [(axis, c[axis.inner]) for axis in self.rows]
        sides.append((self.vector, c[self.vector.inner] * c[self.lanes]))
        asked = [axis.name not in self.whole for axis, _ in sides]
        left = [(axis.extent % (c[axis.middle] * step) != 0) & a for a, (axis, step) in zip(asked, sides, strict=True)]
        several = [(c[axis.middle] > 1) & (c[axis.middle] * step < axis.extent) for axis, step in sides]
        between = [a & b for a, b in zip(left, several, strict=True)]
        parts = zip(between, asked, sides, strict=True)
        cut = [a | ((axis.extent % step != 0) & b) for a, b, (axis, step) in parts]
        ragged = RAGGED ** np.sum(between, axis=0) * np.where(np.sum(cut, axis=0) > 1, CUT_TWICE, 1.0)
        every = self._registers(c) >= self.target.vector_registers
        spilled = every & np.any([*left[:-1], np.zeros_like(every)], axis=0)
        slowed = np.asarray(ragged * np.where(every, ALL_REGISTERS, 1.0) * np.where(spilled, SPILLED, 1.0))
        return slowed**EASED if self.sure else slowed

    def _transfers(self, c: Columns) -> tuple[Array, Array]:
        """Cycles that the caches take to deliver what the first-level cache does not keep, and what is asked ahead."""
        cover, loops, touched = self._register_tile(c), self._loops(c), (*self.operands, self.result)
        levels = [(self.target.l1_bytes, STREAMED_L2_BYTES_PER_CYCLE if self.streamed else L2_BYTES_PER_CYCLE)]
        if self.target.l3_bytes:
            shared_bytes = self.target.l3_bytes_a_core
            levels += [(self.target.l2_bytes, L3_BYTES_PER_CYCLE), (shared_bytes, MEMORY_BYTES_PER_CYCLE)]
        else:
            levels += [(self.target.l2_bytes, MEMORY_BYTES_PER_CYCLE)]
        of_l1 = self.target.l1_bytes // L1_WAY_BYTES if self.sure else 0
        ways = (of_l1, L2_WAYS if self.asks_sets or self.sure else 0, 0)[: len(levels)]
        kept = (KEPT, STREAMED_KEPT, KEPT)[: len(levels)] if self.streamed else ()
        each = bytes_into([size for size, _ in levels], touched, cover, loops, ways, kept)
        near, *far = [one / rate for one, (_, rate) in zip(in_all(each), levels, strict=True)]
        ahead = self._panels_ahead(c)
        beyond = np.asarray(sum(far)) + self._runs_begun(c, each[1])
        return np.asarray(near + np.where(ahead, 0.0, beyond)), np.where(ahead, beyond, 0.0)

    def _runs_begun(self, c: Columns, moved: Sequence[Array]) -> Array:
        """Cycles to begin runs of lines on other pages, of operands that are read element by element from far.

        `moved` are the bytes of each operand that come from beyond the second-level cache, where all of it has no room.
        """
        steps = [np.minimum(c[a.middle] * c[a.unroll], a.extent) if a.middle else a.extent for a in self.reduce]
        cover = self._register_tile(c)
        cover = cover | {a.name: cover[a.name] * step for a, step in zip(self.reduce, steps, strict=True)}
        cycles = np.zeros(len(c[self.lanes]))
        for operand, found in zip(self.operands, moved, strict=False):
            near = sum(stride < L1_WAY_BYTES for stride in operand.strides)
            if self.vector.name in operand.axes or near == len(operand.strides):
                continue
            if operand.footprint(self._all) > KEPT * self.target.l2_bytes:
                on_page = replace(operand, dimensions=operand.dimensions[-near:], strides=operand.strides[-near:])
                cycles = cycles + FAR_RUN_CYCLES * found / np.minimum(on_page.footprint(cover), L1_WAY_BYTES)
        return cycles

    def _panels_ahead(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where panels are asked for ahead, and the second-level cache keeps that in use beside the next one."""
        if not self.panels_asked:
            return np.zeros(len(c[self.lanes]), dtype=bool)
        total, _ = self._depth(c)
        panel = total * c[self.vector.inner] * c[self.lanes] * self.element_bytes
        return np.asarray(2 * panel <= PANELS_KEPT * self.target.l2_bytes)

    def _lost(self, c: Columns) -> Array:
        """Cycles of a step to fetch lines anew that the innermost loop moves along, where their sets do not keep them.

        A dilated convolution of 32x32x512, 36 places of which fall into two sets, ran at 25 GF/s, one that reads 12
        places at once at 42. What the second-level cache holds comes again as fast as it is used: of 7x7x512 the
        same change of taps took 7.3 ms instead of 5.8 (Zen 3, one core).
        """
        inner, ways = self.reduce[-1], self.target.l1_bytes // L1_WAY_BYTES
        cover = self._register_tile(c) | {a.name: c[a.unroll].astype(np.float64) for a in self.reduce}
        bytes_lost = np.zeros(len(c[self.lanes]))
        for operand in self.operands:
            steps = dict(operand.dimensions[-1])
            if (
                not operand.strides
                or inner.name not in steps
                or operand.footprint(self._all) <= KEPT * self.target.l2_bytes
            ):
                continue
            lines, together = operand.lines_a_set(cover, L1_WAY_BYTES)
            left = LINE_BYTES - np.minimum(LINE_BYTES, cover[inner.name] * steps[inner.name] * operand.element_bytes)
            bytes_lost = bytes_lost + np.where(together > ways, lines * left, 0.0)
        return np.asarray(bytes_lost / self._unrolled(c) / L2_BYTES_PER_CYCLE)

    def seconds(self, c: Columns) -> Array:
        """A rough time: arithmetic of the register tile beside its loads and what the caches deliver, tails, balance.

        Arithmetic goes on while data are on their way, and loads, caches and memory deliver one after the other (the
        Execution-Cache-Memory model of Hager, Treibig and Wellein).
        """
        rows = self._row_tile(c).astype(np.float64)
        vectors = (c[self.vector.inner] * self._registers_a_vector(c)).astype(np.float64)
        total, block = self._depth(c)
        tasks = self._tasks(c)
        middle = c[self.vector.middle].astype(np.float64)
        for axis in self.rows:
            middle = middle * c[axis.middle]
        fmas = rows * vectors
        steps = (self._register_tiles(c) if self.sure else tasks * middle) * total
        loads = self._loaded(c, vectors)
        slowed = steps * self._slowed(c)
        shown = STREAMED_LOAD_CYCLES * loads + STREAMED_STEP_CYCLES if self.streamed else 0.0
        arithmetic = slowed * (np.maximum(fmas / self.target.fma_per_cycle, FMA_LATENCY) + shown)
        transfers, ahead = self._transfers(c)
        moves = slowed * loads / self.target.loads_per_cycle + transfers + steps * self._lost(c)
        stored = self._stored((middle == 1) & (block >= total))
        around = (
            LOOP_CYCLES / self._unrolled(c)
            + stored * fmas / np.maximum(block, 1.0)
            + self._between_taps(c, block) * fmas
            + self._kept_apart(c, vectors, fmas)
        )
        balance = np.ceil(tasks / self.target.cores) * self.target.cores / tasks
        waited = WAITED * transfers if self.sure and self.pixels is None else 0.0
        taken = np.maximum(np.maximum(arithmetic, moves), ahead) + waited + steps * around
        cycles = taken * self._taken(c) * balance / self.target.cores
        if self.panels:
            cycles = cycles + self._packed_in_tiles(c) * (total / np.maximum(block, 1.0)) * tasks / self.target.cores
        if self.pixels is not None:
            cycles = cycles + self._pixels_turned(c, self.pixels) * tasks / self.target.cores
        if self.panel == "direct":
            cycles = cycles * UNPACKED
        far = min(1.0, self.packed * self.element_bytes / (FAR_L2 * max(1, self.target.l2_bytes)))
        cycles = cycles + self.packed * (self.pack_cycles + FAR_PACK_CYCLES * far) / self.target.cores
        if self.padded_inline:
            cycles = cycles * PADDED_INLINE
        cycles = cycles + (self.turning + self.copied) / self.target.cores
        if self.turned:
            turned, runs = self._turned_vectors(c)
            cycles = cycles + (TURNED_CYCLES * turned + TURNED_RUN_CYCLES * runs) / self.target.cores
        return np.asarray(cycles / CYCLES_PER_S)

    def _row_windows(self, operand: Operand) -> list[RowWindow]:
        """The windows along rows of an operand that is read in vectors, each for one row of sums alone.

        Vectors that several filters use are few beside the arithmetic: there this decides between equals, and what is
        chosen is another one for better and worse (32 channels of 32x32x32 to 64 40 ms for 18, one core of a Zen 5).
        """
        if self.vector.name not in operand.axes or any(axis.name not in operand.axes for axis in self.rows):
            return []
        rows = {axis.name: axis.inner for axis in self.rows}
        return row_windows(operand, rows, [(axis.name, axis.unroll) for axis in self.reduce])

    def _loaded(self, c: Columns, vectors: Array) -> Array:
        """Loads of a reduction step of the register tile, those of rows that taps share once."""
        loads = np.zeros(len(vectors))
        for operand in self.operands:
            parts = [window.part_loaded(c) for window in self._row_windows(operand)]
            loads = loads + prod(parts, start=self._loads(c, operand, vectors))
        return np.asarray(loads)

    def _kept_apart(self, c: Columns, vectors: Array, sums: Array) -> Array:
        """Cycles of a step for vectors that are read again by the next tap, and that no register keeps."""
        free, cycles = self.target.vector_registers - 1 - sums, np.zeros(len(sums))
        for operand in self.operands:
            for window in self._row_windows(operand):
                cycles = cycles + window.kept_cycles(c, self._loads(c, operand, vectors), free)
        return np.asarray(cycles)

    def _turned_vectors(self, c: Columns) -> tuple[Array, Array]:
        """Vectors of results that are stored along the last rows, and runs of them, which are rows of cache tiles."""
        *others, last = self.rows
        tile = np.minimum(c[last.middle] * c[last.inner], last.extent)
        rest = prod(extent for _, extent in self.outer) * prod(axis.extent for axis in others) * self.vector.extent
        runs = np.ceil(last.extent / tile) * rest
        return np.asarray(runs * np.ceil(tile / (self.target.vector_bytes // self.element_bytes))), np.asarray(runs)

    def _stored(self, once: npt.NDArray[np.bool_]) -> Array:
        """Cycles to load and store an accumulator, which stays in a register where it is done at `once`."""
        if not self.streamed:
            return np.full(len(once), STORE_CYCLES)
        return np.where(once, STREAMED_ONCE_CYCLES, STREAMED_STORE_CYCLES)

    def _between_taps(self, c: Columns, block: Array) -> Array:
        """Cycles of a step to store an accumulator and load it anew for each tap that tiles may leave out."""
        taps = {window.tap for window in self.windows}
        around = [axis for axis in self.reduce[:-1] if axis.name in taps]
        begun = prod([axis.extent / c[axis.unroll] for axis in around], start=np.ones(len(block)))
        return np.asarray((begun - 1.0) * TAP_STORE_CYCLES / np.maximum(block, 1.0))

    def _taken(self, c: Columns) -> Array:
        """The part of steps in which a register tile reads anything but padding, one step of all tiles at least.

        Where few tiles read padding in part each of these has code of its own, which leaves the padding out: such a
        step takes its part of the products, and the latency of one at least. Where many do each pixel is asked for.
        """
        tiles = {axis.name: c[axis.inner] for axis in self.rows}
        tiles[self.vector.name] = c[self.vector.inner] * c[self.lanes]
        taps = {axis.name: c[axis.unroll] for axis in self.reduce}
        one = np.ones(len(c[self.lanes]), dtype=np.int64)  # of an axis whose places are tasks
        total, _ = self._depth(c)
        each = [(w, tiles.get(w.spatial, one), taps[w.tap]) for w in self.windows if w.tap in taps]
        unit = np.ones(len(total))
        some = prod([w.parts(tile, step) for w, tile, step in each], start=unit)
        whole = prod([w.whole(tile, step) for w, tile, step in each], start=unit)
        read = prod([w.read(tile, step) for w, tile, step in each], start=unit)
        versions = prod([w.cuts(tile, step) + 1.0 for w, tile, step in each], start=unit) - 1.0
        vectors = c[self.vector.inner] * self._registers_a_vector(c)
        fmas = self._row_tile(c) * vectors * self._unrolled(c)
        shortest = np.minimum(1.0, FMA_LATENCY * self.target.fma_per_cycle / fmas)
        parted = np.maximum(read, whole + shortest * (some - whole))
        asked = some + (some - whole) * ASKED_CYCLES * self.target.fma_per_cycle / vectors
        least = 1.0 / (self._register_tiles(c) * total)
        return np.asarray(np.maximum(np.where(versions <= MOST_VERSIONS, parted, asked), least))

    def _task(self, c: Columns) -> dict[str, Array]:
        """The iterations of each axis in one block of steps of a task."""
        cover = self._register_tile(c)
        for loop in self._loops(c)[: len(self.reduce) + len(self.rows) + 1]:
            cover[loop.axis] = cover[loop.axis] * loop.trips
        return cover

    def _pixels_turned(self, c: Columns, place: int) -> Array:
        """Cycles to lay out the pixels of a task with channels as lanes, in which tiles are trimmed to their axes."""
        cover = {axis: np.minimum(covered, self._all[axis]) for axis, covered in self._task(c).items()}
        return np.asarray(self.operands[place].footprint(cover) / self.element_bytes * TURNED_PIXEL_CYCLES)

    def _packed_in_tiles(self, c: Columns) -> Array:
        """Cycles to lay out what a task reads along its lanes in one block of steps."""
        cover = self._task(c)
        elements = np.zeros(len(c[self.lanes]))
        for place in self.panels:
            elements = elements + self.operands[place].footprint(cover) / self.element_bytes
        return np.asarray(elements * self.pack_cycles)
