"""The candidate that is thought best before any is measured, for who has no time to measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..cost_model import CostModel
from .sketch import Sketch

CANDIDATES = 1024
"""Random candidates of a sketch that are looked at."""
KEPT = 128
"""Of those, by the rules' estimate, the ones that a cost model compares: it takes 0.1 ms for each."""

FAR = 1.6
"""Times the least estimate of all sketches from which on a sketch is not looked at: about 0.1 s for its features."""


def likeliest(sketches: Sequence[Sketch], model: CostModel | None = None) -> str:
    """Return the schedule that a model predicts to be the fastest, of all sketches.

    Without a model it is the one with the least estimated seconds among the first sketch's defaults and random
    candidates, and the defaults where it has no estimate. The same sketches and model give the same schedule.
    """
    if model is None:
        first = sketches[0]
        rows = _drawn(first, CANDIDATES // 2) if first.prior is not None else first.default[None]
        return first.schedule(_by_estimate(first, rows)[0])
    compared = _worth_comparing(sketches)
    scores = model.predict(np.concatenate([sketch.features(rows) for sketch, rows in compared]))[0]
    sketch, row = [(sketch, row) for sketch, rows in compared for row in rows][int(np.argmax(scores))]
    return sketch.schedule(row)


def _worth_comparing(sketches: Sequence[Sketch]) -> list[tuple[Sketch, npt.NDArray[np.int64]]]:
    """Sketches and the rows of each to compare: all sketches but those whose best estimate is far from the least."""
    found = [(sketch, _by_estimate(sketch, _drawn(sketch, CANDIDATES))[:KEPT]) for sketch in sketches]
    if any(sketch.prior is None for sketch in sketches):
        return found
    best_s = [float(sketch.prior(sketch.columns(rows[:1]))[0]) for sketch, rows in found if sketch.prior is not None]
    return [one for one, seconds in zip(found, best_s, strict=True) if seconds <= FAR * min(best_s)]


def _drawn(sketch: Sketch, count: int) -> npt.NDArray[np.int64]:
    """The defaults, and random rows."""
    rows = sketch.default[None]
    return np.concatenate([rows, sketch.population.sample(np.random.default_rng(0), count)]) if sketch.holes else rows


def _by_estimate(sketch: Sketch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows, those of the least estimate first; as they are where there is none."""
    if sketch.prior is None:
        return rows
    return rows[np.argsort(sketch.prior(sketch.columns(rows)), kind="stable")]
