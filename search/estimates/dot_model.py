"""Analytic model of dot products in lanes on a CPU, as array expressions over a population."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy.typing as npt

from ...dialects.target import Target
from ..sketch import arrays as np
from ..sketch.hole import Columns
from .tile_model import CYCLES_PER_S, FMA_LATENCY, LOOP_CYCLES

Array = npt.NDArray[np.float64]

JOIN_CYCLES = 2.0
"""Cycles of each halving of a vector of partial sums: a shuffle and an addition. With 1 and 4 none of 58 default
schedules changes (Zen 3)."""


@dataclass(frozen=True)
class DotModel:
    """Products of `rows` and `columns`, both contiguous along `terms`, `outer` times over.

    `rows`, `columns` and `vectors` name the numbers that say how many of each a register tile has; a vector holds
    `lanes` terms.
    """

    target: Target
    outer: int
    row_extent: int
    column_extent: int
    terms: int
    lanes: int
    rows: str
    columns: str
    width: str

    def limit_registers(self, c: Columns) -> npt.NDArray[np.bool_]:
        """The partial sums of a register tile, the vectors of its rows, and one of a column fit the registers."""
        rows, columns, vectors = self._tile(c)
        return np.asarray((rows * columns + np.minimum(rows, columns)) * vectors + 1 <= self.target.vector_registers)

    def limit_waste(self, c: Columns) -> npt.NDArray[np.bool_]:
        """No factor is above twice its extent, and none of the terms' but the narrowest."""
        rows, columns, _ = self._tile(c)
        fits = (rows < 2 * self.row_extent) & (columns < 2 * self.column_extent)
        return np.asarray(fits & ((c[self.width] <= self.lanes) | (c[self.width] < 2 * self.terms)))

    def _tile(self, c: Columns) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return c[self.rows], c[self.columns], np.maximum(1, c[self.width] // self.lanes)

    def seconds(self, c: Columns) -> Array:
        """A rough time: arithmetic and loads of the register tile, joining the lanes, tails, balance."""
        rows, columns, vectors = self._tile(c)
        fmas = (rows * columns * vectors).astype(np.float64)
        loads = ((rows + columns) * vectors).astype(np.float64)
        per_cycle = self.target.fma_per_cycle
        issue = np.maximum(fmas / per_cycle, loads / self.target.loads_per_cycle)
        step = np.maximum(issue, np.where(fmas < FMA_LATENCY * per_cycle, float(FMA_LATENCY), 0.0)) + LOOP_CYCLES
        steps = -(-self.terms // c[self.width])
        join = rows * columns * (vectors + JOIN_CYCLES * log2(max(2, self.lanes)))
        tasks = self.outer * -(-self.column_extent // columns).astype(np.float64)
        balance = np.ceil(tasks / self.target.cores) / tasks
        return np.asarray(tasks * balance * -(-self.row_extent // rows) * (steps * step + join) / CYCLES_PER_S)
