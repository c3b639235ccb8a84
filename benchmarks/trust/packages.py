"""Files of compiled networks and kernel caches, damaged and made up: refused in a sentence, or sound.

What loads is followed byte by byte: it reads and writes just the arrays that its kernels declare. A batch again, by its
seed: `python -c "from package_trials import try_batch; print(try_batch('headers', SEED))"` in tests/support.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from package_trials import BATCH, FAULTS
from trial_pool import spread

from .row import Row

_MOST_EXAMPLES = 20
_WHAT = {
    "headers": (2_500, "headers of .lw files, changed and trusted; run where they load"),
    "kernels": (1_000, "headers of kernels in .lw files, changed and trusted"),
    "bytes": (5_000, "bytes of .lw files, changed, cut and inserted"),
    "caches": (2_500, "entries of the kernel cache, changed, cut and inserted"),
}


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """11,000 files, in batches, each batch in one of `jobs` processes."""
    for kind, (trials, what) in _WHAT.items():
        yield _row(kind, what, max(1, round(trials * scale / BATCH)), seed * 1_000_000, jobs)


def _row(kind: str, what: str, batches: int, first: int, jobs: int) -> Row:
    started_s, tried, refused = time.perf_counter(), 0, 0
    bad: Counter[str] = Counter(dict.fromkeys((*FAULTS, "crashed or hung"), 0))
    examples: list[str] = []
    for answer in spread("package_trials:try_batch", ((kind, first + n) for n in range(batches)), jobs, limit_s=120.0):
        if answer.died:
            tried += BATCH
            bad["crashed or hung"] += 1
            examples.append(f"{kind} {answer.arguments[1]}: the process {answer.died}")
            continue
        tried += answer.result.tried
        refused += answer.result.refused
        for fault, text in answer.result.faults:
            bad[fault] += 1
            examples.append(f"{fault}: {text}")
    note = f"{refused} refused, {tried - refused} sound"
    return Row(what, tried, dict(bad), time.perf_counter() - started_s, note, tuple(examples[:_MOST_EXAMPLES]))
