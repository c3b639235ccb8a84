"""Random ONNX graphs of 10 to 20 nodes, operator sets 11 to 21, beside onnxruntime.

Most are imported and compiled for this CPU, in all layouts, on one thread and on two; some go through ONNX's backend
interface, and a few are exported as libraries for C, or run on an OpenCL device. `python tests/support/onnx_trials.py
llvm SEED` shows one again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from loopwright.backends.opencl.platform import MissingOpenCl, device_at

from ._ended import own_cache, row_of
from .row import Row


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """2,100 graphs: 1,600 compiled, 300 through the backend, 100 as libraries, 100 on OpenCL."""
    with own_cache():
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
    first, count = seed * 1_000_000 + _OFFSETS[kind], max(1, round(trials * scale))
    graphs = ((kind, first + n) for n in range(count))
    return row_of(what, "onnx_trials:try_graph", graphs, jobs, _NOTES, kind == "opencl")


_OFFSETS = {"llvm": 0, "backend": 300_000, "opencl": 600_000, "library": 900_000}
"""The first seed of each kind, so that no graph is tried twice."""
_NOTES = {
    "refused": "refused in a sentence",
    "onnxruntime": "where onnx's reference agrees with loopwright alone",
    "driver": "that the driver's compiler fails",
}
