"""Quality of a ranking: correlation of ranks and recall of the best."""

import math

import numpy as np
import pytest

from loopwright.search.cost_model.ranking import RankingQuality, ranking_quality
from loopwright.search.tune.progress import TuningState, sparkline


def quality_of(predicted: list[float], times_s: list[float], k: int | None = None) -> RankingQuality:
    found = ranking_quality(predicted, times_s, k)
    assert found is not None
    return found


def test_right_wrong_and_mixed_rankings() -> None:
    times_s = [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3, 7e-3, math.inf]
    right = quality_of([8, 7, 6, 5, 4, 3, 2, 1], times_s)
    assert right.rank_correlation == pytest.approx(1.0)
    assert (right.recall, right.k, right.samples) == (1.0, 2, 8)
    wrong = quality_of([1, 2, 3, 4, 5, 6, 7, 8], times_s)
    assert wrong.rank_correlation == pytest.approx(-1.0) and wrong.recall == 0.0
    assert quality_of([8, 1, 7, 2, 3, 4, 5, 6], times_s, k=2).recall == 0.5
    assert str(right) == "rank correlation 1.00, 100% of the best 2"


def test_ties_share_ranks() -> None:
    """Rank correlation is that of scipy.stats.spearmanr."""
    quality = quality_of([1.0, 1.0, 2.0, 3.0], [4.0, 3.0, 3.0, 1.0])
    assert quality.rank_correlation == pytest.approx(0.8333333333)


@pytest.mark.parametrize("case", [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [math.inf] * 3), ([], [])])
def test_what_cannot_tell_is_none(case: tuple[list[float], list[float]]) -> None:
    predicted, times_s = map(np.array, case)
    assert ranking_quality(predicted, times_s) is None


def test_sparkline() -> None:
    assert sparkline([]) == sparkline([math.inf]) == ""
    assert sparkline([math.inf, 8.0, 4.0, 1.0]) == " ▂▃█"
    assert len(sparkline([1.0] * 500)) == 60
    assert TuningState("t", 3).quality is None
