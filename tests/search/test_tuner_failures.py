"""Searches in which something fails: candidates, sketches, disks, backends, the run-off."""

import io
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from doubling_task import MEASURE, Notes, doubling, quietly
from fake_space import FakeSpace

from loopwright.search.measure.process import WorkerStartError
from loopwright.search.records import file as rec
from loopwright.search.records.file import ErrorCode, Record, RecordError, RecordWarning, Role
from loopwright.search.sketch.population import Rows
from loopwright.search.tune.loop import TuningError, TuningOptions, tune
from loopwright.search.tune.progress import ProgressLines, TuningState

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_a_failing_default_does_not_end_tuning() -> None:
    result = tune(doubling(FakeSpace(), default="run=wrong time=1"), quietly(num_measure_trials=12), MEASURE)
    assert result.default is None and math.isnan(result.speedup)
    assert result.best.ok and result.trials[0].error is ErrorCode.WRONG_RESULT


def test_when_everything_fails_the_first_error_is_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    task = doubling(FakeSpace(failing=1.0), default="build=raise")
    result = tune(task, quietly(num_measure_trials=1000, batch_size=8, records=path), MEASURE)
    assert result.winner is None and math.isnan(result.speedup)
    assert str(result).startswith("doubling: all 24 trials of doubling failed") and "\n" not in str(result)
    with pytest.raises(TuningError) as caught:
        _ = result.best
    text = str(caught.value)
    assert text.startswith("all 24 trials of doubling failed: 23 RUNTIME_ERROR, 1 COMPILE_ERROR.")
    assert "build=raise" in text and "Traceback" in text and "no such instruction: frobnicate" in text
    assert len(rec.load(path)) == 24


def test_a_full_disk_costs_the_records_not_the_result() -> None:
    shown = io.StringIO()
    options = TuningOptions(num_measure_trials=12, records="/dev/full", progress=ProgressLines(shown))
    with pytest.warns(RecordWarning, match=r"^\d+ record\(s\) could not be saved$"):
        result = tune(doubling(FakeSpace()), options, MEASURE)
    assert len(result.trials) == 12 and result.best.ok
    assert shown.getvalue().count("No space left on device") == 1


def test_a_disk_full_for_a_while_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls, shown = tmp_path / "r.jsonl", [], io.StringIO()
    append = rec.append

    def sometimes(file: Path, records: Sequence[Record]) -> None:
        calls.append(len(records))
        if 3 <= len(calls) <= 6:
            raise RecordError("cannot write record file: No space left on device")
        append(file, records)

    monkeypatch.setattr(rec, "append", sometimes)
    options = TuningOptions(num_measure_trials=12, records=path, progress=ProgressLines(shown))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = tune(doubling(FakeSpace()), options, MEASURE)
    assert [r for r in rec.load(path) if r.role is Role.TRIAL] == result.trials
    assert shown.getvalue().count("No space left") == 1


def test_a_record_file_that_cannot_be_is_refused_before_measuring(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot open record file"):
        tune(doubling(FakeSpace()), quietly(records=tmp_path), MEASURE)


def test_a_backend_that_cannot_start_ends_tuning() -> None:
    with pytest.raises(WorkerStartError, match="no_such_backend"):
        tune(doubling(FakeSpace()), quietly(), replace(MEASURE, backend="no_such_backend"))


def test_a_sketch_that_fails_does_not_end_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    broken = FakeSpace("broken")
    monkeypatch.setattr(broken, "features", lambda rows: [][0])
    options = quietly(num_measure_trials=24, progress=ProgressLines(shown))
    result = tune(doubling(FakeSpace(), broken), options, MEASURE)
    assert len(result.trials) == 24 and result.best.time_s < 0.002
    (said,) = [line for line in shown.getvalue().splitlines() if "left out" in line]
    assert said == "sketch 'broken' is left out of the search: it raised IndexError: list index out of range"


def test_when_every_sketch_fails_tuning_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = FakeSpace("broken")
    monkeypatch.setattr(broken, "sample", lambda rng, n: [][0])
    options = quietly(num_measure_trials=24, records=tmp_path / "r.jsonl")
    shown = Notes()
    result = tune(doubling(broken), replace(options, progress=shown), MEASURE)
    assert result.best.sketch == "default"  # what was measured is not lost
    assert re.search(r"no sketch is left to search: sketch 'broken' .* IndexError", shown.said[-1])
    assert [r.sketch for r in rec.load(tmp_path / "r.jsonl")] == ["default"]
    failing = tune(doubling(broken, default="run=raise"), quietly(num_measure_trials=24), MEASURE)
    with pytest.raises(TuningError, match=r"doubling: no sketch is left to search: sketch 'broken' .* IndexError"):
        _ = failing.best


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ("raise", r"failed when they were measured again \(RUNTIME_ERROR: .*launch failed\)"),
        ("lost", r"could not be compared: the device was lost 5 times in a row; .*the device fell off the bus"),
    ],
)
def test_a_run_off_that_fails_keeps_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, why: str
) -> None:
    path, switch, shown = tmp_path / "r.jsonl", tmp_path / "failing", Notes()
    space = FakeSpace()
    plain = space.schedule

    def failing(row: Rows) -> str:
        return f"{plain(row).replace('time=', 'time=0.001 ')} unless={switch} then={then}"

    def turn(state: TuningState, record: Record) -> None:
        if state.done == 24:
            switch.touch()

    monkeypatch.setattr(space, "schedule", failing)
    options = quietly(num_measure_trials=24, records=path, callbacks=[turn], progress=shown, final_candidates=5)
    result = tune(doubling(space, default=f"time=0.002 unless={switch} then={then}"), options, MEASURE)
    assert result.best == min(result.trials, key=lambda r: r.time_s) == rec.best(rec.load(path))
    assert re.search(f"the best {why}: the fastest trial is the result", shown.said[-1])


def test_a_trial_that_fails_in_the_run_off_is_not_the_best_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, switch = tmp_path / "r.jsonl", tmp_path / "failing"
    default, space = f"time=0.0009 unless={switch} then=raise", FakeSpace()
    plain = space.schedule
    monkeypatch.setattr(space, "schedule", lambda row: plain(row).replace("time=", "time=0.001 "))
    options = quietly(num_measure_trials=12, records=path, callbacks=[lambda state, record: switch.touch()])
    result = tune(doubling(space, default=default), options, MEASURE)
    assert result.trials[0].time_s < result.best.time_s and result.best.sketch != "default"
    assert rec.best(rec.load(path)) == result.best == rec.distill(rec.load(path))[0]


def test_failures_are_numbered_as_the_rest_is() -> None:
    shown = Notes()
    task = doubling(FakeSpace(), default="run=raise")
    tune(task, quietly(num_measure_trials=4, progress=shown), MEASURE)
    assert shown.said[0].startswith("first failure, trial 1: RUNTIME_ERROR")
