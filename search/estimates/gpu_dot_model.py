"""Analytic model of dot products by the threads of a block on a GPU, as array expressions over a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...dialects.intrinsics_cuda import REGISTER_BYTES
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch.hole import Columns
from .gpu_model import BARRIER_CYCLES, GLOBAL_LATENCY, LAUNCH_S, MEMORY_BYTES_PER_S, STEP_INSTRUCTIONS

Array = npt.NDArray[np.float64]

SHUFFLE_CYCLES = 30
"""Cycles of one exchange within a warp and the addition behind it, about: 23 and 4 by microbenchmarks of Volta."""
OTHER_REGISTERS = 32
"""Registers of a thread for addresses and counters, about. A choice between the 24 that features count and the 40 that
products on matrix units take."""


@dataclass(frozen=True)
class GpuDotModel:
    """Products of `rows` with `columns`, both contiguous along `terms`, `outer` times over; all rows in one block.

    `threads` name those that join a dot product, `tile` the columns of a block, and `steps` the vectors of `vector`
    elements of each column that a thread has under way. `beside` are other sums of as many terms of each row, which all
    blocks compute, `alike` other products of the same form, of which they compute the same columns.
    """

    target: Target
    outer: int
    rows: int
    columns: int
    terms: int
    vector: int
    element_bytes: int
    threads: str
    tile: str
    steps: str
    beside: int = 0
    alike: int = 0

    def _numbers(self, c: Columns) -> tuple[Array, Array, Array]:
        threads, tile, steps = (np.asarray(c[name], np.float64) for name in (self.threads, self.tile, self.steps))
        return threads, tile, steps

    def registers(self, c: Columns) -> Array:
        """Registers of a thread: sums, the vectors that are under way, and others."""
        _, tile, steps = self._numbers(c)
        held = (self.rows + tile) * steps * self.vector * self.element_bytes / REGISTER_BYTES
        return np.asarray(self.rows * tile + held + OTHER_REGISTERS)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Registers and threads are within what there is, each thread has a term, and no tile is half empty."""
        on, (threads, tile, steps) = multiprocessor_of(self.target), self._numbers(c)
        mask = (self.registers(c) <= on.registers_per_thread) & (self.registers(c) * threads <= on.registers)
        mask &= (threads <= self.target.max_threads_per_block) & (tile < 2 * self.columns)
        return np.asarray(mask & (threads * steps * self.vector <= self.terms))

    def seconds(self, c: Columns) -> Array:
        """A rough time: the columns from memory by what is under way, arithmetic and its loads, joining, balance."""
        on, (threads, tile, steps) = multiprocessor_of(self.target), self._numbers(c)
        cores = max(1, self.target.cores)
        blocks = self.outer * np.ceil(self.columns / tile)
        resident = np.minimum(on.registers // (self.registers(c) * threads), on.threads // threads)
        resident = np.maximum(1, np.minimum(np.minimum(resident, on.blocks), np.ceil(blocks / cores)))
        under_way = resident * threads * tile * steps * self.vector * self.element_bytes
        rate = np.minimum(MEMORY_BYTES_PER_S / CLOCK_HZ / cores, under_way / GLOBAL_LATENCY)
        products, own = 1 + self.alike, self.rows * self.beside
        fetched = products * tile * self.terms * self.element_bytes / rate
        fmas = (products * self.rows * tile + own) * self.terms / on.lanes
        loaded = products * (self.rows + tile) + own
        loads = loaded * self.terms * self.element_bytes / on.shared_bytes_per_cycle
        loops = (
            products
            * self.terms
            / (threads * steps * self.vector)
            * STEP_INSTRUCTIONS
            * (threads / WARP)
            / on.schedulers
        )
        joined = (products * self.rows * tile + own) * (
            5 * SHUFFLE_CYCLES + np.where(threads > WARP, 2 * BARRIER_CYCLES, 0)
        )
        block = np.maximum(np.maximum(fetched, loads), fmas + loops) + (GLOBAL_LATENCY + joined) / resident
        return np.asarray(np.ceil(blocks / cores) * block / CLOCK_HZ + LAUNCH_S)
