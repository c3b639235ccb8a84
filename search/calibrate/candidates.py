"""Candidates of a workload that teach most: likely ones of all its sketches, and what a model likes best of each."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Sequence, Set

import numpy as np
import numpy.typing as npt

from ..cost_model import CostModel
from ..sketch.likely import compared, likely_rows
from ..sketch.sketch import Sketch

Candidate = tuple[int, npt.NDArray[np.int64]]
"""The number of a sketch, and a row of it."""

DRAWN, LIKELY, OTHERS = 4096, 192, 192
"""Random candidates of a sketch; those that are looked at are the best by the estimate, and some others. A choice."""
OF_EACH = 4
"""Candidates that are drawn of a sketch, the more likely the better their estimate. A choice."""
LIKED, LIKED_OF_EACH, UNLIKE = 14, 2, 0.3
"""Candidates that a model likes best, of each sketch so many once there are some, and the share of their decisions that
they differ in. A choice: a model is wrong about whole neighbourhoods."""


def likely_candidates(
    rng: np.random.Generator, sketches: Sequence[Sketch], model: CostModel | None, rounds: int, count: int
) -> list[Candidate]:
    """Up to `count` different ones, the defaults of the first sketch ahead, drawn and liked ones in turn."""
    both = itertools.zip_longest(drawn(rng, sketches, rounds), liked(sketches, model, rounds) if model else [])
    distinct = {(n, row.tobytes()): (n, row) for pair in both for n, row in filter(None, pair)}
    return list(distinct.values())[:count]


def drawn(rng: np.random.Generator, sketches: Sequence[Sketch], rounds: int) -> list[Candidate]:
    """Candidates by the estimates of each sketch, the more likely the better, from one sketch after the other."""
    found = [part for number in rng.permutation(len(sketches)) for part in drawn_of(rng, int(number), sketches, rounds)]
    return [(0, sketches[0].default), *(found[n] for n in rng.permutation(len(found)))]


def drawn_of(rng: np.random.Generator, number: int, sketches: Sequence[Sketch], rounds: int) -> list[Candidate]:
    """Some candidates of one sketch by its estimates, the more likely the better."""
    rows = _rows(rng, sketches[number], rounds)
    chosen = (len(rows) * rng.random(OF_EACH) ** 3).astype(int)
    return [(number, rows[at]) for at in dict.fromkeys(chosen.tolist())]


def liked(
    sketches: Sequence[Sketch], model: CostModel, rounds: int, seen: Set[tuple[int, bytes]] = frozenset()
) -> list[Candidate]:
    """Return what the model likes best of those not seen, unlike each other: some of each sketch, and the best of all.

    It chooses as it does for untuned schedules, but of all sketches.
    """
    scored = [
        (score, number, row)
        for number, each in enumerate(compared(sketches, model, math.inf, rounds))
        for score, row in zip(each.scores, each.rows, strict=True)
        if (number, row.tobytes()) not in seen
    ]
    scored.sort(key=lambda one: -one[0])
    taken: list[Candidate] = []
    counts: collections.Counter[int] = collections.Counter()
    for _, number, row in scored:
        alike = any(n == number and (row != other).sum() < UNLIKE * len(row) for n, other in taken)
        if not alike and (counts[number] < LIKED_OF_EACH or len(taken) < LIKED // 2) and len(taken) < LIKED:
            counts[number] += 1
            taken.append((number, row))
    return taken


def _rows(rng: np.random.Generator, sketch: Sketch, rounds: int) -> npt.NDArray[np.int64]:
    """Likely candidates, those of the least estimate first, and random ones."""
    if not sketch.holes:
        return sketch.default[None]
    rows = rng.permutation(np.unique(sketch.population.sample(rng, DRAWN if sketch.prior else LIKELY + OTHERS), axis=0))
    if sketch.prior is None:
        return rows
    return np.concatenate([likely_rows(rng, sketch, rows, LIKELY, rounds), rows[:OTHERS]])
