"""The end of a search: trials, time limits, early stopping, spaces that are used up, callbacks."""

import io
import math
import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import pytest
from doubling_task import MEASURE, Notes, doubling, quietly
from fake_space import FakeSpace

from loopwright.search.measure.measurer import MeasureTask
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record, Role
from loopwright.search.sketch.population import Rows
from loopwright.search.tune.deadline import Deadline
from loopwright.search.tune.loop import TuningOptions, TuningTask, tune
from loopwright.search.tune.progress import ProgressLines, TuningState

pytestmark = pytest.mark.usefixtures("quick_measuring")


class ThreeRows(FakeSpace):
    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return np.concatenate([rng.integers(1, 4, size=(n, 1)), np.zeros((n, 6), np.int64)], axis=1)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self.sample(rng, len(rows))

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return a


def test_a_space_used_up_ends_tuning() -> None:
    assert len(tune(doubling(ThreeRows()), quietly(num_measure_trials=50), MEASURE).trials) == 4
    assert len(tune(doubling(), quietly(num_measure_trials=50), MEASURE).trials) == 1


def test_a_space_used_up_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    space = FakeSpace()
    rows = space.all_rows()[:3]
    monkeypatch.setattr(space, "sample", lambda rng, n: rows)
    tune(doubling(space), TuningOptions(num_measure_trials=24, progress=ProgressLines(shown)), MEASURE)
    said = [line for line in shown.getvalue().splitlines() if "used up" in line]
    assert said == ["the search space is used up after 4 trials: there are no others"]


def test_early_stopping_and_time_limit() -> None:
    task = doubling(FakeSpace(), default="time=1e-9")
    options = quietly(num_measure_trials=500, batch_size=8, early_stopping=20)
    shown = Notes()
    assert len(tune(task, replace(options, progress=shown), MEASURE).trials) == 1 + 20
    assert shown.said == ["stopped early after 21 trials: none after trial 1 was better"]
    assert len(tune(task, quietly(num_measure_trials=500, batch_size=8, time_limit_s=0.0), MEASURE).trials) == 1


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def passes(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize("overlap", [False, True])
def test_a_time_limit_holds_within_one_candidates_time(overlap: bool) -> None:
    """A second passes with each trial: a batch that is under way is not gone on with when time is up."""
    clock, notes = Clock(), Notes()
    options = quietly(time_limit_s=10.0, callbacks=[lambda state, record: clock.passes(1.0)], progress=notes)
    options = replace(options, num_measure_trials=500, batch_size=64)
    measure = replace(MEASURE, overlap=overlap)
    result = tune(doubling(FakeSpace()), options, measure, Deadline.after(10.0, clock))
    # What is kept for the run-off; what the runner is at when time is up. One that works ahead may have done the batch
    # before the first of its results is looked at, which moves the clock.
    assert 8 <= len(result.trials) <= (64 if overlap else 11)
    assert any(re.fullmatch(r"the time limit of 10 s left 4\d\d of 500 trials out", said) for said in notes.said)


@dataclass(frozen=True)
class SlowData(TuningTask):
    """A task that takes its time to make data."""

    clock: Clock = field(default_factory=Clock)

    def measured(self) -> MeasureTask:
        self.clock.passes(100.0)
        return super().measured()


def test_a_time_limit_counts_from_the_call_and_covers_making_data_and_the_run_off() -> None:
    plain, clock, notes = doubling(FakeSpace()), Clock(), Notes()
    task = SlowData(**{f.name: getattr(plain, f.name) for f in fields(plain)}, clock=clock)
    options = TuningOptions(num_measure_trials=500, time_limit_s=50.0, progress=notes)
    result = tune(task, options, MEASURE, Deadline.after(50.0, clock))
    assert [r.sketch for r in result.trials] == ["default"] and result.best == result.trials[0]
    assert "the time limit of 50 s left 499 of 500 trials out" in notes.said
    result = tune(task, replace(options, time_limit_s=120.0, num_measure_trials=8), MEASURE, Deadline.after(120, clock))
    assert len(result.trials) == 8 and result.best.role is Role.WINNER
    late = [lambda state, record: clock.passes(30.0 if state.done == 8 else 0.0)]
    options = replace(options, time_limit_s=120.0, num_measure_trials=8, callbacks=late)
    result = tune(task, options, MEASURE, Deadline.after(120, clock))
    assert len(result.trials) == 8 and result.best.role is Role.TRIAL
    assert notes.said[-1].startswith("the time limit left none for comparing the best")


def test_part_of_the_limit_is_kept_for_what_comes_at_the_end() -> None:
    clock = Clock()
    deadline = Deadline.after(100.0, clock)
    assert not deadline.is_within(lambda: 1e9, share=0.2)
    clock.passes(85.0)
    assert deadline.is_within(lambda: 16.0, share=0.2) and not deadline.is_within(lambda: 10.0, share=0.2)
    clock.passes(15.0)
    assert deadline.is_within(lambda: 0.0, share=0.2)
    assert Deadline.after(None, clock).left_s == math.inf and not Deadline.after(None, clock).is_within(lambda: 1e9, 1)


def test_callbacks_see_every_trial() -> None:
    seen = []
    options = quietly(num_measure_trials=20, callbacks=[lambda state, record: seen.append((state.done, record))])
    result = tune(doubling(FakeSpace()), options, MEASURE)
    assert [n for n, _ in seen] == list(range(1, 21)) and [r for _, r in seen] == result.trials


def test_a_callback_that_returns_true_ends_tuning_after_what_is_under_way() -> None:
    options = quietly(num_measure_trials=40, callbacks=[lambda state, record: state.done >= 5])
    result = tune(doubling(FakeSpace()), options, MEASURE)
    assert 5 <= len(result.trials) <= 6 and result.best.ok


@pytest.mark.parametrize("answer", [1, "yes", [True]])
def test_only_true_ends_tuning(answer: object) -> None:
    options = quietly(num_measure_trials=4, callbacks=[lambda state, record: answer])
    assert len(tune(doubling(FakeSpace()), options, MEASURE).trials) == 4


def test_an_exception_of_a_callback_passes_through_with_everything_on_record(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def end(state: TuningState, record: Record) -> None:
        if state.done == 5:
            raise OSError("the disk of the callback")

    options = quietly(num_measure_trials=12, records=path)
    with pytest.raises(OSError, match="the disk of the callback"):
        tune(doubling(FakeSpace()), replace(options, callbacks=[end]), MEASURE)
    assert len(rec.load(path)) == 5
    result = tune(doubling(FakeSpace()), options, MEASURE)
    assert result.state.resumed == 5 and len({r.schedule for r in result.trials}) == 12
