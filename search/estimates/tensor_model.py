"""Analytic model of a product on matrix units, as array expressions over a population: limits, and an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.intrinsics import Intrinsic
from ...dialects.intrinsics_cuda import ROW_BYTES
from ...dialects.kernel import ASYNC_BYTES
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import (
    BARRIER_CYCLES,
    CLUSTER_JOIN_S,
    CLUSTER_READS,
    FILL_BYTES_PER_CYCLE_SM,
    FILL_INSTRUCTIONS,
    GLOBAL_LATENCY,
    LARGE_CLUSTER_CORES,
    LAUNCH_S,
    MEMORY_BYTES_PER_S,
)
from .residency import allotted, resident_blocks, rounds_of

Array = npt.NDArray[np.float64]

MOST_WRITTEN = 256
"""Instructions of the intrinsic that are written out in a fill: more take seconds to compile, and no longer fit the
instruction cache. A choice."""
OTHER_REGISTERS = 40
"""Registers of a thread for addresses and counters: kernels of 128 sums took 210 of 128 + 48 + these."""
UNIT_SPEEDS = {80: 2.0, 90: 2.2, 100: 2.0, 103: 2.0}
"""Instructions of warps in the cycles of one on other capabilities, where `Intrinsic.cycles` is of: 1024 multiply-adds
of fp16 a cycle and multiprocessor (A100 white paper). A multiprocessor of 9.0 has 2048 (H100 data sheet), of which
`mma.sync` reaches 0.55 (by hand on an H200, products of 4096)."""
LEAST_FLOPS = 2.5e9
"""Operations of products up to which some estimates stay what the cost model that ships was trained on."""
PRINTED, PRINTED_FLOPS = 0.75, 2.0e9
"""Part of that speed which our kernels reach, in products of at least so many operations: smaller ones keep what the
cost model that ships was trained on. Of 283 x 6720 x 688 and 472 x 2916 x 2752 the best by warps take 13.2 and 33.6 us
on an H200, which were estimated at 11.1 and 29.0, and by warp groups 10.2 and 25.0 (12.5 and 29.6)."""
APART = 0.2
"""Part of the time of what runs beside the slowest unit that is not hidden: so the model gives 372 us for products of
4096 in tiles of 128 x 128, which take 358 to 371 by hand on an H200."""
NARROW_CYCLES, NARROW_LOADS, NARROW_MORE = 8.0, 64, 0.4
"""Cycles that a fill takes for each load of fewer by a warp, and more for each of a thread's beyond so many that are
written out, as code leaves the cache of instructions. On an H200 a load takes 95 cycles where one warp has 288, 44
where it has 128 and 27 where it has 64; by four warps 92, 77 and 32 to 57 where a thread has 144, 48 and 32; 97 by
eight with 20, 7 by each of six in three blocks with 16 (products of 1192 x 448 x 1651, 112 x 96 x 761, 360 x 1920 x
5999, 64 x 1209 x 2794, 482 x 1503 x 277 and 22 x 895 x 8000)."""
COPY_BYTES_PER_S = 3.0e12
"""Bytes a second, read and written, of a kernel that copies a factor. With what memory gives, products of
64 x 1209 x 2794 and 472 x 2916 x 2752 are estimated at 12.7 and 29.0 us, and take 15.2 and 33.1 on an H200."""
MOST_IDLE = 4
"""Elements copied by all threads at a time over those of a tile, at most: other threads wait. A choice: three quarters
of the threads wait for a copy that is short."""


@dataclass(frozen=True)
class TensorModel:
    """The shape of one product on matrix units: `a` and `b` rows, `k` steps, `batch` times over.

    `warps`, `tiles`, `steps`, `stages`, `group` and `split` name the numbers of a candidate: warps of a block and
    matrices of a warp along each side, steps of the intrinsic between two fills, fills under way, rows of tiles that
    are taken together, and parts of k on blocks of their own ("" for one), which a
    second kernel joins, or blocks that are `clustered`. `vectors` are the elements that a thread copies at once of each
    factor. `cluster` names the blocks along rows and along columns of tiles that share what they copy, if any do,
    and rows and columns `beyond` those that are asked for are less than a tile's then. `join` names the results that a
    thread of a cluster adds up parts for at once. A kernel before copies `copied_bytes` of factors to rows of whole
    vectors.
    """

    target: Target
    intrinsic: Intrinsic
    batch: int
    rows: tuple[int, int]
    depth: int
    vectors: tuple[int, int]
    warps: tuple[str, str]
    tiles: tuple[str, str]
    steps: str
    stages: str
    group: str
    split: str = ""
    clustered: bool = False
    cluster: tuple[str, ...] = ()
    beyond: tuple[int, int] = (0, 0)
    join: str = ""
    copied_bytes: int = 0

    @property
    def _bytes(self) -> int:
        return self.intrinsic.a.bytes

    @property
    def is_sure(self) -> bool:
        """True where candidates are told apart better than by the cost model that ships."""
        return False

    def columns_of(self, c: Columns) -> Array:
        """Columns of the instruction."""
        return np.full(len(c[self.steps]), float(self.intrinsic.n))

    def _tile(self, c: Columns) -> tuple[Array, Array]:
        """Rows and columns of a block's tile."""
        m, n = (c[warps] * c[tiles] for warps, tiles in zip(self.warps, self.tiles, strict=True))
        return np.asarray(m * self.intrinsic.m, np.float64), np.asarray(n * self.columns_of(c), np.float64)

    def _covered(self, c: Columns) -> tuple[Array, Array]:
        """Rows and columns that all tiles have."""
        one = np.ones(len(c[self.steps]))
        return self.rows[0] * one, self.rows[1] * one

    @property
    def _moved_bytes(self) -> int:
        """Bytes of both factors that memory moves at least."""
        return self.batch * sum(self.rows) * self.depth * self._bytes

    @property
    def _result_bytes(self) -> int:
        """Bytes that memory moves for a result: a sum's, as stores of 4 bytes by threads fill half of a sector."""
        return self.intrinsic.c.bytes

    def _warps(self, c: Columns) -> Array:
        """Warps of a block, or warp groups."""
        return np.asarray(c[self.warps[0]] * c[self.warps[1]], np.float64)

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return self.intrinsic.threads * self._warps(c)

    def _fill(self, c: Columns) -> Array:
        """Steps of k in a fill."""
        return np.asarray(self.intrinsic.k * c[self.steps], np.float64)

    def _part(self, c: Columns) -> Array:
        """Steps of k in a part."""
        return np.asarray(self.depth // c[self.split] if self.split else np.full(len(c[self.steps]), self.depth))

    def fill_bytes(self, c: Columns) -> Array:
        """Bytes that a block copies for a fill."""
        m, n = self._tile(c)
        return np.asarray((m + n) * self._fill(c) * self._bytes)

    def shared_bytes(self, c: Columns) -> Array:
        """Bytes of all fills that are there at a time."""
        return np.asarray(self.fill_bytes(c) * c[self.stages])

    def registers(self, c: Columns) -> Array:
        """Registers of a thread: sums, the fragments of one step, and others."""
        x, (m, n) = self.intrinsic, self.tiles
        sums = c[m] * c[n] * x.registers("c")
        return np.asarray(sums + c[m] * x.registers("a") + c[n] * x.registers("b") + OTHER_REGISTERS, np.float64)

    def _allotted(self, c: Columns) -> Array:
        """Registers that a thread takes of a multiprocessor's."""
        return allotted(self.registers(c))

    def written(self, c: Columns) -> Array:
        """Instructions of the intrinsic that are written out in a fill."""
        return np.asarray(c[self.tiles[0]] * c[self.tiles[1]] * c[self.steps] * (self.intrinsic.n // 8))

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tiles divide the product, and threads, shared memory, registers and code are within what there is."""
        on = multiprocessor_of(self.target)
        threads, fill = self.threads(c), self._fill(c)
        mask = (threads <= self.target.max_threads_per_block) & (self.written(c) <= MOST_WRITTEN)
        mask &= self.shared_bytes(c) <= self.target.max_shared_bytes
        mask &= (self.registers(c) <= on.registers_per_thread) & (self._allotted(c) * threads <= on.registers)
        tiles = self._tile(c)
        rows, columns = self._covered(c)
        for extent, tile in zip((rows, columns), tiles, strict=True):
            mask &= extent % tile == 0
        down, across = self._shared_by(c)
        mask &= self._copies_fit(c) & (rows // tiles[0] % (c[self.group] * down) == 0)
        mask &= columns // tiles[1] % across == 0
        if self.split:
            mask &= self.depth % c[self.split] == 0
        return np.asarray(mask & (self._part(c) % fill == 0) & (c[self.stages] <= self._part(c) // fill))

    def _shared_by(self, c: Columns) -> tuple[Array, Array]:
        """Blocks of a cluster along rows of tiles, which want the same columns, and along columns of tiles."""
        if not self.cluster:
            one = np.ones(len(c[self.steps]))
            return one, one
        down, across = (np.asarray(c[name], np.float64) for name in self.cluster)
        return down, across

    def _copies_fit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where threads copy a tile in whole rounds, or few of them idle."""
        mask, fill = np.ones(len(c[self.steps]), np.bool_), self._fill(c)
        for tile, vector in zip(self._tile(c), self.vectors, strict=True):
            copied = self.threads(c) * vector
            mask &= (tile * fill % copied == 0) | (copied <= MOST_IDLE * tile * fill)
        return mask

    def blocks(self, c: Columns) -> Array:
        """Blocks of threads."""
        count = np.prod(self._covered(c), axis=0) * self.batch / np.prod(self._tile(c), axis=0)
        return np.asarray(count * c[self.split] if self.split else count)

    def _resident(self, c: Columns) -> Array:
        """Blocks of a multiprocessor at a time."""
        return resident_blocks(self.target, self.threads(c), self._allotted(c), self.shared_bytes(c))

    def _copy_instructions(self, c: Columns) -> Array:
        """Instructions of a thread for a fill."""
        narrow = min(self.vectors) * self._bytes < ROW_BYTES
        pairs = zip(self._tile(c), self.vectors, strict=True)
        copies = sum(np.ceil(tile * self._fill(c) / self.threads(c) / vector) for tile, vector in pairs)
        return np.asarray(copies * (16 if narrow else 4) + FILL_INSTRUCTIONS)

    def _of_narrow_loads(self, c: Columns, resident: Array) -> Array:
        """Cycles that blocks wait for what threads copy through registers for a fill."""
        loads, warps = np.zeros(len(c[self.steps])), self.threads(c) / WARP
        for tile, vector in zip(self._tile(c), self.vectors, strict=True):
            if vector * self._bytes < min(ASYNC_BYTES):
                loads += np.ceil(tile * self._fill(c) / self.threads(c) / vector)
        return np.asarray(
            loads * (NARROW_CYCLES * warps * resident + NARROW_MORE * np.maximum(0, loads - NARROW_LOADS))
        )

    def _unhidden(self, c: Columns) -> Array:
        """Cycles that a block waits for a fill: without a pipeline nothing hides them."""
        unhidden = GLOBAL_LATENCY + BARRIER_CYCLES + self.fill_bytes(c) / FILL_BYTES_PER_CYCLE_SM
        return np.where(c[self.stages] > 1, 0.0, unhidden)

    def _busy(self, c: Columns, parts: Sequence[Array], apart: float) -> Array:
        """Cycles in which a multiprocessor's units work for all of its blocks, of which a part is not hidden.

        Without a pipeline nothing is: blocks that begin together copy together, and multiply together. A convolution of
        128x14x14x256 took 103 us so on an H200 with three blocks on a multiprocessor, 67 were expected.
        """
        most, total = np.max(parts, axis=0), np.sum(parts, axis=0)
        piped = most + apart * (total - most)
        return np.asarray(np.where(c[self.stages] > 1, piped, total + GLOBAL_LATENCY) + 2 * BARRIER_CYCLES)

    def _of_fill(self, c: Columns, resident: Array) -> Array:
        """Cycles of one fill of shared memory and its use, of all resident blocks."""
        on, x, warps = multiprocessor_of(self.target), self.intrinsic, self._warps(c)
        products = c[self.tiles[0]] * c[self.tiles[1]] * c[self.steps] * x.cycles / self._speed
        rows = c[self.tiles[0]] * x.m + c[self.tiles[1]] * x.n
        loaded = rows * self._fill(c) * self._bytes / on.shared_bytes_per_cycle
        parts = [
            resident * warps / on.schedulers * np.maximum(products, self._copy_instructions(c)),
            resident * warps * loaded,
            resident * self.fill_bytes(c) / FILL_BYTES_PER_CYCLE_SM,
        ]
        busy = self._busy(c, parts, APART)
        alone = np.maximum(1.0, warps / on.schedulers) * products + warps * loaded * APART + 2 * BARRIER_CYCLES
        alone = alone + self._of_narrow_loads(c, resident)
        ahead = GLOBAL_LATENCY / np.maximum(1.0, c[self.stages] - 1.0)
        return np.asarray(np.maximum(busy, np.maximum(alone + self._unhidden(c), ahead)))

    @property
    def _speed(self) -> float:
        large = 2.0 * self.batch * prod(self.rows) * self.depth >= PRINTED_FLOPS
        return UNIT_SPEEDS.get(self.target.compute_capability, 1.0) * (PRINTED if large else 1.0)

    def _cycles(self, c: Columns) -> Array:
        """Cycles from the first block of threads to the last."""
        resident, blocks = self._resident(c), self.blocks(c)
        whole, rest = rounds_of(blocks, self._cores(c), resident)
        fills = self._part(c) / self._fill(c) + np.minimum(c[self.stages] - 1.0, 1)
        once = self._of_fill(c, np.maximum(1.0, rest))
        busy = fills * (whole * self._of_fill(c, resident) + np.where(rest > 0, once, 0.0))
        return np.asarray(busy + self._of_ends(c, whole + (rest > 0)))

    def _cores(self, c: Columns) -> Array:
        """Multiprocessors that blocks can be placed on, all of a cluster near each other."""
        cores = np.full(len(c[self.steps]), float(max(1, self.target.cores)))
        return np.where(c[self.split] > 2, LARGE_CLUSTER_CORES * cores, cores) if self.clustered else cores

    def _of_join(self, c: Columns) -> Array:
        """Seconds from the parts of a tile to their sums, without what both cost memory.

        The threads of a cluster read what each of its blocks has of their share, which is a tile's.
        """
        if not self.clustered:
            return np.full(len(c[self.steps]), LAUNCH_S)
        under_way = CLUSTER_READS * self.intrinsic.c.bytes * c[self.join]
        rate = np.minimum(FILL_BYTES_PER_CYCLE_SM, self.threads(c) * under_way / GLOBAL_LATENCY)
        read = np.prod(self._tile(c), axis=0) * self.intrinsic.c.bytes
        return np.asarray(CLUSTER_JOIN_S + read / rate / CLOCK_HZ)

    @property
    def _parts_in_memory(self) -> float:
        """Part of the bytes of partial sums that count as those of memory do."""
        return 1.0

    def _of_ends(self, c: Columns, rounds: Array) -> Array:
        """Cycles in which blocks begin and end, and nothing is multiplied, of so many rounds of blocks."""
        return np.full(len(rounds), 2.0 * GLOBAL_LATENCY)

    def seconds(self, c: Columns) -> Array:
        """A rough time: instructions, shared and global traffic, and the latency that nothing hides."""
        results, sums = self.batch * prod(self.rows), self.intrinsic.c.bytes
        moved = self._moved_bytes + results * self._result_bytes
        seconds = np.maximum(self._cycles(c) / CLOCK_HZ, moved / MEMORY_BYTES_PER_S) + LAUNCH_S
        if self.copied_bytes:
            seconds = seconds + LAUNCH_S + 2.0 * self.copied_bytes / COPY_BYTES_PER_S
        if self.split:
            parts = 2.0 * results * c[self.split] * sums * self._parts_in_memory
            seconds = seconds + self._of_join(c) + parts / MEMORY_BYTES_PER_S
        return np.asarray(seconds)
