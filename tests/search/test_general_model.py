"""The cost model that ships: what it learns of many workloads, its file, and how searches start from it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_workloads import SAMPLES
from sampled_workloads import CPU, GPU, WEIGHTED, sampled

import loopwright as lw
from loopwright.search.cost_model import CostModelError, Floats, Tasks, make_model, relative_speed
from loopwright.search.cost_model.forest import Forest
from loopwright.search.cost_model.general import General, Growth, workload_means
from loopwright.search.cost_model.grounded import Grounded
from loopwright.search.cost_model.plain_file import PlainFileError, write_plain
from loopwright.search.cost_model.saved import MAGIC
from loopwright.search.cost_model.shipped import model_for, shipped_model
from loopwright.search.features.catalogue import MATRIX_UNIT, PRIOR, STAGES, WORK, names

COLUMNS = (*names(), PRIOR.name)
UNIT = COLUMNS.index(MATRIX_UNIT)
ZEN = "llvm model=znver3 l3_bytes=33554432"
XEON = "llvm model=emeraldrapids vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes=2097152 l3_bytes=314572800"
HELD_BACK = Path(__file__).parents[2] / "benchmarks" / "samples" / "held-back-llvm-2026-11-24.npz"


def samples(seed: int, tasks: int = 30, each: int = 20) -> tuple[Floats, Floats, Tasks]:
    """Features of candidates, and times on a scale of each task's own.

    A feature takes so few values that each is a bin: weighted quantiles of more take scikit-learn a second a model.
    """
    rng = np.random.default_rng(seed)
    features = (np.round(4 * rng.normal(size=(tasks * each, len(COLUMNS)))) / 4).astype(np.float32)
    features[:, UNIT] = 0
    for name in (WORK, STAGES):
        features[:, COLUMNS.index(name)] = np.abs(features[:, COLUMNS.index(name)])
    numbers = np.repeat(np.arange(tasks), each)
    logs = 2 * features[:, 0] + (features[:, 1] > 0) + rng.normal(0, 5, tasks)[numbers]
    return features, np.exp2(logs), numbers


@pytest.fixture(scope="module")
def model() -> General:
    return General.trained(COLUMNS, *samples(0))


def test_scales_of_workloads_do_not_matter(model: General) -> None:
    features, times_s, tasks = samples(1)
    predicted, spread = model.predict(features)
    for task in range(30):
        own = tasks == task
        assert np.corrcoef(predicted[own], -np.log2(times_s[own]))[0, 1] > 0.8
    assert not spread.any()


@pytest.mark.slow(1.2)
def test_slow_candidates_say_little_of_those_that_are_chosen_from() -> None:
    """One feature speeds fast candidates up, and slows down as many that are 16 times slower for unseen reasons."""
    features, _, tasks = samples(0)
    slow = np.arange(len(tasks)) % 2
    model = General.trained(COLUMNS, features, np.exp2(4 * slow + (1 - 2 * slow) * features[:, 0]), tasks)
    unseen, _, _ = samples(1, tasks=1, each=200)
    unseen[:, -1] = 0
    assert np.corrcoef(model.predict(unseen)[0], -unseen[:, 0])[0, 1] > 0.5


def test_a_file_predicts_the_same(model: General, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    features, _, _ = samples(2)
    again = lw.load_cost_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(features)[0], model.predict(features)[0])


@pytest.mark.slow(1.2)
def test_estimates_decide_where_the_samples_say_nothing_else() -> None:
    """Times follow the estimates: nothing is left to learn, also for estimates that no sample comes near."""
    features, _, tasks = samples(0)
    model = General.trained(COLUMNS, features, np.exp2(features[:, -1]), tasks)
    unseen, _, _ = samples(1, tasks=1, each=50)
    unseen[:, -1] *= 100
    np.testing.assert_allclose(np.diff(model.predict(unseen)[0]), -np.diff(unseen[:, -1]), atol=1e-6)


def test_candidates_without_an_estimate_are_predicted() -> None:
    features, times_s, tasks = samples(0)
    features[::3, -1] = np.nan
    model = General.trained(COLUMNS, features, times_s, tasks)
    unseen, later_s, _ = samples(1, tasks=1, each=200)
    unseen[:, -1] = np.nan
    assert np.corrcoef(model.predict(unseen)[0], -np.log2(later_s))[0, 1] > 0.8


def test_candidates_on_matrix_units_go_by_their_estimates_where_none_was_trained_on() -> None:
    """Whatever their other features say; beside those that are known, whose predictions stay."""
    features, times_s, tasks = samples(0)
    seen = [n for n in range(len(COLUMNS)) if n != UNIT]
    model = General.trained(tuple(COLUMNS[n] for n in seen), features[:, seen], times_s, tasks)
    found, _, _ = samples(3, tasks=1, each=40)
    before, _ = model.predict(found)
    found[::2, UNIT] = 12
    after, _ = model.predict(found)
    np.testing.assert_array_equal(after[1::2], before[1::2])
    np.testing.assert_allclose(np.diff(after[::2]), -np.diff(found[::2, -1]), atol=1e-5)
    apart = after + found[:, -1]
    np.testing.assert_allclose(apart[::2], apart[1::2].mean(), atol=1e-5)
    alone, _ = model.predict(found[::2])
    np.testing.assert_array_equal(np.argsort(alone), np.argsort(after[::2]))


def test_candidates_on_matrix_units_are_predicted_as_far_as_such_workloads_were_trained_on(tmp_path: Path) -> None:
    """Those of larger workloads, and of more stages, go by their estimates, also once the model comes from a file."""
    features, times_s, tasks = samples(0)
    features[::2, UNIT] = 12
    features[:, COLUMNS.index(WORK)] = 1 + tasks % 10
    features[:, COLUMNS.index(STAGES)] = 2
    General.trained(COLUMNS, features, times_s, tasks).save(tmp_path / "model")
    model = lw.load_cost_model(tmp_path / "model")
    found, _, _ = samples(3, tasks=1, each=40)
    found[:, UNIT] = 12
    for work, stages, by_estimates in ((3, 1, False), (10, 2, False), (11, 2, True), (3, 3, True)):
        found[:, COLUMNS.index(WORK)], found[:, COLUMNS.index(STAGES)] = work, stages
        predicted, _ = model.predict(found)
        assert np.allclose(np.diff(predicted), -np.diff(found[:, -1]), atol=1e-5) is by_estimates, (work, stages)


def test_a_file_of_an_older_version_is_refused_with_what_to_do(model: General, tmp_path: Path) -> None:
    path = tmp_path / "model"
    state = {name: value for name, value in model.state().items() if name != "unestimated"}
    write_plain(path, MAGIC, {"features": list(COLUMNS), "kind": General.kind, "state": state})
    with pytest.raises(lw.CostModelError, match=r"an older version made it.*: train it again"):
        lw.load_cost_model(path)


def test_features_are_found_by_their_names_and_missed() -> None:
    features, times_s, tasks = samples(0)
    order = np.random.default_rng(0).permutation(len(COLUMNS))[:40]
    order = np.union1d(order, [0, 1, COLUMNS.index(PRIOR.name)])
    few = General.trained(tuple(COLUMNS[n] for n in order), features[:, order], times_s, tasks)
    unseen, later_s, _ = samples(3, tasks=1, each=200)
    assert np.corrcoef(few.predict(unseen)[0], -np.log2(later_s))[0, 1] > 0.8
    with pytest.raises(PlainFileError, match=r"features that there are not: main\.gone"):
        General.trained(("main.gone", PRIOR.name), features[:, -2:], times_s, tasks)


def test_means_are_of_each_workload() -> None:
    found = workload_means(np.array([[1.0], [3.0], [10.0]]), np.array([4, 4, 1]), np.array([3.0, 1.0, 0.5]))
    np.testing.assert_allclose(found[:, 0], [1.5, 1.5, 10.0])


def test_several_forests_are_one_that_predicts_their_mean() -> None:
    features, times_s, tasks = samples(0, tasks=12)
    few = Growth(trees=4, leaves=6)
    forests = [General.trained(COLUMNS, features, times_s, tasks, seed, few)._correction.forest for seed in (0, 1)]
    unseen, _, _ = samples(1, tasks=1, each=50)
    alone = [forest.predict(unseen) for forest in forests]
    assert not np.allclose(alone[0], alone[1])
    np.testing.assert_allclose(Forest.mean(forests).predict(unseen), np.mean(alone, axis=0), rtol=1e-12)


def test_a_model_of_several_forests_and_its_doubt_come_back_from_a_file(tmp_path: Path) -> None:
    growth = Growth(forests=3, trees=4, leaves=6)
    found = General.trained(COLUMNS, *samples(0, tasks=12), growth=growth, doubt=0.5)
    found.save(tmp_path / "model")
    again = lw.load_cost_model(tmp_path / "model")
    assert isinstance(again, General)
    assert again.doubt == 0.5
    unseen, _, _ = samples(1, tasks=1, each=50)
    np.testing.assert_array_equal(again.predict(unseen)[0], found.predict(unseen)[0])


def test_slow_candidates_of_little_estimate_count() -> None:
    """By their speed alone they count little, and what is learned of others says that they are fast."""
    features, times_s, tasks = samples(0, tasks=20)
    trap = np.arange(len(times_s)) % 8 == 0
    features[trap, -1], features[~trap, -1] = -3, 0
    features[:, UNIT] = 0
    features[trap, COLUMNS.index("main.warps")] = 9
    slow_s = np.where(trap, 20 * times_s, times_s)
    few = Growth(trees=8, leaves=6)
    found = [General.trained(COLUMNS, features, slow_s, tasks, growth=few, liked=liked) for liked in (False, True)]
    ends = [model.predict(features)[0] for model in found]
    assert (ends[1][trap] - ends[1][~trap].mean()).mean() < (ends[0][trap] - ends[0][~trap].mean()).mean()


@pytest.mark.slow(1.2)
def test_candidates_on_matrix_units_may_have_the_correction_of_another_model(tmp_path: Path) -> None:
    features, times_s, tasks = samples(0)
    features[::2, UNIT] = 1
    features[:, [COLUMNS.index(WORK), COLUMNS.index(STAGES)]] = 0  # none is beyond what was seen
    first, second = (General.trained(COLUMNS, features, times_s**power, tasks) for power in (1, -1))
    both = first.with_units_of(second)
    both.save(tmp_path / "both.model")
    on_units = features[:, UNIT] > 0
    for model in (both, lw.load_cost_model(tmp_path / "both.model")):
        predicted = model.predict(features)[0]
        np.testing.assert_allclose(predicted[~on_units], first.predict(features)[0][~on_units])
        np.testing.assert_allclose(predicted[on_units], second.predict(features)[0][on_units])


@pytest.mark.parametrize("kind", ["cuda", "llvm"])
def test_a_model_ships(kind: str) -> None:
    found = shipped_model(kind)
    assert found is not None
    assert shipped_model(kind) is found


@pytest.mark.parametrize(
    ("target", "dtype", "is_known"),
    [
        (ZEN, "float32", True),
        (XEON, "float32", True),
        (XEON, "float16", False),
        (XEON, None, False),
        (f"{XEON} cores=16", "float32", False),
        ("llvm model=nehalem", "float32", False),
        ("llvm model=neoverse-n1", "float32", False),
        ("llvm arch=aarch64 vector_bytes=32 vector_registers=32", "float32", False),
        ("opencl model=mali-t860", "float32", False),
        ("cuda model=h200", "float16", True),
    ],
)
def test_targets_and_types_that_a_model_was_not_trained_on_go_by_estimates(
    target: str, dtype: str | None, is_known: bool
) -> None:
    assert (model_for(lw.resolve_target(target), dtype) is not None) == is_known


@pytest.mark.parametrize("target", [ZEN, XEON])
@pytest.mark.few(3)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_model_for_cpus_predicts_every_sketch(name: str, target: str) -> None:
    task, model = lw.SearchTask(SAMPLES[name], target=target), shipped_model("llvm")
    assert model is not None
    for sketch in task.sketches:
        rows = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), 20)])
        assert np.isfinite(model.predict(sketch.features(rows))[0]).all(), sketch.name


def test_the_model_for_cpus_chooses_no_worse_than_estimates_do() -> None:
    """Of candidates of workloads that it has not seen, on two makes of CPU; the rules' choice is each one's first."""
    model = shipped_model("llvm")
    assert model is not None
    with np.load(HELD_BACK, allow_pickle=False) as arrays:
        columns = json.loads(str(arrays["about"]))["columns"]
        assert tuple(columns) == COLUMNS
        features, times_s, tasks = arrays["features"], arrays["times_s"], arrays["workloads"]
    gained = []
    for task in np.unique(tasks):
        own = np.flatnonzero(tasks == task)
        scores = model.predict(features[own])[0]
        best = int(np.argmax(scores))
        chosen = best if scores[best] > scores[0] + model.doubt else 0
        gained.append(float(np.log2(times_s[own[0]] / times_s[own[chosen]])))
    assert len(gained) > 20
    assert np.mean(gained) > 0


def test_a_search_begins_from_the_ground_and_learns_beyond(model: General, tmp_path: Path) -> None:
    features = np.clip(samples(4, tasks=1, each=200)[0], -1, 1)  # so that no time is a thousandth of nearly all others
    times_s = np.exp2(2 * features[:, 0] + (features[:, 1] > 0))
    grounded = Grounded(make_model("trees"), model)
    np.testing.assert_array_equal(grounded.predict(features)[0], model.predict(features)[0])
    times_s = times_s * np.exp2(4 * features[:, 2])  # the ground knows nothing of it
    before = np.corrcoef(grounded.predict(features[100:])[0], -np.log2(times_s[100:]))[0, 1]
    grounded.fit(features[:100], relative_speed(times_s[:100]))
    after = np.corrcoef(grounded.predict(features[100:])[0], -np.log2(times_s[100:]))[0, 1]
    assert after > before + 0.1
    grounded.save(tmp_path / "model")
    again = lw.load_cost_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(features)[0], grounded.predict(features)[0])


def test_few_samples_leave_what_the_ground_knows(model: General) -> None:
    features = np.clip(samples(5, tasks=1, each=200)[0], -1, 1)
    times_s = np.exp2(2 * features[:, 0] + (features[:, 1] > 0))
    grounded, alone = Grounded(make_model("trees"), model), make_model("trees")
    grounded.fit(features[:10], relative_speed(times_s[:10]))
    alone.fit(features[:10], relative_speed(times_s[:10]))
    learned, untaught, wider = (
        np.corrcoef(each.predict(features[10:])[0], -np.log2(times_s[10:]))[0, 1] for each in (grounded, model, alone)
    )
    assert grounded.learned and learned > max(untaught - 0.05, wider + 0.1)
    assert grounded.predict(features)[0].max() < 1.5  # on the scale of what it was taught, 1 for the best


@pytest.mark.parametrize("known", [np.inf, -np.inf, np.nan, -2000.0])
def test_estimates_that_are_no_times_spoil_no_search(
    known: float, model: General, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = samples(6, tasks=1, each=100)[0]
    says = np.where(np.arange(100) == 3, known, 10.0)
    monkeypatch.setattr(General, "predict", lambda self, features: (says[: len(features)], np.zeros(len(features))))
    grounded = Grounded(make_model("trees"), model)
    grounded.fit(features, relative_speed(np.exp2(np.clip(features[:, 0], -3, 3))))
    assert grounded.learned and all(np.isfinite(found).all() for found in grounded.predict(features))


@pytest.mark.parametrize("fastest_s", [None, 0.0, -1.0])
def test_a_ground_of_an_older_or_crafted_file_is_refused(
    fastest_s: float | None, model: General, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Grounded.state

    def changed(grounded: Grounded) -> dict[str, Any]:
        without = {key: value for key, value in state(grounded).items() if key != "fastest_s"}
        return without if fastest_s is None else {**without, "fastest_s": fastest_s}

    monkeypatch.setattr(Grounded, "state", changed)
    Grounded(make_model("trees"), model).save(tmp_path / "model")
    with pytest.raises(CostModelError, match="train it again" if fastest_s is None else "fastest_s"):
        lw.load_cost_model(tmp_path / "model")


def test_searches_start_from_the_shipped_model() -> None:
    def made(target: str, **options: object) -> object:
        task = lw.SearchTask("matmul", target=target)
        return task.taught(lw.TuningOptions(progress=False, **options)).cost_model  # type: ignore[arg-type]

    found = made("cuda model=h200")
    assert isinstance(found, Grounded)
    assert found.ground is shipped_model("cuda")
    on_cpu = made(ZEN)
    assert isinstance(on_cpu, Grounded)
    assert on_cpu.ground is shipped_model("llvm")
    on_cores = made("llvm model=skylake-avx512 cores=2")
    assert isinstance(on_cores, Grounded)
    assert on_cores.ground is shipped_model("llvm")
    assert made("llvm arch=aarch64 cores=2") == "trees"
    assert made("cuda model=h200", transfer=False) == "trees"
    assert made("cuda model=h200", cost_model="rank") == "rank"


@pytest.mark.slow(1.2)
def test_sampled_workloads_are_of_all_kinds_and_the_same_each_time() -> None:
    found = sampled(5, 200)
    assert found[:20] == sampled(5, 20)
    assert {workload.kind for workload in found} >= set(GPU.shares) - {"conv3d", "attention", "weighted"}
    assert len(set(found)) == 200


def test_workloads_for_cpus_are_of_one_type_and_some_weights_are_constants() -> None:
    found = sampled(5, 60, 1e-5, mix=CPU)
    assert {str(tensor.dtype) for workload in found for tensor in workload.tensors()} == {"float32"}
    constant = [workload for workload in found if workload.constant]
    assert {workload.kind for workload in constant} <= WEIGHTED
    assert 5 < len(constant) < 40
    assert all("lw.constant" in str(workload.task("llvm cores=1").module) for workload in constant[:3])
