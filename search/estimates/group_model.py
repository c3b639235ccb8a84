"""Analytic model of a product by warp groups, which multiply what is in shared memory: limits, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...dialects.kernel import MOST_BOX
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ..sketch.hole import Columns
from .gpu_model import BARRIER_CYCLES, GLOBAL_LATENCY, MEMORY_BYTES_PER_S, SHARED_RESERVED
from .tensor_model import OTHER_REGISTERS, Array, TensorModel

SUSTAINED = 0.85
"""Part of the data sheet's rate, 2048 multiply-adds of fp16 a cycle and multiprocessor, that the clock leaves under
load: products of 4096 take 149 us at that rate, and 183 by cuBLAS on an H200."""
FILL_BYTES_PER_CYCLE = 48
"""Bytes that a multiprocessor gets from the second-level cache in a cycle by its copy engine: products of 1024 to 4096
in tiles of 128 x 128 and 64 x 128, which wait for little else, take 44 to 48 on an H200."""
BULK_APART, COPIED_APART = 0.05, 0.17
"""Part of the time of what runs beside the slowest unit that is not hidden, where the copy engine copies, and where
threads do: products of 4096 take 203 us and 269, by hand on an H200."""
MOST_PRODUCTS = 32
"""Products that are written out in a fill, each with a name for every sum of a thread. A choice: the assembler's time
against loops around products."""
BARRIER_BYTES = 8
"""Bytes of a barrier that copies arrive at, one for each fill."""
ALIGNMENT = 1024
"""Bytes that swizzled matrices start at multiples of, which may be lost at the start (PTX ISA, swizzling modes)."""


@dataclass(frozen=True)
class GroupModel(TensorModel):
    """The shape of one product by warp groups; `warps` names the numbers of groups, of 128 threads.

    `columns` names the columns of the instruction ("" for those of `intrinsic`), `resident` the blocks that fit a
    multiprocessor. Factors are copied in `bulk` by the copy engine, or by threads; `turned` ones lie with rows of the
    matrix as neighbours.
    """

    columns: str = ""
    resident: str = ""
    bulk: bool = False
    turned: tuple[bool, bool] = (False, False)

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
        for tile, turned in zip(tiles, self.turned, strict=True):
            mask &= turned | (tile <= MOST_BOX)
        return mask

    def _resident(self, c: Columns) -> Array:
        return np.asarray(c[self.resident], np.float64)

    def _of_fill(self, c: Columns, resident: Array) -> Array:
        """Cycles of one fill and its use: of products, shared memory, copies from the cache and from global memory."""
        on, x, n = multiprocessor_of(self.target), self.intrinsic, self.columns_of(c)
        count = self._warps(c) * self.written(c)
        products = count * x.cycles * n / x.n / SUSTAINED
        moved = count * (x.m + n) * x.k * self._bytes + self.fill_bytes(c)
        parts = [
            resident * products,
            resident * moved / on.shared_bytes_per_cycle,
            resident * self.fill_bytes(c) / FILL_BYTES_PER_CYCLE,
            self._distinct(c, resident) * self._fill(c) * self._bytes / (MEMORY_BYTES_PER_S / CLOCK_HZ),
        ]
        if not self.bulk:
            parts.append(resident * self.threads(c) / 32 / on.schedulers * self._copy_instructions(c))
        busy = self._busy(c, parts, BULK_APART if self.bulk else COPIED_APART)
        alone = products + self._unhidden(c) + 2 * BARRIER_CYCLES
        arriving = GLOBAL_LATENCY + resident * self.fill_bytes(c) / FILL_BYTES_PER_CYCLE
        ahead = arriving / np.maximum(1.0, c[self.stages] - 1.0)
        return np.asarray(np.maximum(busy, np.maximum(alone, ahead)))

    def _distinct(self, c: Columns, resident: Array) -> Array:
        """Rows of both factors that all blocks which run at a time read: others of them find them in the cache."""
        m, n = self._tile(c)
        across = self.rows[1] // n
        running = np.minimum(max(1, self.target.cores) * resident, self.blocks(c))
        down = np.maximum(c[self.group], np.ceil(running / across))
        beside = np.minimum(across, np.ceil(running / c[self.group]))
        return np.asarray(np.minimum(down * m, self.rows[0]) + beside * n)

    def _of_ends(self, c: Columns, rounds: Array) -> Array:
        """Cycles of the first copies and the last stores, which nothing hides of a block alone; several take turns."""
        m, n = self._tile(c)
        end = 2 * GLOBAL_LATENCY + m * n * self.intrinsic.a.bytes / FILL_BYTES_PER_CYCLE
        return np.asarray(end * np.maximum(1.0, rounds / self._resident(c)))
