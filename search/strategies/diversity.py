"""Choosing a batch that is not all alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..sketch.space import Rows

_WEIGHT = 0.02
"""Of a choice of a knob that no other row of the batch has, in units of a model's scores. A choice: a row with three
such choices goes before one that is liked better by less than 0.06."""


def pick_diverse(rows: Rows, scores: npt.NDArray[np.floating[Any]], count: int) -> npt.NDArray[np.int64]:
    """The positions of up to `count` rows that have high scores and, together, many different choices.

    Greedy for the sum of scores and of a weight times the distinct (knob, choice) pairs covered, a submodular function
    (Chen et al., Learning to Optimize Tensor Programs, 2018, section 5.2).
    """
    chosen: list[int] = []
    covered: list[set[int]] = [set() for _ in range(rows.shape[1])]
    fresh = np.full(len(rows), rows.shape[1], dtype=np.int64)
    left = np.ones(len(rows), dtype=bool)
    while len(chosen) < min(count, len(rows)):
        gain = np.where(left, scores + _WEIGHT * fresh, -np.inf)
        best = int(np.argmax(gain))
        chosen.append(best)
        left[best] = False
        for knob, choice in enumerate(rows[best].tolist()):
            if choice not in covered[knob]:
                covered[knob].add(choice)
                fresh -= rows[:, knob] == choice
    return np.array(chosen, dtype=np.int64)
