"""Random operations of StableHLO with all their options, beside what the standard says of each element.

`python tests/support/stablehlo_trials.py llvm SEED` shows one again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ._ended import own_cache, row_of
from .row import Row


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """2,000 operations on LLVM, on one thread and on two."""
    first, count = seed * 1_000_000, max(1, round(2_000 * scale))
    programs = (("llvm", first + n) for n in range(count))
    with own_cache():
        yield row_of("operations of StableHLO", "stablehlo_trials:try_program", programs, jobs, _NOTES)


_NOTES = {"refused": "refused in a sentence"}
