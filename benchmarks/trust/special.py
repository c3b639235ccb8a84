"""Operators on NaN, infinities, both zeros, denormals and limits of integers, beside the interpreter.

`python tests/support/special_trials.py llvm SEED` shows one again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ._devices import has_cuda, has_opencl
from ._ended import own_cache, row_of
from .row import Row


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """2,000 operators on LLVM, 500 on OpenCL and on CUDA devices that are there."""
    targets = [("llvm cores=1", 1_000), ("llvm cores=2", 1_000)]
    targets += [("opencl", 500)] if has_opencl() else []
    targets += [("cuda", 500)] if has_cuda() else []
    with own_cache():
        for place, (target, count) in enumerate(targets):
            first = seed * 1_000_000 + 100_000 * place
            trials = ((target, first + n) for n in range(max(1, round(count * scale))))
            what = f"special values on {target}"
            yield row_of(what, "special_trials:try_special", trials, jobs, {}, target == "opencl")
