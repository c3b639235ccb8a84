"""Defaults of holes that a model likes best, of all combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from ..sketch.hole import Columns, Hole, Limit


def liked_best(
    holes: Sequence[Hole], seconds: Callable[[Columns], npt.NDArray[np.float64]], *limits: Limit
) -> tuple[Hole, ...]:
    """Return the holes with the defaults of the fastest combination within the limits, for few holes of few choices."""
    rows = np.array(list(product(*(hole.choices for hole in holes))))
    columns = {hole.name: rows[:, n] for n, hole in enumerate(holes)}
    legal = np.all([limit(columns) for limit in limits], axis=0)
    chosen = rows[int(np.argmin(np.where(legal, seconds(columns), np.inf)))]
    return tuple(replace(hole, default=int(n)) for hole, n in zip(holes, chosen, strict=True))
