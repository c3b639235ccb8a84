"""Random ONNX graphs of 10 to 20 nodes, operator sets 11 to 21, beside onnxruntime.

Most are imported and compiled for this CPU, in all layouts, on one thread and on two; some go through ONNX's backend
interface, and a few are exported as libraries for C, or run on an OpenCL device. `python tests/support/onnx_trials.py
llvm SEED` shows one again.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from trial_pool import Answer, spread

from loopwright.backends.opencl.platform import MissingOpenCl, device_at

from ._drivers import is_of_the_driver
from .row import Row

FAULTS = ("wrong", "traceback", "crash", "hang")
_TRY = "onnx_trials:try_graph"
_MOST_EXAMPLES = 20
_LIMIT_S = 300.0


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """2,100 graphs: 1,600 compiled, 300 through the backend, 100 as libraries, 100 on OpenCL."""
    with _own_cache():
        yield _row("ONNX graphs on LLVM", "llvm", 1_600, scale, seed, jobs)
        yield _row("ONNX graphs through the backend interface, 2 threads", "backend", 300, scale, seed, jobs)
        yield _row("ONNX graphs as libraries for C", "library", 100, scale, seed, jobs)
        try:
            device = device_at(0)
        except MissingOpenCl as error:
            print(f"    ONNX graphs on OpenCL: left out, {error}", file=sys.stderr, flush=True)
            return
        yield _row(f"ONNX graphs on OpenCL ({device.platform.name.strip()})", "opencl", 100, scale, seed, jobs)


def _row(what: str, kind: str, trials: int, scale: float, seed: int, jobs: int) -> Row:
    started_s = time.perf_counter()
    first, count = seed * 1_000_000 + _OFFSETS[kind], max(1, round(trials * scale))
    bad = Counter(dict.fromkeys(FAULTS, 0))
    others: Counter[str] = Counter()
    examples: list[str] = []
    for answer in spread(_TRY, ((kind, first + n) for n in range(count)), jobs, _LIMIT_S):
        ended, text = _judged(answer)
        if kind == "opencl" and is_of_the_driver(_TRY, answer, _is_right):
            ended = "driver"
        (bad if ended in FAULTS else others)[ended] += 1
        if ended != "right":
            examples.append(text)
    notes = [f"{others[k]} {words}" for k, words in _NOTES.items() if others[k]]
    return Row(
        what, count, dict(bad), time.perf_counter() - started_s, ", ".join(notes), tuple(examples[:_MOST_EXAMPLES])
    )


_OFFSETS = {"llvm": 0, "backend": 300_000, "opencl": 600_000, "library": 900_000}
"""The first seed of each kind, so that no graph is tried twice."""
_NOTES = {
    "refused": "refused in a sentence",
    "onnxruntime": "where onnx's reference agrees with loopwright alone",
    "driver": "that the driver's compiler fails",
}


def _is_right(answer: Answer) -> bool:
    return _judged(answer)[0] not in FAULTS


def _judged(answer: Answer) -> tuple[str, str]:
    """The end of a trial, and what to say of it."""
    kind, seed = answer.arguments
    if answer.died:
        return "hang" if answer.died.startswith("hung") else "crash", f"{kind} {seed}: the process {answer.died}"
    ended = answer.result
    return (
        ended.kind,
        f"{ended.kind}: {ended.example}" if ended.example else f"{ended.kind} {kind} {seed}: {ended.text}",
    )


@contextmanager
def _own_cache() -> Iterator[None]:
    """A folder of its own for kernels, which no one else will want."""
    folder = tempfile.TemporaryDirectory(prefix="loopwright-onnx-graphs-")
    with folder as name, patch.dict(os.environ, {"XDG_CACHE_HOME": name}):
        yield
