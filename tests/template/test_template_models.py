"""The cost models of tuners, and how they pick a batch: on records of a simulated measurer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from analytic_cost import analytic_cost

import loopwright as lw
from loopwright.search.cost_model import Floats, relative_speed
from loopwright.search.records.file import Record
from loopwright.search.sketch.population import Rows
from loopwright.search.strategies.annealing_chains import AnnealingSettings, Chains
from loopwright.search.strategies.diversity import pick_diverse
from loopwright.search.template.config import ConfigSpace
from loopwright.search.template.in_search import TemplateSpace
from loopwright.search.template.knobs.choice import ChoiceKnob
from loopwright.search.tuners.rank_trees import PairwiseTrees, well_chosen
from loopwright.search.tuners.speed_trees import SpeedTrees


@pytest.fixture(scope="module")
def thousand(conv: lw.TemplateTask) -> Sequence[Record]:
    tuner = lw.tuners.RandomTuner(conv, seed=5)
    tuner.batch_size = 250
    return tuner.tune(1000, analytic_cost).trials


@pytest.mark.parametrize("count", [192, 1000])
@pytest.mark.parametrize("options", [{}, {"loss_type": "reg", "feature_type": "curve"}], ids=["usual", "slowest"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_batch_of_64_of_ten_million_holds_no_config_twice(
    conv: lw.TemplateTask, thousand: Sequence[Record], count: int, options: dict[str, Any]
) -> None:
    assert len(conv.config_space) > 1e7
    tuner = lw.tuners.GradientBoostingTuner(conv, plan_size=64, **options)
    assert tuner.resume(thousand[:count]) == count
    batch = tuner.propose(64)
    assert len(set(batch)) == 64 and set(batch).isdisjoint(tuner.visited)


def test_few_of_many_samples_are_the_fastest_the_last_and_others() -> None:
    rng = np.random.default_rng(0)
    scores, tasks = rng.random(900), np.repeat([0, 1], [300, 600])
    kept = well_chosen(np.random.default_rng(1), scores, tasks, 90)
    assert len(set(kept.tolist())) == len(kept) == 90
    for task, room in ((0, 30), (1, 60)):
        own = np.flatnonzero(tasks == task)
        mine = set(kept.tolist()) & set(own.tolist())
        assert len(mine) == room
        assert set(own[np.argsort(-scores[own])][: room // 2].tolist()) <= mine
        assert set(own[-(room // 4) :].tolist()) <= mine
    assert well_chosen(rng, scores, tasks, 900).tolist() == list(range(900))


def test_what_can_be_measured_and_its_features_come_together(conv: lw.TemplateTask, small: lw.TemplateTask) -> None:
    for task in (conv, small):
        rows = task.config_space.sample(np.random.default_rng(0), 200)
        for kind in ("knob", "itervar", "curve", "sketch"):
            space = TemplateSpace(task, kind)
            legal, features = space.survey(rows)
            assert legal.tolist() == task.legal(rows).tolist()
            assert np.array_equal(features, space.features(rows)[legal], equal_nan=True)


@pytest.mark.parametrize(
    ("model", "range_of"),
    [
        (SpeedTrees(), 1.0),
        (PairwiseTrees(), 1.0),
        (PairwiseTrees(binary=True), 0.35),  # it tells within half of the best
    ],
    ids=["reg", "rank", "binary"],
)
@pytest.mark.few(1)
def test_models_rank_what_they_have_not_seen(model: SpeedTrees | PairwiseTrees, range_of: float) -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(0, 4, (200, 12))
    times_s = 1e-3 * np.exp(range_of * (features[:, 0] - 0.7 * features[:, 3]) + 0.1 * rng.standard_normal(200))
    times_s[::17] = np.inf
    scores = relative_speed(times_s)
    assert not model.ready
    model.fit(features[:150], scores[:150], np.zeros(150, dtype=np.int64), np.ones(150))
    assert model.ready
    mean, spread = model.predict(features[150:])  # failures are slow, too
    fast = times_s[150:] <= np.quantile(times_s[150:], 0.25)
    assert (mean[fast][:, None] > mean[~fast][None, :]).mean() > 0.8
    assert (spread >= 0).all()


def test_rank_trees_compare_within_a_task() -> None:
    """Two tasks in which the same feature means the same, at times a hundredfold apart."""
    rng = np.random.default_rng(1)
    features = rng.uniform(0, 1, (80, 4))
    times_s = np.exp(3 * features[:, 1]) * np.where(np.arange(80) < 40, 1.0, 100.0)
    tasks = (np.arange(80) >= 40).astype(np.int64)
    model = PairwiseTrees()
    model.fit(features, relative_speed(times_s, tasks), tasks, np.ones(80))
    mean, _ = model.predict(features)
    assert np.corrcoef(mean, -features[:, 1])[0, 1] > 0.85


def test_annealing_finds_a_known_peak() -> None:
    space = ConfigSpace()
    for number in range(6):
        space.add(ChoiceKnob(f"k{number}", list(range(12))))
    peak = np.array([3, 11, 0, 7, 5, 9])

    def score(rows: Rows) -> Floats:
        scores = -np.abs(rows - peak).sum(axis=1).astype(float) / 10
        return np.where(rows[:, 0] == 1, -np.inf, scores)

    chains, rng = Chains(space, AnnealingSettings()), np.random.default_rng(0)
    rows, scores = chains.search(rng, score, space.sample(np.random.default_rng(1), 4), keep=50)
    rows, scores = chains.search(rng, score, rows[:10], keep=50)
    assert scores[0] >= -0.1 and len(rows) == 50 and (np.diff(scores) <= 0).all()
    assert len(np.unique(rows, axis=0)) == 50 and not (rows[:, 0] == 1).any()


def test_diverse_batch_covers_more_choices() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.tile([0, 0, 0], (30, 1)), rng.integers(0, 8, (30, 3))])
    scores = np.concatenate([np.full(30, 1.0), np.full(30, 0.99)])
    chosen = pick_diverse(rows, scores, 10)
    assert len(set(chosen.tolist())) == 10
    assert len(np.unique(rows[chosen], axis=0)) > 5
    assert pick_diverse(rows, scores, 100).size == 60
