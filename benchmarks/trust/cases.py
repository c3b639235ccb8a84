"""Cases of the drawn lists, small, in float32 and float16, under their untuned schedule and sampled candidates.

What is expected is the interpreter's, which PyTorch in double precision confirms. `python tests/support/case_trials.py
llvm families SEED PLACE float16` shows one again.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from itertools import count, islice

from ._devices import has_cuda, has_opencl
from ._ended import own_cache, row_of
from .row import Row

LISTS = ("families", "mixed", "drawn", "elements", "pools")
_DTYPES = ("float32", "float16")
_OF_A_SEED = 30
"""Cases that are taken of a list's seed, whose lists have 40 and more."""
_NOTES = {"refused": "refused in a sentence", "driver": "that the driver's compiler fails"}


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """2,000 cases on LLVM, on one thread and on two; 200 on OpenCL and 2,000 on CUDA devices that are there."""
    if importlib.util.find_spec("torch") is None:
        print("    drawn cases: left out, torch is not installed", file=sys.stderr, flush=True)
        return
    with own_cache():
        for target, trials in (("llvm cores=1", 1_000), ("llvm cores=2", 1_000)):
            yield _row(target, trials, _DTYPES, scale, seed, jobs)
        if has_opencl():
            yield _row("opencl", 200, _DTYPES[:1], scale, seed, jobs)
        if has_cuda():
            yield _row("cuda", 2_000, _DTYPES, scale, seed, jobs)


def _row(target: str, trials: int, dtypes: tuple[str, ...], scale: float, seed: int, jobs: int) -> Row:
    wanted = max(1, round(trials * scale))
    cases = ((target, *each) for each in islice(trials_of(1_000 + seed, dtypes), wanted))
    what = f"drawn cases in {' and '.join(dtypes)}, sampled, on {target}"
    return row_of(what, "case_trials:try_case", cases, jobs, _NOTES, target == "opencl")


def trials_of(seed: int, dtypes: tuple[str, ...] = _DTYPES) -> Iterator[tuple[str, int, int, str]]:
    """List, its seed, place and type of cases: of all lists in turn, without end."""
    for number in count():
        place, of = number % _OF_A_SEED, seed + number // _OF_A_SEED
        for name in LISTS:
            yield name, of, place, dtypes[number % len(dtypes)]
