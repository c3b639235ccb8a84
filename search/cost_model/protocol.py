"""The protocol of cost models, and the scale on which candidates of all tasks compare."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Tasks = npt.NDArray[np.integer[Any]]
"""The task of each sample, `(n,)`; which number means which task does not matter."""


MOST_COLUMNS = 1 << 16
"""Features of a model; those of sketches are some hundreds."""

DOUBLINGS = 8.0
"""Of a time, from the best to what counts as the worst. A choice: 256 times."""


class CostModel(Protocol):
    """Learns from scores (a candidate's speed as a share of its task's best; failed: 0) to rank other candidates."""

    @property
    def ready(self) -> bool:
        """True where predictions mean anything yet."""

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Learn from all there is: features `(n, f)`, scores `(n,)`; replaces what was learned before."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return predictions `(n,)` for features `(n, f)`, larger for faster, and their spread `(n,)` (how unsure)."""


@runtime_checkable
class Founded(Protocol):
    """A cost model that is ready before it was taught anything, by another one that it stands on."""

    @property
    def learned(self) -> bool:
        """True where it predicts by what it was taught."""


def has_learned(model: CostModel) -> bool:
    """True where predictions are on the scale of what it was taught; those of a model that ships are on its own."""
    return model.learned if isinstance(model, Founded) else model.ready


def relative_speed(times_s: Floats, tasks: Tasks | None = None) -> Floats:
    """Return best / time within each task, `(n,)`; infinite times (failures) score 0, also where all failed."""
    times_s = np.asarray(times_s, dtype=np.float64)
    tasks = np.zeros(len(times_s), dtype=np.int64) if tasks is None else tasks
    scores = np.zeros(len(times_s))
    for task in np.unique(tasks):
        right = (tasks == task) & np.isfinite(times_s)
        if right.any():
            scores[right] = times_s[right].min() / times_s[right]
    return scores


def log_scale(scores: Floats) -> Floats:
    """Return 1 for the best, 0 for 256 times slower or more, and a little less for failures.

    Times of random schedules spread over orders of magnitude, and on the plain scale all but a few look alike.
    """
    right = scores > 0
    return np.where(right, np.maximum(0.0, 1.0 + np.log2(np.where(right, scores, 1.0)) / DOUBLINGS), -0.1)


def finite(features: Floats) -> Floats:
    """Return features without infinities and missing numbers, which learners refuse."""
    return np.nan_to_num(features, nan=0.0, posinf=1e30, neginf=-1e30)


def check_width(width: int, features: Floats) -> None:
    """ValueError unless features `(n, f)` are of the width that a model was trained on."""
    if features.shape[1] != width:
        raise ValueError(
            f"this cost model was trained on {width} features, these are {features.shape[1]}; "
            "candidates of templates and of sketches need models of their own"
        )


def enough(scores: Floats, fewest: int) -> bool:
    """True where there are samples to learn from, some of which worked."""
    return len(scores) >= fewest and bool(np.any(scores > 0))
