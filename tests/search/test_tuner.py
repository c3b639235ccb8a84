"""Tuning finds fast schedules, resumes, takes the options it is given, and never gives less than the default."""

import io
import math
import os
import re
import signal
import subprocess
import sys
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubling_task import MEASURE, Notes, doubling, quietly
from fake_space import Failing, FakeSpace, Knowing
from patience import PATIENCE_S, wait_until
from processes import marked_processes

from loopwright.search.measure.measurer import Measurer
from loopwright.search.records import file as rec
from loopwright.search.records.file import ErrorCode, RecordWarning, Role
from loopwright.search.strategies.strategy import Proposal
from loopwright.search.tune.learning import Learning
from loopwright.search.tune.loop import TaskTuner, TuningOptions, tune, tune_what_is_made
from loopwright.search.tune.progress import ProgressLines
from loopwright.search.tuners import callbacks

pytestmark = pytest.mark.usefixtures("quick_measuring")
SCRIPT = Path(__file__).parents[1] / "support" / "tuning_script.py"


def test_tuning_finds_a_good_schedule_and_records_everything(tmp_path: Path) -> None:
    path, space = tmp_path / "r.jsonl", FakeSpace(failing=0.1)
    task = doubling(space)
    result = tune(task, quietly(num_measure_trials=96, records=path, seed=1), MEASURE)
    assert result.best.time_s < 1.6 * space.best_s()
    assert result.default is not None and result.default.time_s == pytest.approx(0.002) and result.speedup > 5
    records = rec.load(path)
    trials = [r for r in records if r.role is Role.TRIAL]
    assert trials == result.trials and len(trials) == 96
    assert (trials[0].sketch, trials[0].schedule) == ("default", "time=0.002")
    assert len({r.schedule for r in trials}) == 96
    assert any(r.stopped_early for r in trials) and any(r.error is ErrorCode.RUNTIME_ERROR for r in trials)
    for r in trials[1:]:
        assert (r.workload_hash, r.target, r.device, r.seed) == (task.hash, "fake", "fake device", 1)
        assert space.schedule(np.array(r.decisions)) == r.schedule
    assert rec.best(rec.select(records, task.hash, "fake")) == result.best
    assert Counter(r.role for r in records)[Role.WINNER] == 1
    finals = [r for r in records if r.role is not Role.TRIAL]
    assert result.default in finals and all(len(r.times_s) == 8 for r in finals)


def test_search_is_better_than_chance() -> None:
    """By this seed chance reaches 2.2 times the optimum on any machine; by any of six, trees 1.0 to 1.27 times."""
    space = FakeSpace()
    best = {
        model: tune(doubling(space), quietly(num_measure_trials=80, cost_model=model, seed=1), MEASURE).best.time_s
        for model in ("trees", "random")
    }
    assert best["trees"] < 0.8 * best["random"]


def test_the_same_seed_measures_the_same() -> None:
    runs = [
        tune(doubling(FakeSpace()), quietly(num_measure_trials=24, batch_size=12, seed=s), MEASURE) for s in (5, 5, 6)
    ]
    schedules = [[r.schedule for r in run.trials] for run in runs]
    assert schedules[0] == schedules[1] != schedules[2]


def test_the_task_is_made_while_workers_start_and_what_that_raises_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = Measurer._start
    monkeypatch.setattr(Measurer, "_start", lambda self, role: (started.append(role), start(self, role)))
    options, mark = quietly(num_measure_trials=4), str(uuid.uuid4())
    marked = replace(MEASURE, env={"LOOPWRIGHT_MARK": mark})

    def make() -> tuple[Any, TuningOptions]:
        assert started
        return doubling(FakeSpace()), options

    def fail() -> tuple[Any, TuningOptions]:
        raise ValueError("no sketches of it")

    assert len(tune_what_is_made(make, options, marked).trials) == 4
    with pytest.raises(ValueError, match="no sketches of it"):
        tune_what_is_made(fail, options, marked)
    assert not marked_processes(f"LOOPWRIGHT_MARK={mark}")


def noted_proposals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bool]]:
    """Of each call of `propose`: candidates asked for, those pending, and whether workers have answered."""
    noted: list[tuple[int, int, bool]] = []
    propose = TaskTuner.propose

    def note(tuner: TaskTuner, count: int) -> list[Proposal]:
        noted.append((count, tuner.measurer.pending, bool(tuner.measurer.device)))
        return propose(tuner, count)

    monkeypatch.setattr(TaskTuner, "propose", note)
    return noted


def test_the_first_batch_is_thought_of_while_workers_start(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = noted_proposals(monkeypatch)
    result = tune(doubling(FakeSpace()), quietly(num_measure_trials=8), MEASURE)
    assert noted == [(7, 0, False), (7, 1, True)]  # the second time, those of the first
    assert [r.sketch for r in result.trials].count("default") == 1 and len({r.schedule for r in result.trials}) == 8


def test_the_untuned_schedule_is_under_way_while_others_are_thought_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where there are records, which may speak for others."""
    path = tmp_path / "r.jsonl"
    tune(doubling(FakeSpace("other")), quietly(num_measure_trials=4, records=path), MEASURE)
    noted = noted_proposals(monkeypatch)
    task = replace(doubling(FakeSpace()), workload="another")
    result = tune(task, quietly(num_measure_trials=8, records=path), MEASURE)
    assert noted == [(0, 0, False), (7, 1, True)]
    assert [r.sketch for r in result.trials].count("default") == 1


def test_what_fails_while_workers_start_is_said_by_the_search() -> None:
    result = tune(doubling(Failing("sample")), quietly(num_measure_trials=8), MEASURE)
    assert [r.sketch for r in result.trials] == ["default"]


@pytest.mark.parametrize(("trials", "first", "ahead"), [(64, 1, 8), (128, 2, 16 + 3)])
def test_a_long_search_keeps_all_builders_at_work_while_it_thinks(
    monkeypatch: pytest.MonkeyPatch, trials: int, first: int, ahead: int
) -> None:
    """While workers start it thinks of as many batches as it begins with."""
    monkeypatch.setattr(Measurer, "begin", lambda *_: True)  # they have not started yet
    monkeypatch.setattr(Measurer, "built", 0)
    noted = noted_proposals(monkeypatch)
    tune(doubling(FakeSpace()), quietly(num_measure_trials=trials), replace(MEASURE, overlap=True, builders=3))
    assert (
        [count for count, pending, _ in noted[:first]]
        == [15, 16][:first]
        == [count for count, *_ in noted[first:]][:first]
    )
    assert {pending for _, pending, _ in noted[2 * first :]} == {ahead}


class Counting(Knowing):
    """A model that counts its fits; what it knows, it knows without them."""

    def __init__(self, ready: bool) -> None:
        self.ready, self.fits = ready, 0

    def fit(self, *samples: Any) -> None:
        self.fits += 1


@pytest.mark.parametrize("knows", [True, False])
def test_no_batch_waits_for_an_import_where_the_model_knows_something(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    waits: list[bool] = []
    monkeypatch.setattr(Learning, "is_loading", True)
    monkeypatch.setattr(Learning, "begin", lambda learning: None)
    monkeypatch.setattr(Learning, "wait", lambda learning: waits.append(True))
    model = Counting(knows)
    options = quietly(num_measure_trials=48, cost_model=model)
    assert tune(doubling(FakeSpace()), options, replace(MEASURE, overlap=True)).state.done == 48
    assert (model.fits == 0) == (not waits) == knows


def test_resuming_measures_nothing_twice(tmp_path: Path) -> None:
    path, task = tmp_path / "r.jsonl", doubling(FakeSpace(failing=0.1))
    tune(task, quietly(num_measure_trials=24, records=path), MEASURE)
    first = rec.load(path)
    result = tune(task, quietly(num_measure_trials=40, records=path), MEASURE)
    trials = [r for r in rec.load(path) if r.role is Role.TRIAL]
    assert len(trials) == 40 == len({r.schedule for r in trials})
    assert result.state.resumed == 24 and [r.sketch for r in trials].count("default") == 1
    before = path.read_text()
    assert before.startswith("\n".join(r.to_json() for r in first))
    again = tune(task, quietly(num_measure_trials=40, records=path), MEASURE)
    assert again.best == result.best and path.read_text() == before


def test_records_of_others_are_left_alone(tmp_path: Path) -> None:
    path, task = tmp_path / "r.jsonl", doubling(FakeSpace())
    result = tune(task, quietly(num_measure_trials=8), MEASURE)
    foreign = [
        replace(result.trials[1], workload_hash="other"),
        replace(result.trials[1], device="another device"),
        replace(result.trials[1], target="another target"),
        replace(result.trials[1], sketch="a sketch of the past", schedule="time=0.1"),
        replace(result.trials[1], schedule="lw-fake{time=0.2}", versions={"lw-fake": "0"}),
    ]
    rec.append(path, foreign)
    with path.open("a") as file:
        file.write('{"schema":1,"torn')
    with pytest.warns(RecordWarning, match=r"2 line\(s\) skipped"):
        result = tune(task, quietly(num_measure_trials=8, records=path), MEASURE)
    assert result.state.resumed == 1  # the sketch of the past counts, but teaches nothing
    assert len(result.trials) == 8


def test_the_untuned_schedule_wins_where_it_is_the_fastest(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    result = tune(doubling(FakeSpace(), default="time=1e-9"), quietly(num_measure_trials=12, records=path), MEASURE)
    assert result.best.sketch == "default" and result.speedup == 1.0
    assert rec.best(rec.load(path)).schedule == "time=1e-9"


def test_records_hold_what_was_expected_of_them(tmp_path: Path) -> None:
    path, task = tmp_path / "r.jsonl", doubling(FakeSpace(failing=0.1), flop=1e9)
    result = tune(task, quietly(num_measure_trials=40, records=path, batch_size=8), MEASURE)
    trials = [r for r in rec.load(path) if r.role is Role.TRIAL]
    assert [r.round for r in trials] == [1 + n // 8 for n in range(40)]
    assert {r.predicted for r in trials[:8]} == {None} and all(r.predicted is not None for r in trials[16:])
    assert {r.flop for r in trials} == {1e9}
    assert len(result.state.curve) == 40 and result.state.curve == sorted(result.state.curve, reverse=True)
    assert [r.number for r in result.state.rounds] == [1, 2, 3, 4, 5]
    assert result.state.quality is not None and result.state.quality.samples == 8
    resumed = tune(task, quietly(num_measure_trials=48, records=path, batch_size=8), MEASURE).state
    assert [len(r.records) for r in resumed.rounds] == [8] * 6 and resumed.curve[:40] == result.state.curve


def test_a_resumed_search_goes_on_as_if_never_interrupted(tmp_path: Path) -> None:
    """Search policy and cost model are those of the records: the same candidates follow."""
    path, task = tmp_path / "r.jsonl", doubling(FakeSpace(failing=0.1))
    whole = tune(task, quietly(num_measure_trials=48, batch_size=8, seed=3), MEASURE)
    tune(task, quietly(num_measure_trials=24, batch_size=8, seed=3, records=path), MEASURE)
    resumed = tune(task, quietly(num_measure_trials=48, batch_size=8, seed=3, records=path), MEASURE)
    assert [r.schedule for r in resumed.trials] == [r.schedule for r in whole.trials]
    assert [r.predicted for r in resumed.trials] == pytest.approx([r.predicted for r in whole.trials])


def test_more_trials_counts_the_new_ones_only(tmp_path: Path) -> None:
    path, task, shown = tmp_path / "r.jsonl", doubling(FakeSpace()), Notes()
    for known, done in ((0, 6), (6, 12), (12, 18)):
        state = tune(task, quietly(more_trials=6, records=path), MEASURE).state
        assert (state.resumed, state.done, state.total) == (known, done, done)
    again = tune(task, quietly(num_measure_trials=5, records=path, progress=shown), MEASURE)
    assert again.state.done == 18
    said = (
        "doubling: 5 trials asked for in all, and the records hold 18: none is new; more_trials=N measures N new ones"
    )
    assert shown.said == [said]
    with pytest.raises(ValueError, match="more_trials must be a whole number of at least 1, got 0"):
        TuningOptions(more_trials=0)


def test_more_trials_are_made_where_all_failed_or_none_was_better_lately(tmp_path: Path) -> None:
    path, other = tmp_path / "r.jsonl", tmp_path / "other.jsonl"
    failing = doubling(FakeSpace(failing=1.0), default="run=raise")
    for done in (24, 34):
        options = quietly(more_trials=30 if done == 24 else 10, batch_size=8, records=path)
        assert tune(failing, options, MEASURE).state.done == done
    best_first = doubling(FakeSpace(), default="time=1e-9")
    tune(best_first, quietly(num_measure_trials=20, early_stopping=4, records=other), MEASURE)
    assert tune(best_first, quietly(more_trials=3, early_stopping=4, records=other), MEASURE).state.done == 8


def test_each_trial_is_shown_where_that_is_wanted(tmp_path: Path) -> None:
    shown, space = Notes(), FakeSpace(failing=0.3)
    result = tune(doubling(space, flop=1e6), quietly(num_measure_trials=12, progress=shown, verbose=True), MEASURE)
    lines = [text for text in shown.said if text.startswith("trial ")]
    assert [line.partition(":")[0] for line in lines] == [f"trial {n}/12" for n in range(1, 13)]
    for line, trial in zip(lines, result.trials, strict=True):
        assert line.endswith(f"; {trial.sketch} {list(trial.decisions)}")
        assert ("GFLOP/s" if trial.ok else f": {trial.error.value}: ") in line
    assert shown.said[-1].startswith("run-off of ")


def test_callbacks_of_the_tuners_are_callbacks_of_any_search(tmp_path: Path) -> None:
    path, shown = tmp_path / "log.jsonl", io.StringIO()
    bar = callbacks.progress_bar(500, "doubling", stream=shown)
    asked = [callbacks.log_to_file(path), bar, callbacks.early_stop(9)]
    task = doubling(FakeSpace(), default="time=1e-9", flop=1e6)
    result = tune(task, quietly(num_measure_trials=500, batch_size=4, callbacks=asked), MEASURE)
    assert rec.load(path) == result.trials and 10 <= len(result.trials) <= 10 + 4
    assert shown.getvalue().endswith(" Done.\n") and "doubling Current/Best: " in shown.getvalue()


def test_overlapping_builds_and_runs_give_the_same_trials() -> None:
    result = tune(doubling(FakeSpace()), quietly(num_measure_trials=48), replace(MEASURE, overlap=True, builders=2))
    assert len(result.trials) == 48 == len({r.schedule for r in result.trials})
    assert result.speedup > 3


@pytest.mark.parametrize("wrong", [{"num_measure_trials": 0}, {"batch_size": 0}, {"final_laps": 0}])
def test_impossible_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number of at least 1, got 0"):
        TuningOptions(**wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"early_stopping": -3}, "early_stopping must be a whole number of at least 1, got -3"),
        ({"early_stopping": 1.5}, "early_stopping must be a whole number of at least 1, got 1.5"),
        ({"time_limit_s": -1}, "time_limit_s must be seconds of at least 0, got -1"),
        ({"time_limit_s": math.nan}, "time_limit_s must be seconds of at least 0, got nan"),
        ({"num_measure_trials": 2.5}, "num_measure_trials must be a whole number of at least 1, got 2.5"),
        ({"batch_size": "16"}, "batch_size must be a whole number of at least 1, got '16'"),
        ({"final_candidates": 0}, "final_candidates must be a whole number of at least 1, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        TuningOptions(**wrong)


def test_batches_grow_with_the_trials_unless_their_size_is_given() -> None:
    done = (0, 127, 136, 400, 512, 20_000)
    assert [TuningOptions().batch_after(n) for n in done] == [16, 16, 17, 50, 64, 64]
    assert {TuningOptions(batch_size=5).batch_after(n) for n in done} == {5}


def test_options_may_be_numbers_of_numpy() -> None:
    numbers: dict[str, Any] = {"num_measure_trials": np.int64(8), "time_limit_s": np.float32(0.5)}
    assert TuningOptions(**numbers).num_measure_trials == 8


def test_another_device_than_the_target_names_is_said_once() -> None:
    shown = io.StringIO()
    for target in ("opencl model=mali-t860", "opencl cores=2"):
        task = replace(doubling(FakeSpace()), target=target)
        tune(task, TuningOptions(num_measure_trials=2, progress=ProgressLines(shown)), MEASURE)
    said = [line for line in shown.getvalue().splitlines() if "is measured on" in line]
    rest = "limits are the target's, times that one's"
    assert said == [f"target opencl model=mali-t860 is measured on fake device: {rest}"]


def start_script(
    path: Path, trials: int, build: str = "none", strategy: str = "random"
) -> tuple[subprocess.Popen[str], str]:
    mark = f"LOOPWRIGHT_TEST_MARK={uuid.uuid4().hex}"
    name, value = mark.split("=")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), name: value}
    command = [sys.executable, str(SCRIPT), str(path), str(trials), build, strategy]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), mark


@pytest.mark.slow(1.2)
def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script, mark = start_script(tmp_path / "r.jsonl", 10, strategy="evolution")
    out, err = script.communicate(timeout=PATIENCE_S)
    assert script.returncode == 0, err
    assert out == "begin\nend 10\n"
    assert "doubling 10/10: best" in err
    assert marked_processes(mark) == []


@pytest.mark.slow(1.2)
def test_interrupting_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    script, mark = start_script(path, 1000, "sleep")
    assert wait_until(lambda: path.exists() and path.read_text().count("\n") >= 3), script.poll()
    assert len(marked_processes(mark)) == 5, "itself, a builder, a runner, and their guards"
    script.send_signal(signal.SIGINT)
    _, err = script.communicate(timeout=PATIENCE_S)
    assert script.returncode != 0 and "KeyboardInterrupt" in err
    assert f"they are kept in {path}" in err
    assert wait_until(lambda: marked_processes(mark) == [])
    kept = len(rec.load(path))
    script, _ = start_script(path, kept + 2)
    out, _ = script.communicate(timeout=PATIENCE_S)
    assert f"end {kept + 2}" in out


@pytest.mark.slow(1.2)
def test_two_tuners_share_a_record_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    scripts = [start_script(path, 20)[0] for _ in range(2)]
    for script in scripts:
        _, err = script.communicate(timeout=PATIENCE_S)
        assert script.returncode == 0, err
    records = rec.load(path)
    assert 20 <= sum(r.role is Role.TRIAL for r in records) <= 40
    assert sum(r.role is Role.WINNER for r in records) >= 1
