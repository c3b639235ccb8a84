"""How well a model ranks: correlation of ranks and recall of the best."""

import math

import numpy as np
import pytest

from loopwright.search.cost_model.ranking import ranking_quality
from loopwright.search.tune.progress import TuningState, sparkline


def test_right_wrong_and_mixed_rankings() -> None:
    times_s = [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3, 7e-3, math.inf]
    right = ranking_quality([8, 7, 6, 5, 4, 3, 2, 1], times_s)
    assert (right.rank_correlation, right.recall, right.k, right.samples) == (pytest.approx(1.0), 1.0, 2, 8)
    wrong = ranking_quality([1, 2, 3, 4, 5, 6, 7, 8], times_s)
    assert (wrong.rank_correlation, wrong.recall) == (pytest.approx(-1.0), 0.0)
    assert ranking_quality([8, 1, 7, 2, 3, 4, 5, 6], times_s, k=2).recall == 0.5
    assert str(right) == "rank correlation 1.00, 100% of the best 2"


def test_ties_share_ranks() -> None:
    """As scipy.stats.spearmanr has it."""
    quality = ranking_quality([1.0, 1.0, 2.0, 3.0], [4.0, 3.0, 3.0, 1.0])
    assert quality.rank_correlation == pytest.approx(0.8333333333)


@pytest.mark.parametrize("case", [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [math.inf] * 3), ([], [])])
def test_what_cannot_tell_is_none(case: tuple[list[float], list[float]]) -> None:
    assert ranking_quality(*map(np.array, case)) is None


def test_sparkline() -> None:
    assert sparkline([]) == sparkline([math.inf]) == ""
    assert sparkline([math.inf, 8.0, 4.0, 1.0]) == " ▂▃█"
    assert len(sparkline([1.0] * 500)) == 60
    assert TuningState("t", 3).quality is None
