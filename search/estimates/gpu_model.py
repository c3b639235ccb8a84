"""Analytic model of a GPU tile, as array expressions over a population: limits, and an estimate in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from operator import add

import numpy as np
import numpy.typing as npt

from ...dialects.multiprocessor import BANKS, CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch.hole import Columns

Array = npt.NDArray[np.float64]

FILL_BYTES_PER_CYCLE_SM = 40
"""Bytes a multiprocessor gets from the second-level cache in a cycle, about (measured with matrix products)."""
MEMORY_BYTES_PER_S = 4.3e12
"""Bandwidth of global memory: nine tenths of the 4.8e12 bytes a second of an H200 (NVIDIA's data sheet)."""
GLOBAL_LATENCY = 800
"""Cycles from a load of global memory to its value, with what queues before it. A choice: more favours resident
warps."""
SHARED_LATENCY = 24
"""Cycles that a reduction step waits for its operands where it is not unrolled with the next ones. About what
microbenchmarks of Volta and later give of a load (Jia et al. 2018: 19)."""
COPY_INSTRUCTIONS = 6
"""Instructions to move one vector to shared memory. Counted in the code, not measured."""
DIVISION_INSTRUCTIONS, BOUND_INSTRUCTIONS = 8.0, 28.0
"""Instructions to take an element's place in a tile apart by one more dimension, and to find out where it lies in what
is padded. Fitted, as are the other numbers below that say so: to 4,500 measured candidates of 192 products and
convolutions (an H200; `benchmarks/samples`), by robust regression of log2 of their times. Without the fitted terms,
convolutions took 1.6 times their estimates in the mean, and of 120 workloads what was estimated least took 1.46 times
the fastest one's time; with a fit to these 1.06, and 1.19 of 60 others that were measured afterwards."""
DEPENDENT_CYCLES = 0.74
"""Cycles more that an instruction of a copy takes in a block alone, as it waits for the one before. Fitted."""
LOADS_AHEAD = 5
"""Loads of a copy without a pipeline that are under way at a time: the others wait for these. Fitted."""
RESULT_INSTRUCTIONS, RESULT_LINE_CYCLES = 10.0, 1.2
"""Instructions to write a result, its epilogue and the test where it lies included, and cycles for each line that the
results of a warp lie in. Fitted."""
LACKING_WARPS, SERVED_APART, ALIKE = 0.8, 0.5, 0.3
"""Warps of a scheduler whose time to issue passes with none ready, the part of the shorter one of issuing and serving
shared memory that does not pass beside the other, and what a block that has a multiprocessor alone takes longer, as its
warps wait for each other at barriers. Fitted, with what blocks without a pipeline wait for each other, to 7,845
candidates of 433 workloads: of the half that it was not fitted to, what is estimated least takes 1.14 times the fastest
one's time, 1.18 without; of products above 30 us 1.10 and 1.14, of depthwise ones 1.38 and 1.39."""
BOOST = 0.85
"""Nominal cycles that one of a multiprocessor takes: of 1.7 GHz, where an H200 runs at up to 1.98. Fitted with them."""
LINE_ELEMENTS = 32
"""Elements of float32 in a line of a cache, of 128 bytes."""
STEP_INSTRUCTIONS = 6
"""Instructions of a loop around a reduction step that is not unrolled. Counted in the code, not measured."""
FILL_INSTRUCTIONS = 20
"""Instructions around one fill of shared memory and its use, about. A choice: two barriers, a test and the addresses of
two copies; more would favour fewer, larger fills."""
UNROLLED_LATENCY = 4.0
"""Cycles that a reduction step waits for operands where it is unrolled with others. Fitted: a sixth of the latency, as
some six loads are on their way."""
SHARED_RESERVED = 1024
"""Bytes of shared memory that CUDA takes for each resident block (CUDA C++ programming guide, from 8.0 on)."""
VECTOR_GAIN = 0.25
"""Part of the time of joining parts that vectors of any width would save. A choice: it only orders widths that are
equal otherwise."""
BARRIER_CYCLES = 40
"""Cycles that a barrier takes, about. A choice: more would favour fewer, larger fills."""
MOST_FMAS = 2048
"""Multiply-adds of a thread that are written out one after the other: compiling more takes seconds. NVRTC 13 takes 1.1
s for 2048 and 3.3 s for 4096 (`passes.lower._unrolled_loops`)."""
SPARE_REGISTERS = 16
"""Registers that the compiler takes beyond those that are counted: NVRTC 13 takes 31 to 48 more than sums, operands and
copies on their way with sums of 8x8, 47 to 70 with 8x16; 24 are counted."""
PADDING = 4
"""Elements that a row of a turned operand has beyond a multiple of the banks: vectors stay aligned in it."""
LAUNCH_S = 1.5e-6
"""Seconds from one kernel of a graph to the next. A choice: it decides where a second kernel pays, and nothing beside
kernels that take long."""
CLUSTER_JOIN_S = 1.1e-6
"""The same for blocks of a cluster that wait for each other and read what they wrote. On an H200 they saved 0.3 to 0.5
us over a second kernel with the same tiles, for products, convolutions and attention of 3 to 7 us."""
MOST_GUARDED = 4
"""Results of a thread along a pair of axes whose last tile is not full: each has a test of its own, and a thread seven
predicates. Convolutions of 512x14x14, batch 8, and 256x14x14, batch 32, took 2,430 and 1,004 us on an H200 with seven
such results, about 250 with others; five took up to 7.5 times their estimate."""
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


@dataclass(frozen=True)
class GpuOperand:
    """The tile of an operand in shared memory, dimension by dimension.

    `vector` names the hole of elements that a thread copies at once, `row` the axis that neighbours lie along. In a
    `turned` one, neighbours in global memory are a row apart. Of the last spans, `whole` are in each tile as a whole:
    elements of the one before go on behind them. A `run` is what lies side by side in global memory, 1 where it is
    `padded` and rows begin anywhere: where vectors do not divide it, elements are copied one by one.
    """

    spans: tuple[Span, ...]
    vector: str
    row: str
    turned: bool = False
    run: int = 1
    whole: int = 0
    padded: bool = False

    @property
    def rows(self) -> tuple[Span, ...]:
        """The spans whose elements lie apart from each other."""
        return self.spans[: max(0, len(self.spans) - self.whole - 1)]

    @property
    def contiguous(self) -> tuple[Span, ...]:
        """The spans whose elements lie side by side in global memory."""
        return self.spans[len(self.rows) :]


@dataclass(frozen=True)
class _Copies:
    """A thread's copies of operands for one fill: its instructions and its loads of global memory.

    `stored` and `fetched` are cycles that a warp's take of shared memory, and of the first-level cache.
    """

    instructions: Array
    loads: Array
    stored: Array
    fetched: Array

    def __add__(self, other: _Copies) -> _Copies:
        return _Copies(
            self.instructions + other.instructions,
            self.loads + other.loads,
            self.stored + other.stored,
            self.fetched + other.fetched,
        )


@dataclass(frozen=True)
class GpuModel:
    """The shape of one tiled reduction on a GPU.

    `operands` are kept in shared memory. `pair` are two axes, with their extents, that are tiled as the last one of
    `axes`. `split` names the hole of parts that the reduce axis `divided` is split into, each on blocks of its own, or,
    where `sliced`, on threads of its own, and `join` the results that a thread adds parts up for; empty where it is
    not. `stages`, `registers` and `unroll` name
    the holes of the pipeline's depth, of copies through registers, and of statements that unrolled loops may become.

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
    pair: tuple[tuple[str, int], tuple[str, int]] | None = None

    @property
    def cores(self) -> int:
        return max(1, self.target.cores)

    def _ones(self, c: Columns) -> Array:
        return np.ones(len(c[self.stages]))

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return self._product(c, [a.thread for a in self.axes]) * self._slices(c)

    def _slices(self, c: Columns) -> Array:
        """Groups of a block's threads that share the reduction."""
        return np.asarray(c[self.split], dtype=np.float64) if self.sliced else self._ones(c)

    def joined_elements(self, c: Columns) -> Array:
        """Elements in shared memory where the slices of a block are added up."""
        tile = np.prod([self._tile(c, a) for a in self.axes], axis=0)
        return np.asarray(tile * self._slices(c) if self.sliced else 0.0 * self._ones(c))

    def _product(self, c: Columns, names: Sequence[str]) -> Array:
        total = self._ones(c)
        for name in names:
            total = total * c[name]
        return total

    def _tile(self, c: Columns, axis: GpuAxis) -> Array:
        return np.asarray(c[axis.virtual] * c[axis.thread] * c[axis.inner], dtype=np.float64)

    def _extents(self, c: Columns) -> dict[str, Array]:
        """Distance that a thread block goes along each axis between two fills of shared memory."""
        sizes = {a.name: self._tile(c, a) for a in self.axes}
        for r in self.reduce:
            sizes[r.name] = self._stepped(r, c) * (self._slices(c) if r.name == self.divided else 1.0)
        if self.pair is not None:
            (before, rows), (last, width) = self.pair
            tile = self._tile(c, self.axes[-1]).astype(np.int64)
            # A tile starts at any multiple of the common divisor: where it may straddle a row, rows are taken whole.
            touched = (width - np.gcd(tile, width) + tile - 1) // width + 1
            sizes[before] = np.minimum(rows, touched).astype(np.float64)
            sizes[last] = np.where(touched == 1, tile, width).astype(np.float64)
        return sizes

    def _planned_tile(self, operand: GpuOperand, sizes: dict[str, Array]) -> Array:
        """Elements that an operand's index expressions reach in a tile of these sizes."""
        words = np.ones(len(next(iter(sizes.values()))))  # also of an operand that only moves with whole blocks
        for span in operand.spans:
            words = words * _reach(span, sizes)
        if operand.turned:
            words = words / sizes[operand.row] * (sizes[operand.row] + (PADDING - sizes[operand.row]) % BANKS)
        return words

    def planned_elements(self, c: Columns) -> Array:
        """Elements of all tiles that are planned in shared memory, for each stage of the pipeline.

        What a schedule keeps there is known from its parametric nest alone, which is there once the schedule is written
        (`Usage.shared_bytes`): steps align rows, and tails and strides make boxes larger or smaller.
        """
        sizes = self._extents(c)
        return np.asarray(np.sum([self._planned_tile(o, sizes) for o in self.operands], axis=0) * c[self.stages])

    def _accumulators(self, c: Columns) -> Array:
        return self._product(c, [a.inner for a in self.axes]) * self._product(c, [a.virtual for a in self.axes])

    def _blocks(self, c: Columns) -> Array:
        total = self._ones(c) * self.outer
        for axis in self.axes:
            total = total * np.ceil(axis.extent / self._tile(c, axis))
        return total * c[self.split] if self.split and not self.sliced else total

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
        operands = np.sum([self._words(c, o) for o in self.operands], axis=0)
        return np.asarray(self._accumulators(c) + operands + held + 24)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Threads, shared memory, registers and tails within what the target has."""
        read = {name: c[name] for name in self._numbers}
        mask = self._threads_fit(read)
        if mask.any():
            mask[mask] = self._memory_fits({name: column[mask] for name, column in read.items()})
        return mask

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        """The holes that the limits are of."""
        tiles = [name for axis in self.axes for name in (axis.virtual, axis.thread, axis.inner)]
        others = [*(axis.step for axis in self.reduce), self.stages, self.registers, self.unroll, self.split]
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
        than `MOST_GUARDED` results along the pair where its last tile is not full.
        """
        last, inner = self.axes[-1], c[self.axes[-1].inner]
        if self.pair is None:
            return np.ones(len(inner), dtype=bool)
        full = last.extent % self._tile(c, last) == 0
        return np.asarray((self.pair[1][1] % inner == 0) & (full | (inner <= MOST_GUARDED)))

    def _pipeline_fits(self, c: Columns) -> npt.NDArray[np.bool_]:
        """No more stages than iterations of the innermost loop that fills shared memory, and none idle."""
        stages, registers = c[self.stages], c[self.registers]
        stepped = [r for r in self.reduce if r.step]
        mask = (registers == 0) | (stages == 2)
        if not stepped:
            return np.asarray(mask & (stages == 1))
        for axis in stepped:
            mask &= c[axis.step] <= self._depth_of(axis, c)
        last = stepped[-1]
        return np.asarray(mask & (stages <= -(-self._depth_of(last, c) // c[last.step])))

    def _depth_of(self, axis: GpuReduce, c: Columns) -> npt.NDArray[np.int64]:
        """The extent of a reduce axis in one part of a split reduction."""
        divided = self.split and axis.name == self.divided
        return np.asarray(-(-axis.extent // c[self.split]) if divided else np.full_like(c[self.stages], axis.extent))

    def _copies(self, c: Columns) -> Array:
        """Reduction steps that are written out one after the other."""
        step = self._step(c)
        statements = self._product(c, [a.inner for a in self.axes[:-1]]) + len(self.operands)
        return np.where(step * statements <= c[self.unroll], step, 1.0)

    def _step(self, c: Columns) -> Array:
        """Reduction steps between two fills of shared memory."""
        step = np.ones(len(c[self.stages]))
        for r in self.reduce:
            step = step * self._stepped(r, c)
        return step

    def _stepped(self, axis: GpuReduce, c: Columns) -> Array:
        """Extent of shared memory along a reduce axis."""
        return np.asarray(c[axis.step] if axis.step else self._depth_of(axis, c), np.float64)

    def _names_of(self, operand: GpuOperand) -> set[str]:
        """The axes that an operand moves along."""
        names = {name for span in operand.spans for name, _ in span.strides}
        if self.pair is not None and {n for n, _ in self.pair} & names:
            names.add(self.axes[-1].name)
        return names

    def _words(self, c: Columns, operand: GpuOperand) -> Array:
        """Elements of an operand that a thread reads for one reduction step."""
        names = self._names_of(operand)
        along = [axis for axis in self.axes if axis.name in names]
        return self._product(c, [name for axis in along for name in (axis.virtual, axis.inner)])

    def _loads(self, c: Columns, operand: GpuOperand) -> tuple[Array, Array, Array]:
        """For one reduction step: elements a thread reads, its loads, and the least cycles that a warp's loads take."""
        names = self._names_of(operand)
        words, distinct, width, conflicts = (self._ones(c) for _ in range(4))
        lanes = np.full(len(words), float(WARP))
        for axis in reversed(self.axes):
            here = np.minimum(lanes, c[axis.thread])
            lanes = np.maximum(1.0, lanes // here)
            if axis.name not in names:
                continue
            each = c[axis.virtual] * c[axis.inner]
            words = words * each
            distinct = distinct * each * here
            if axis.name == operand.row:
                width = np.where(c[axis.inner] % 4 == 0, 4.0, np.where(c[axis.inner] % 2 == 0, 2.0, 1.0))
                # Vectors with gaps between them meet in the same banks.
                conflicts = np.where((width > 1) & (here > 1), c[axis.inner] / width, 1.0)
        distinct = distinct * np.minimum(lanes, self._slices(c))
        kept = self._kept(c, operand)
        loads = words / width if kept is None else words * kept
        return words, loads, np.maximum(loads, distinct / BANKS * conflicts * (1.0 if kept is None else kept))

    def _kept(self, c: Columns, operand: GpuOperand) -> Array | None:
        """The part of a thread's elements that is loaded, where a window slides along its results; None where none is.

        Each is loaded once for all taps, by itself: with a load for each tap, what is estimated least of depthwise
        convolutions takes 1.41 times the fastest one's time, and 1.28 so (an H200, 21 of them).
        """
        last = self.pair[1][0] if self.pair is not None else self.axes[-1].name
        for strides in (dict(span.strides) for span in operand.spans):
            taps = max([r.extent for r in self.reduce if r.name in strides and not r.step], default=1)
            if last in strides and taps > 1:
                inner = c[self.axes[-1].inner].astype(np.float64)
                return np.minimum(1.0, ((inner - 1) * strides[last] + taps) / (inner * taps))
        return None

    def _store_conflicts(self, c: Columns, operand: GpuOperand) -> Array:
        """Number of threads of a warp that store into one bank while they transpose an operand, with its padding."""
        if not operand.turned:
            return self._ones(c)
        vector, row = c[operand.vector], (self._step(c) * self._slices(c)).astype(np.int64)
        base = int(row.max(initial=0)) + 1
        different, number = np.unique(vector * base + row, return_inverse=True)
        vectors, rows = np.divmod(different, base)
        place = np.arange(WARP) * vectors[:, None]
        banks = np.sort((PADDING * (place % rows[:, None]) + place // rows[:, None]) % BANKS, axis=1)
        run = np.ones(len(banks))
        longest = np.ones(len(banks))
        for lane in range(1, WARP):
            run = np.where(banks[:, lane] == banks[:, lane - 1], run + 1, 1)
            longest = np.maximum(longest, run)
        return np.asarray(longest[number])

    def _copies_of(self, c: Columns, operand: GpuOperand, sizes: dict[str, Array]) -> _Copies:
        """The copies of an operand. A vector that does not begin at a multiple of its size is loaded by elements.

        Without registers so is one of a turned operand, by lanes that are a vector apart: each as often as it has
        elements. Of 32 dense layers, what is estimated least takes 1.10 times the fastest one's time so, 1.15 else (an
        H200): 384x1024 to 4096 took 116 us by vectors of two, 90 through registers.
        """
        width, ones = c[operand.vector].astype(np.float64), self._ones(c)
        beside = np.prod([_reach(span, sizes) for span in operand.contiguous], axis=0) * ones
        straight = beside % width == 0
        apart = (operand.run % width != 0) | ~straight
        through = c[self.registers] * (c[self.stages] > 1)
        vectors = np.ceil(self._planned_tile(operand, sizes) / self.threads(c) / width)
        stores = np.where(apart | operand.turned, width, 1.0)
        loads = np.where(apart, width, np.where(through, 1.0, stores))
        divisions = np.sum([_reach(span, sizes) > 1 for span in operand.rows], axis=0) * np.where(straight, 1.0, width)
        strided = np.where(through | (not operand.turned), 1.0, width)
        each = COPY_INSTRUCTIONS * strided + BOUND_INSTRUCTIONS * operand.padded
        instructions = DIVISION_INSTRUCTIONS * divisions + each * loads + COPY_INSTRUCTIONS * through * stores
        lines = self._lines(c, operand, beside)
        stored = vectors * stores * self._store_conflicts(c, operand)
        return _Copies(vectors * instructions, vectors * loads, stored, vectors * loads * lines)

    def _lines(self, c: Columns, operand: GpuOperand, beside: Array) -> Array:
        """Lines of the first-level cache that a warp asks for at once, as it copies rows of so many elements."""
        width = c[operand.vector].astype(np.float64)
        run = self._step(c) * self._slices(c) if operand.turned else np.full(len(width), float(WARP))
        lines = width * np.maximum(WARP / run, 1.0) * self.element_bytes / 4
        return np.minimum(WARP, np.maximum(lines, WARP * width / beside))

    def _resident(self, c: Columns, planned: Array) -> Array:
        """Blocks that a multiprocessor has at a time, of `planned_elements`."""
        on, threads = multiprocessor_of(self.target), self.threads(c)
        registers = np.minimum(on.registers_per_thread, self._registers(c, planned) + SPARE_REGISTERS)
        shared_bytes = (planned + self.joined_elements(c)) * self.element_bytes + SHARED_RESERVED
        found = np.minimum(on.threads // threads, on.shared_bytes // shared_bytes)
        found = np.minimum(found, on.registers // (np.ceil(registers / 8) * 8 * threads))
        return np.asarray(np.clip(found, 1, on.blocks))

    def _of_results(self, c: Columns) -> Array:
        """Cycles of one of a multiprocessor's schedulers to write the results of one of its warps."""
        last, on = self.axes[-1], multiprocessor_of(self.target)
        lanes = np.minimum(WARP, c[last.thread]).astype(np.float64)
        lines = np.minimum(WARP, WARP / lanes * np.ceil(lanes * c[last.inner] / LINE_ELEMENTS))
        each = np.maximum(RESULT_INSTRUCTIONS, RESULT_LINE_CYCLES * on.schedulers * lines)
        return np.asarray(self._accumulators(c) * each)

    def _cycles(self, c: Columns) -> Array:
        """Cycles from the first block of threads to the last."""
        threads, blocks, step, on = self.threads(c), self._blocks(c), self._step(c), multiprocessor_of(self.target)
        stages, sizes, planned = c[self.stages].astype(np.float64), self._extents(c), self.planned_elements(c)
        copies = reduce(add, [self._copies_of(c, operand, sizes) for operand in self.operands])
        _, loads, wavefronts = np.sum([self._loads(c, operand) for operand in self.operands], axis=0)
        filled, unrolled = planned / stages * self.element_bytes, self._copies(c)
        warps, per_sm = threads / WARP, self._resident(c, planned)
        issue = step * (self._accumulators(c) + loads + STEP_INSTRUCTIONS / unrolled) + copies.instructions
        wait = step * np.where(unrolled > 1, UNROLLED_LATENCY, SHARED_LATENCY) + DEPENDENT_CYCLES * copies.instructions
        later = GLOBAL_LATENCY * np.maximum(1.0, copies.loads / LOADS_AHEAD) + BARRIER_CYCLES

        def iteration(resident: Array) -> Array:
            """Cycles of one fill of shared memory and its use, of all resident blocks."""
            shared = resident * warps * (wavefronts * step + copies.stored + copies.fetched)
            per_scheduler = np.ceil(resident * warps / on.schedulers)
            issued = BOOST * (per_scheduler * (1 + ALIKE / resident) + LACKING_WARPS) * issue
            together = np.maximum(issued, BOOST * shared) + SERVED_APART * np.minimum(issued, BOOST * shared)
            together = np.maximum(together, resident * filled / FILL_BYTES_PER_CYCLE_SM)
            alone = np.maximum(warps / on.schedulers * issue, issue + wait)
            ahead = np.maximum(alone, GLOBAL_LATENCY / np.maximum(1.0, stages - 1))
            longest = np.maximum(together, np.where(stages > 1, ahead, alone + later) + BARRIER_CYCLES)
            return np.asarray(longest + np.where(stages > 1, 0.0, later / resident))

        fills, results = np.ceil(self._depth(c) / step), self._of_results(c)

        def block(resident: Array) -> Array:
            """Cycles of as many blocks at a time: their fills, their first copies, and their results."""
            written = np.ceil(resident * warps / on.schedulers) * results
            return fills * iteration(resident) + written + GLOBAL_LATENCY

        whole = blocks // (self.cores * per_sm)
        rest = np.ceil((blocks - whole * self.cores * per_sm) / self.cores)
        total = whole * block(per_sm) + np.where(rest > 0, block(np.maximum(1.0, rest)), 0.0)
        joined, waves = self.joined_elements(c) * self.element_bytes, np.ceil(blocks / (self.cores * per_sm))
        total = total + waves * (2 * joined / on.shared_bytes_per_cycle + BARRIER_CYCLES) * (joined > 0)
        return np.asarray(total + GLOBAL_LATENCY)

    def _depth(self, c: Columns) -> Array:
        """Reduction steps of a block."""
        depth = self._ones(c) * prod(r.extent for r in self.reduce)
        return np.asarray(depth / c[self.split] if self.split else depth)

    def seconds(self, c: Columns) -> Array:
        """A rough time: instructions, shared and global traffic, and the latency that nothing hides."""
        seconds = self._cycles(c) / CLOCK_HZ + LAUNCH_S
        if self.split and not self.sliced:
            outputs = float(self.outer) * np.prod([float(a.extent) for a in self.axes])
            joined = 2 * outputs * c[self.split] * self.element_bytes / MEMORY_BYTES_PER_S
            seconds = seconds + LAUNCH_S + joined * (1 - VECTOR_GAIN + VECTOR_GAIN / c[self.join])
        return np.asarray(seconds)


def _reach(span: Span, sizes: dict[str, Array]) -> Array:
    """Elements along one dimension of a tile of these sizes."""
    reach = np.ones(1)
    for name, stride in span.strides:
        reach = reach + (sizes[name] - 1) * stride
    return reach
