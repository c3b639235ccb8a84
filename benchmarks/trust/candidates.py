"""Random programs under random schedules: by hand and of all sketch rules, on LLVM, OpenCL and CUDA, against NumPy.

Each program's expected values come from NumPy alone, with bounds that follow from its types and the lengths of its
sums. On LLVM each schedule runs on one thread and on two, one of them in a kernel that checks every address; each text
is replayed by stock xdsl-opt. `python tests/support/program_trials.py llvm-hand SEED` shows one program again.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from program_trials import FAULTS, opencl_index
from trial_pool import Answer, spread

from loopwright.backends.cuda.driver import MissingCuda, device_count
from loopwright.backends.opencl.platform import MissingOpenCl, device_at

from ._drivers import is_of_the_driver
from .row import Row

_MOST_EXAMPLES = 20
_TRY = "program_trials:try_program"


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """20,000 schedules on LLVM, 5,000 interpreted as for CUDA, 3,000 on OpenCL and CUDA devices that are there."""
    yield _row("hand schedules on LLVM", "llvm-hand", 10_000, scale, seed, jobs)
    yield _row("candidates on LLVM", "llvm-candidates", 10_000, scale, seed, jobs)
    yield _row("hand schedules interpreted for CUDA", "interpreted-hand", 1_500, scale, seed, jobs)
    yield _row("candidates interpreted for CUDA", "interpreted-candidates", 1_500, scale, seed, jobs)
    yield _row("products on matrix units interpreted for CUDA", "interpreted-products", 2_000, scale, seed, jobs)
    for kind, missing in (("opencl", _no_opencl()), ("cuda", _no_cuda())):
        if missing:
            print(f"    {kind}: left out, {missing}", file=sys.stderr, flush=True)
            continue
        what = "CUDA" if kind == "cuda" else f"OpenCL ({device_at(opencl_index()).platform.name.strip()})"
        yield _row(f"hand schedules on {what}", f"{kind}-hand", 1_500, scale, seed, jobs)
        yield _row(f"candidates on {what}", f"{kind}-candidates", 1_500, scale, seed, jobs)


def _row(what: str, kind: str, trials: int, scale: float, seed: int, jobs: int) -> Row:
    """Try programs from `seed` on until there are so many trials."""
    wanted = max(1, round(trials * scale))
    started_s = time.perf_counter()
    tried, programs = 0, 0
    bad = Counter(dict.fromkeys(FAULTS, 0))
    counts: Counter[str] = Counter()
    examples: list[str] = []
    first = seed * 1_000_000
    drivers = 0
    for answer in _until(spread(_TRY, ((kind, first + n) for n in itertools.count()), jobs)):
        programs += 1
        if kind.startswith("opencl") and is_of_the_driver(_TRY, answer, _is_right):
            drivers += 1
            tried += 1 if answer.died else answer.result.tried
            examples.append(
                f"{kind} {answer.arguments[1]}: right where the driver compiles it otherwise: {_first_fault(answer)}"
            )
        elif answer.died:
            tried += 1
            bad["crashed"] += 1
            examples.append(f"{kind} {answer.arguments[1]}: the process {answer.died}")
        else:
            tried += answer.result.tried
            counts += answer.result.counts
            for fault in answer.result.faults:
                bad[fault.kind] += 1
                examples.append(f"{kind} {answer.arguments[1]}: {fault.kind}: {fault.what}")
        if tried >= wanted:
            break
    notes = [f"{programs} programs", *(f"{count} {name}" for name, count in sorted(counts.items()))]
    note = ", ".join([*notes, *([f"{drivers} that the driver's compiler fails"] if drivers else [])])
    return Row(what, tried, dict(bad), time.perf_counter() - started_s, note, tuple(examples[:_MOST_EXAMPLES]))


def _is_right(answer: Answer) -> bool:
    return not answer.died and not answer.result.faults


def _first_fault(answer: Answer) -> str:
    return f"the process {answer.died}" if answer.died else answer.result.faults[0].what


def _until(answers: Iterator[Answer]) -> Iterator[Answer]:
    """The answers, and the end of the processes when no more are taken."""
    try:
        yield from answers
    finally:
        answers.close()  # type: ignore[attr-defined]


def _no_opencl() -> str:
    """The reason why no OpenCL device can run kernels; nothing where one can."""
    try:
        device_at(0)
    except MissingOpenCl as error:
        return str(error)
    return ""


def _no_cuda() -> str:
    try:
        return "" if device_count() else "no device"
    except MissingCuda as error:
        return str(error)
