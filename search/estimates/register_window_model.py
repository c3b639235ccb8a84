"""Analytic model of windows of one channel whose data go from global memory to the registers of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.element import FLOAT32_BYTES
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import WARP, Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .gpu_model import (
    BOOST,
    FILL_BYTES_PER_CYCLE_SM,
    GLOBAL_LATENCY,
    LAUNCH_S,
    LINE_ELEMENTS,
    RESULT_INSTRUCTIONS,
    Array,
    part_of_places,
)
from .residency import allotted, cycles_of_rounds, resident_blocks

PLACE_INSTRUCTIONS = 40
"""Instructions of a thread to find its place, about. Counted in the code, not measured."""
LOAD_INSTRUCTIONS, PADDED_INSTRUCTIONS = 1.5, 3.0
"""Instructions to load an element, and one that may be padding: a test of its row and one of its column, which others
share, and a choice. Counted in the code."""
COSTLY_INSTRUCTIONS, COSTLY_CYCLES = 40.0, 140.0
"""Instructions to write a result of which an exponential or a quotient is taken, and cycles that a thread takes for it,
one result after the other. Fitted: of 13 layers with channels last and x sigmoid(x) behind them (an H200) what is
estimated least takes 1.02 times the fastest one's time, 1.16 without; of 17 with channels first and ReLU 1.02."""
MOST_REGISTERS = 200
"""Registers of a thread up to which such a window is taken. A choice: of 255, some are for places and tests."""
MOST_WASTE = 1.5
"""Times the results that threads compute, at most. A choice: beyond it smaller tiles do the same."""


@dataclass(frozen=True)
class WindowAxis:
    """An axis that windows of so many taps move along by `stride`; `inner` names the hole of a thread's results."""

    extent: int
    taps: int
    stride: int
    dilation: int
    inner: str

    def read(self, c: Columns) -> Array:
        """Elements of the data that a thread's results read along it; those between taps are in no code."""
        inner = c[self.inner].astype(np.float64)
        part = part_of_places(inner, np.full(len(inner), float(self.taps)), self.stride, self.dilation)
        return np.asarray(inner * self.taps * part)

    def tiles(self, c: Columns) -> Array:
        """Threads along it."""
        return np.ceil(self.extent / c[self.inner].astype(np.float64))


@dataclass(frozen=True)
class RegisterWindows:
    """The time of a kernel each of whose threads loads what its results read, once, and adds up in registers.

    There are `others` results beside those along `axes`, the last of which neighbouring threads are along, or channels
    behind it where they are `last`. Data may be `padded`, and what is computed of a result `costly`.
    """

    target: Target
    others: int
    axes: tuple[WindowAxis, ...]
    threads: str
    last: bool
    padded: bool
    costly: bool

    def _read(self, c: Columns) -> Array:
        """Elements of the data that a thread loads."""
        return np.asarray(prod(axis.read(c) for axis in self.axes))

    def _results(self, c: Columns) -> Array:
        """Results of a thread."""
        return np.asarray(prod(c[axis.inner].astype(np.float64) for axis in self.axes))

    @property
    def _taps(self) -> int:
        return prod(axis.taps for axis in self.axes)

    def _registers(self, c: Columns) -> Array:
        return np.asarray(self._read(c) + self._results(c) + self._taps + 24)

    def limit(self, c: Columns) -> npt.NDArray[np.bool_]:
        """Registers that a thread has, and few results beyond the last."""
        waste = prod(axis.tiles(c) * c[axis.inner] / axis.extent for axis in self.axes)
        return np.asarray((self._registers(c) <= MOST_REGISTERS) & (waste <= MOST_WASTE))

    def seconds(self, c: Columns) -> Array:
        """A rough time: instructions, wavefronts of the first-level cache, bytes, and the latency nothing hides."""
        on, cores, last = multiprocessor_of(self.target), max(1, self.target.cores), self.axes[-1]
        threads, read, results = c[self.threads].astype(np.float64), self._read(c), self._results(c)
        blocks = np.ceil(self.others * prod(axis.tiles(c) for axis in self.axes) / threads)
        written = COSTLY_INSTRUCTIONS if self.costly else RESULT_INSTRUCTIONS
        issue = PLACE_INSTRUCTIONS + read * (LOAD_INSTRUCTIONS + PADDED_INSTRUCTIONS * self.padded)
        issue = issue + self._taps * LOAD_INSTRUCTIONS + results * (self._taps + written)
        apart = 1.0 if self.last else c[last.inner] * float(last.stride)
        lines = np.minimum(WARP, 1.0 + apart * WARP / LINE_ELEMENTS)
        weights, stored = (lines, 1.0) if self.last else (1.0, np.minimum(WARP, c[last.inner]))
        wavefronts = read * lines + self._taps * weights + results * stored
        alone = results * COSTLY_CYCLES * self.costly
        filled = threads * (read / prod(axis.taps / axis.stride for axis in self.axes) + results) * FLOAT32_BYTES
        registers = allotted(self._registers(c))

        def block(resident: Array) -> Array:
            """Cycles of as many blocks at a time."""
            warps = resident * threads / WARP
            issued = BOOST * np.ceil(warps / on.schedulers) * issue
            moved = np.maximum(warps * wavefronts, resident * filled / FILL_BYTES_PER_CYCLE_SM)
            return np.maximum(np.maximum(issued, moved), alone) + GLOBAL_LATENCY

        cycles = cycles_of_rounds(blocks, cores, resident_blocks(self.target, threads, registers), block)
        return np.asarray(cycles / CLOCK_HZ + LAUNCH_S)
