"""Defaults of holes that a model likes best, of all combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..sketch.hole import Columns, Hole, Limit
from ..sketch.population import Population


def with_best_defaults(
    holes: Sequence[Hole], seconds: Callable[[Columns], npt.NDArray[np.float64]], *limits: Limit
) -> tuple[Hole, ...]:
    """Return the holes with the defaults of the fastest combination within the limits, for few holes of few choices."""
    population = Population(tuple(holes), (), limits)
    rows = population.every
    times_s = np.where(population.legal(rows), seconds(population.columns(rows)), np.inf)
    return population.with_default(rows[int(np.argmin(times_s))]).holes
