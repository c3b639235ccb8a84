"""Seconds of a config by a roofline over its loops: a deterministic stand-in for measuring, rugged enough to search.

A config's time is that of its arithmetic, at a speed that depends on lanes, unrolling and registers, plus that of
moving what each loop level touches between the memories it no longer fits in, plus what loops and threads cost.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.passes.parametric.nest import Loop
from loopwright.search.features.view import NestView, StageView
from loopwright.search.template.bound import BoundTemplate
from loopwright.search.template.config import Config
from loopwright.search.template.program import CaseProgram
from loopwright.search.template.symbolic import Columns

Floats = npt.NDArray[np.float64]

LEVELS = ((512, 4e11), (32 << 10, 1.5e11), (1 << 20, 5e10))
"""Bytes that fit (registers, first and second cache), and bytes a second from the memory behind."""
PEAK = 4e11
ROUGH = 0.04
"""Share by which neighbours differ for no reason that a model can see."""


def analytic_cost(task: BoundTemplate, configs: Sequence[Config]) -> Floats:
    """Seconds of each config; a function to give to `tune(measure_option=...)`."""
    rows = np.array([c.row for c in configs], dtype=np.int64).reshape(len(configs), -1)
    times = np.full(len(rows), np.inf)
    for case, at in task.cases.groups(rows):
        if case is not None:
            times[at] = _case_seconds(case.program, task.config_space.columns(rows[at]), len(at))
    return times * _rough(task.config_space.indices(rows))


def _rough(indices: npt.NDArray[Any]) -> Floats:
    """The same factor near 1 for the same index in every process."""
    mixed = (indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return 1.0 + ROUGH * (mixed.astype(np.float64) / (1 << 24))


def _case_seconds(program: CaseProgram, columns: Columns, count: int) -> Floats:
    """Return the seconds of all stages, one after the other, also of those that add up partial results."""
    return 1e-6 + sum(
        (_stage_seconds(program, v, columns, count) for v in NestView(program.nest).stages), np.zeros(count)
    )


def _stage_seconds(program: CaseProgram, view: StageView, columns: Columns, count: int) -> Floats:
    """Seconds of one stage, by the loops that run: threads that fill a buffer together are not those that read it."""
    loops = [loop for loop, _ in view.suffixes]
    sizes = [x.extent for x in loops] + [sum(each, 0) for _, each in view.suffixes]
    found = program.compiled(sizes)(columns, count).astype(np.float64).reshape(2, len(loops), count)
    extents, bytes_touched = found[0].T, found[1].T
    iterations = np.cumprod(extents, axis=1)
    total = iterations[:, -1]
    seconds = np.zeros(count)
    for fits, speed in LEVELS:
        inside = np.maximum(1, (bytes_touched <= fits).sum(axis=1)) - 1
        at = np.arange(count)
        seconds += total / iterations[at, inside] * bytes_touched[at, inside] / speed
    operations = sum(view.stage.arithmetic.values())
    return seconds + operations * total / (PEAK * _efficiency(program, loops, extents, columns, count))


def _efficiency(program: CaseProgram, loops: Sequence[Loop], extents: Floats, columns: Columns, count: int) -> Floats:
    """Share of the peak: full vectors, a body of 16 to 512 statements, warps that are full, every core busy."""
    found = np.ones(count)
    body = np.ones(count)
    workers = np.ones(count)
    for i, loop in enumerate(loops):
        if loop.kind == "vectorized":
            found *= np.minimum(1, extents[:, i] / 16) * (extents[:, i] / (16 * np.ceil(extents[:, i] / 16))) ** 0.5
        if loop.kind in ("vectorized", "unrolled", "vthread"):
            body *= extents[:, i]
        if loop.kind == "parallel" or loop.kind.startswith("blockIdx"):
            workers *= extents[:, i]
    usage = program.usage(columns, count)
    if any(loop.kind.startswith("threadIdx") for loop in loops):
        threads = usage["threads"]
        found *= threads / (32 * np.ceil(threads / 32)) * np.minimum(1, threads / 128) ** 0.5
        found *= np.minimum(1, 65536 / np.maximum(1, threads * (32 + usage["local_bytes"] / 4))) ** 0.5
        workers = workers * 4
    found *= workers / (16 * np.ceil(workers / 16))
    return found * np.minimum(1, body / 16) ** 0.3 * np.minimum(1, 512 / body) ** 0.7 + 1e-4
