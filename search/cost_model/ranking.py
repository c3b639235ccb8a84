"""Quality of a cost model's ranking of unseen candidates: rank correlation, and how many of the best it names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

_FEWEST = 3
"""Samples that have an order worth a number: two are right half of the time by chance."""


@dataclass(frozen=True)
class RankingQuality:
    """Spearman's correlation of `samples` candidates, and the share of the `k` fastest among `k` predicted best."""

    rank_correlation: float
    recall: float
    k: int
    samples: int

    def __str__(self) -> str:
        return f"rank correlation {self.rank_correlation:.2f}, {self.recall:.0%} of the best {self.k}"


def ranking_quality(
    predicted: Sequence[float] | Floats, times_s: Sequence[float] | Floats, k: int | None = None
) -> RankingQuality | None:
    """Compare predictions (larger for faster) with measured seconds (infinite for failures), a quarter as the best.

    None for fewer than three candidates, or where all predictions or all times are the same.
    """
    scores, times = np.asarray(predicted, dtype=np.float64), np.asarray(times_s, dtype=np.float64)
    if len(scores) < _FEWEST or np.all(scores == scores[0]) or np.all(times == times[0]):
        return None
    k = max(1, len(scores) // 4) if k is None else min(k, len(scores))
    correlation = float(np.corrcoef(_ranks(scores), _ranks(-times))[0, 1])
    threshold_s = np.sort(times)[k - 1]
    chosen = np.argsort(-scores, kind="stable")[:k]
    recall = float(np.count_nonzero(times[chosen] <= threshold_s)) / k
    return RankingQuality(correlation, recall, k, len(scores)) if math.isfinite(correlation) else None


def _ranks(values: Floats) -> Floats:
    """Ranks from 0; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2.0)[inverse])
