"""Analytic model of dot products by the threads of a block on a GPU, as array expressions over a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from ...dialects.intrinsics_cuda import REGISTER_BYTES
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import BARRIER_CYCLES, LAUNCH_S, STEP_INSTRUCTIONS
from .residency import resident_blocks

Array = npt.NDArray[np.float64]

SHUFFLE_CYCLES = 30
"""Cycles of one exchange within a warp and the addition behind it, about: 23 and 4 by microbenchmarks of Volta."""
READ_BYTES_PER_S = 4.45e12
"""Bandwidth of memory for what is read alone: 235 MB take 53.5 us on an H200, a launch included."""
MEMORY_CYCLES = 1000
"""Cycles from a load to its value where memory is busy. A choice between 800 and 1300, which choose alike."""
BLOCK_CYCLES, RESULT_CYCLES = 300, 10
"""Cycles in which a block of threads begins and ends, and to write a result. A choice: they keep blocks from reading
4 KB each, which take 10.3 us for 33 MB where those of 8 take 9.3."""
ROLLED = 4
"""Iterations of a loop whose loads the assembler asks for at once, about: it unrolls short loops so, and candidates of
1, 2 and 4 vectors a thread take times within 1% of each other."""
UNROLLED = 200
"""Statements up to which it does (`backends.cuda.language.Cuda`): of 7 rows with four columns an iteration has 112
multiply-adds, and waits for its loads by itself: 192 columns of 1152 terms take 5.4 us on an H200 in 32 threads, where
2.8 were estimated and chosen, and 2.6 in 128 with a column."""
CACHED_BYTES_PER_CYCLE = 51
"""Bytes of rows and columns that a multiprocessor gets in a cycle, beyond what it keeps of rows. Fitted, with
`UNROLLED` and `WRITTEN_CYCLES`: of 246 candidates of 16 products of 1 to 16 rows (an H200), some 12 of each and those
in slices, what is estimated least takes 1.26 times the fastest one's time without them, 1.18 with `WRITTEN_CYCLES`,
1.15 with this, too, and 1.11 with all."""
ENDS = 0.15
"""Part of the time of a round of blocks that the ends of all blocks take more. Of 319 candidates of five products of a
row, with weights that come from memory (an H200), what is estimated least takes 1.00 to 1.015 times the fastest one's
time with 0.1, with 0.2 and with this, where rounds that were counted whole chose 1.03 to 1.08 times."""
IDLE = 0.5
"""Part of the time in which threads have no terms left that others do not make up for. With 0 a row of 14336 halves is
read in steps of 16384: 30.4 us for 28.4."""
WRITTEN_CYCLES = 8
"""Cycles to fetch an instruction of a step that is written out, once. Eight rows with 488 columns of 648 terms take 9.9
us on an H200 in columns of eight, whose step is some 1,500 instructions for threads with a term of the last step and
some without, and 4.1 in columns of one."""
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
        """A rough time: the columns from memory by what is under way, or arithmetic and its loads, and the last blocks.

        Blocks that begin together end together, so that others which do not fill a round have memory to themselves, and
        do not ask for as much as it gives: of what a round reads a part counts more.
        """
        on, (threads, tile, steps) = multiprocessor_of(self.target), self._numbers(c)
        cores, products, own = max(1, self.target.cores), 1 + self.alike, self.rows * self.beside
        each = self.outer * np.ceil(self.columns / tile) / cores
        resident = np.minimum(resident_blocks(self.target, threads, self.registers(c)), np.ceil(each))
        iterations = np.ceil(self.terms / (threads * self.vector * steps))
        whole = self.terms % (threads * self.vector * steps) == 0
        statements = (self.rows * tile * self.vector + self.rows + tile) * steps
        rolled = np.maximum(1.0, np.minimum(ROLLED / steps, UNROLLED // statements))
        at_once = np.where(whole, np.minimum(iterations, rolled), 1.0)
        sums = products * self.rows * tile + own
        joined = (1 + products * self.rows) * (5 * SHUFFLE_CYCLES + np.where(threads > WARP, 2 * BARRIER_CYCLES, 0))
        alone = products * MEMORY_CYCLES * np.ceil(iterations / at_once) + BLOCK_CYCLES + joined + RESULT_CYCLES * sums
        read = products * tile * self.terms * self.element_bytes
        fetched = np.maximum(read / (READ_BYTES_PER_S / CLOCK_HZ / cores), alone / resident)
        fmas = sums * self.terms / on.lanes
        loads = (products * (self.rows + tile) + own) * self.terms * self.element_bytes / CACHED_BYTES_PER_CYCLE
        loops = products * iterations * STEP_INSTRUCTIONS * (threads / WARP) / on.schedulers
        idle = IDLE * (iterations * steps * threads * self.vector / self.terms - 1)
        block = np.maximum(np.maximum(fetched * (1 + idle), loads), fmas + loops)
        written = (self.rows * tile + 2 * (self.rows + tile)) * self.vector * steps * np.where(whole, 1.0, 2.0)
        block = block + WRITTEN_CYCLES * written / each
        return np.asarray((each + ENDS * np.minimum(resident, each)) * block / CLOCK_HZ + LAUNCH_S)
