"""Analytic model of attention on lanes of a GPU, as array expressions over a population: limits, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.element import FLOAT32_BYTES
from ...dialects.multiprocessor import BANKS, CLOCK_HZ, VECTOR, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import (
    BARRIER_CYCLES,
    FILL_BYTES_PER_CYCLE_SM,
    GLOBAL_LATENCY,
    LAUNCH_S,
    SPARE_REGISTERS,
)
from .gpu_tile import PADDING
from .residency import allotted, cycles_of_rounds, resident_blocks

Array = npt.NDArray[np.float64]

ELEMENT_INSTRUCTIONS = 60
"""Instructions for a score beside its products: stored, read three times, two exponentials, a division. Counted in the
code, not measured."""
MOST_RESULTS = 128
"""Scores of a thread, at most: each is a register, beside those of queries and keys. A choice: half of them."""


@dataclass(frozen=True)
class LaneAttentionModel:
    """Attention of `queries` to `keys`, `batch` times over; `sizes` are the elements of a key, and of a value.

    `names` are those of the numbers of a candidate: warps of a block, queries of a warp, elements of a key and values
    of a fill, and stages of both pipelines.
    """

    target: Target
    batch: int
    queries: int
    keys: int
    sizes: tuple[int, int]
    names: tuple[str, str, str, str, str, str]

    def _numbers(self, c: Columns) -> list[Array]:
        return [np.asarray(c[name], np.float64) for name in self.names]

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return np.asarray(WARP * self._numbers(c)[0])

    def shared_bytes(self, c: Columns) -> Array:
        """Bytes of queries, keys and values that are there at a time, and of scores and weights."""
        warps, rows, step, terms, ahead, values_ahead = self._numbers(c)
        row = np.ceil((step - PADDING) / BANKS) * BANKS + PADDING  # as rows begin in other banks
        copied = (self.keys + warps * rows) * row * ahead + terms * self.sizes[1] * values_ahead
        return np.asarray(FLOAT32_BYTES * (copied + 2 * warps * rows * (self.keys + VECTOR)))

    def _scores(self, c: Columns) -> Array:
        """Scores of a thread."""
        return np.asarray(self._numbers(c)[1] * -(-self.keys // WARP))

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Threads, shared memory and registers within what there is, and no more stages than fills."""
        _, _, step, terms, ahead, values_ahead = self._numbers(c)
        most = self.target.max_threads_per_block or multiprocessor_of(self.target).threads
        mask = (self.threads(c) <= most) & (self.shared_bytes(c) <= self.target.max_shared_bytes)
        mask &= (self._scores(c) <= MOST_RESULTS) & (ahead <= np.ceil(self.sizes[0] / step))
        return np.asarray(mask & (values_ahead <= np.ceil(self.keys / terms)))

    def _resident(self, c: Columns) -> Array:
        """Blocks that a multiprocessor has at a time."""
        registers = self._scores(c) + (self._numbers(c)[1] + 1) * VECTOR + 24 + SPARE_REGISTERS
        return resident_blocks(self.target, self.threads(c), allotted(registers), self.shared_bytes(c))

    def seconds(self, c: Columns) -> Array:
        """A rough time: multiply-adds or loads of shared memory, copies, and the latency that nothing hides."""
        on, (warps, rows, step, terms, *_) = multiprocessor_of(self.target), self._numbers(c)
        key, value = self.sizes
        lanes, columns = -(-self.keys // WARP), value // WARP
        scored, summed = key / VECTOR, self.keys / VECTOR
        fmas = VECTOR * rows * (scored * lanes + summed * columns)
        loads = scored * (VECTOR * lanes + rows) + summed * (VECTOR * columns + rows)
        issue = (fmas + scored * (lanes + rows) + summed * (VECTOR + rows)) + rows * lanes * ELEMENT_INSTRUCTIONS
        blocks = self.batch * np.ceil(self.queries / (warps * rows))
        fills = np.ceil(key / step) + np.ceil(self.keys / terms)
        copied = FLOAT32_BYTES * (self.keys * (key + value) + warps * rows * key)

        def together(resident: Array) -> Array:
            """Cycles of so many blocks of a multiprocessor at a time."""
            issued = np.ceil(resident * warps / on.schedulers) * issue
            busy = np.maximum(issued, resident * warps * loads) + resident * copied / FILL_BYTES_PER_CYCLE_SM
            return np.asarray(busy + fills * BARRIER_CYCLES + 3 * GLOBAL_LATENCY)

        cycles = cycles_of_rounds(blocks, max(1, self.target.cores), self._resident(c), together)
        return np.asarray(cycles / CLOCK_HZ + LAUNCH_S)
