"""Rows of a register tile that taps share, where these are written out: loaded once, and kept until the next tap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ..sketch import arrays as np
from ..sketch.hole import Columns
from .cache_traffic import Operand

Array = npt.NDArray[np.float64]

KEPT_CYCLES = 10.0
"""Cycles to store and load anew a vector for which no register is left until the next tap reads it, as LLVM has it: 256
channels of 56x56 apart, 5x5 by 2, in tiles of 8 rows, of which taps share 6, take 2.9 ms, of 4 rows 1.4, with 87 and 14
such accesses for 100 multiply-adds (one core of a Zen 5)."""


@dataclass(frozen=True)
class RowWindow:
    """A window along rows: the holes of these and of its taps, by how many rows taps are apart, and what is in a tap.

    `within` are the holes of terms that are written out for each tap.
    """

    rows: str
    taps: str
    apart: int
    within: tuple[str, ...]

    def part_loaded(self, c: Columns) -> Array:
        """The part of loads of a tile that are of rows which no tap before has read."""
        rows, taps = c[self.rows].astype(np.float64), c[self.taps].astype(np.float64)
        return np.asarray(np.minimum(1.0, (rows + self.apart * (taps - 1)) / (rows * taps)))

    def kept_cycles(self, c: Columns, loads: Array, free: Array) -> Array:
        """Cycles of a step for what `free` registers do not keep until the next tap, of so many loads of a step."""
        taps = c[self.taps].astype(np.float64)
        within = prod((c[name] for name in self.within), start=np.ones(len(taps)))
        shared = np.maximum(0, c[self.rows] - self.apart) / c[self.rows]
        lost = np.maximum(0.0, shared * loads * within - free)
        return np.asarray(KEPT_CYCLES * lost * (taps - 1) / taps / within)


def row_windows(operand: Operand, rows: Mapping[str, str], reduce: Sequence[tuple[str, str]]) -> list[RowWindow]:
    """The windows of an operand along `rows` of tiles, which are axes with their holes, as are those of the sum."""
    found = []
    for terms in operand.dimensions:
        steps = dict(terms)
        places = [name for name in steps if name in rows]
        for number, (tap, hole) in enumerate(reduce):
            if tap in steps and len(places) == 1 and steps[tap] % steps[places[0]] == 0:
                within = tuple(inner for _, inner in reduce[number + 1 :])
                found.append(RowWindow(rows[places[0]], hole, abs(steps[tap] // steps[places[0]]), within))
    return found
