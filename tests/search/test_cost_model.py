"""Cost models rank candidates they have not seen, from few samples, and learn from failures too."""

import numpy as np
import pytest

from loopwright.search.cost_model import BoostedTrees, Floats, Linear, RandomModel, make_model, relative_speed
from loopwright.search.cost_model.trees import drawn


def landscape(rng: np.random.Generator, n: int, width: int = 20) -> tuple[Floats, Floats]:
    features = rng.random((n, width)).astype(np.float32)
    log_time = 4 * np.abs(features[:, 0] - 0.3) + 3 * (features[:, 1] > 0.6) + features[:, 2] * features[:, 3]
    return features, np.exp2(log_time)


def rank_correlation(a: Floats, b: Floats) -> float:
    return np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1]


def test_scores_are_relative_to_the_best_of_their_task() -> None:
    times = np.array([2.0, 1.0, np.inf, 8.0, 4.0, np.inf])
    tasks = np.array([0, 0, 0, 1, 1, 2])
    assert relative_speed(times, tasks).tolist() == [0.5, 1.0, 0.0, 0.5, 1.0, 0.0]
    assert relative_speed(np.array([])).tolist() == []


@pytest.mark.parametrize(("samples", "least"), [(4000, 0.97), (64, 0.75), (16, 0.3), (500, 0.93)])
@pytest.mark.few(2)
def test_trees_rank_unseen_candidates(samples: int, least: float) -> None:
    rng = np.random.default_rng(0)
    features, times = landscape(rng, samples)
    unseen, their_times = landscape(rng, 1000)
    model = BoostedTrees(seed=1)
    model.fit(features, relative_speed(times))
    mean, spread = model.predict(unseen)
    assert rank_correlation(mean, -their_times) > least
    assert mean.shape == spread.shape == (1000,) and (spread >= 0).all() and spread.any()


def test_trees_beat_the_linear_baseline() -> None:
    rng = np.random.default_rng(0)
    features, times = landscape(rng, 300)
    unseen, their_times = landscape(rng, 1000)
    correlations = []
    for model in (BoostedTrees(), Linear()):
        model.fit(features, relative_speed(times))
        correlations.append(rank_correlation(model.predict(unseen)[0], -their_times))
    assert correlations[0] > correlations[1] > 0.3


@pytest.mark.parametrize("name", ["trees", "linear"])
def test_a_column_that_hardly_moved_is_not_followed_beyond_what_was_seen(name: str) -> None:
    rng = np.random.default_rng(0)
    features, times = landscape(rng, 48)
    features[:, 19] = 1e-3 * (features[:, 0] > 0.5)
    model = make_model(name, 1)
    model.fit(features, relative_speed(times))
    unseen, their_times = landscape(rng, 1000)
    beside = unseen.copy()
    unseen[:, 19], beside[:, 19] = 1 + unseen[:, 19], 1e-3
    found, expected = model.predict(unseen)[0], model.predict(beside)[0]
    assert np.allclose(found, expected)
    assert name == "linear" or rank_correlation(found, -their_times) > 0.6


def test_failures_teach() -> None:
    rng = np.random.default_rng(0)
    features, times = landscape(rng, 200)
    times[features[:, 5] > 0.5] = np.inf
    model = BoostedTrees()
    model.fit(features, relative_speed(times))
    mean, _ = model.predict(features)
    assert mean[features[:, 5] > 0.55].max() < mean[features[:, 5] < 0.45].mean()


@pytest.mark.parametrize("name", ["trees", "linear", "random"])
def test_models_that_know_nothing_say_so(name: str) -> None:
    model = make_model(name, seed=3)
    features = np.ones((40, 5), np.float32)
    assert not model.ready
    model.fit(features[:3], np.ones(3))
    assert not model.ready
    model.fit(features, np.zeros(40))  # nothing has ever worked
    assert not model.ready
    mean, spread = model.predict(features)
    assert mean.shape == (40,) and (spread > 0).all()


def test_features_may_be_constant_or_missing() -> None:
    features = np.full((12, 4), np.nan, np.float32)
    features[:, 1] = np.arange(12)
    features[0, 2] = np.inf
    for model in (BoostedTrees(), Linear()):
        model.fit(features, np.linspace(0.1, 1, 12))
        mean, _ = model.predict(features)
        assert model.ready and mean[-1] > mean[0]
        assert model.predict(features[:0])[0].shape == (0,)


def test_the_same_seed_learns_the_same() -> None:
    rng = np.random.default_rng(0)
    features, times = landscape(rng, 100)
    unseen, _ = landscape(rng, 100)
    predictions = []
    for seed in (1, 1, 2):
        model = BoostedTrees(seed)
        model.fit(features, relative_speed(times))
        predictions.append(model.predict(unseen)[0])
    assert (predictions[0] == predictions[1]).all() and (predictions[0] != predictions[2]).any()


@pytest.mark.parametrize(("name", "whole"), [("trees", [True] * 4), ("rank", [True, False, False, False])])
def test_few_samples_are_all_seen_by_randomised_trees_and_drawn_for_rankers(
    name: str, whole: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def noting(rng: np.random.Generator, samples: int, whole: bool) -> np.ndarray:
        seen.append(whole)
        return drawn(rng, samples, whole)

    monkeypatch.setattr("loopwright.search.cost_model.trees.drawn", noting)
    features, times = landscape(np.random.default_rng(0), 40)
    make_model(name, 0).fit(features, relative_speed(times))
    assert seen == whole


def test_unknown_models_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown cost model 'xgb'; there are: trees, rank, linear, roofline, random"):
        make_model("xgb")
    assert isinstance(make_model("random"), RandomModel)
