"""Estimate of attention on a CPU in tasks of some queries: both products in register tiles, softmax, and what is far.

Register tiles take what those of other products do (`product_model.py`), and what caches deliver is counted as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.target import LINE_BYTES, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .cache_traffic import KEPT
from .product_model import (
    FULL_REGISTERS,
    ISSUED_PER_CYCLE,
    KEPT_L1,
    L2_BYTES_PER_CYCLE,
    L3_BYTES_PER_CYCLE,
    PACKED_IN_CYCLES,
    SHARPNESS,
    STEP_CYCLES,
    VISIT_CYCLES,
    WAITED_FOR,
    WAITED_FOR_L2,
    whole_and_cut,
)
from .tile_model import CYCLES_PER_S, FMA_LATENCY

Array = npt.NDArray[np.float64]

TILE_CYCLES = 8.0
"""Cycles around the steps of a register tile: sums are set to zero, the loop ends once mispredicted (a choice)."""
EXP_INSTRUCTIONS = 18.0
"""Instructions of a vector of exponentials, with its load and its store (counted)."""
ORDERED_CYCLES = 5.0
"""Cycles from a maximum to the next one: it is compared, and where one is no number that stays (counted)."""
ADD_CYCLES = 4.0
"""The same of a sum of exponentials (counted)."""
JOINED_INSTRUCTIONS = 36.0
"""Instructions to join a vector of a block's weighted sums to the running ones: each has its own factors, of which one
is an exponential, and its own running sum and maximum (counted)."""
STORED_CYCLES = 8.0
"""Cycles to divide a vector of results, and to turn it: four loads, four shuffles of each, a store (counted)."""
MOVES = 8
"""Lines that a vector of scores and its exponentials move: each is fetched to be written, written back, and read twice
(counted)."""
TASK_CYCLES = 200.0
"""Cycles of a task beside: loops begin and end, of which each is mispredicted once (a choice)."""


@dataclass(frozen=True)
class CpuAttentionModel:
    """Attention of `queries` to `keys`, `batch` times over; `sizes` are the elements of a key, and of a value.

    `names` are those of the numbers of a candidate: vectors of `lanes` queries of a register tile, tiles of a task,
    keys and elements of a value of a register tile; `terms` is that of the keys of a block, "" where all are one. Where
    attention `ends_early`, blocks of keys that no query of a task sees are skipped.
    """

    target: Target
    batch: int
    queries: int
    keys: int
    sizes: tuple[int, int]
    lanes: int
    element_bytes: int
    names: tuple[str, str, str, str]
    terms: str = ""
    ends_early: bool = False

    def seconds(self, c: Columns) -> Array:
        """A rough time: register tiles of both products, passes of softmax, and what caches deliver meanwhile."""
        vectors, tiles, keys, columns = (np.asarray(c[name], np.float64) for name in self.names)
        every = np.full(len(vectors), float(self.keys))
        terms = np.asarray(c[self.terms], np.float64) if self.terms else every
        key, value = self.sizes
        rows = vectors * tiles * self.lanes
        cycles, passed = np.zeros(len(vectors)), self._passed(rows, terms)
        for number, of_tile in whole_and_cut(self._covered(rows, tiles), vectors):
            block = self._products(of_tile, whole_and_cut(terms, keys), key)
            block = block + self._products(of_tile, whole_and_cut(value, columns), terms)
            block = block + terms * (self._softmax(of_tile) + of_tile * passed)
            block = block + WAITED_FOR_L2 * self._near(of_tile, keys, columns, terms) / L2_BYTES_PER_CYCLE
            if self.terms:
                block = block + of_tile * value * (JOINED_INSTRUCTIONS / self.target.fma_per_cycle + passed)
            around = of_tile * (self.lanes * key * PACKED_IN_CYCLES + value * STORED_CYCLES)
            cycles = cycles + number * (self._seen(np.ceil(every / terms), rows, terms) * block + around)
        tasks = self.batch * np.ceil(self.queries / rows)
        far = self.batch * self.queries + tasks * self.keys * self._keys_go(rows)
        beside = tasks * TASK_CYCLES + WAITED_FOR * far * (key + value) * self.element_bytes / L3_BYTES_PER_CYCLE
        cycles = (self.batch * cycles + beside) / tasks
        return np.asarray(cycles * np.ceil(tasks / self.target.cores) / CYCLES_PER_S)

    def _keys_go(self, rows: Array) -> Array:
        """The part of tasks that have their keys and values from beyond the second-level cache: the first, or all."""
        keys_bytes = self.keys * sum(self.sizes) * self.element_bytes
        kept = keys_bytes <= KEPT * self.target.l2_bytes
        return np.where(kept, 1.0 / np.ceil(self.queries / rows), 1.0)

    def _covered(self, rows: Array, tiles: Array) -> Array:
        """Vectors of queries that are computed: with several tiles in each of several tasks all those of the last.

        Elsewhere the one register tile that the end cuts is written for what is left of it.
        """
        whole = np.ceil(self.queries / rows) * rows / self.lanes
        return np.where((tiles > 1) & (rows < self.queries), whole, float(-(-self.queries // self.lanes)))

    def _products(self, vectors: Array, others: Sequence[tuple[Array, Array]], steps: Array | int) -> Array:
        """Cycles of register tiles of so many vectors of queries, by keys or elements of a value."""
        found = np.zeros(len(vectors))
        for number, size in others:
            tile = steps * self._step(vectors, size) + TILE_CYCLES + vectors * size * VISIT_CYCLES
            found = found + number * tile
        return found

    def _step(self, vectors: Array, others: Array) -> Array:
        """Cycles of one step of a register tile."""
        fmas, loads = vectors * others, vectors + others
        issued = (fmas + loads + 2.0) / ISSUED_PER_CYCLE
        parts = (fmas / self.target.fma_per_cycle, loads / self.target.loads_per_cycle, issued)
        step = sum(one**SHARPNESS for one in (*parts, FMA_LATENCY)) ** (1 / SHARPNESS) + STEP_CYCLES
        every = fmas + vectors + 1.0 >= self.target.vector_registers
        return np.asarray(step * np.where(every, FULL_REGISTERS, 1.0))

    def _softmax(self, vectors: Array) -> Array:
        """Cycles of a key of softmax for a register tile: the largest, the exponential, their sum."""
        exponential = vectors * EXP_INSTRUCTIONS / self.target.fma_per_cycle
        largest = np.maximum(ORDERED_CYCLES, 3.0 * vectors / self.target.fma_per_cycle)
        return np.asarray(exponential + largest + np.maximum(ADD_CYCLES, vectors / self.target.fma_per_cycle))

    def _near(self, vectors: Array, keys: Array, columns: Array, terms: Array) -> Array:
        """Bytes that a register tile of queries has from the second-level cache in a block of keys."""
        (key, value), kept, size = self.sizes, KEPT_L1 * self.target.l1_bytes, self.element_bytes
        queries, weights = vectors * self.lanes * size * key, vectors * self.lanes * size * terms
        found = terms * (key + value) * size
        found = found + np.where(queries + keys * key * size > kept, np.ceil(terms / keys), 1.0) * queries
        beside = terms * np.minimum(LINE_BYTES, columns * size)
        found = found + np.where(weights + beside > kept, np.ceil(value / columns), 1.0) * weights
        return np.asarray(found)

    def _passed(self, rows: Array, terms: Array) -> Array:
        """Cycles that wait for a vector of scores and its exponentials, where a cache does not keep what a task has."""
        key, value = self.sizes
        kept = rows * (2 * terms + key + value * (4 if self.terms else 1)) * self.element_bytes
        near = WAITED_FOR_L2 * MOVES * LINE_BYTES / L2_BYTES_PER_CYCLE
        far = WAITED_FOR * MOVES * LINE_BYTES / L3_BYTES_PER_CYCLE
        beyond = np.where(kept > KEPT * self.target.l2_bytes, near + far, near)
        return np.asarray(np.where(kept > KEPT_L1 * self.target.l1_bytes, beyond, 0.0))

    def _seen(self, blocks: Array, rows: Array, terms: Array) -> Array:
        """Blocks of keys that a task goes over, on average."""
        if not self.ends_early:
            return blocks
        seeing = min(self.queries, self.keys)
        seen = (self.keys - seeing / 2) * seeing / self.queries + rows / 2
        return np.asarray(np.minimum(seen / terms + 0.5, blocks))
