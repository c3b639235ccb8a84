"""Analytic model of a product by warp groups, which multiply what is in shared memory: limits, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

import numpy.typing as npt

from ...dialects.kernel import ATOM_ROWS, MOST_BOX
from ...dialects.multiprocessor import CLOCK_HZ, GPU_LINE_BYTES, multiprocessor_of
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import BARRIER_CYCLES, GLOBAL_LATENCY, MEMORY_BYTES_PER_S
from .residency import SHARED_RESERVED
from .tensor_model import LEAST_FLOPS, OTHER_REGISTERS, Array, TensorModel

SUSTAINED = 0.85
"""Part of the data sheet's rate, 2048 multiply-adds of fp16 a cycle and multiprocessor, that the clock leaves under
load: products of 4096 take 149 us at that rate, and 183 by cuBLAS on an H200."""
FILL_BYTES_PER_CYCLE = 64
"""Bytes that a multiprocessor gets from the second-level cache in a cycle by its copy engine. Products of 1024 x 1536 x
2048 take 67 on an H200 in tiles of 64 x 192; those of 128 x 96 and 128 x 128 take 49 and 55, as shared memory is what
they wait for. Of 48 and 64 the choices differ there alone, among products of 128 to 8192 rows."""
CORRECTED_FLOPS, OTHER_FILL = 5e9, 48
"""Operations up to which windows of images whose rows lie across lines (other products: `LEAST_FLOPS`) keep the bytes
that the cost model that ships was trained on, as do copies by threads. By lines, products of 1000 and of 1024 x 1024 x
1032 take 10.5 us each on an H200, where they take 8.8 and 9.1; six others of whole lines take 5.0 for 5.7 in the mean,
with 0.99x as the least gain."""
LINE_CYCLES = 1.75
"""Cycles of a multiprocessor for a line of the second-level cache. Rows of 4112 bytes, whose 128 for a fill lie in two
lines, take 1.6 to 1.9 a line on an H200, in three forms of tiles of products of 1024 x 1536 x 2056, by 128 blocks;
by 92 of 237 x 2208 x 5712 1.38, by 210 of 283 x 6720 x 688 1.6: all multiprocessors together get so many, about 75."""
CLUSTER_MEET_CYCLES = 50
"""Cycles of a fill that two blocks of a cluster wait for each other. Products of 1024 x 1536 x 2048 and of 1024, which
do not wait for the cache, take 0.9 and 0.4 us more on an H200 with what they share, of 32 and 16 fills."""
BULK_APART, COPIED_APART = 0.05, 0.17
"""Part of the time of what runs beside the slowest unit that is not hidden, where the copy engine copies, and where
threads do: products of 4096 take 203 us and 269, by hand on an H200."""
MOST_PRODUCTS = 32
"""Products that are written out in a fill, each with a name for every sum of a thread. A choice: the assembler's time
against loops around products."""
WALK_LATENCY, WALK_END = 1600, 8000
"""Cycles from the request of a fill of pixels to its arrival, and those of the first copies and last stores of a block,
of windows beyond what the cost model corrects. Fitted to convolutions of batch 128: with fills in two places 28 x 28
pixels of 128 channels take 81.8 us on an H100, in three 57.3; of 117 candidates on an H200 those of the least estimate
take 1.01 times the fastest ones' time, with ends of 4800 cycles 1.06."""
STREAM_BYTES, STREAM_PART = 16e6, 0.5
"""Bytes of factors that no cache is taken to hold, and the part of the products' time that they take at least to come
from memory, of products whose estimates are those of streams. A choice: the cost model that ships saw few of these."""
STREAM_LATENCY, STREAM_APART, STREAM_FILL = 1250, 0.08, 40
"""Cycles from the request of a fill to its arrival from memory, the part of what a fill waits for so that counts even
where others take longer, and those of any fill. Fitted, as the four below, to 800 candidates of 16 products of 64 to
1024 rows on an H200, whose weights are read in turn from 240 MB: those estimated to be the fastest take 1.05 times the
fastest's time in the mean, those chosen before 1.17 times. Four fills of 64 x 128 for 256 rows of 4096 x 4096 take 22.5
us, eight 17.7."""
STREAM_AGAIN, STREAM_BESIDE = 0.2, 0.1
"""Parts of factors that come from memory once more for each block that wants them, apart or beside another one. Weights
of 14336 x 4096 for 128 rows take 42.6 us where blocks with the same columns are 64 apart, 33.3 as neighbours."""
STREAM_PARTS = 0.75
"""Part of the bytes of partial sums that counts as memory's: they stay in the second-level cache."""
STREAM_CYCLES = 0.88
"""Cycles over those of other products: a device that waits for memory keeps its clock."""
BARRIER_BYTES = 8
"""Bytes of a barrier that copies arrive at, one for each fill."""
ALIGNMENT = 1024
"""Bytes that swizzled matrices start at multiples of, which may be lost at the start (PTX ISA, swizzling modes)."""


@dataclass(frozen=True)
class GroupModel(TensorModel):
    """The shape of one product by warp groups; `warps` names the numbers of groups, of 128 threads.

    `columns` names the columns of the instruction ("" for those of `intrinsic`), `resident` the blocks that fit a
    multiprocessor. Factors are copied in `bulk` by the copy engine, or by threads; `turned` ones lie with rows of the
    matrix as neighbours. `row_bytes` are those from one row of a factor in memory to the next. Of steps of k, `run` are
    neighbours in memory, 0 for all: a box has no more. With a `tail` tiles of rows need not divide them. Where
    these are `walked` over, as windows that `overlap`, so many of their elements are in memory for each of them;
    their results may be stored in `whole` sectors.
    """

    columns: str = ""
    resident: str = ""
    bulk: bool = False
    turned: tuple[bool, bool] = (False, False)
    row_bytes: tuple[int, int] = (GPU_LINE_BYTES, GPU_LINE_BYTES)
    run: int = 0
    tail: bool = False
    walked: bool = False
    overlap: float = 1.0
    whole: bool = False

    def columns_of(self, c: Columns) -> Array:
        return np.asarray(c[self.columns], np.float64) if self.columns else super().columns_of(c)

    def _sums(self, c: Columns) -> Array:
        """Sums of a thread."""
        each = self.intrinsic.m * self.columns_of(c) / self.intrinsic.threads
        return np.asarray(c[self.tiles[0]] * c[self.tiles[1]] * each * self.intrinsic.c.bytes / 4)

    def registers(self, c: Columns) -> Array:
        """Registers of a thread: sums and others, as factors stay in shared memory."""
        return self._sums(c) + OTHER_REGISTERS

    def shared_bytes(self, c: Columns) -> Array:
        """Bytes of all fills that are there at a time, of their barriers, and what alignment takes."""
        return super().shared_bytes(c) + BARRIER_BYTES * c[self.stages] + ALIGNMENT

    def written(self, c: Columns) -> Array:
        return np.asarray(c[self.tiles[0]] * c[self.tiles[1]] * c[self.steps])

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The same, with as many blocks on a multiprocessor as asked for."""
        on, blocks = multiprocessor_of(self.target), c[self.resident]
        mask = super().limit(c) & (self.written(c) <= MOST_PRODUCTS)
        mask &= blocks * self._allotted(c) * self.threads(c) <= on.registers
        mask &= (blocks * (self.shared_bytes(c) + SHARED_RESERVED) <= on.shared_bytes) | (blocks == 1)
        return np.asarray(mask & (blocks * self.threads(c) <= on.threads))

    def _copies_fit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """True where a box holds a tile, or threads copy it in whole rounds: more would move the fills behind it."""
        mask, tiles = np.asarray(self._fill(c) <= MOST_BOX), self._tile(c)
        if not self.bulk:
            for tile, vector in zip(tiles, self.vectors, strict=True):
                mask &= tile * self._fill(c) % (self.threads(c) * vector) == 0
            return mask
        if self.run:
            mask &= self.run % self._fill(c) == 0
        down, across = self._shared_by(c)
        for tile, turned, blocks in zip(tiles, self.turned, (across, down), strict=True):
            mask &= turned | (tile <= MOST_BOX)
            mask &= (self._fill(c) if turned else tile) % (ATOM_ROWS * blocks) == 0
        if not self.cluster:
            return mask
        for tile, beyond in zip(tiles, self.beyond, strict=True):
            mask &= tile > beyond
        return np.asarray(mask & (down * across == 2))

    def _covered(self, c: Columns) -> tuple[Array, Array]:
        rows, columns = super()._covered(c)
        tile, _ = self._tile(c)
        return (np.ceil(rows / tile) * tile if self.tail else rows), columns

    @property
    def _moved_bytes(self) -> int:
        rows = self.overlap * self.rows[0] + self.rows[1]
        return int(self.batch * rows * self.depth * self._bytes)

    @property
    def _result_bytes(self) -> int:
        return self.intrinsic.a.bytes if self.walked and self.whole else super()._result_bytes

    def _resident(self, c: Columns) -> Array:
        asked = np.asarray(c[self.resident], np.float64)
        return np.maximum(asked, super()._resident(c)) if self._is_large_walk or self._is_stream else asked

    def _of_fill(self, c: Columns, resident: Array) -> Array:
        """Cycles of one fill and its use: of products, shared memory, copies from the cache and from global memory.

        Blocks of a cluster run ahead by a fill less, as the slower one holds the other: three fills of two blocks on a
        multiprocessor take 16.4 us for 1000 x 1512 x 2056 on an H200, five of one 15.0.
        """
        on, x, n = multiprocessor_of(self.target), self.intrinsic, self.columns_of(c)
        count = self._warps(c) * self.written(c)
        products = count * x.cycles * n / x.n / SUSTAINED
        moved = count * (x.m + n) * x.k * self._bytes + self.fill_bytes(c)
        parts = [
            resident * products,
            resident * moved / on.shared_bytes_per_cycle,
            resident * self._asked_bytes(c) / self._fill_rate,
            resident * self._lines(c) * self._line_cycles * self._running(c, resident),
            self._distinct(c, resident) * self._fill(c) * self._bytes / (MEMORY_BYTES_PER_S / CLOCK_HZ),
        ]
        if not self.bulk:
            parts.append(resident * self.threads(c) / 32 / on.schedulers * self._copy_instructions(c))
        busy = self._busy(c, parts, BULK_APART if self.bulk else COPIED_APART)
        alone = products + self._unhidden(c) + 2 * BARRIER_CYCLES
        if not self.bulk:
            alone = alone + self._of_narrow_loads(c, resident)
        latency = WALK_LATENCY if self._is_large_walk else STREAM_LATENCY if self._is_stream else GLOBAL_LATENCY
        arriving = latency + resident * self._asked_bytes(c) / self._fill_rate
        ahead = arriving / np.maximum(1.0, c[self.stages] - 1.0 - bool(self.cluster))
        waits = CLUSTER_MEET_CYCLES * bool(self.cluster)
        if self._is_stream:
            waits = waits + STREAM_FILL + STREAM_APART * ahead
        return np.asarray(np.maximum(busy, np.maximum(alone, ahead)) + waits)

    @property
    def _is_by_lines(self) -> bool:
        """True for products to which the rates of bytes and of lines by the copy engine apply."""
        whole = not any(stride % GPU_LINE_BYTES for stride in self.row_bytes)
        least = CORRECTED_FLOPS if self.walked else LEAST_FLOPS
        return self.bulk and (whole or 2 * self.batch * prod(self.rows) * self.depth > least)

    @property
    def _is_large_walk(self) -> bool:
        """True for windows of images beyond what the cost model corrects."""
        return self.walked and 2 * self.batch * prod(self.rows) * self.depth > CORRECTED_FLOPS

    @property
    def is_sure(self) -> bool:
        return self._is_stream

    @property
    def _is_stream(self) -> bool:
        """True for products that take about as long as factors that no cache holds take to come from memory."""
        products = self.batch * prod(self.rows) * self.depth / (self.intrinsic.m * self.intrinsic.n * self.intrinsic.k)
        rate = max(1, self.target.cores) * SUSTAINED * CLOCK_HZ / self.intrinsic.cycles
        needed_s = self._moved_bytes / MEMORY_BYTES_PER_S
        return self.bulk and self._moved_bytes >= STREAM_BYTES and needed_s >= STREAM_PART * products / rate

    def _cycles(self, c: Columns) -> Array:
        return np.asarray(super()._cycles(c) * (STREAM_CYCLES if self._is_stream else 1.0))

    @property
    def _parts_in_memory(self) -> float:
        return STREAM_PARTS if self._is_stream else 1.0

    @property
    def _fill_rate(self) -> float:
        """Bytes of fills that come in a cycle."""
        return FILL_BYTES_PER_CYCLE if self._is_by_lines else OTHER_FILL

    @property
    def _line_cycles(self) -> float:
        return LINE_CYCLES if self._is_by_lines else 0.0

    def _running(self, c: Columns, resident: Array) -> Array:
        """Part of the blocks that there is place for which run: what they all get of the cache is fewer's."""
        if self.walked or self._is_stream:
            return np.ones(len(resident))
        return np.minimum(1.0, self.blocks(c) / self._cores(c) / resident)

    def _asked_bytes(self, c: Columns) -> Array:
        """Bytes of a fill that a block asks for: its share of what several of its cluster want."""
        (m, n), (down, across) = self._tile(c), self._shared_by(c)
        return np.asarray((m / across + n / down) * self._fill(c) * self._bytes)

    def _lines(self, c: Columns) -> Array:
        """Lines that the rows of a fill lie in that a block asks for, in the mean of where these start in a line."""
        fill, found = self._fill(c), np.zeros(len(c[self.steps]))
        down, across = self._shared_by(c)
        sides = zip(self._tile(c), self.turned, self.row_bytes, (across, down), strict=True)
        for tile, turned, stride, blocks in sides:
            rows, length = (fill, tile) if turned else (tile, fill)
            beside = GPU_LINE_BYTES - gcd(stride, GPU_LINE_BYTES)
            found += rows / blocks * np.maximum(1.0, (length * self._bytes + beside) / GPU_LINE_BYTES)
        return found

    def _distinct(self, c: Columns, resident: Array) -> Array:
        """Rows of both factors that all blocks which run at a time read: others of them find them in the cache."""
        m, n = self._tile(c)
        across = self.rows[1] // n
        running = np.minimum(max(1, self.target.cores) * resident, self.blocks(c))
        down = np.maximum(c[self.group], np.ceil(running / across))
        beside = np.minimum(across, np.ceil(running / c[self.group]))
        rows = self.overlap * np.minimum(down * m, self.rows[0]) + beside * n
        if not self._is_stream:
            return np.asarray(rows)
        beside_each_other = c[self.group] * self._shared_by(c)[0]
        apart = np.maximum(0.0, np.minimum(down, np.ceil(self.rows[0] / m)) / beside_each_other - 1.0)
        parts = np.maximum(1.0, running * m * n / prod(self.rows))
        again = STREAM_AGAIN * apart + STREAM_BESIDE * (np.ceil(self.rows[0] / m) - 1.0)
        return np.asarray((rows + again * beside * n) * parts)

    def _of_ends(self, c: Columns, rounds: Array) -> Array:
        """Cycles of the first copies and the last stores, which nothing hides of a block alone; several take turns."""
        m, n = self._tile(c)
        first = WALK_END if self._is_large_walk else 2 * GLOBAL_LATENCY
        end = first + m * n * self.intrinsic.a.bytes / self._fill_rate
        return np.asarray(end * np.maximum(1.0, rounds / self._resident(c)))
