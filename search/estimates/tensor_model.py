"""Analytic model of a product on matrix units, as array expressions over a population: limits, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ...dialects.intrinsics import ROW_BYTES, Intrinsic
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import Target
from ..sketch.hole import Columns
from .gpu_model import (
    BARRIER_CYCLES,
    FILL_BYTES_PER_CYCLE_SM,
    FILL_INSTRUCTIONS,
    GLOBAL_LATENCY,
    LAUNCH_S,
    MEMORY_BYTES_PER_S,
    SHARED_RESERVED,
)

Array = npt.NDArray[np.float64]

MOST_WRITTEN = 256
"""Instructions of the intrinsic that are written out in a fill: more take seconds to compile, and no longer fit the
instruction cache."""
OTHER_REGISTERS = 40
"""Registers of a thread for addresses and counters: kernels of 128 sums took 210 of 128 + 48 + these."""
FAST_UNITS = (80, 90, 100, 103)
"""Capabilities whose matrix units take half the cycles of the others' (A100 and H100 white papers)."""
APART = 0.3
"""Part of the time of what runs beside the slowest unit that is not hidden. Not measured."""
MOST_IDLE = 4
"""Elements copied by all threads at a time over those of a tile, at most: other threads wait."""


@dataclass(frozen=True)
class TensorModel:
    """The shape of one product on matrix units: `a` and `b` rows, `k` steps, `batch` times over.

    `warps`, `tiles`, `steps`, `stages`, `group` and `split` name the numbers of a candidate: warps of a block and
    matrices of a warp along each side, steps of the intrinsic between two fills, fills under way, rows of tiles that
    are taken together, and parts of k on blocks of their own ("" for one). `vectors` are the elements that a thread
    copies at once of each factor.
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

    @property
    def _bytes(self) -> int:
        return self.intrinsic.a.bytes

    def _tile(self, c: Columns) -> tuple[Array, Array]:
        """Rows and columns of a block's tile."""
        sides = (self.intrinsic.m, self.intrinsic.n)
        m, n = (c[w] * c[t] * side for w, t, side in zip(self.warps, self.tiles, sides, strict=True))
        return np.asarray(m, np.float64), np.asarray(n, np.float64)

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return np.asarray(self.intrinsic.threads * c[self.warps[0]] * c[self.warps[1]], np.float64)

    def _fill(self, c: Columns) -> Array:
        """Steps of k in a fill."""
        return np.asarray(self.intrinsic.k * c[self.steps], np.float64)

    def _part(self, c: Columns) -> Array:
        """Steps of k in a part."""
        return np.asarray(self.depth // c[self.split] if self.split else np.full(len(c[self.steps]), self.depth))

    def shared_bytes(self, c: Columns) -> Array:
        """Bytes of all fills that are there at a time."""
        m, n = self._tile(c)
        return np.asarray((m + n) * self._fill(c) * self._bytes * c[self.stages])

    def registers(self, c: Columns) -> Array:
        """Registers of a thread: sums, the fragments of one step, and others."""
        x, (m, n) = self.intrinsic, self.tiles
        sums = c[m] * c[n] * x.registers("c")
        return np.asarray(sums + c[m] * x.registers("a") + c[n] * x.registers("b") + OTHER_REGISTERS, np.float64)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tiles divide the product, and threads, shared memory, registers and code are within what there is."""
        on, x = multiprocessor_of(self.target), self.intrinsic
        threads, fill = self.threads(c), self._fill(c)
        written = c[self.tiles[0]] * c[self.tiles[1]] * c[self.steps] * (x.n // 8)
        mask = (threads <= self.target.max_threads_per_block) & (written <= MOST_WRITTEN)
        mask &= self.shared_bytes(c) <= self.target.max_shared_bytes
        rounded = np.ceil(self.registers(c) / 8) * 8
        mask &= (self.registers(c) <= on.registers_per_thread) & (rounded * threads <= on.registers)
        for extent, tile, vector in zip(self.rows, self._tile(c), self.vectors, strict=True):
            copied = threads * vector
            mask &= (extent % tile == 0) & ((tile * fill % copied == 0) | (copied <= MOST_IDLE * tile * fill))
            mask &= (extent // tile % c[self.group] == 0) | (extent != self.rows[0])
        if self.split:
            mask &= self.depth % c[self.split] == 0
        return np.asarray(mask & (self._part(c) % fill == 0) & (c[self.stages] <= self._part(c) // fill))

    def blocks(self, c: Columns) -> Array:
        """Blocks of threads."""
        count = prod(self.rows) * self.batch / np.prod(self._tile(c), axis=0)
        return np.asarray(count * c[self.split] if self.split else count)

    def _resident(self, c: Columns) -> Array:
        """Blocks of a multiprocessor at a time."""
        on, threads = multiprocessor_of(self.target), self.threads(c)
        registers = np.ceil(self.registers(c) / 8) * 8
        most = np.minimum(on.threads // threads, on.shared_bytes // (self.shared_bytes(c) + SHARED_RESERVED))
        return np.asarray(np.maximum(1, np.minimum(most, on.registers // (registers * threads))))

    def _cycles(self, c: Columns) -> Array:
        """Cycles from the first block of threads to the last."""
        on, x = multiprocessor_of(self.target), self.intrinsic
        (m, n), fill, warps = self._tile(c), self._fill(c), self.threads(c) / x.threads
        rate = x.cycles / (2 if self.target.compute_capability in FAST_UNITS else 1)
        products = c[self.tiles[0]] * c[self.tiles[1]] * c[self.steps] * rate
        loaded = (c[self.tiles[0]] * x.m + c[self.tiles[1]] * x.n) * fill * self._bytes / on.shared_bytes_per_cycle
        filled = (m + n) * fill * self._bytes
        copies = sum(np.ceil(t * fill / self.threads(c) / v) for t, v in zip((m, n), self.vectors, strict=True))
        narrow = min(self.vectors) * self._bytes < ROW_BYTES
        stages = c[self.stages].astype(np.float64)
        unhidden = GLOBAL_LATENCY + BARRIER_CYCLES + filled / FILL_BYTES_PER_CYCLE_SM
        waiting = np.where(stages > 1, 0.0, unhidden)
        ahead = GLOBAL_LATENCY / np.maximum(1.0, stages - 1)

        def iteration(resident: Array) -> Array:
            """Cycles of one fill of shared memory and its use, of all resident blocks."""
            issued = np.maximum(products, copies * (16 if narrow else 4) + FILL_INSTRUCTIONS)
            parts = [
                resident * warps / on.schedulers * issued,
                resident * warps * loaded,
                resident * filled / FILL_BYTES_PER_CYCLE_SM,
            ]
            most = np.max(parts, axis=0)
            busy = most + APART * (np.sum(parts, axis=0) - most) + 2 * BARRIER_CYCLES
            alone = np.maximum(1.0, warps / on.schedulers) * products + warps * loaded * APART + 2 * BARRIER_CYCLES
            return np.asarray(np.maximum(busy, np.maximum(alone + waiting, ahead)))

        cores, resident, blocks = max(1, self.target.cores), self._resident(c), self.blocks(c)
        whole = blocks // (cores * resident)
        rest = np.ceil((blocks - whole * cores * resident) / cores)
        fills = self._part(c) / fill + np.minimum(stages - 1, 1)
        once = iteration(np.maximum(1.0, rest))
        return np.asarray(fills * (whole * iteration(resident) + np.where(rest > 0, once, 0.0)) + 2 * GLOBAL_LATENCY)

    def seconds(self, c: Columns) -> Array:
        """A rough time: instructions, shared and global traffic, and the latency that nothing hides."""
        results, sums = self.batch * prod(self.rows), self.intrinsic.c.bytes
        moved = self.batch * sum(self.rows) * self.depth * self._bytes + results * sums
        seconds = np.maximum(self._cycles(c) / CLOCK_HZ, moved / MEMORY_BYTES_PER_S) + LAUNCH_S
        if self.split:
            seconds = seconds + LAUNCH_S + 2.0 * results * c[self.split] * sums / MEMORY_BYTES_PER_S
        return np.asarray(seconds)
