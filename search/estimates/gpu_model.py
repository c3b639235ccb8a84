"""Analytic model of a tiled reduction on a GPU: an estimate in seconds, as array expressions over a population."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, reduce
from math import gcd, prod
from operator import add

import numpy.typing as npt

from ...dialects.element import FLOAT32_BYTES
from ...dialects.multiprocessor import BANKS, CLOCK_HZ, GPU_LINE_BYTES, multiprocessor_of
from ...dialects.target import WARP
from ..sketch import arrays as np
from ..sketch.expression import mapped
from ..sketch.hole import Columns
from .gpu_tile import MOST_INNER, PADDING, GpuOperand, GpuTile
from .residency import allotted, cycles_of_rounds, resident_blocks

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
"""Instructions to take an element's place in a tile apart by one more dimension, and to find out where a vector lies in
what is padded. Fitted, as are the other numbers below that say so: to 4,500 measured candidates of 192 products and
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
LACKING_WARPS, SERVED_APART, ALIKE = 0.85, 0.85, 0.35
"""Warps of a scheduler whose time to issue passes with none ready, the part of the shorter one of issuing and serving
shared memory that does not pass beside the other, and what a block that has a multiprocessor alone takes longer, as its
warps wait for each other at barriers. Fitted, with what blocks without a pipeline wait for each other, to 7,845
candidates of 433 workloads: of the half that it was not fitted to, what is estimated least takes 1.14 times the fastest
one's time, 1.18 without; of products above 30 us 1.10 and 1.14, of depthwise ones 1.38 and 1.39."""
WIDE_WAVEFRONTS = 1.5
"""Cycles of shared memory that four elements for each lane of a warp take at least, where lanes share them. Fitted."""
THROUGH_REGISTERS = 0.85
"""Instructions of a copy through registers for each that is counted: addresses of both halves are those of the copies
before, plus a number. Fitted, with the three numbers above and of wide loads again, to 4,900 candidates of 430
workloads whose tails ask nothing, and 220 of five large products: of half of the former that they were not fitted to,
what is estimated least takes 1.083 times the fastest one's time (1.091 before), and of the products 1.05 (1.13 before);
with bounds of whole vectors, not of their elements, 1.08, of depthwise convolutions 1.15 (1.27 before)."""
BOOST = 0.85
"""Nominal cycles that one of a multiprocessor takes: of 1.7 GHz, where an H200 runs at up to 1.98. Fitted with them."""
LINE_ELEMENTS = GPU_LINE_BYTES // FLOAT32_BYTES
"""Elements of float32 in a line of a cache."""
STEP_INSTRUCTIONS = 6
"""Instructions of a loop around a reduction step that is not unrolled. Counted in the code, not measured."""
FILL_INSTRUCTIONS = 20
"""Instructions around one fill of shared memory and its use, about. A choice: two barriers, a test and the addresses of
two copies; more would favour fewer, larger fills."""
UNROLLED_LATENCY = 4.0
"""Cycles that a reduction step waits for operands where it is unrolled with others. Fitted: a sixth of the latency, as
some six loads are on their way."""
VECTOR_GAIN = 0.25
"""Part of the time of joining parts that vectors of any width would save. A choice: it only orders widths that are
equal otherwise."""
BARRIER_CYCLES = 40
"""Cycles that a barrier takes, about. A choice: more would favour fewer, larger fills."""
SPARE_REGISTERS = 16
"""Registers that the compiler takes beyond those that are counted: NVRTC 13 takes 31 to 48 more than sums, operands and
copies on their way with sums of 8x8, 47 to 70 with 8x16; 24 are counted."""
LAUNCH_S = 1.5e-6
"""Seconds from one kernel of a graph to the next. A choice: it decides where a second kernel pays, and nothing beside
kernels that take long."""
LARGE_CLUSTER_CORES = 0.9
"""Part of the multiprocessors that clusters of more than two blocks can be placed on, as each lies within a group of
them: 30 clusters of four and 15 of eight, of one block to a multiprocessor, run at once on the 132 of an H200, and 66
of two. Products of 128 rows with 4096 columns and terms in 32 clusters of four take 21.4 to 22.6 us, where the same
blocks and a second kernel take 13.2."""
CLUSTER_READS = 6
"""Vectors that a thread of a cluster which adds up parts has under way, about. Of such products in two parts tiles of
64 x 128 take 17.3 us by 128 threads, 15.1 by 256, and 15.1 to 16.1 with a second kernel; with weights from memory 256
threads take 15.9 us with vectors of one sum, and 15.1 with those of two."""
CLUSTER_JOIN_S = 1.1e-6
"""The same for blocks of a cluster that wait for each other and read what they wrote. On an H200 they saved 0.3 to 0.5
us over a second kernel with the same tiles, for products, convolutions and attention of 3 to 7 us."""


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
class GpuModel(GpuTile):
    """The time that the kernel of a tile takes."""

    @property
    def cores(self) -> int:
        return max(1, self.target.cores)

    def _blocks(self, c: Columns) -> Array:
        total = self._ones(c) * self.outer
        for axis in self.axes:
            total = total * np.ceil(axis.extent / self._tile(c, axis))
        return total * c[self._on_blocks] if self._on_blocks else total

    @property
    def _on_blocks(self) -> str:
        """The hole of parts on blocks of their own; empty where there are none."""
        return self.parts if self.sliced else self.split

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
        least = loads if kept is not None else np.where(width == 4, WIDE_WAVEFRONTS, 1.0) * loads
        return words, loads, np.maximum(least, distinct / BANKS * conflicts * (1.0 if kept is None else kept))

    def _kept(self, c: Columns, operand: GpuOperand) -> Array | None:
        """The part of a thread's elements that is loaded, where a window slides along its results; None where none is.

        Each is loaded once for all taps, by itself: with a load for each tap, what is estimated least of depthwise
        convolutions takes 1.41 times the fastest one's time, and 1.28 so (an H200, 21 of them). Places are counted, not
        taps: 37 dilated convolutions take 1 / 1.045 of the time so, seven of them longer by more than 3%, eleven with
        vectors counted where a dilation leaves taps at multiples of them.
        """
        last = self.pair[1][0] if self.pair is not None else self.axes[-1].name
        for strides in (dict(span.strides) for span in operand.spans):
            if last not in strides:
                continue
            inner = c[self.axes[-1].inner].astype(np.float64)
            slid = [r for r in self.reduce if r.name in strides and r.extent > 1]
            among = [r for r in slid if not r.step or self._is_long_window(r)]
            near = [r for r in among if strides[r.name] < MOST_INNER * strides[last]]
            parts = [part_of_places(inner, self._written_taps(c, r), strides[last], strides[r.name]) for r in near]
            if parts:
                return reduce(np.minimum, parts)
        return None

    def _store_conflicts(self, c: Columns, operand: GpuOperand) -> Array:
        """Number of threads of a warp that store into one bank while they transpose an operand, with its padding."""
        if not operand.turned:
            return self._ones(c)
        row = (self._step(c) * self._slices(c)).astype(np.int64)
        return _store_conflicts(c[operand.vector], row).astype(np.float64)

    def _copies_of(self, c: Columns, operand: GpuOperand, sizes: dict[str, Array]) -> _Copies:
        """The copies of an operand. A vector that does not begin at a multiple of its size is loaded by elements.

        Without registers so is one of a turned operand, by lanes that are a vector apart: each as often as it has
        elements. Of 32 dense layers, what is estimated least takes 1.10 times the fastest one's time so, 1.15 else (an
        H200): 384x1024 to 4096 took 116 us by vectors of two, 90 through registers.
        """
        width, ones = c[operand.vector].astype(np.float64), self._ones(c)
        beside = prod(span.reach(sizes) for span in operand.contiguous) * ones
        straight = beside % width == 0
        apart = (operand.run % width != 0) | ~straight
        through = c[self.registers] * (c[self.stages] > 1)
        vectors = np.ceil(self._copied(c, operand) / self.threads(c) / width)
        stores = np.where(apart | operand.turned, width, 1.0)
        loads = np.where(apart, width, np.where(through, 1.0, stores))
        divisions = np.asarray(sum((span.reach(sizes) > 1 for span in operand.rows), 0.0), dtype=np.float64)
        divisions = divisions * np.where(straight, 1.0, width)
        strided = np.where((through > 0) | (not operand.turned), 1.0, width)
        instructions = DIVISION_INSTRUCTIONS * divisions + COPY_INSTRUCTIONS * (strided * loads + through * stores)
        instructions = instructions + BOUND_INSTRUCTIONS * operand.padded
        instructions = instructions * np.where(through > 0, THROUGH_REGISTERS, 1.0)
        lines = self._lines(c, operand, beside)
        stored = vectors * stores * self._store_conflicts(c, operand)
        return _Copies(vectors * instructions, vectors * loads, stored, vectors * loads * lines)

    def _copied(self, c: Columns, operand: GpuOperand) -> Array:
        """Elements that are copied for a tile; of turned ones with those between rows, as numbers here were fitted."""
        return self._planned_tile(c, operand) if operand.turned else self._reached(c, operand)

    def _lines(self, c: Columns, operand: GpuOperand, beside: Array) -> Array:
        """Lines of the first-level cache that a warp asks for at once, as it copies rows of so many elements."""
        width = c[operand.vector].astype(np.float64)
        run = self._step(c) * self._slices(c) if operand.turned else np.full(len(width), float(WARP))
        lines = width * np.maximum(WARP / run, 1.0) * self.element_bytes / 4
        return np.minimum(WARP, np.maximum(lines, WARP * width / beside))

    def _resident(self, c: Columns, planned: Array) -> Array:
        """Blocks that a multiprocessor has at a time, of `planned_elements`."""
        most = multiprocessor_of(self.target).registers_per_thread
        registers = np.minimum(most, self._registers(c, planned) + SPARE_REGISTERS)
        shared_bytes = (planned + self.joined_elements(c)) * self.element_bytes
        return resident_blocks(self.target, self.threads(c), allotted(registers), shared_bytes)

    def fitting_blocks(self, c: Columns) -> npt.NDArray[np.int64]:
        """Blocks that are to fit a multiprocessor at a time: as many as may, and no more than there are for each."""
        resident = self._resident(c, self.planned_elements(c))
        return np.minimum(resident, np.ceil(self._blocks(c) / self.cores)).astype(np.int64)

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
        none = 0 * self._ones(c)
        copied = [self._copies_of(c, operand, sizes) for operand in self.operands]
        copies = reduce(add, copied, _Copies(none, none, none, none))
        each = [self._loads(c, operand) for operand in self.operands]
        loads, wavefronts = sum(loads for _, loads, _ in each), sum(least for *_, least in each)
        filled = sum(self._copied(c, o) for o in self.operands) * self.element_bytes
        unrolled = self._copies(c)
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

        fills, results = self._fills(c), self._of_results(c)

        def block(resident: Array) -> Array:
            """Cycles of as many blocks at a time: their fills, their first copies, and their results."""
            written = np.ceil(resident * warps / on.schedulers) * results
            return fills * iteration(resident) + written + GLOBAL_LATENCY

        total = cycles_of_rounds(blocks, self.cores, per_sm, block)
        joined, waves = self.joined_elements(c) * self.element_bytes, np.ceil(blocks / (self.cores * per_sm))
        total = total + waves * (2 * joined / on.shared_bytes_per_cycle + BARRIER_CYCLES) * (joined > 0)
        return np.asarray(total + GLOBAL_LATENCY)

    def _fills(self, c: Columns) -> Array:
        """Fills of shared memory of a block: along each axis of the reduction whole steps, the last one begun."""
        fills = self._ones(c)
        for axis in self.reduce:
            fills = fills * np.ceil(self._depth_of(c, axis) / self._stepped(c, axis))
        return fills

    def seconds(self, c: Columns) -> Array:
        """A rough time: instructions, shared and global traffic, and the latency that nothing hides."""
        seconds = self._cycles(c) / CLOCK_HZ + LAUNCH_S
        if self._on_blocks:
            outputs = float(self.outer) * np.prod([float(a.extent) for a in self.axes])
            joined = 2 * outputs * c[self._on_blocks] * self.element_bytes / MEMORY_BYTES_PER_S
            seconds = seconds + LAUNCH_S + joined * (1 - VECTOR_GAIN + VECTOR_GAIN / c[self.join])
        return np.asarray(seconds)


def part_of_places(results: Array, taps: Array, stride: int, dilation: int) -> Array:
    """Distinct elements that windows of so many results in a row read, among those that their taps read one by one.

    Windows move by `stride`, and neighbouring taps are `dilation` apart: a result's tap reads what the result so many
    further on reads by another so many before.
    """
    common = gcd(stride, dilation)
    again = np.maximum(0.0, results - dilation // common) * np.maximum(0.0, taps - stride // common)
    return np.asarray(1.0 - again / (results * taps))


@mapped
def _store_conflicts(vector: npt.NDArray[np.int64], row: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The most threads of a warp that store into one bank, by vectors and rows of so many elements `(n,)`."""
    base = int(row.max(initial=0)) + 1
    different, number = np.unique(vector * base + row, return_inverse=True)
    found = [_stored_in_one_bank(*divmod(pair, base)) for pair in different.tolist()]
    return np.asarray(found, dtype=np.int64)[number]


@cache
def _stored_in_one_bank(vector: int, row: int) -> int:
    """The most threads of a warp that store into one bank, vectors of so many elements along rows of so many."""
    places = (vector * lane for lane in range(WARP))
    return max(Counter((PADDING * (place % row) + place // row) % BANKS for place in places).values())
