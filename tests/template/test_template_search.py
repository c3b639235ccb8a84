"""Templates in the loop that searches sketches: the same features, run-offs, resuming and scheduling."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import template_workloads  # noqa: F401 (registers its template)

import loopwright as lw
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.measure.jobs import Job, Jobs
from loopwright.search.records import file as rec
from loopwright.search.records.file import DEFAULT_SKETCH, ErrorCode, Role
from loopwright.search.template.in_search import TemplateInSearch, TemplateSpace

pytestmark = pytest.mark.usefixtures("quick_measuring")
TASKS = [
    ("conv2d_nchw", (2, 8, 8, 16, 8, 3, 3, (2, 2), (1, 1)), "opencl model=pocl"),
    ("dense", (16, 32, 24), "cuda model=h200"),
    ("batch_matmul", (3, 16, 8, 12), "cuda model=h200"),
    ("depthwise_conv2d_nhwc", (1, 24, 10, 10, 3, 3, (2, 2), (1, 1)), "llvm cores=2 vector_bytes=32"),
    ("tests_matmul", (64, 48, 64), "llvm cores=2 vector_bytes=64"),
]


def quietly(trials: int, records: Path | None = None, **options: Any) -> lw.TuningOptions:
    return lw.TuningOptions(num_measure_trials=trials, batch_size=6, records=records, progress=False, **options)


def small_task() -> lw.TemplateTask:
    return lw.TemplateTask("tests_matmul", (16, 24, 8), "llvm cores=2")


@pytest.mark.parametrize(("name", "args", "target"), TASKS, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.few(1)
def test_features_are_those_read_from_the_ir_of_a_config(name: str, args: tuple[Any, ...], target: str) -> None:
    task = lw.TemplateTask(name, args, target)
    space = TemplateSpace(task)
    rows = space.sample(np.random.default_rng(0), 5)
    assert len(rows)
    assert space.legal(rows).all()
    for row, features in zip(rows, space.features(rows), strict=True):
        wanted = features_of_schedule(task.module, task.target, space.schedule(row))
        np.testing.assert_allclose(features, wanted, rtol=1e-5, atol=1e-5)


def test_rows_mix_and_change_by_whole_knobs() -> None:
    space = TemplateSpace(small_task())
    rng = np.random.default_rng(1)
    a, b = space.sample(rng, 8), space.sample(rng, 8)
    mixed = space.crossover(rng, a, b)
    assert ((mixed == a) | (mixed == b)).all()
    assert ((space.mutate(rng, a) != a).sum(axis=1) == 1).all()


def test_a_template_is_tuned_resumed_and_its_winner_applied(tmp_path: Path) -> None:
    task, path = small_task(), tmp_path / "records.jsonl"
    first = task.tune(quietly(7, path))
    assert len(first.trials) == 7
    assert first.best.ok
    again = task.tune(quietly(11, path))
    assert again.state.resumed == 7
    tried = [r for r in rec.load(path) if r.role is Role.TRIAL]
    assert len(tried) == 11
    assert len({r.schedule for r in tried}) == 11
    assert {record.sketch for record in tried[1:]} == {"template:tests_matmul"}
    for record in tried:
        assert task.config(record.template["index"]).values == record.template["config"]
        assert task.schedule(record.template["config"]) == record.schedule
    assert tried[0].sketch == DEFAULT_SKETCH
    assert tried[0].template["name"] == "tests_matmul"
    task.apply_best(path, check=True)


def test_trials_of_tuners_are_gone_on_with(tmp_path: Path) -> None:
    task, path = small_task(), tmp_path / "records.jsonl"
    lw.tuners.RandomTuner(task).tune(6, callbacks=[lw.callbacks.log_to_file(path)])
    result = task.tune(quietly(8, path))
    assert result.state.resumed == 6
    assert len(result.trials) == 8


@pytest.mark.slow(1.2)
def test_configs_that_turn_out_not_to_be_legal_are_no_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "lw-lower-loop-to-kernel: loop 'j' is parallel, which a GPU does not have"
    answered = Jobs.finish

    def refused(self: Jobs, job: Job, error: ErrorCode, message: str = "", stopped_early: bool = False) -> None:
        if job.number % 2:  # the first is the preflight's
            error, message = ErrorCode.INSTANTIATION_ERROR, said
        answered(self, job, error, message, stopped_early)

    monkeypatch.setattr(Jobs, "finish", refused)
    task, path = small_task(), tmp_path / "records.jsonl"
    result = task.tune(quietly(8, path))
    assert len(result.trials) == 8 == len([r for r in rec.load(path) if r.role is Role.TRIAL])
    assert all(r.ok for r in result.trials)


@pytest.mark.slow(1.2)
def test_the_scheduler_takes_templates_beside_sketches(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    template = small_task()
    tasks: list[lw.SearchTask | lw.TemplateTask] = [
        template,
        lw.SearchTask(lw.TemplateTask("dense", (8, 16, 8), "llvm cores=2").compute_dag.module, target="llvm cores=2"),
    ]
    scheduler = lw.TaskScheduler(tasks, weights=[3, 1], share_model=True)
    result = scheduler.tune(quietly(24, path))
    assert [r is not None for r in result.best] == [True, True]
    assert result.state.done == 24
    gone_on = lw.TaskScheduler(tasks, weights=[3, 1]).tune(quietly(24, path))
    assert gone_on.state.resumed == 24


@pytest.mark.slow(1.2)
def test_trials_of_sketches_are_none_of_a_template(tmp_path: Path) -> None:
    task, path = small_task(), tmp_path / "records.jsonl"
    sketches = lw.SearchTask(task.compute_dag.module, target="llvm cores=2")
    sketches.tune(quietly(6, path))
    assert not [r for r in rec.load(path) if TemplateInSearch(task).tried(r)]
    assert task.tune(quietly(6, path)).state.resumed == 0
    assert sketches.tune(quietly(6, path)).state.resumed == 6


def test_a_template_that_hides_what_it_asks_is_tuned_all_the_same() -> None:
    result = lw.TemplateTask("tests_depths", (64,), "llvm cores=1").tune(quietly(9))
    assert sorted(r.schedule.count("lw-split") for r in result.trials) == [1, 2, 3, 4]
