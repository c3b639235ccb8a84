"""Cost models of every kind: tasks of their own scale, files, what is known beforehand, baselines."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import loopwright as lw
from loopwright.search.cost_model import MODELS, CostModel, Floats, Pretrained, make_model, relative_speed
from loopwright.search.cost_model.columns import distinct_columns
from loopwright.search.cost_model.rank import RENEWED, _Pairs
from loopwright.search.cost_model.ranking import ranking_quality
from loopwright.search.cost_model.samples import Samples, ranking_by_round, samples_of
from loopwright.search.cost_model.threads import at_most
from loopwright.search.features.catalogue import PRIOR, names
from loopwright.search.named_workloads import matmul
from loopwright.search.records.file import ErrorCode, Record, append

LEARNING = ("trees", "rank", "linear")


def landscape(rng: np.random.Generator, n: int, width: int = 20, scale: float = 1.0) -> tuple[Floats, Floats]:
    features = rng.random((n, width)).astype(np.float32)
    log_time = 4 * features[:, 0] + 3 * (features[:, 1] > 0.6) - 2 * features[:, 2] * features[:, 3]
    return features, scale * np.exp2(log_time)


def quality(model: CostModel, features: Floats, times_s: Floats) -> float:
    found = ranking_quality(model.predict(features)[0], times_s)
    assert found is not None
    return found.rank_correlation


@pytest.mark.parametrize("name", LEARNING)
def test_tasks_of_any_scale_teach_one_model(name: str) -> None:
    rng = np.random.default_rng(0)
    parts = [landscape(rng, 100, scale=scale) for scale in (1e-6, 1e-3, 1.0)]
    times_s = np.concatenate([t for _, t in parts])
    tasks = np.repeat([5, 2, 9], 100)
    model = make_model(name, 1)
    model.fit(np.concatenate([f for f, _ in parts]), relative_speed(times_s, tasks), tasks)
    assert model.ready
    assert quality(model, *landscape(rng, 500)) > 0.85


def test_ranks_are_learned_within_tasks_only() -> None:
    """A column that tells a slow task from a fast one must not be taken for what makes a candidate fast."""
    rng = np.random.default_rng(0)
    features, times_s = landscape(rng, 400)
    tasks = np.arange(400) % 2
    features[:, 9] = tasks
    scores = relative_speed(times_s, tasks) * np.where(tasks, 1.0, 0.05)  # the best of task 0 is not near its best
    model = make_model("rank")
    model.fit(features, scores, tasks)
    unseen, _ = landscape(rng, 200)
    low, high = unseen.copy(), unseen.copy()
    low[:, 9], high[:, 9] = 0, 1
    apart = model.predict(high)[0] - model.predict(low)[0]
    assert np.abs(np.median(apart)) < 0.5 * model.predict(unseen)[0].std()


def test_learners_take_so_many_threads_and_give_them_back() -> None:
    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"}

    with at_most(2):
        with at_most(1):
            assert threads() == {1}
        assert threads() == {2}


def test_the_pushes_of_pairs_are_followed_until_they_are_renewed() -> None:
    """Between renewals the slope is that of a parabola, which is 0 at the bottom, one Newton step away."""
    values, tasks = np.array([0.2, 0.9, 0.5, 0.1]), np.array([0, 0, 0, 1])
    pairs = _Pairs(np.random.default_rng(0), np.zeros(4), values, tasks)
    slope, bend, reached = np.zeros(4), np.zeros(4), np.zeros((4, 1))
    pairs.gradient_hessian(values, reached, slope, bend)
    assert slope[1] < 0 < slope[0] and slope[3] == 0  # alone in its task
    reached[:, 0] = -slope / bend
    for _ in range(RENEWED - 1):
        pairs.gradient_hessian(values, reached, slope, bend)
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    pairs.gradient_hessian(values, reached, slope, bend)
    assert np.abs(slope[:3]).min() > 1e-3


@pytest.mark.parametrize("name", ("trees", "rank"))
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_samples_far_from_all_known_ones_are_less_sure(name: str) -> None:
    near, far = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        features, times_s = landscape(rng, 100)
        model = make_model(name, seed)
        model.fit(features, relative_speed(times_s))
        near.append(model.predict(features)[1].mean())
        far.append(model.predict(landscape(rng, 500)[0])[1].mean())
    assert np.mean(near) < np.mean(far)


@pytest.mark.parametrize("name", LEARNING)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_ten_thousand_records_teach_as_few_do(name: str) -> None:
    rng = np.random.default_rng(0)
    features, times_s = landscape(rng, 10_000, len(names()) + 1)
    model = make_model(name)
    model.fit(features, relative_speed(times_s), np.arange(10_000) % 10)
    assert quality(model, *landscape(rng, 500, len(names()) + 1)) > 0.85


@pytest.mark.parametrize("name", MODELS)
def test_nothing_to_learn_from_is_no_error(name: str) -> None:
    model = make_model(name)
    width = len(names()) + 1
    for times_s in (np.zeros(0), np.full(4, 1.0), np.full(50, np.inf)):
        model.fit(np.ones((len(times_s), width), np.float32), relative_speed(times_s))
        mean, spread = model.predict(np.ones((3, width), np.float32))
        assert mean.shape == spread.shape == (3,)
    model.fit(np.ones((50, width), np.float32), relative_speed(np.arange(50) + 1.0))  # features that are all alike
    assert np.isfinite(model.predict(np.ones((3, width), np.float32))[0]).all()


def test_columns_that_order_alike_are_seen_once() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(50), rng.random(50)
    features = np.stack([np.ones(50), a, a**3, -a, b, 5 - np.log(b), np.round(a)], axis=1)
    assert distinct_columns(features).tolist() == [1, 4, 6]
    assert distinct_columns(features[::-1]).tolist() == [1, 4, 6]
    assert distinct_columns(np.ones((5, 3))).tolist() == []


# -- baselines ------------------------------------------------------------------------------------------------------


def test_roofline_believes_the_rules_then_the_bounds() -> None:
    model = make_model("roofline")
    columns = [*names(), PRIOR.name]
    features = np.zeros((3, len(columns)), np.float32)
    features[:, columns.index("bound.total")] = [-10, -12, -11]
    features[:, columns.index(PRIOR.name)] = [-20, -18, np.nan]
    assert model.ready
    assert model.predict(features)[0].tolist() == [20, 18, 11]
    with pytest.raises(
        ValueError, match=f"reads estimates from the {len(columns)} features of sketches, got features of width 20"
    ):
        model.predict(np.zeros((3, 20)))


def test_a_search_can_be_led_by_each_model() -> None:
    from fake_space import FakeSpace

    from loopwright.search.strategies.evolution import Evolution

    for name in LEARNING:
        space = FakeSpace()
        evolution, model = Evolution([space]), make_model(name)
        for _ in range(3):
            features, times_s = evolution.training_set()
            if len(times_s):
                model.fit(features, relative_speed(times_s))
            for p in evolution.propose(model, 16):
                evolution.observe(p.space, p.row, float(space.times(np.array([p.row]))[0]))
        _, times_s = evolution.training_set()
        assert times_s[32:].min() <= times_s[:16].min(), name


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_the_same(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features, times_s = landscape(rng, 60, len(names()) + 1)
    model = make_model(name, 3)
    model.fit(features, relative_speed(times_s))
    path = tmp_path / "one.model"
    model.save(path)
    again = lw.load_cost_model(path)
    assert again.ready == model.ready
    unseen, _ = landscape(rng, 40, len(names()) + 1)
    for one, other in zip(model.predict(unseen), again.predict(unseen), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [p.name for p in tmp_path.iterdir()] == ["one.model"]
    again.fit(features[:5], relative_speed(times_s[:5]))  # a loaded model goes on learning


# -- what is known beforehand ---------------------------------------------------------------------------------------


def test_what_is_known_of_other_tasks_helps_from_the_start() -> None:
    rng = np.random.default_rng(0)
    known, their_times = landscape(rng, 300, scale=1e-4)
    model = Pretrained(make_model("trees"), known, relative_speed(their_times), np.zeros(300, np.int64))
    assert model.ready and model.samples == 300
    unseen, times_s = landscape(rng, 500)
    before = quality(model, unseen, times_s)
    model.fit(unseen[:8], relative_speed(times_s[:8]))
    alone = make_model("trees")
    alone.fit(unseen[:8], relative_speed(times_s[:8]))
    assert min(before, quality(model, unseen, times_s)) > 0.9 > quality(alone, unseen, times_s)
    with pytest.raises(ValueError, match="was trained on 20 features, these are 3"):
        model.fit(unseen[:8, :3], relative_speed(times_s[:8]))


def fake_records(task: lw.SearchTask, count: int, seed: int) -> list[Record]:
    """Return records of random candidates with the seconds that the rules estimate."""
    rng = np.random.default_rng(seed)
    found: list[Record] = []
    for sketch in task.sketches:
        rows = sketch.sample(rng, count)
        seconds = sketch.estimate(rows)
        assert seconds is not None
        for row, time_s in zip(rows, seconds, strict=True):
            ok = float(time_s) > 0 and rng.random() > 0.1
            found.append(
                Record(
                    task.workload_key,
                    task.compute_dag.hash,
                    str(task.target),
                    sketch.name,
                    tuple(map(int, row)),
                    sketch.schedule(row),
                    (float(time_s),) if ok else (),
                    ErrorCode.OK if ok else ErrorCode.RUNTIME_ERROR,
                )
            )
    return found


@pytest.fixture(scope="module")
def tasks() -> list[lw.SearchTask]:
    target = "llvm cores=2 vector_bytes=32 vector_registers=16"
    return [lw.SearchTask(matmul, args=args, target=target) for args in ((64, 96, 128), (80, 48, 64))]


def test_records_of_tasks_become_samples(tasks: list[lw.SearchTask], tmp_path: Path) -> None:
    records = [*fake_records(tasks[0], 20, 0), *fake_records(tasks[1], 12, 1)]
    append(tmp_path / "records.jsonl", records)
    history = samples_of(tmp_path / "records.jsonl", tasks)
    assert len(history.times_s) == len(records) and history.features.shape[1] == len(names()) + 1
    assert set(history.tasks) == {0, 1}
    assert np.isinf(history.times_s).sum() == sum(not r.ok for r in records)
    for task in (0, 1):
        assert history.scores[history.tasks == task].max() == 1.0
    right = next(r for r in fake_records(tasks[0], 4, 5) if r.ok)
    gone = replace(right, sketch="gone", schedule='lw-unroll{block="no" loop="no"}')
    assert len(samples_of([right, gone], tasks).times_s) == 1


def test_a_model_trained_on_one_task_ranks_another(tasks: list[lw.SearchTask], tmp_path: Path) -> None:
    model = lw.train_cost_model(fake_records(tasks[0], 60, 0), tasks[:1])
    model.save(tmp_path / "rank.model")
    other = samples_of(fake_records(tasks[1], 40, 1), tasks[1:])
    right = np.isfinite(other.times_s)
    again = lw.load_cost_model(tmp_path / "rank.model")
    assert quality(again, other.features[right], other.times_s[right]) > 0.6
    with pytest.raises(ValueError, match="no right trials to train on: the records hold none of"):
        lw.train_cost_model([], tasks)


def test_quality_is_told_batch_by_batch() -> None:
    features, times_s = landscape(np.random.default_rng(0), 100)
    history = Samples(features, times_s, np.zeros(100, np.int64))
    found = ranking_by_round(history, make_model("trees"), 16)
    assert list(found) == [16, 32, 48, 64, 80]
    assert np.mean([q.rank_correlation for q in found.values()]) > 0.6
    assert ranking_by_round(history, make_model("random"), 16) == {}
