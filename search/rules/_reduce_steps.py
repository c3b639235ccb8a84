"""Blocked and unrolled reduce axes: exact factors, or, where few divide the extent, a short tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ..sketch import arrays as np
from ..sketch.hole import Columns, Hole, Limit

UNROLLED = (1, 2, 4, 8)
"""Steps that are written out."""
LONGEST = 512
"""Blocks beyond are no help to a cache: with 256 and 1024 none of 58 default schedules changes (Zen 3)."""
USUAL = 256
"""Steps of a block without a search, about. Estimates choose among all blocks where there are any: with 128 and 512
none of 58 default schedules changes (Zen 3)."""
WHOLE = 2048
"""Up to this extent an axis that few factors divide is one block without a search.

A product of 192x1009 and 1009x256 takes 432 us in one block, 444 us in blocks of 4 x 63 and 862 us in blocks of 256,
whose length is only known when it runs (Zen 5, one thread)."""
MOST_BLOCKS = 12
"""Blocks that a search chooses among, at most, spread over those there are. With 6 and 24 six and three of 58 default
schedules change, in 0.98 and 0.91 of the time (0.76 to 1.11, Zen 3); more dilute a search."""
FEWEST_OF_BLOCK = 8
"""Steps of a block, at least, where it is not all. With 2 and 32 22 and 27 of 58 default schedules change, in 0.99 and
1.02 of the time (Zen 3): it is flat."""
SHORT_TAIL = 16
"""A tail is one of so many parts of the extent at most. With 4 and 64 one of 58 default schedules changes each, in 1.11
and 1.07 of the time (Zen 3)."""


@dataclass(frozen=True)
class Steps:
    """Choices of block and unrolled steps, and their values without a search."""

    blocks: tuple[int, ...]
    unrolls: tuple[int, ...]
    block: int
    unroll: int = 1


def steps_of(extent: int) -> Steps:
    """The choices for a reduce axis that is too long to be unrolled."""
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    exact = [d for d in divisors if d >= FEWEST_OF_BLOCK or d == extent]
    if not divides_badly(extent):
        unrolls = tuple(n for n in UNROLLED if extent % n == 0)
        blocks = _at_most(exact)
        return Steps(blocks, unrolls, max((b for b in blocks if b <= USUAL), default=blocks[0]))
    blocks = _at_most(sorted({*exact, *(-(-extent // n) for n in UNROLLED), *_nearly(extent)}))
    near = [b for b in blocks if 4 * b <= USUAL and extent % (4 * b) * SHORT_TAIL <= extent]
    if extent <= WHOLE or not near:
        return Steps(blocks, UNROLLED, max((b for b in exact if b <= USUAL), default=extent))
    return Steps(blocks, UNROLLED, max(near), 4)


def divides_badly(extent: int) -> bool:
    """True for odd extents, which cannot be unrolled without a tail, and those without a block of useful length."""
    return extent % 2 == 1 or (extent > LONGEST and all(extent % n for n in range(16, LONGEST + 1)))


def _nearly(extent: int) -> set[int]:
    """Blocks that leave a short tail where a few steps are unrolled."""
    found = set()
    for unroll in (4, 8):
        parts = 1
        while extent // (parts * unroll) >= FEWEST_OF_BLOCK:
            found.add(extent // (parts * unroll))
            parts *= 2
    return found


def _at_most(blocks: list[int]) -> tuple[int, ...]:
    if len(blocks) <= MOST_BLOCKS:
        return tuple(blocks)
    return tuple(int(d) for d in np.array(blocks)[np.linspace(0, len(blocks) - 1, MOST_BLOCKS).astype(int)])


def covers(extent: int, block: Hole, unroll: Hole) -> Limit:
    """Blocks cover the axis without a tail; one that divides badly also with one block, or with a short unrolled tail.

    The length of a tail is known only when it runs, unless it is a tail of unrolled steps.
    """
    badly = divides_badly(extent)

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        steps = c[block.name] * c[unroll.name]
        exact = extent % steps == 0
        if not badly:
            return np.asarray(exact)
        one = (steps >= extent) & (steps < extent + c[unroll.name])
        tail = (c[unroll.name] >= 4) & (steps <= extent) & (extent % steps * SHORT_TAIL <= extent)
        return np.asarray(exact | one | tail)

    return limit


def divides(extent: int, holes: Sequence[Hole]) -> Limit:
    """The product of the holes divides the extent."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        return np.asarray(extent % prod((c[hole.name] for hole in holes), start=np.int64(1)) == 0)

    return limit
