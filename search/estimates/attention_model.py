"""Analytic model of attention on matrix units, as array expressions over a population: limits, and an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from ...dialects.intrinsics import Intrinsic
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import (
    BARRIER_CYCLES,
    CLUSTER_JOIN_S,
    FILL_BYTES_PER_CYCLE_SM,
    FILL_INSTRUCTIONS,
    GLOBAL_LATENCY,
    LAUNCH_S,
    MEMORY_BYTES_PER_S,
)
from .group_model import ALIGNMENT, BARRIER_BYTES, SUSTAINED
from .residency import allotted, resident_blocks, rounds_of
from .tensor_model import APART, MOST_WRITTEN, UNIT_SPEEDS, Array

ELEMENT_INSTRUCTIONS = 16
"""Instructions for a score: scale, mask, maximum, exponential, sum, roundings. Counted in the code, not measured."""
RESULT_INSTRUCTIONS = 3
"""Instructions for an element of a result in each block of keys: the running sum is scaled, and the new one added.
Counted in the code, not measured."""
GROUP_ELEMENT_INSTRUCTIONS, GROUP_RESULT_INSTRUCTIONS = 7, 1
"""The same of warp groups, which need no instructions to load factors and to start sums. Counted, not measured."""
ISSUED_APART, ISSUED_ALONE, ENOUGH_WARPS = 0.93, 0.4, 3
"""Cycles of an instruction beside the products of warp groups, and what each warp of a scheduler fewer than enough
adds: what 4 and 8 warps took with 64 and 128 elements and keys, and 1 to 4 blocks a multiprocessor, on an H200, within
20%. It is as if none were issued while products are multiplied."""
GROUP_WAIT_CYCLES, GROUP_START_CYCLES = 120.0, 1500.0
"""Cycles from the end of a warp group's products to what waits for them, and of tensor maps and barriers before the
first block of keys. Guessed so that attention of 128 queries, which warps do in 3.6 us on an H200, is left to them."""
OTHER_REGISTERS = 72
"""Registers of a thread for fragments, rows, addresses and counters: 151 are taken of 64 keys and elements, 211 of 32
queries, 32 keys and 64 elements, 223 of 64 keys and 128 elements (CUDA 13, sm_90)."""
HIDING = 4.0
"""The power of the norm in which the times of multiprocessors and of memory add up: of two that are alike a fifth is
not hidden. With a maximum, candidates that memory bounds were all alike, and of a token beside 16 caches of 8192 keys
one was taken that leaves 34% of the bandwidth of a copy. Of 60 candidates of each of 4 such cases, times of which go
with the estimates by 0.94 to 0.99 (of logarithms), those chosen are within 10% of the fastest on an H200."""
RELUCTANCE = 1e-3
"""Part of the time that each block more costs which registers are to let fit: of equals the one that asks for least. A
choice: less than estimates can tell apart."""
GROUP_OTHER_REGISTERS = 24
"""The same of warp groups, which load no fragments: 95 are taken of 64 keys and elements, 126 of 64 keys and 128
elements, 140 of 128 keys and 64 elements, 185 of 128 and 128, without a spill (CUDA 13, sm_90a)."""
ROW_INSTRUCTIONS = 30
"""Instructions for a row that a thread shares: shuffles, and the factors of sums. Counted in the code, not measured."""

JOIN_STEP_CYCLES = 30
"""Cycles in which a thread takes one more part into a result: the parts' factors depend on each other. A token of 8
heads of 4 queries beside 1024 keys of 128 elements takes 6.2 us in 32 parts and 5.1 in 16 (an H200), which were 7.1 and
7.2 by estimates without them."""


@dataclass(frozen=True)
class AttentionModel:
    """Attention of `queries` to `keys`, `batch` times over; `sizes` are the elements of a key, and of a value.

    `names` are those of the numbers of a candidate: warps of a block, matrices of 16 queries of a warp, keys of a
    block, and blocks of keys that are there or under way; `resident` is that of the blocks that registers are for.
    Queries and keys are `ragged` where they are extended to whole tiles. Where attention `ends_early`, each query sees
    one key more than the one before, the last one all of them, and blocks of keys that none of a tile sees are skipped.
    `divided` names the parts of the keys that blocks of threads take, "" for one, which a second kernel joins, or
    blocks that are `clustered`.
    """

    target: Target
    intrinsic: Intrinsic
    batch: int
    queries: int
    keys: int
    sizes: tuple[int, int]
    names: tuple[str, str, str, str]
    resident: str
    ragged: tuple[bool, bool] = (False, False)
    ends_early: bool = False
    divided: str = ""
    clustered: bool = False

    element_instructions: ClassVar[float] = ELEMENT_INSTRUCTIONS
    result_instructions: ClassVar[float] = RESULT_INSTRUCTIONS
    other_registers: ClassVar[int] = OTHER_REGISTERS
    product_wait: ClassVar[float] = 0.0
    start: ClassVar[float] = 0.0
    """Cycles of a wait for a product beside its own, and of a launch before the first block of keys."""

    def _numbers(self, c: Columns) -> tuple[Array, Array, Array, Array]:
        warps, tiles, terms, stages = (np.asarray(c[name], np.float64) for name in self.names)
        return warps, tiles, terms, stages

    @property
    def _rows_of_warp(self) -> float:
        """Queries of a matrix that a warp computes."""
        return self.intrinsic.m * WARP / self.intrinsic.threads

    def threads(self, c: Columns) -> Array:
        """Threads of a block."""
        return WARP * self._numbers(c)[0]

    def shared_bytes(self, c: Columns) -> Array:
        """Bytes of queries, and of all blocks of keys and values that are there at a time."""
        warps, tiles, terms, stages = self._numbers(c)
        key, value = self.sizes
        queries = warps * tiles * self._rows_of_warp * key
        return np.asarray((queries + stages * terms * (key + value)) * self.intrinsic.a.bytes)

    def registers(self, c: Columns) -> Array:
        """Registers of a thread: running sums, scores, and the weights that the second product takes."""
        x, (_, tiles, terms, _) = self.intrinsic, self._numbers(c)
        rows = tiles * x.m / x.threads
        scores, weights, sums = rows * terms, rows * terms * x.a.bytes / x.c.bytes, rows * self.sizes[1]
        return np.asarray(sums + scores + weights + self.other_registers)

    def _products(self, c: Columns) -> Array:
        """Instructions of a warp in a block of keys."""
        x, (_, tiles, terms, _) = self.intrinsic, self._numbers(c)
        return np.asarray(2 * tiles * terms * sum(self.sizes) / 2 / (x.n * x.k))

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Tiles divide queries and keys, and threads, shared memory, registers and code are within what there is."""
        on, (warps, tiles, terms, stages) = multiprocessor_of(self.target), self._numbers(c)
        threads, registers = self.threads(c), self.registers(c)
        mask = (threads <= self.target.max_threads_per_block) & (registers <= on.registers_per_thread)
        mask &= allotted(registers) * threads * c[self.resident] <= on.registers
        mask &= self.shared_bytes(c) <= self.target.max_shared_bytes
        mask &= self._products(c) * (self.intrinsic.n // 8) <= MOST_WRITTEN
        rows = warps * tiles * self._rows_of_warp
        mask &= rows < self.queries + self.intrinsic.m if self.ragged[0] else self.queries % rows == 0
        whole = self.keys % terms == 0
        mask &= np.ceil(self.keys / terms) % self._parts(c) == 0
        return np.asarray(mask & (whole | self.ragged[1]) & (stages <= self._of_part(c)))

    def _parts(self, c: Columns) -> Array:
        """Parts of the keys on blocks of threads of their own."""
        return np.asarray(c[self.divided] if self.divided else np.ones(len(c[self.resident])), np.float64)

    def _of_part(self, c: Columns) -> Array:
        """Blocks of keys that a block of threads goes over, at most."""
        return np.asarray(np.ceil(self.keys / c[self.names[2]]) / self._parts(c))

    def _joined(self, c: Columns) -> Array:
        """Seconds in which parts are joined, by each thread an element of a result: 3 numbers of each."""
        if not self.divided:
            return np.zeros(len(c[self.resident]))
        moved = 2 * 3 * self.batch * self.queries * self.sizes[1] * self.intrinsic.c.bytes * self._parts(c)
        start = CLUSTER_JOIN_S if self.clustered else LAUNCH_S
        cycles = 2 * GLOBAL_LATENCY + JOIN_STEP_CYCLES * self._parts(c)
        return np.asarray(start + cycles / CLOCK_HZ + moved / MEMORY_BYTES_PER_S)

    def _resident(self, c: Columns) -> Array:
        """Blocks of a multiprocessor at a time."""
        return resident_blocks(self.target, self.threads(c), allotted(self.registers(c)), self.shared_bytes(c))

    def _product_cycles(self, c: Columns) -> Array:
        """Cycles of a scheduler for the products of a warp in a block of keys."""
        speed = UNIT_SPEEDS.get(self.target.compute_capability, 1.0)
        return np.asarray(self._products(c) * self.intrinsic.cycles / speed)

    def _busy(self, parts: list[Array], warps: Array) -> Array:
        """Cycles of products, other instructions, reads of shared memory and copies, by so many warps a scheduler."""
        most = np.max(parts, axis=0)
        return np.asarray(most + APART * (np.sum(parts, axis=0) - most))

    def _of_block(self, c: Columns, resident: Array) -> Array:
        """Cycles of a block of keys in all resident blocks of threads."""
        on, x, (warps, tiles, terms, stages) = multiprocessor_of(self.target), self.intrinsic, self._numbers(c)
        key, value = self.sizes
        rows = tiles * x.m / x.threads
        products = self._product_cycles(c)
        issued = rows * (terms * self.element_instructions + value * self.result_instructions)
        issued = issued + 2 * tiles * ROW_INSTRUCTIONS + self._products(c) + FILL_INSTRUCTIONS
        filled = terms * (key + value) * x.a.bytes
        loaded = (filled + tiles * self._rows_of_warp * key * x.a.bytes) / on.shared_bytes_per_cycle
        schedulers = resident * warps / on.schedulers
        parts = [schedulers * products, schedulers * issued, resident * warps * loaded]
        parts.append(resident * filled / FILL_BYTES_PER_CYCLE_SM)
        busy = self._busy(parts, schedulers) + 2 * BARRIER_CYCLES
        waiting = np.where(stages > 1, 0.0, GLOBAL_LATENCY + filled / FILL_BYTES_PER_CYCLE_SM)
        alone = np.maximum(1.0, warps / on.schedulers) * (products + issued) + waiting + 2 * BARRIER_CYCLES
        alone = alone + 2 * self.product_wait
        ahead = GLOBAL_LATENCY / np.maximum(1.0, stages - 1.0)
        return np.asarray(np.maximum(busy + waiting / resident, np.maximum(alone, ahead)))

    def _steps(self, c: Columns) -> Array:
        """Blocks of keys that a tile of queries goes over, on average."""
        warps, tiles, terms, _ = self._numbers(c)
        every, rows = self._of_part(c), warps * tiles * self._rows_of_warp
        if not self.ends_early:
            return np.asarray(every)
        seeing = min(self.queries, self.keys)
        seen = (self.keys - seeing / 2) * seeing / self.queries + rows / 2
        in_part = np.maximum(0.0, 1 - rows / terms) / 2
        return np.asarray(np.minimum(seen / terms + in_part, every))

    def seconds(self, c: Columns) -> Array:
        """A rough time: products, arithmetic of the softmax, shared and global traffic, and latency.

        Where tiles of queries have more or fewer blocks of keys, those run at a time that end last have all of them.
        """
        warps, tiles, _, _ = self._numbers(c)
        cores, resident = max(1, self.target.cores), self._resident(c)
        blocks = self.batch * np.ceil(self.queries / (warps * tiles * self._rows_of_warp)) * self._parts(c)
        whole, rest = rounds_of(blocks, cores, resident)
        once = self._of_block(c, np.maximum(1.0, rest))
        full = self._of_block(c, resident)
        last = (self._of_part(c) + 1) * np.where(whole > 0, full, once)
        cycles = (self._steps(c) + 1) * (whole * full + np.where(rest > 0, once, 0.0))
        cycles = np.maximum(cycles, last) + 2.0 * GLOBAL_LATENCY + self.start
        key, value = self.sizes
        moved = self.batch * (self.queries + self.keys) * (key + value) * self.intrinsic.a.bytes
        cycles = cycles * (1 + RELUCTANCE * c[self.resident])
        parts = (cycles / CLOCK_HZ, np.full(len(cycles), moved / MEMORY_BYTES_PER_S))
        together = np.sum(np.power(parts, HIDING), axis=0) ** (1 / HIDING)
        return np.asarray(together + LAUNCH_S + self._joined(c))


@dataclass(frozen=True)
class GroupAttentionModel(AttentionModel):
    """The same by warp groups, which read keys and values from shared memory by themselves."""

    element_instructions: ClassVar[float] = GROUP_ELEMENT_INSTRUCTIONS
    result_instructions: ClassVar[float] = GROUP_RESULT_INSTRUCTIONS
    other_registers: ClassVar[int] = GROUP_OTHER_REGISTERS
    product_wait: ClassVar[float] = GROUP_WAIT_CYCLES
    start: ClassVar[float] = GROUP_START_CYCLES

    def shared_bytes(self, c: Columns) -> Array:
        """Those, barriers of the copies, and what alignment takes."""
        return super().shared_bytes(c) + BARRIER_BYTES * c[self.names[3]] + ALIGNMENT

    def _busy(self, parts: list[Array], warps: Array) -> Array:
        """Products and other instructions one behind the other, of which few warps issue fewer in a cycle."""
        products, issued, _, copied = parts
        each = ISSUED_APART + ISSUED_ALONE * np.maximum(0.0, ENOUGH_WARPS - warps)
        return np.asarray(np.maximum(products + issued * each, copied))

    def _product_cycles(self, c: Columns) -> Array:
        """Cycles of all schedulers for the products of a warp group, each of which has a warp of it."""
        return np.asarray(self._products(c) * self.intrinsic.cycles / SUSTAINED)

    def _resident(self, c: Columns) -> Array:
        """As many as registers are asked to let fit: of 64 keys and elements 131 are taken with a mask, else 128."""
        return np.asarray(np.minimum(super()._resident(c), c[self.resident]))
