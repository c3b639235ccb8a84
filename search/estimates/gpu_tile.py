"""The tile of a reduction on a GPU, as array expressions over a population: its sizes, and limits of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...dialects.multiprocessor import multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.expression import also
from ..sketch.hole import Columns, KnownColumns, once
from .cache_traffic import reach

Array = npt.NDArray[np.float64]

MOST_FMAS = 2048
"""Multiply-adds of a thread that are written out one after the other: compiling more takes seconds. NVRTC 13 takes 1.1
s for 2048 and 3.3 s for 4096 (`passes.lower._unrolled_loops`)."""
MOST_INNER = 16
"""Results of a thread along an axis, at most. A choice: two axes of them are all registers that a thread has."""
PADDING = 4
"""Elements that a row of a turned operand has beyond a multiple of the banks: vectors stay aligned in it."""
MOST_GUARDED = 4
"""Results of a thread along a pair of axes where a tile is larger than both, and asks: each has a test of its own, and
a thread seven predicates. Convolutions of 512x14x14, batch 8, and 256x14x14, batch 32, took 2,430 and 1,004 us on an
H200 with seven such results, about 250 with others; five took up to 7.5 times their estimate."""
LARGE_IMAGE = 128
"""Elements of a pair of axes from which on no tile reaches beyond the rows that shared memory has. A choice: blocks
have 64 and more; of 512x14x14, batch 8, a tile of 256 took 754 us on an H200, of 56 248."""
MOST_HELD = 32
"""Elements that a thread may have on their way to shared memory: each is loaded and stored by code of its own. A
choice: an eighth of the registers of a thread."""


@dataclass(frozen=True)
class GpuAxis:
    """A spatial axis and the names of its tile factors: virtual threads, threads, elements of a thread."""

    name: str
    extent: int
    virtual: str
    thread: str
    inner: str


@dataclass(frozen=True)
class GpuReduce:
    """A reduce axis; `step` is what shared memory holds at a time, empty where all of it."""

    name: str
    extent: int
    step: str


@dataclass(frozen=True)
class Span:
    """One dimension of an operand's tile: the axes it moves along with their strides, in elements."""

    strides: tuple[tuple[str, int], ...]

    def reach(self, sizes: Mapping[str, Array]) -> Array:
        """Elements along it in a tile of these sizes."""
        return reach(self.strides, sizes)


@dataclass(frozen=True)
class Aligned:
    """Rows of a tile in shared memory, of these spans, that begin `offset` elements behind a multiple of `factor`."""

    spans: tuple[Span, ...]
    factor: int
    offset: int

    def stride(self, row: Array) -> Array:
        """Elements from one row of so many to the next."""
        return np.asarray(row + (self.offset - row) % self.factor)


@dataclass(frozen=True)
class GpuOperand:
    """The tile of an operand in shared memory, dimension by dimension.

    `vector` names the hole of elements that a thread copies at once, `row` the axis that neighbours lie along. In a
    `turned` one, neighbours in global memory are a row apart. Of the last spans, `whole` are in each tile as a whole:
    elements of the one before go on behind them. A `run` is what lies side by side in global memory, 1 where it is
    `padded` and rows begin anywhere: where vectors do not divide it, elements are copied one by one. Rows of the copy
    may be `aligned`.
    """

    spans: tuple[Span, ...]
    vector: str
    row: str
    turned: bool = False
    run: int = 1
    whole: int = 0
    padded: bool = False
    aligned: Aligned | None = None

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes that its spans move along."""
        return frozenset(name for span in self.spans for name, _ in span.strides)

    @property
    def rows(self) -> tuple[Span, ...]:
        """The spans whose elements lie apart from each other."""
        return self.spans[: max(0, len(self.spans) - self.whole - 1)]

    @property
    def contiguous(self) -> tuple[Span, ...]:
        """The spans whose elements lie side by side in global memory."""
        return self.spans[len(self.rows) :]


@dataclass(frozen=True)
class GpuTile:
    """The shape of one tiled reduction on a GPU.

    `operands` are kept in shared memory. `pair` are two axes, with their extents, that are tiled as the last one of
    `axes`. `split` names the hole of parts that the reduce axis `divided` is split into, each on blocks of its own, or,
    where `sliced`, on threads of its own, of each of `parts` on blocks where that names a hole too, and `join` the
    results that a thread adds parts up for; empty where it is not. `stages`, `registers` and `unroll` name the holes of
    the pipeline's depth, of copies through registers, and of statements that unrolled loops may become.

    It is a model of the plan, made before any step is written, to keep most candidates legal and to order them. Its
    sizes are those of the planned tiles: nearly those that the parametric nest reads from the steps, not a bound.
    """

    target: Target
    outer: int
    axes: tuple[GpuAxis, ...]
    reduce: tuple[GpuReduce, ...]
    operands: tuple[GpuOperand, ...]
    element_bytes: int
    stages: str
    registers: str
    unroll: str
    split: str = ""
    divided: str = ""
    join: str = ""
    sliced: bool = False
    parts: str = ""
    pair: tuple[tuple[str, int], tuple[str, int]] | None = None

    @once
    def _ones(self, c: Columns) -> Array:
        return np.ones(len(c[self.stages]))

    @once
    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return self._product(c, [a.thread for a in self.axes]) * self._slices(c)

    @once
    def _slices(self, c: Columns) -> Array:
        """Groups of a block's threads that share the reduction."""
        return np.asarray(c[self.split], dtype=np.float64) if self.sliced else self._ones(c)

    @once
    def joined_elements(self, c: Columns) -> Array:
        """Elements in shared memory where the slices of a block are added up."""
        if not self.sliced:
            return np.zeros(len(c[self.stages]))
        return np.asarray(prod(self._tile(c, a) for a in self.axes) * self._slices(c))

    def _product(self, c: Columns, names: Sequence[str]) -> Array:
        total = self._ones(c)
        for name in names:
            total = total * c[name]
        return total

    @once
    def _tile(self, c: Columns, axis: GpuAxis) -> Array:
        return np.asarray(c[axis.virtual] * c[axis.thread] * c[axis.inner], dtype=np.float64)

    @once
    def _extents(self, c: Columns) -> dict[str, Array]:
        """Distance that a thread block goes along each axis between two fills of shared memory."""
        sizes = {a.name: self._tile(c, a) for a in self.axes}
        for r in self.reduce:
            sizes[r.name] = self._stepped(c, r) * (self._slices(c) if r.name == self.divided else 1.0)
        if self.pair is not None:
            (before, rows), (last, width) = self.pair
            touched = self._touched_rows(c)
            sizes[before] = np.minimum(rows, touched).astype(np.float64)
            sizes[last] = np.where(touched == 1, self._tile(c, self.axes[-1]), width).astype(np.float64)
        return sizes

    @once
    def _touched_rows(self, c: Columns) -> npt.NDArray[np.int64]:
        """Rows of a pair of axes that a tile has elements of.

        It starts at any multiple of the common divisor: where it may straddle a row, rows are taken whole.
        """
        assert self.pair is not None
        width, tile = self.pair[1][1], self._tile(c, self.axes[-1]).astype(np.int64)
        return np.asarray((width - np.gcd(tile, width) + tile - 1) // width + 1)

    @once
    def _reached(self, c: Columns, operand: GpuOperand) -> Array:
        """Elements that an operand's index expressions reach in a tile."""
        words, sizes = self._ones(c), self._extents(c)
        for span in operand.spans:
            words = words * span.reach(sizes)
        return words

    def _planned_tile(self, c: Columns, operand: GpuOperand) -> Array:
        """Elements that are kept of them, with rows that are aligned."""
        words = self._reached(c, operand)
        if operand.aligned is not None:
            sizes = self._extents(c)
            row = np.asarray(prod(span.reach(sizes) for span in operand.aligned.spans))
            words = words / row * operand.aligned.stride(row)
        return words

    @once
    def planned_elements(self, c: Columns) -> Array:
        """Elements of all tiles that are planned in shared memory, for each stage of the pipeline.

        What a schedule keeps there is known from its parametric nest alone, which is there once the schedule is written
        (`Usage.shared_bytes`): steps align rows, and tails and strides make boxes larger or smaller.
        """
        return np.asarray(sum(self._planned_tile(c, o) for o in self.operands) * c[self.stages])

    @once
    def _accumulators(self, c: Columns) -> Array:
        return self._product(c, [a.inner for a in self.axes]) * self._product(c, [a.virtual for a in self.axes])

    def _waste(self, c: Columns) -> Array:
        waste = self._ones(c)
        for axis in self.axes:
            tile = self._tile(c, axis)
            waste = waste * np.ceil(axis.extent / tile) * tile / axis.extent
        return waste

    def _held(self, c: Columns, planned: Array) -> Array:
        """Registers of a thread with copies on their way to shared memory, of `planned_elements`."""
        through = c[self.registers] * (c[self.stages] > 1)
        return np.asarray(planned / c[self.stages] / self.threads(c) * through)

    def _registers(self, c: Columns, planned: Array) -> Array:
        """Registers of a thread: accumulators, a step's operands, copies on their way, addresses."""
        held = self._held(c, planned)
        operands = sum(self._words(c, o) for o in self.operands)
        return np.asarray(self._accumulators(c) + operands + held + 24)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Threads, shared memory, registers and tails within what the target has."""
        read = KnownColumns({name: c[name] for name in self._numbers})
        return also(
            self._threads_fit(read),
            read,
            self._memory_fits,
            lambda mask: KnownColumns({name: column[mask] for name, column in read.items()}),
        )

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        """The holes that the limits are of."""
        tiles = [name for axis in self.axes for name in (axis.virtual, axis.thread, axis.inner)]
        others = [
            *(axis.step for axis in self.reduce),
            self.stages,
            self.registers,
            self.unroll,
            self.split,
            self.parts,
        ]
        return tuple(name for name in (*tiles, *others) if name)

    def _threads_fit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Of whole warps, as many as a block may have; most of what is drawn at random has not, and is told soonest."""
        threads, tiles = self.threads(c), [self._tile(c, axis) for axis in self.axes]
        mask = (threads <= max(1, self.target.max_threads_per_block)) & (threads >= WARP) & (threads % WARP == 0)
        for axis, tile in zip(self.axes, tiles, strict=True):
            mask &= tile < 2 * axis.extent
        mask &= self._product(c, [a.virtual for a in self.axes]) <= max(1, self.target.max_vthreads)
        return np.asarray(mask & (self._accumulators(c) * self._copies(c) <= MOST_FMAS))

    def _memory_fits(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The limits but those of threads."""
        threads, planned = self.threads(c), self.planned_elements(c)
        words = planned + self.joined_elements(c)
        mask = words * self.element_bytes + 16 * len(self.operands) <= self.target.max_shared_bytes
        registers, on = self._registers(c, planned), multiprocessor_of(self.target)
        mask &= (registers <= on.registers_per_thread) & (registers * threads <= on.registers)
        mask &= (self._waste(c) <= 2.2) & (self._held(c, planned) <= MOST_HELD)
        return np.asarray(mask & self._within_rows(c) & self._pipeline_fits(c))

    def _within_rows(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where no thread's results go on from one row of a pair of axes to the next, or each thread has one.

        Where they do their places depend on the thread, and they are in local memory: of candidates for a convolution
        of 256x14x14, batch 32, that take 250 to 400 us on an H200 otherwise, one took 41,506. Nor has a thread more
        than `MOST_GUARDED` results along the pair where the last tile is not full, and reaches beyond the rows that
        shared memory has: one of them took 3,767 us, others whose tiles end beyond the edge 225 to 310. Large images
        have no such tiles.
        """
        inner = c[self.axes[-1].inner]
        if self.pair is None:
            return np.ones(len(inner), dtype=bool)
        (_, rows), (_, width) = self.pair
        held = (self.axes[-1].extent % self._tile(c, self.axes[-1]) == 0) | (self._touched_rows(c) <= rows)
        few = (inner <= MOST_GUARDED) & (self.axes[-1].extent < LARGE_IMAGE)
        return np.asarray((width % inner == 0) & (held | few))

    def _pipeline_fits(self, c: Columns) -> npt.NDArray[np.bool_]:
        """No more stages than iterations of the innermost loop that fills shared memory, and none idle."""
        stages, registers = c[self.stages], c[self.registers]
        stepped = [r for r in self.reduce if r.step]
        mask = (registers == 0) | (stages == 2)
        if not stepped:
            return np.asarray(mask & (stages == 1))
        for axis in stepped:
            mask &= c[axis.step] <= self._depth_of(c, axis)
        last = stepped[-1]
        return np.asarray(mask & (stages <= -(-self._depth_of(c, last) // c[last.step])))

    @once
    def _depth_of(self, c: Columns, axis: GpuReduce) -> npt.NDArray[np.int64]:
        """The extent of a reduce axis in one part of a split reduction."""
        if not self.split or axis.name != self.divided:
            return np.full_like(c[self.stages], axis.extent)
        return np.asarray(-(-axis.extent // (c[self.split] * c[self.parts] if self.parts else c[self.split])))

    @once
    def _copies(self, c: Columns) -> Array:
        """Reduction steps that are written out one after the other: all, those of a row of a long window, or one."""
        step, last = self._step(c), self.reduce[-1]
        statements = self._product(c, [a.inner for a in self.axes[:-1]]) + len(self.operands)
        row = self._written_taps(c, last) if self._is_long_window(last) else 1.0
        return np.where(step * statements <= c[self.unroll], step, row)

    def _is_long_window(self, axis: GpuReduce) -> bool:
        """True for taps in steps along the last axis of the results, by which windows of one channel move by 1.

        So are depthwise ones. With channels to add up 19 convolutions (an H200) take 0.95 of their speed where rows are
        counted so, and windows that move by 2 anything from 1 / 0.59 to 1 / 3.5 of their time.
        """
        last = self.pair[1][0] if self.pair is not None else self.axes[-1].name
        spans = [dict(span.strides) for operand in self.operands for span in operand.spans]
        slid = {r.name for r in self.reduce for strides in spans if r.name in strides and len(strides) > 1}
        alone = all(r.name in slid for r in self.reduce if r.extent > 1)
        return bool(axis.step) and alone and any(s.get(last) == 1 and axis.name in s for s in spans)

    def _written_taps(self, c: Columns, axis: GpuReduce) -> Array:
        """Taps along an axis that are in a thread's code one after the other: all of a short window.

        Of a long one, which only the innermost axis can be, those of a step whose statements are few enough: each
        element that is loaded and each product, but for vectors. Windows begin anywhere, so that of seven elements, or
        of those of a pair of axes, there are none. On an H200 a depthwise convolution of 160x56x56 with windows of
        21x21 takes 63 us where such a row is written out, 84 to 2,000 where it is not.
        """
        if not axis.step:
            return np.full(len(c[self.stages]), float(axis.extent))
        inner = c[self.axes[-1].inner].astype(np.float64)
        vectors = (inner == 2) | (inner == 4) | (inner == 8)
        lanes = np.where(vectors & (self.pair is None), inner, 1.0)
        statements = self._accumulators(c) / lanes
        for operand in self.operands:
            along = self.axes[-1].name in self._names_of(operand)
            statements = statements + self._words(c, operand) / (lanes if along else 1.0)
        step = c[axis.step].astype(np.float64)
        written = (axis is self.reduce[-1]) & (step * statements <= c[self.unroll])
        return np.where(written, step, 1.0)

    @once
    def _step(self, c: Columns) -> Array:
        """Reduction steps between two fills of shared memory."""
        step = np.ones(len(c[self.stages]))
        for r in self.reduce:
            step = step * self._stepped(c, r)
        return step

    @once
    def _stepped(self, c: Columns, axis: GpuReduce) -> Array:
        """Extent of shared memory along a reduce axis."""
        return np.asarray(c[axis.step] if axis.step else self._depth_of(c, axis), np.float64)

    def _names_of(self, operand: GpuOperand) -> frozenset[str]:
        """The axes that an operand moves along."""
        names = operand.axes
        if self.pair is not None and not names.isdisjoint(n for n, _ in self.pair):
            return names | {self.axes[-1].name}
        return names

    @once
    def _words(self, c: Columns, operand: GpuOperand) -> Array:
        """Elements of an operand that a thread reads for one reduction step."""
        names = self._names_of(operand)
        along = [axis for axis in self.axes if axis.name in names]
        return self._product(c, [name for axis in along for name in (axis.virtual, axis.inner)])
