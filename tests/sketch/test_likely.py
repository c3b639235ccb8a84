"""The candidate that analytic models like best, which untuned kernels for CUDA devices take."""

import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.kernel import LaunchOp
from loopwright.search.cost_model import Floats
from loopwright.search.cost_model.general import General
from loopwright.search.cost_model.shipped import shipped_model
from loopwright.search.named_workloads import conv2d_nhwc, matmul
from loopwright.search.sketch import likely
from loopwright.search.sketch.hole import Columns
from loopwright.search.sketch.likely import CANDIDATES, KEPT, SURE, likeliest_candidate, likely_rows
from loopwright.search.sketch.sketch import Sketch


def likeliest(*given: Any, **options: Any) -> str:
    """The schedule of `likeliest_candidate`."""
    sketch, row = likeliest_candidate(*given, **options)
    return sketch.schedule(row)


def test_a_convolution_to_few_channels_keeps_the_device_busy() -> None:
    """Undivided, the defaults' tiles are so large that 4 of the 132 multiprocessors of an H200 would work."""
    task = lw.SearchTask(lambda: conv2d_nhwc(1, 64, 64, 32, 9, 3, 3), target="cuda model=h200")
    first = next(sketch for sketch in task.sketches if "rfactor" not in sketch.template)

    def blocks(schedule: str) -> int:
        lowered = lower_to_kernel(task.schedule_module(schedule), task.target)
        return max(prod(op.grid_size) for op in lowered.walk() if isinstance(op, LaunchOp))

    assert blocks(first.schedule(first.default)) < 16
    assert blocks(task.default_schedule) >= 64


@pytest.mark.parametrize("target", ["cuda model=h200", "llvm cores=1", "llvm cores=2"])
@pytest.mark.few(2)
def test_an_untuned_schedule_is_the_same_each_time(target: str) -> None:
    schedules = {lw.SearchTask(lambda: matmul(96, 200, 64), target=target).default_schedule for _ in range(2)}
    assert len(schedules) == 1


def test_no_candidate_that_is_looked_at_has_a_lower_estimate() -> None:
    task = lw.SearchTask(lambda: matmul(128, 768, 770), target="cuda model=h200")
    sketch = task.sketches[0]
    rows = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), 512)])
    estimates_s = sketch.estimate(rows)
    assert estimates_s is not None
    assert likeliest(task.sketches) == sketch.schedule(rows[int(np.argmin(estimates_s))])


@pytest.mark.slow(1.2)
def test_the_shipped_model_likes_no_sketch_better_than_the_one_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    task = lw.SearchTask(lambda: conv2d_nhwc(1, 28, 28, 128, 128, 3, 3), target="cuda model=h200")
    model = shipped_model("cuda")
    assert model is not None
    assert task.default_schedule == likeliest(task.sketches, model)
    monkeypatch.setattr(likely, "CLIMBS", 0)
    chosen = likeliest(task.sketches, model, rounds=0)
    best = []
    for sketch in task.sketches:
        rows = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), CANDIDATES)])
        assert sketch.prior is not None
        rows = rows[np.argsort(sketch.prior(sketch.columns(rows)), kind="stable")][:KEPT]
        scores = model.predict(sketch.features(rows))[0]
        best.append((float(scores.max()), sketch.schedule(rows[int(np.argmax(scores))])))
    assert chosen == max(best)[1]


def test_structures_that_the_model_has_seen_none_of_are_taken_by_their_estimate_alone() -> None:
    model = shipped_model("cuda")
    sketches = lw.SearchTask(lambda: matmul(128, 768, 768), target="cuda model=h200").sketches
    first, *_ = unseen = [sketch for sketch in sketches if sketch.unseen]
    assert likeliest(sketches, model) == first.schedule(first.default)
    seen = [sketch for sketch in sketches if not sketch.unseen]
    assert likeliest([*map(slowed, unseen), *seen], model) == likeliest(seen, model)


def slowed(sketch: Sketch) -> Sketch:
    """The sketch with ten times its estimates."""
    prior = sketch.prior
    assert prior is not None
    return replace(sketch, prior=lambda c: 10 * prior(c))


class Remembering(General):
    """A cost model that keeps the best score that it gave."""

    def __init__(self, model: General) -> None:
        self.model = model
        self.best = -np.inf

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        scores, spread = self.model.predict(features)
        self.best = max(self.best, float(scores.max()))
        return scores, spread


def test_candidates_like_the_best_ones_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = shipped_model("cuda")
    assert shipped is not None
    task = lw.SearchTask(lambda: conv2d_nhwc(1, 28, 28, 128, 128, 3, 3), target="cuda model=h200")
    climbed, drawn = Remembering(shipped), Remembering(shipped)
    chosen = likeliest(task.sketches, climbed, rounds=0)
    monkeypatch.setattr(likely, "CLIMBS", 0)
    assert chosen != likeliest(task.sketches, drawn, rounds=0)
    assert climbed.best > drawn.best


@pytest.mark.parametrize(("rows", "unit"), [(4096, "wgmma.m64n256k16.f16"), (128, "wgmma."), (16, "mma.m16n16k16.f16")])
@pytest.mark.few(2)
def test_products_take_the_units_that_their_rows_fill(rows: int, unit: str) -> None:
    """A few rows would leave most of a warp group's matrices empty."""
    task = lw.SearchTask(lambda: half_matmul(rows, 4096, 4096), target="cuda model=h200")
    assert f'intrinsic="{unit}' in task.default_schedule


def test_products_larger_than_any_that_was_learned_from_are_chosen_by_their_estimates() -> None:
    task = lw.SearchTask(lambda: half_matmul(4096, 4096, 4096), target="cuda model=h200")
    model = shipped_model("cuda")
    assert model is not None
    found = []
    for sketch in task.sketches:
        drawn = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), CANDIDATES)])
        seconds = sketch.estimate(drawn)
        assert seconds is not None
        found.append((float(seconds.min()), sketch.schedule(drawn[int(np.argmin(seconds))])))
    assert likeliest(task.sketches, model, rounds=0) == min(found)[1]


def test_changed_rows_have_lesser_estimates() -> None:
    (sketch, *_) = lw.SearchTask(lambda: conv2d_nhwc(1, 28, 28, 128, 128, 3, 3), target="cuda model=h200").sketches
    assert sketch.prior is not None
    drawn = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), CANDIDATES)])
    least_s = sketch.prior(sketch.columns(drawn)).min()
    found = likely_rows(np.random.default_rng(0), sketch, drawn, KEPT)
    seconds = sketch.prior(sketch.columns(found))
    assert sketch.legal(found).all()
    assert (np.diff(seconds) >= 0).all()
    assert seconds[0] < least_s
    usual = likely_rows(np.random.default_rng(0), sketch, drawn, KEPT, rounds=0)
    assert {row.tobytes() for row in usual[: KEPT // 2]} <= {row.tobytes() for row in found}


class LikesOthers(Remembering):
    """A model that likes every candidate but one by the same."""

    def __init__(self, model: General, gain: float, usual: Floats) -> None:
        super().__init__(model)
        self.gain, self.usual = gain, usual

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        is_usual = (features == self.usual).all(axis=1)
        return np.where(is_usual, 0.0, self.gain), np.zeros(len(features))


@pytest.mark.parametrize(("gain", "stays"), [(0.05, True), (0.15, False)])
def test_the_rules_choice_stays_where_little_is_to_be_gained(gain: float, stays: bool) -> None:
    task = lw.SearchTask(lambda: matmul(64, 96, 128), target="llvm cores=1")
    sketches, shipped = [replace(sketch, sure=False) for sketch in task.sketches], shipped_model("llvm")
    first = sketches[0]
    assert shipped is not None
    model = LikesOthers(shipped, gain, first.features(first.default[None])[0])
    chosen = likeliest(sketches, model, doubt=0.1)
    assert (chosen == first.schedule(first.default)) is stays


def half_matmul(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), "float16", name="a"), te.placeholder((n, k), "float16", name="b")
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype="float32")]


def test_defaults_stay_where_no_model_ships() -> None:
    for workload, target in (
        (lambda: half_matmul(64, 48, 96), "llvm cores=2"),
        (SAMPLES["dense"], "opencl model=mali-t860"),
    ):
        task = lw.SearchTask(workload, target=target)
        assert task.default_schedule == task.sketches[0].schedule(task.sketches[0].default)


def channels_apart() -> list[te.Tensor]:
    data, weight = te.placeholder((1, 28, 28, 192), name="data"), te.placeholder((5, 5, 192, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 2, 1)]


def test_on_several_cores_the_model_of_one_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped_model("llvm")
    assert model is not None
    monkeypatch.setattr(model, "doubt", 0.0)  # what it likes best is near what is estimated least
    alone, together = (lw.SearchTask(channels_apart, target=f"llvm model=haswell cores={cores}") for cores in (1, 2))
    first = together.sketches[0]
    assert together.default_schedule != first.schedule(first.default)
    assert ",lw-parallel{" in together.default_schedule
    assert re.sub(r",lw-parallel{[^}]*}", "", together.default_schedule) == alone.default_schedule


def test_of_few_candidates_all_are_looked_at_and_none_twice() -> None:
    data = te.placeholder((900, 640), name="data")
    (sketch,) = lw.SearchTask([data, topi.sum(data, 0)], target="cuda model=h200").sketches
    model = shipped_model("cuda")
    assert model is not None
    (found,) = likely.compared([sketch], model)
    assert len(np.unique(found.rows, axis=0)) == len(found.rows)
    assert len(found.rows) == min(likely.KEPT, np.count_nonzero(sketch.legal(sketch.population.every)))


@pytest.mark.parametrize("behind", [0.9, 1.04, 1.06])
def test_sketches_of_sure_estimates_are_taken_by_them(behind: float) -> None:
    task = lw.SearchTask(lambda: matmul(96, 200, 64), target="llvm cores=1")
    model = shipped_model("llvm")
    assert model is not None
    one, *_, other = task.sketches
    first = replace(one, prior=lambda c: np.ones(len(next(iter(c.values())))), sure=False)
    sure = replace(other, prior=lambda c: np.full(len(next(iter(c.values()))), behind), sure=True)
    in_order = sorted((first, sure), key=lambda sketch: behind if sketch is sure else 1.0)
    chosen = likeliest(in_order, model, model.doubt)
    assert (chosen == sure.schedule(sure.default)) == (behind <= SURE)
    plain = [replace(sketch, sure=False) for sketch in in_order]
    assert likeliest(plain, model, 100.0) == plain[0].schedule(plain[0].default)


def test_defaults_of_tiles_are_near_the_least_estimate() -> None:
    """Where three holes must change together: 28 rows of one vector were chosen, at 1.2 times 14 rows of two."""
    target = "llvm cores=1 vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes=2097152 l3_bytes=314572800"

    def layer() -> list[te.Tensor]:
        data = te.placeholder((1, 14, 14, 512), name="data")
        kernel = te.placeholder((3, 3, 512, 512), name="kernel", constant=True)
        return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 2, 1)]

    sketch = lw.SearchTask(layer, target=target).sketches[0]
    rng = np.random.default_rng(0)
    rows = likely_rows(rng, sketch, sketch.population.sample(rng, 1024), 8)
    prior = sketch.prior
    assert prior is not None
    default_s, least_s = (float(prior(sketch.columns(some)).min()) for some in (sketch.default[None], rows))
    assert default_s <= 1.05 * least_s


def test_rows_beside_others_are_estimated_once() -> None:
    (sketch, *_) = lw.SearchTask(matmul(256, 256, 256), target="cuda model=h200").sketches
    rng, asked = np.random.default_rng(0), list[int]()
    assert sketch.prior is not None
    prior = sketch.prior

    def counted(columns: Columns) -> npt.NDArray[np.float64]:
        asked.append(len(next(iter(columns.values()))))
        return prior(columns)

    counting = replace(sketch, prior=counted)
    first, second = (sketch.population.sample(rng, 50) for _ in range(2))
    known = likely._by_estimate(counting, first)
    both = known.beside(counting, np.concatenate([second, first[:10]]))
    distinct = np.unique(np.concatenate([first, second]), axis=0)
    np.testing.assert_array_equal(both.rows, distinct)
    np.testing.assert_array_equal(both.seconds, prior(sketch.columns(distinct)))
    assert asked == [50, len(distinct) - len(np.unique(first, axis=0))]


def test_neighbours_of_the_row_that_a_model_likes_best_are_compared() -> None:
    """Each hole one choice up and down, as far as that is legal."""
    sketch = lw.SearchTask(lambda: matmul(256, 512, 128), target="cuda model=h200").sketches[0]
    model = shipped_model("cuda")
    assert model is not None
    found = likely.Compared.of(sketch, likely_rows(np.random.default_rng(0), sketch, sketch.default[None], 16), model)
    found.most_s = np.inf
    best = found.rows[int(np.argmax(found.scores))]
    found.step(model)
    steps = [best + sign * step for sign in (1, -1) for step in np.eye(len(best), dtype=np.int64)]
    inside = np.array([row for row in steps if ((row >= 0) & (row < sketch.sizes)).all()])
    compared = {tuple(row) for row in found.rows.tolist()}
    legal = sketch.legal(inside)
    assert legal.sum() > len(best) // 2
    assert all(tuple(row) in compared for row in inside[legal].tolist())
    assert len(found.scores) == len(found.rows)


def test_of_sketches_in_rounds_those_of_the_least_estimates_are_compared() -> None:
    data, kernel = te.placeholder((1, 96, 27, 27), name="data"), te.placeholder((256, 96, 5, 5), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, 1, 2)
    sketches, model = lw.SearchTask([data, kernel, conv], target="cuda model=h200")._compared
    assert model is not None and len(sketches) > likely.MOST_COMPARED
    found = likely.compared(sketches, model)
    assert len(found) == likely.MOST_COMPARED
    assert all(len(each.rows) > likely.KEPT for each in found)
