"""The task scheduler spends trials where they pay, resumes anywhere, and ends when told to."""

import io
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pytest
from effort import usual
from fake_space import FakeSpace
from fake_tasks import MEASURE, Failing, fake_task, quietly, trials_of
from patience import PATIENCE_S, wait_until

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.host_memory import NotEnoughMemory
from loopwright.search.cost_model import Linear, make_model
from loopwright.search.cost_model.shared import SharedModel
from loopwright.search.cost_model.shipped import shipped_model
from loopwright.search.measure.measurer import MeasureTask
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record, Role
from loopwright.search.sketch.one_core import as_on_one_core
from loopwright.search.sketch.population import Rows
from loopwright.search.strategies.evolution import Evolution
from loopwright.search.tune.kept_data import KeptData
from loopwright.search.tune.loop import TuningOptions, TuningTask
from loopwright.search.tune.table import NetworkLines
from loopwright.search.tune.task_strategy import Gradient, RoundRobin, TaskHistory, TaskStrategy

pytestmark = pytest.mark.usefixtures("quick_measuring")
SCRIPT = Path(__file__).parents[1] / "support" / "scheduling_script.py"


class Narrow(FakeSpace):
    """The candidates whose other decisions are good ones: 320, of which 9 are within 5% of the best."""

    def _fixed(self, rows: Rows) -> Rows:
        rows = rows.copy()
        rows[:, [1, 3, 4, 6]] = [5, 2, 3, 3]
        return rows

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return self._fixed(super().sample(rng, n))

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self._fixed(super().mutate(rng, rows))

    def all_rows(self) -> Rows:
        return np.unique(self._fixed(super().all_rows()), axis=0)


def trials_until(share: float, strategy: str, slowdowns: Sequence[float], weights: Sequence[float], seed: int) -> int:
    """The trials after which the weighted latency is within `share` of the best there is."""
    best_s = Narrow().best_s() * sum(s * w for s, w in zip(slowdowns, weights, strict=True))
    scheduler = lw.TaskScheduler(
        [fake_task(number, slowdown, Narrow(slowdown=slowdown)) for number, slowdown in enumerate(slowdowns)],
        weights,
        strategy=strategy,
        groups=["tiled"] * len(slowdowns),
        callbacks=[lambda state, record: state.latency_s <= best_s / share],
    )
    result = scheduler.tune(quietly(2000, seed=seed, cost_model="random"), MEASURE, trials_per_round=8)
    assert result.latency_s <= best_s / share * 1.001
    return result.state.done


@pytest.mark.slow(1.2)
def test_gradient_needs_at_most_60_percent_of_round_robins_trials() -> None:
    """Two heavy layers and six light ones, on a device of known optimum."""
    slowdowns, weights = (3.0, 0.1, 2.0, 0.05, 0.2, 0.02, 0.05, 0.01), (5, 1, 4, 1, 1, 1, 2, 1)
    trials: Counter[str] = Counter()
    for strategy in ("gradient", "round-robin"):
        seeds = range(usual(2))
        trials[strategy] = sum(trials_until(0.95, strategy, slowdowns, weights, seed) for seed in seeds)
    assert trials["gradient"] <= 0.6 * trials["round-robin"], trials


def rounds_until(
    share: float, strategy: TaskStrategy, network: Sequence[tuple[float, int]], curves: npt.NDArray[np.floating[Any]]
) -> int:
    """The rounds after which tasks `(latency at best, weight)` with these curves (times the best) are that good."""
    tasks = [TaskHistory(flop=best, group="one") for best, _ in network]

    def objective(latencies: Sequence[float]) -> float:
        return sum(weight * latency for (_, weight), latency in zip(network, latencies, strict=True))

    goal = objective([best for best, _ in network]) / share
    while any(not t.rounds for t in tasks) or objective([t.latency_s for t in tasks]) > goal:
        chosen = strategy.choose(tasks, objective)
        assert chosen is not None
        tasks[chosen].latencies_s.append(network[chosen][0] * curves[chosen][tasks[chosen].rounds])
    return sum(t.rounds for t in tasks)


@pytest.mark.slow(1.2)
def test_gradient_is_better_over_many_networks() -> None:
    """Random networks with shares as uneven as those of real ones, whose tasks improve now and then, by chance."""
    rng = np.random.default_rng(0)
    total: Counter[str] = Counter()
    strategies: dict[str, TaskStrategy] = {"new": Gradient(), "classic": Gradient(beta=2.0, gamma=0.0)}
    strategies["round robin"] = RoundRobin()
    for _ in range(12):
        network = list(zip(rng.lognormal(0, 1.5, 12), rng.integers(1, 6, 12), strict=True))
        gains: npt.NDArray[np.float64] = np.where(rng.random((12, 400)) < 0.5, rng.uniform(0.4, 1.0, (12, 400)), 1.0)
        curves = 1 + 6 * np.cumprod(gains, axis=1)
        total.update({n: rounds_until(0.95, strategy, network, curves) for n, strategy in strategies.items()})
    assert total["new"] <= 0.85 * total["round robin"] and total["new"] <= 0.75 * total["classic"], total


def test_it_never_spends_more_than_it_was_given_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "net.jsonl"
    scheduler = lw.TaskScheduler([fake_task(0), fake_task(1, 0.1), fake_task(2, 0.01)], [1, 2, 1])
    result = scheduler.tune(quietly(61, records=path), MEASURE)
    counts = Counter(r.workload_key for r in trials_of(path))
    assert result.state.done == 61 == counts.total()
    assert counts["key 0"] > counts["key 1"] >= counts["key 2"] == 8
    assert [row.tuning.done for row in result.state.rows] == [counts[f"key {n}"] for n in range(3)]
    best = [record for record in result.best if record is not None]
    assert [b.workload_key for b in best] == ["key 0", "key 1", "key 2"]
    assert result.latency_s == pytest.approx(sum(w * b.time_s for w, b in zip([1, 2, 1], best, strict=True)))
    assert Counter(r.role for r in rec.load(path))[Role.WINNER] == 3


def test_resuming_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    tasks = [fake_task(0), fake_task(1, 0.4), fake_task(2, 0.1)]
    whole = lw.TaskScheduler(tasks, load_records=tmp_path / "whole.jsonl")
    whole.tune(quietly(64), MEASURE, trials_per_round=8)
    parts = tmp_path / "parts.jsonl"
    for trials in (24, 40, 64):
        result = lw.TaskScheduler(tasks, load_records=parts).tune(quietly(trials), MEASURE, trials_per_round=8)
    assert result.state.resumed == 40
    assert [r.schedule for r in trials_of(parts)] == [r.schedule for r in trials_of(tmp_path / "whole.jsonl")]
    before = parts.read_text()
    again = lw.TaskScheduler(tasks, load_records=parts).tune(quietly(64), MEASURE)
    assert parts.read_text() == before and again.best == result.best


def test_records_to_start_from_and_records_to_write_may_differ(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    tasks = [fake_task(0), fake_task(1)]
    lw.TaskScheduler(tasks, load_records=old).tune(quietly(16), MEASURE)
    before = old.read_text()
    result = lw.TaskScheduler(tasks, load_records=old).tune(quietly(32, records=new), MEASURE)
    assert old.read_text() == before and len(trials_of(new)) == 16
    assert (result.state.resumed, result.state.done) == (16, 32)
    third = lw.TaskScheduler(tasks, load_records=old).tune(quietly(32, records=new), MEASURE)
    assert third.state.resumed == 32


class TwoRows(FakeSpace):
    """A space that is soon used up."""

    def _clip(self, rows: Rows) -> Rows:
        return np.tile(np.array([4, 4, 4, 2, 3, 3, 3]), (len(rows), 1)) + (rows[:, :1] % 2) * np.eye(7, dtype=int)[6]

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return self._clip(super().sample(rng, n))

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self._clip(super().mutate(rng, rows))


def test_more_trials_of_a_network_are_new_ones(tmp_path: Path) -> None:
    path, shown = tmp_path / "r.jsonl", io.StringIO()
    scheduler = lw.TaskScheduler([fake_task(0), fake_task(1)], load_records=path)
    for resumed, total in ((0, 16), (16, 21), (21, 26)):
        more = 16 if not resumed else 5
        options = TuningOptions(more_trials=more, batch_size=8, progress=False, cost_model="linear")
        state = scheduler.tune(options, MEASURE).state
        assert (state.resumed, state.done, state.total) == (resumed, total, total)
    scheduler.tune(quietly(8), MEASURE, progress=NetworkLines(shown))
    assert "8 trials asked for in all, and the records hold 26: none is new" in shown.getvalue()


def test_a_task_that_is_used_up_leaves_its_trials_to_others() -> None:
    tasks = [fake_task(0, 10.0, TwoRows(slowdown=10.0)), fake_task(1, 0.1)]
    result = lw.TaskScheduler(tasks).tune(quietly(64, cost_model="random"), MEASURE)
    assert [row.tuning.done for row in result.state.rows] == [3, 61]
    only = lw.TaskScheduler(tasks[:1]).tune(quietly(64, cost_model="random"), MEASURE)
    (best,) = only.best
    assert only.state.done == 3 and best is not None and best.ok


def test_tasks_stop_early_and_so_does_all() -> None:
    tasks = [fake_task(0, 1.0), fake_task(1, 0.2)]
    by_task = lw.TaskScheduler(tasks).tune(quietly(2000, cost_model="random"), MEASURE, early_stopping_task=16)
    for row in by_task.state.rows:
        assert 16 <= row.tuning.done - row.tuning.best_trial < 16 + 8
    together = lw.TaskScheduler(tasks).tune(quietly(2000, early_stopping=24, cost_model="random"), MEASURE)
    assert together.state.done < 800 and math.isfinite(together.latency_s)
    best = [fake_task(number, default="time=1e-9") for number in range(2)]
    exact = lw.TaskScheduler(best).tune(quietly(2000, early_stopping=11), MEASURE)
    assert exact.state.done == 9 + 11  # by the trial: the ninth is the untuned schedule of the second task


def test_a_time_limit_ends_it() -> None:
    """A second passes with each trial: after 30 for both tasks, what is under way and a share for the run-offs."""
    clock = [0.0]
    options = quietly(100_000, time_limit_s=30.0, callbacks=[lambda state, record: clock.__setitem__(0, clock[0] + 1)])
    result = lw.TaskScheduler([fake_task(0), fake_task(1)]).tune(options, MEASURE, clock=lambda: clock[0])
    assert 24 <= result.state.done <= 31 and all(row.tuning.done >= 8 for row in result.state.rows)


@dataclass(frozen=True)
class SlowData(TuningTask):
    """A task that takes a second to make data for."""

    clock: list[float] = field(default_factory=lambda: [0.0])

    def measured(self) -> MeasureTask:
        self.clock[0] += 1.0
        return super().measured()


def test_a_time_limit_holds_in_the_first_round_of_many_tasks(tmp_path: Path) -> None:
    """72 tasks, whose data alone would take 72 s, in 15 s: a sentence says what was left out."""
    clock, shown = [0.0], io.StringIO()
    plain = [fake_task(number) for number in range(72)]
    tasks = [SlowData(**{f.name: getattr(task, f.name) for f in fields(task)}, clock=clock) for task in plain]
    scheduler = lw.TaskScheduler(tasks, load_records=tmp_path / "r.jsonl")
    options = quietly(72 * 4, time_limit_s=15.0, callbacks=[lambda state, record: clock.__setitem__(0, clock[0] + 0.5)])
    result = scheduler.tune(options, MEASURE, progress=NetworkLines(shown), clock=lambda: clock[0])
    tried = [row.number for row in result.state.rows if row.tuning.done]
    assert tried == list(range(len(tried))) and 9 <= len(tried) <= 11  # 1 s for data, 0.5 s for what a builder makes
    assert all(row.tuning.done == 1 for row in result.state.rows[: len(tried)])
    assert clock[0] <= 15.0 + 1.5  # one candidate's time: its data, and itself
    assert [best is not None for best in result.best] == [row.tuning.done > 0 for row in result.state.rows]
    left = 72 - len(tried)
    said = f"the time limit of 15 s left {left} of 72 tasks untried: task {len(tried)} t{len(tried)}, "
    assert said in shown.getvalue() and shown.getvalue().count("not tried") == 0
    again = scheduler.tune(options, MEASURE, progress=NetworkLines(shown), clock=lambda: clock[0])
    assert again.state.resumed == result.state.done  # and goes on
    assert sum(row.tuning.done > 0 for row in again.state.rows) > len(tried)


@dataclass(frozen=True)
class TooLarge(TuningTask):
    """A task whose data does not fit into memory."""

    def measured(self) -> NoReturn:
        raise NotEnoughMemory(f"data of {self.name} takes 1 bytes of memory, there are 0")


def test_a_task_that_does_not_fit_into_memory_is_left_out_with_a_sentence() -> None:
    shown, plain = io.StringIO(), fake_task(0)
    large = TooLarge(**{f.name: getattr(plain, f.name) for f in fields(plain)})
    result = lw.TaskScheduler([large, fake_task(1)]).tune(quietly(16), MEASURE, progress=NetworkLines(shown))
    left_out, found = result.best
    assert [row.tuning.done for row in result.state.rows] == [0, 16]
    assert left_out is None and found is not None and found.ok
    assert "task 0 t0 is left out: data of t0 takes 1 bytes of memory, there are 0" in shown.getvalue()
    assert lw.TaskScheduler([large]).tune(quietly(16), MEASURE).failure == "no trial of t0 was measured"


def test_data_is_made_when_a_task_is_first_measured_and_not_all_kept() -> None:
    data = te.placeholder((64, 64), name="data")
    tasks = [lw.SearchTask(te.create_module([data, topi.nn.relu(data)]), target="llvm cores=1") for _ in range(3)]
    kept = KeptData(most_bytes=2 * 2 * 64 * 64 * 4)
    for task in tasks:
        assert "reference" not in vars(task)
        kept.used(task)
    assert ["reference" in vars(task) for task in tasks] == [False, True, True]
    kept.used(tasks[1])
    kept.used(tasks[0])
    assert ["reference" in vars(task) for task in tasks] == [True, True, False]
    kept.forget()
    assert not any("reference" in vars(task) for task in tasks)
    KeptData(most_bytes=0).used(tasks[0])  # the one that is measured stays
    assert "reference" in vars(tasks[0])


def test_callbacks_see_every_trial_of_the_network_and_of_its_tasks() -> None:
    network: list[tuple[int, Record]] = []
    tasks: list[tuple[str, Record]] = []
    seeing = [lambda state, record: network.append((state.done, record))]
    scheduler = lw.TaskScheduler([fake_task(0), fake_task(1)], callbacks=seeing)
    scheduler.tune(quietly(32, callbacks=[lambda state, record: tasks.append((state.task, record))]), MEASURE)
    assert [n for n, _ in network] == [*range(1, 33)] and [r for _, r in network] == [r for _, r in tasks]
    assert {name for name, _ in tasks} == {"t0", "t1"}


def test_a_callback_ends_the_network_and_the_same_call_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    pair = [fake_task(0), fake_task(1)]
    scheduler = lw.TaskScheduler(pair, load_records=path, callbacks=[lambda state, record: np.bool_(state.done >= 11)])
    ended = scheduler.tune(quietly(32), MEASURE)
    assert 11 <= ended.state.done <= 12 and all(best is not None for best in ended.best)
    whole = lw.TaskScheduler(pair, load_records=path).tune(quietly(32), MEASURE)
    assert whole.state.resumed == ended.state.done and whole.state.done == 32
    trials = [r.schedule for r in rec.load(path) if r.role is Role.TRIAL]
    assert len(trials) == 32


def test_callbacks_of_the_network_hear_of_the_end() -> None:
    shown = io.StringIO()
    bar = lw.callbacks.progress_bar(16, stream=shown)
    lw.TaskScheduler([fake_task(0), fake_task(1)], callbacks=[bar, lw.callbacks.early_stop(9)]).tune(
        quietly(16), MEASURE
    )
    assert shown.getvalue().endswith(" Done.\n")


def test_an_objective_of_ones_own() -> None:
    tasks = [fake_task(0, 1.0), fake_task(1, 0.9), fake_task(2, 0.8)]
    result = lw.TaskScheduler(tasks, objective=lambda latencies_s: latencies_s[2]).tune(
        quietly(64, cost_model="random"), MEASURE
    )
    assert [row.tuning.done for row in result.state.rows] == [8, 8, 48]
    last = result.best[2]
    assert last is not None and result.latency_s == last.time_s


def test_a_task_that_always_fails_does_not_stop_the_others() -> None:
    tasks = [fake_task(0, space=Failing(), default="run=raise"), fake_task(1)]
    result = lw.TaskScheduler(tasks).tune(quietly(64, cost_model="random"), MEASURE)
    failed, found = result.best
    assert failed is None and found is not None and found.ok and math.isinf(result.latency_s)
    assert [row.tuning.done for row in result.state.rows] == [24, 40]
    assert result.failure == "" and str(result) == "no total, schedules for 1 of 2 tasks, 64 trials"


def test_networks_none_of_whose_tasks_can_be_measured_have_a_result_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    failing = [fake_task(number, space=Failing(), default="run=raise") for number in range(2)]
    alone, all_fail, fine = (
        lw.TaskScheduler(tasks, load_records=path).tune(quietly(64, cost_model="random"), MEASURE)
        for tasks in (failing[:1], failing, [fake_task(2)])
    )
    assert alone.best == [None] and alone.failure.startswith("all 24 trials of t0 failed: 24 RUNTIME_ERROR. The first")
    assert all_fail.best == [None, None] and math.isinf(all_fail.latency_s)
    assert all_fail.failure.startswith("none of 2 tasks has a schedule; all 24 trials of t0 failed: 24 RUNTIME_ERROR")
    assert str(all_fail) == all_fail.failure.splitlines()[0] and all_fail.state.done == 48
    assert fine.failure == "" and fine.best[0] is not None


@pytest.mark.slow(1.2)
def test_one_model_for_all_tasks_carries_over() -> None:
    """With few trials each, tasks that share a model are faster than tasks that each learn alone."""
    tasks = [fake_task(number, slowdown) for number, slowdown in enumerate((1.0, 0.9, 0.8, 0.7))]
    latency_s = {}
    for share in (False, True):
        scheduler = lw.TaskScheduler(tasks, strategy="round-robin", share_model=share)
        latency_s[share] = scheduler.tune(quietly(96, seed=3, cost_model="trees"), MEASURE).latency_s
    assert latency_s[True] < latency_s[False]


@pytest.mark.parametrize(("target", "cores"), [("cuda model=h200", 0), ("llvm model=skylake-avx512 cores=2", 2)])
@pytest.mark.parametrize(("alone", "trials"), [(True, 8), (False, 8), (False, 12)])
@pytest.mark.few(2)
def test_the_first_batch_follows_the_model_that_ships(
    target: str, cores: int, alone: bool, trials: int, tmp_path: Path
) -> None:
    """On several cores of a CPU it is the model of one, asked of candidates as on one."""
    task = lw.SearchTask("matmul", (64, 64, 64, "float32"), target=target)
    options = quietly(trials, cost_model="trees", records=tmp_path / "records.jsonl")
    if alone:
        task.tune(options, MEASURE)
    else:
        lw.TaskScheduler([task]).tune(options, MEASURE)
    found = [r for r in trials_of(tmp_path / "records.jsonl") if r.sketch != "default"]
    found = [r for r in found if r.round == found[0].round]
    assert len(found) >= 7
    model, sketches = shipped_model("llvm" if cores else "cuda"), task.sketches
    if cores:
        alone_target = replace(task.target, cores=1)
        sketches = as_on_one_core(sketches, task.compute_dag.for_target(alone_target), alone_target, cores)
    assert model is not None
    rows = {s.name: s for s in sketches}
    expected = [model.predict(rows[r.sketch].features(np.array([r.decisions])))[0][0] for r in found]
    np.testing.assert_allclose([r.predicted or 0.0 for r in found], expected, rtol=1e-6)


def test_each_task_of_a_network_on_a_cpu_is_tried_untuned_before_others_are_bred_from_it(tmp_path: Path) -> None:
    tasks = [lw.SearchTask("matmul", (n, 64, 64, "float32"), target="llvm cores=2") for n in (32, 64, 96)]
    lw.TaskScheduler(tasks).tune(quietly(8, cost_model="trees", records=tmp_path / "records.jsonl"), MEASURE)
    found = trials_of(tmp_path / "records.jsonl")
    assert [r.workload_hash for r in found[:3]] == [task.compute_dag.hash for task in tasks]
    assert {r.sketch for r in found[:3]} == {"default"}
    assert "default" not in {r.sketch for r in found[3:]}
    assert [r.schedule for r in found[:3]] == [task.default_schedule for task in tasks]


def test_a_search_breeds_from_the_untuned_schedule() -> None:
    task = lw.SearchTask("matmul", (64, 64, 64, "float32"), target="llvm cores=2")
    space, row = task.default_candidate
    assert task.sketches[space].schedule(np.array(row)) == task.default_schedule
    strategy = Evolution(task.sketches)
    strategy.begin_from(space, row)
    assert row in {tuple(each) for each in strategy._fastest(space, 1).tolist()}
    proposals = strategy.propose(make_model("roofline", 0), 64)
    assert (space, row) not in {(p.space, p.row) for p in proposals}


def test_a_shared_model_keeps_features_of_other_widths_apart() -> None:
    shared = SharedModel(Linear(fewest=2))
    wide, narrow = shared.view(0), shared.view(1)
    rng = np.random.default_rng(0)
    x, y = rng.random((20, 3)), rng.random((20, 2))
    assert not narrow.ready
    wide.fit(x, x[:, 0])
    assert narrow.ready and np.all(narrow.predict(y)[1] == 1)  # nothing known of such features
    narrow.fit(y, 1 - y[:, 1])
    assert np.corrcoef(wide.predict(x)[0], x[:, 0])[0, 1] > 0.9
    assert np.corrcoef(narrow.predict(y)[0], -y[:, 1])[0, 1] > 0.9


def test_arguments_that_make_no_sense_are_refused() -> None:
    one = fake_task(0)
    with pytest.raises(ValueError, match="there is no task to tune"):
        lw.TaskScheduler([])
    with pytest.raises(ValueError, match=r"weights must have one entry for each of the 1 tasks, got 2"):
        lw.TaskScheduler([one], [1, 2])
    with pytest.raises(ValueError, match="weights must not be negative"):
        lw.TaskScheduler([one], [-1])
    with pytest.raises(ValueError, match="all tasks must be for one target, got fake and other"):
        lw.TaskScheduler([one, fake_task(1, target="other")])
    with pytest.raises(ValueError, match=r"at least the number of tasks, 2, got 1"):
        lw.TaskScheduler([one, one]).tune(quietly(1), MEASURE)
    with pytest.raises(ValueError, match="task t0 does not say how it is measured"):
        lw.TaskScheduler([one]).tune(quietly(8))


@pytest.mark.slow(1.2)
def test_interrupting_keeps_what_was_measured_and_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "net.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    command = [sys.executable, str(SCRIPT), str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, process_group=0) as script:
        assert wait_until(lambda: script.poll() is not None or (path.exists() and path.read_text().count("\n") >= 20))
        assert script.poll() is None
        os.killpg(script.pid, signal.SIGINT)
        _, said = script.communicate(timeout=PATIENCE_S)
    assert script.returncode != 0 and re.search(r"interrupted after \d+ trials; they are kept in ", said)
    assert "KeyboardInterrupt" in said and "Estimated total latency: " in said
    measured = len(trials_of(path))
    result = lw.TaskScheduler([fake_task(0), fake_task(1)], load_records=path).tune(quietly(measured + 8), MEASURE)
    assert result.state.resumed == measured and result.state.done == measured + 8
    with pytest.raises(ProcessLookupError):
        os.killpg(script.pid, 0)


# -- for this machine -------------------------------------------------------------------------------------------------


def test_search_tasks_are_tuned_and_applied(tmp_path: Path) -> None:
    def product(m: int, n: int, k: int) -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
        return [a, b, topi.matmul(a, b)]

    tasks = [lw.SearchTask(product, args, target="llvm cores=1") for args in ((8, 16, 10), (8, 16, 9), (64, 64, 8))]
    scheduler = lw.TaskScheduler(tasks, [2, 1, 1], load_records=tmp_path / "net.jsonl")
    assert scheduler.groups[0] == scheduler.groups[1] != scheduler.groups[2]
    result = scheduler.tune(TuningOptions(num_measure_trials=9, batch_size=3, progress=False, final_laps=2))
    assert sum(row.tuning.done for row in result.state.rows) == 9
    assert all(b is not None and b.ok for b in result.best)
    a, b = np.ones((8, 9), np.float32), np.ones((9, 16), np.float32)
    assert np.array_equal(tasks[1].apply_best(tmp_path / "net.jsonl")(a, b), np.full((8, 16), 9, np.float32))


class Watched(FakeSpace):
    """A space that keeps how many trials there had been when it was first asked for candidates."""

    def __init__(self, trials: Sequence[object], slowdown: float = 1.0) -> None:
        super().__init__(slowdown=slowdown)
        self.trials = trials
        self.first_asked: int | None = None

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        self.first_asked = len(self.trials) if self.first_asked is None else self.first_asked
        return super().sample(rng, n)


@pytest.mark.parametrize("overlap", [True, False])
def test_the_next_task_is_thought_of_while_a_round_ends(overlap: bool) -> None:
    """Where builds and runs overlap, and so thinking disturbs no timing; each task still gets its rounds and trials."""
    trials: list[object] = []
    spaces = [Watched(trials, slowdown) for slowdown in (1.0, 2.0, 3.0)]
    tasks = [fake_task(number, space.slowdown, space) for number, space in enumerate(spaces)]
    scheduler = lw.TaskScheduler(tasks, callbacks=[lambda state, record: trials.append(record)])
    result = scheduler.tune(quietly(48), replace(MEASURE, overlap=overlap), trials_per_round=8)
    first_asked = [space.first_asked for space in spaces]
    if overlap:
        assert first_asked[0] == 0 and 0 < (first_asked[1] or 0) < 8 < (first_asked[2] or 0) < 16, first_asked
    else:
        assert first_asked == [0, 8, 16]
    assert len(trials) == 48 and all(row.tuning.done % 8 == 0 for row in result.state.rows)
    assert len({(record.workload_key, record.schedule) for record in trials}) == 48  # type: ignore[attr-defined]
