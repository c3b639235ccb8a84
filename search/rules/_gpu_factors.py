"""The factors that tiles of reductions on a GPU are made of: powers of two, and divisors where those do badly."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cache

import numpy as np
import numpy.typing as npt

from ...dialects.target import Target
from ...passes.parametric.sizes import largest_divisor
from ..sketch.expression import operation
from ._choices import up_to

THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Threads of a block along an axis that powers of two divide well."""
INNER = (1, 2, 4, 7, 8)
"""Results of a thread along an axis; images of networks are often multiples of 7."""
STEPS = (2, 4, 8, 16, 32, 64)
"""Reduction steps between two fills of shared memory."""
PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Parts of a reduction on blocks of their own, which are equal."""
UNEQUAL_PARTS = (2, 4, 8, 16, 32)
"""The same where none divide it: the last one is shorter."""
MOST_PARTS = 128
"""Parts of a reduction to so few results that fewer parts leave multiprocessors idle. A choice: a product of
64x64 results of 50000 terms takes 125 of them untuned, 20.9 us on an H200 where 16 took 52.3."""
MANY_PARTS = 4
"""Numbers of parts beyond the usual ones that are listed, at most, evenly spread. A choice: few enough for a search."""
TILE_RESULTS = 64 * 64
"""Results of a block of threads, about, where parts are counted."""
SLICES = (2, 4, 8)
"""Parts of a reduction on the threads of one block."""
FEWEST_OF_PART = 4
"""Terms of a part, at least. A choice: parts of fewer are one fill of shared memory, of which nothing is hidden."""
DEEP_PART = 64
"""Terms of one of many parts, at least. A choice: adding up what it comes to costs as much as several terms."""
LONG = 32
"""Extents from which on threads may be as many as any divisor: with fewer, blocks of whole warps are rare. A choice: a
warp."""
MOST_DIVISORS = 6
"""Divisors that are added to a list. A choice: those of most extents, and few enough for a search."""
EVEN = 8
"""Extents that this divides do well with factors that are powers of two. A choice: threads and results of them are 8
together at least."""

UNKNOWN_THREADS = 256
"""Threads of a block where a target does not say how many it may have. A choice: most devices take as many."""


def parts_of(extent: int, sliced: bool) -> tuple[int, ...]:
    """The numbers of parts that a reduction of this extent may be divided into.

    Equal ones, where there are any; blocks of threads may also take parts of which the last is shorter.
    """
    listed = SLICES if sliced else (*PARTS, *odd_divisors(extent, max(PARTS)))
    equal = tuple(sorted({n for n in listed if FEWEST_OF_PART * n <= extent and extent % n == 0}))
    if equal or sliced:
        return equal
    return tuple(n for n in UNEQUAL_PARTS if FEWEST_OF_PART * n <= extent and (n - 1) * -(-extent // n) < extent)


def many_parts(extent: int, results: int, target: Target) -> tuple[int, ...]:
    """More equal parts than `PARTS` has, for reductions to so few results that they leave multiprocessors idle.

    Of those, the ones whose length is a multiple of 8, where there are any: steps then divide it.
    """
    if max(PARTS) * -(-results // TILE_RESULTS) >= 2 * max(1, target.cores):
        return ()
    most = min(MOST_PARTS, extent // DEEP_PART)
    found = [n for n in range(max(PARTS) + 1, most + 1) if extent % n == 0]
    whole = [n for n in found if extent // n % EVEN == 0] or found
    step = max(1, -(-len(whole) // MANY_PARTS))
    return tuple(whole[::-step][::-1])


def odd_divisors(extent: int, most: int, served: int = 1) -> tuple[int, ...]:
    """Divisors from 3 to `most`, no powers of two, of an extent that powers of two divide badly; a few spread ones.

    None where what is left of the extent without factors of two, and of `served`, is 1.
    """
    rest = extent
    for factor in (2, served):
        while factor > 1 and rest % factor == 0:
            rest //= factor
    if extent % EVEN == 0 or rest == 1:
        return ()
    found = [n for n in range(3, min(most, extent) + 1) if extent % n == 0 and n & (n - 1)]
    step = max(1, -(-len(found) // MOST_DIVISORS))
    return tuple(found[::-step][::-1])


def factors_of(extent: int, listed: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return the listed factors up to an extent, with its divisors where neither powers of two nor sevens do well."""
    return tuple(sorted({*up_to(listed, extent), *odd_divisors(extent, most, served=7)}))


def block_threads(target: Target, listed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the listed numbers of threads that a block of the target may have, else the most it may have."""
    most = target.max_threads_per_block or UNKNOWN_THREADS
    return tuple(n for n in listed if n <= most) or (most,)


@operation(largest_divisor)
def largest_divisors(counts: npt.NDArray[np.int64], most: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each count the largest number up to `most` that divides it."""
    base = int(np.max(most, initial=0)) + 1
    different, number = np.unique(np.asarray(counts) * base + most, return_inverse=True)
    pairs = (divmod(pair, base) for pair in different.tolist())
    found = [divisors[bisect_right(divisors, bound) - 1] for divisors, bound in ((_divisors(n), m) for n, m in pairs)]
    return np.asarray(found, dtype=np.int64)[number]


@cache
def _divisors(count: int) -> list[int]:
    """The divisors of a count, the least first."""
    tried = np.arange(1, math.isqrt(count) + 1)
    small: list[int] = tried[count % tried == 0].tolist()
    return small + [count // n for n in reversed(small) if n * n != count]
