"""The distance from what is right within which an element of an output counts as right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Tolerance(NamedTuple):
    """`atol + rtol * abs(expected)`: one for each output, whose errors come from other sums than those of the next."""

    atol: float = 0.0
    rtol: float = 0.0

    def __str__(self) -> str:
        return f"atol={self.atol:g}, rtol={self.rtol:g}"

    @property
    def is_none(self) -> bool:
        """True where whatever an element is counts as right."""
        return self.atol == np.inf

    def bounds(self, expected: Array) -> Array:
        """The allowed distance of each element; 0 at infinities and NaN, which have to be met exactly."""
        wide = expected.astype(np.result_type(expected.dtype, np.float32), copy=False)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(np.isfinite(wide), self.atol + self.rtol * np.abs(wide), 0.0), dtype=wide.dtype)


EXACT, ANYTHING = Tolerance(), Tolerance(np.inf)


def tolerances_of(pairs: Sequence[Sequence[float]]) -> list[Tolerance]:
    """Tolerances from pairs of numbers, as processes and devices hand them to each other."""
    return [Tolerance(float(atol), float(rtol)) for atol, rtol in pairs]
