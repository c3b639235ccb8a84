"""Features of configs, from the loops of their programs, for whole populations at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .program import ACCESSES, CaseProgram
from .symbolic import Columns

Floats = npt.NDArray[np.float64]

KINDS = ("knob", "itervar", "curve")
"""`knob`: the numbers of the knobs. `itervar`: each loop's length, place and what it touches. `curve`: how reuse and
the amount touched go together over all loops (Chen et al., Learning to Optimize Tensor Programs, 2018)."""

SKETCH = "sketch"
"""The kind of features that candidates of sketches have; there is no estimate of a rule, so the last one is NaN."""

CURVE_POINTS = 20
"""Points of each curve of reuse, `sample_n` of AutoTVM's curve features."""

_LOOP_KINDS = ("serial", "unrolled", "vectorized", "parallel", "vthread", "threadIdx", "blockIdx")


def program_features(
    program: CaseProgram, columns: Columns, count: int, kind: str
) -> tuple[Mapping[str, npt.NDArray[np.int64]], npt.NDArray[np.float32]]:
    """Return what the program takes of the target, and the features `(count, f)`; as many for each program."""
    if kind == SKETCH:
        return program.survey(columns, count)
    usage = program.usage(columns, count)
    extents, touched, split = program.walk(columns, count)
    parts = _itervar(program, extents, touched) if kind == "itervar" else _curves(extents, touched)
    parts.append(_taken(usage, split))
    return usage, np.concatenate(parts, axis=1).astype(np.float32)


def _itervar(program: CaseProgram, extents: Floats, touched: list[tuple[Floats, Floats]]) -> list[Floats]:
    """Per loop: length, iterations of it and inside, outside, how it runs; and per access: step, elements, reuse."""
    lengths = np.log2(extents)
    inside = np.cumsum(lengths, axis=1)
    outside = inside[:, -1:] - inside
    kinds = np.full(extents.shape, -1.0)
    for i, loop in enumerate(program.loops):  # innermost first, so that what matters most is in the same columns
        family = loop.kind.partition(".")[0]
        kinds[:, i] = _LOOP_KINDS.index(family) if family in _LOOP_KINDS else -1
    parts = [lengths, inside, outside, kinds]
    for step, elements in touched:
        count = np.log2(elements)
        parts += [np.log2(1 + step), count, inside - count]
    return parts + [np.zeros_like(extents)] * (3 * (ACCESSES - len(touched)))


def _curves(extents: Floats, touched: list[tuple[Floats, Floats]]) -> list[Floats]:
    """Per access, at points of a logarithmic grid: reuse by elements touched, elements by reuse, and by iterations."""
    inside = np.cumsum(np.log2(extents), axis=1)
    by_inside = _first_reaching(inside)
    parts: list[Floats] = []
    for _, elements in touched:
        count = np.log2(elements)
        reuse = inside - count
        by_count = _first_reaching(count)
        for first, y in ((by_count, reuse), (_first_reaching(reuse), count), (by_count, inside), (by_inside, count)):
            parts.append(np.take_along_axis(y, first, axis=1))
    return parts + [np.zeros((len(extents), CURVE_POINTS))] * (4 * (ACCESSES - len(touched)))


def _first_reaching(x: Floats) -> npt.NDArray[np.int64]:
    """For each point of the grid the first loop, from the inside, where `x` reaches it; the last one if none does."""
    points = np.linspace(0.0, 30.0, CURVE_POINTS)
    below = np.maximum.accumulate(x, axis=1)[:, None, :] < points[:, None]
    first: npt.NDArray[np.int64] = np.minimum(below.sum(axis=2), x.shape[1] - 1)
    return first


def _taken(usage: Mapping[str, npt.NDArray[np.int64]], split: Floats) -> Floats:
    """Features of a launch: the numbers of Usage, blocks, iterations of a thread, idle threads of the last warp."""
    threads = usage["threads"]
    idle = -threads % 32 / np.maximum(1, threads)
    logs = [np.log2(1 + np.maximum(0, np.asarray(v, dtype=np.float64))) for v in (*usage.values(), *split.T)]
    return np.stack([*logs, idle], axis=1)
