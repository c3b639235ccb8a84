"""Rows of a sketch's candidates."""

from typing import Any

import numpy as np
import numpy.typing as npt


def anywhere(sketch: Any, rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Legal rows from anywhere, not just where the prior likes them; the default where none of many is legal."""
    rows = rng.integers(0, [len(h.choices) for h in sketch.holes], size=(4096, len(sketch.holes)))
    rows = rows[sketch.legal(rows)][:count] if sketch.holes else rows[:1]
    found: npt.NDArray[np.int64] = rows if len(rows) else sketch.default[None]
    return found
