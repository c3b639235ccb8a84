"""The time evaluator of kernels and networks: repeats of a number of runs, behind flushed caches if wanted."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..dialects.classic_words import attributes_know_classic_words
from ..dialects.counts import require_count
from ..dialects.markup import notebook, table

_MOST_RUNS = 1_000_000


@attributes_know_classic_words
@dataclass(frozen=True, repr=False)
class BenchmarkResult:
    """Seconds per run, one number a repeat, each the mean of `number` runs behind one another.

    `median`, `mean`, `std` (of the repeats, not an estimate for others), `min` and `max` are seconds, too.
    """

    times_s: tuple[float, ...]
    number: int

    @property
    def median(self) -> float:
        return statistics.median(self.times_s)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times_s)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.times_s)

    @property
    def min(self) -> float:
        return min(self.times_s)

    @property
    def max(self) -> float:
        return max(self.times_s)

    def __str__(self) -> str:
        return ", ".join(f"{name} {self._ms(getattr(self, name))} ms" for name in ("median", "mean", "std"))

    def _ms(self, time_s: float) -> str:
        """A time in ms, with as many digits behind the point as show three of the median, and four at least."""
        digits = 2 - math.floor(math.log10(self.median * 1e3)) if self.median > 0 else 0
        return f"{time_s * 1e3:.{max(4, digits)}f}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        """A row of statistics and one of each repeat, in ms, for a notebook."""
        names = ("median", "mean", "std", "min", "max")
        figures = [self._ms(getattr(self, name)) for name in names]
        repeats = ", ".join(self._ms(time_s) for time_s in self.times_s)
        said = f"{len(self.times_s)} repeats of {self.number} runs, ms of a run: {repeats}"
        heads = [f"{name}, ms" for name in names]
        return notebook(f'{table(heads, [figures], frozenset(range(len(names))))}<p class="soft">{said}</p>')


@dataclass(frozen=True)
class Repeats:
    """Number of runs to time something: `repeat` times `number` runs, or as many more as take `min_repeat_ms`.

    Without a `min_repeat_ms` a repeat has just `number` runs where that is given, and takes `usual_ms` otherwise.
    """

    number: int | None
    repeat: int
    min_repeat_ms: float | None
    usual_ms: float

    def __post_init__(self) -> None:
        for name in ("number", "repeat"):
            value = getattr(self, name)
            if value is not None:
                require_count(name, value)
        if self.min_repeat_ms is not None and not self.min_repeat_ms >= 0:
            raise ValueError(f"min_repeat_ms must be at least 0, got {self.min_repeat_ms}")

    @property
    def _least_ms(self) -> float:
        if self.min_repeat_ms is not None:
            return float(self.min_repeat_ms)
        return 0.0 if self.number is not None else self.usual_ms

    def of(self, run: Callable[[int], float], flushes: bool = False) -> BenchmarkResult:
        """Time with `run(n)`, which runs n times and returns their seconds; where it flushes, that counts as length."""
        number = int(self.number or 1)
        elapsed_s, length_s = _timed(run, number, flushes)
        while length_s * 1e3 < self._least_ms and number < _MOST_RUNS:
            growth = min(10.0, max(1.5, 1.1 * self._least_ms / 1e3 / max(length_s, 1e-9)))
            number = min(_MOST_RUNS, int(number * growth) + 1)
            elapsed_s, length_s = _timed(run, number, flushes)
        times_s = [elapsed_s / number, *(run(number) / number for _ in range(int(self.repeat) - 1))]
        return BenchmarkResult(tuple(times_s), number)


def _timed(run: Callable[[int], float], number: int, flushes: bool) -> tuple[float, float]:
    """The seconds of runs, and how long they took with what is between them."""
    start_s = time.perf_counter()
    elapsed_s = run(number)
    return elapsed_s, time.perf_counter() - start_s if flushes else elapsed_s


def flush_bytes(flush: bool | int, cache_bytes: int) -> int:
    """The bytes to write before each run: those given, or twice the cache; ValueError for a negative number."""
    if isinstance(flush, bool):
        return 2 * cache_bytes if flush else 0
    if flush < 0:
        raise ValueError(f"flush must be True, or bytes of at least 0, got {flush}")
    return int(flush)


class HostCaches:
    """Memory that is written to empty the caches of this CPU."""

    def __init__(self, nbytes: int) -> None:
        self._filler = np.zeros(max(1, nbytes // 8))

    def flush(self) -> None:
        """Write all of it."""
        self._filler += 1.0


def flushed(run: Callable[[int], float], flush: Callable[[], object] | None) -> Callable[[int], float]:
    """Run one by one, each behind a flush that is not timed; back to back where there is none."""
    if flush is None:
        return run

    def one_by_one(number: int) -> float:
        total_s = 0.0
        for _ in range(number):
            flush()
            total_s += run(1)
        return total_s

    return one_by_one
