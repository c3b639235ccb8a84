"""Quality of general models: what those that have not seen a workload pick of its measured candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from .general import USUAL_GROWTH, General, Growth
from .protocol import Floats, Tasks

FOLDS = 5
"""Of workloads. A choice: each model is trained on four in five of them."""
DRAWS = 2000
"""Of workloads, by which means are compared. A choice: bounds of the same draws differ by less than a hundredth."""
GROWTH: Mapping[str, Growth] = {"cuda": USUAL_GROWTH, "llvm": Growth(forests=8, trees=60, leaves=12, rate=0.1)}
"""By the kind of target."""
DOUBT: Mapping[str, float] = {"cuda": 0.0, "llvm": 0.1}
"""By the kind of target: log2 of how much faster than the rules' own choice a candidate must be predicted to be."""
LIKED: Mapping[str, bool] = {"cuda": True, "llvm": False}
"""By the kind of target: slow candidates of little estimate count too. On CPUs defaults are seldom left."""


def trained_for(
    kind: str, columns: tuple[str, ...], features: Floats, times_s: Floats, tasks: Tasks, ground: General | None = None
) -> General:
    """Train on right candidates for a kind of target, as the model that ships for it, or to correct a `ground`."""
    growth, doubt, liked = GROWTH[kind], DOUBT[kind], LIKED[kind]
    return General.trained(columns, features, times_s, tasks, growth=growth, doubt=doubt, liked=liked, ground=ground)


def held_out_predictions(
    train: Callable[[npt.NDArray[np.bool_]], General], features: Floats, fold: Tasks
) -> npt.NDArray[np.float64]:
    """Return what models that saw no sample of its fold predict of each sample, `(n,)`; `train` is told what to see."""
    found = np.zeros(len(fold))
    for number in np.unique(fold):
        own = fold == number
        found[own] = train(~own).predict(features[own])[0]
    return found


def folds_of(tasks: Tasks) -> npt.NDArray[np.int64]:
    """The fold of each sample, `(n,)`: a workload is in one."""
    return np.asarray(np.random.default_rng(0).permutation(int(tasks.max()) + 1)[tasks] % FOLDS)


def picked(scores: Floats, times_s: Floats, tasks: Tasks) -> npt.NDArray[np.float64]:
    """For each workload of several samples, the time of the one with the highest score over the least, `(w,)`."""
    own = [tasks == task for task in np.unique(tasks) if np.count_nonzero(tasks == task) > 1]
    return np.array([times_s[mask][np.argmax(scores[mask])] / times_s[mask].min() for mask in own])


def geometric_mean(ratios: Floats) -> float:
    """The geometric mean of times over others."""
    return float(np.exp(np.mean(np.log(ratios))))


def is_better(picks: Floats, others: Floats) -> bool:
    """True where a model's picks are faster than another's, `picked` of the same workloads, and not by luck.

    Of few workloads a mean says little, which a single one may make: a model of 40 of a Zen 5's that picked 0.976 of
    the time of the better one there (19 of 20 draws below 1.04) picked 1.033 of it of the 50 others.
    """
    return bounds_of_mean(picks / others)[1] < 1.0


def bounds_of_mean(ratios: Floats) -> tuple[float, float]:
    """The bounds of the geometric means of nine in ten draws of workloads, with as many as there are."""
    drawn = np.random.default_rng(0).choice(np.log(ratios), (DRAWS, len(ratios)))
    low, high = np.exp(np.percentile(drawn.mean(axis=1), [5, 95]))
    return float(low), float(high)
