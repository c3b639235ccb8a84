"""Rows of a sketch's candidates."""

from typing import Any

import numpy as np
import numpy.typing as npt

from loopwright.search.features.of_records import features_of_schedule


def anywhere(sketch: Any, rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Legal rows from anywhere, not just where the prior likes them; the default where none of many is legal."""
    rows = rng.integers(0, [len(h.choices) for h in sketch.holes], size=(4096, len(sketch.holes)))
    rows = rows[sketch.legal(rows)][:count] if sketch.holes else rows[:1]
    found: npt.NDArray[np.int64] = rows if len(rows) else sketch.default[None]
    return found


def require_features_of_ir(module: Any, target: Any, sketch: Any, rows: npt.NDArray[np.int64]) -> None:
    """Hold a sketch's features of rows, all but the prior, to those of the IR that their schedules make."""
    for row, have in zip(rows, sketch.features(rows), strict=True):
        want = features_of_schedule(module, target, sketch.schedule(row))
        np.testing.assert_allclose(have[:-1], want[:-1], rtol=1e-4, atol=1e-4, err_msg=sketch.schedule(row))
