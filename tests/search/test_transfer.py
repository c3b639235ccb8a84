"""A new task's cost model starts from what the record file knows of other tasks of its target."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.cost_model import BoostedTrees, Pretrained, transfer
from loopwright.search.cost_model.transfer import Transfer, transfer_to
from loopwright.search.records import file as rec
from loopwright.search.records.file import ErrorCode, Record
from loopwright.search.records.workload_files import workload_file, write_workload
from loopwright.search.tune.progress import ProgressLines

pytestmark = pytest.mark.usefixtures("quick_measuring")
TARGET = "llvm cores=1 vector_bytes=32"


def task_of(m: int, target: str = TARGET) -> lw.SearchTask:
    def product() -> list[te.Tensor]:
        a, b = te.placeholder((m, 24), name="a"), te.placeholder((24, 40), name="b")
        return [a, b, topi.nn.relu(topi.matmul(a, b))]

    return lw.SearchTask(product, target=target)


def measured(task: lw.SearchTask, count: int, slowdown: float = 1.0, device: str = "one") -> list[Record]:
    """Records of a task whose times are the sketches' estimates; the last failed."""
    found: list[Record] = []
    for sketch in task.sketches:
        rows = sketch.sample(np.random.default_rng(0), count)
        times_s = sketch.estimate(rows)
        assert times_s is not None
        for row, time_s in zip(rows, times_s, strict=True):
            found.append(
                Record(
                    *(task.workload_key, task.compute_dag.hash, str(task.target), sketch.name),
                    decisions=tuple(map(int, row)),
                    schedule=sketch.schedule(row),
                    times_s=(float(time_s) * slowdown,),
                    device=device,
                    timestamp=len(found),
                )
            )
    records = found[:count]
    return [*records[:-1], replace(records[-1], times_s=(), error=ErrorCode.COMPILE_ERROR)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


def put(path: Path, task: lw.SearchTask, records: list[Record]) -> None:
    rec.append(path, records)
    write_workload(path, task.compute_dag.hash, str(task.module))


def transferred(path: Path) -> Transfer:
    found = transfer_to(task_of(80), path)
    assert found is not None
    return found


def test_records_of_other_tasks_are_samples_relative_to_their_best(path: Path) -> None:
    first, second = task_of(32), task_of(56)
    put(path, first, measured(first, 20))
    put(path, second, [*measured(second, 12, 100.0), *measured(second, 8, 3.0, "another")])
    found = transferred(path)
    assert str(found) == "the cost model starts from 40 records of 3 other tasks"
    history = found.history
    assert np.bincount(history.tasks).tolist() == [20, 12, 8]
    for number in range(3):
        own = history.scores[history.tasks == number]
        assert own.max() == 1.0 and own.min() == 0.0
    assert history.features.shape == (40, len(first.sketches[0].feature_names))


def test_records_of_the_task_itself_or_of_another_target_are_left_alone(path: Path) -> None:
    task, other = task_of(32), task_of(56, "llvm cores=1 vector_bytes=64")
    put(path, task, measured(task, 20))
    put(path, other, measured(other, 20))
    assert transfer_to(task, path) is None


def test_what_cannot_be_made_again_is_skipped_and_counted(path: Path) -> None:
    first, second = task_of(32), task_of(56)
    rec.append(path, measured(first, 20))
    assert str(transferred(path)) == "the cost model starts from nothing; 20 records cannot be used"
    stale = [replace(r, schedule=r.schedule + ",lw-unroll{}") for r in measured(second, 3)]
    put(path, second, [*measured(second, 10), *stale])
    found = str(transferred(path))
    assert found == "the cost model starts from 10 records of 1 other task; 23 records cannot be used"
    workload_file(path, second.compute_dag.hash).write_text("torn")
    assert transferred(path).samples == 0


def test_the_latest_records_of_few_tasks_are_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, m in enumerate((32, 40, 48)):
        task = task_of(m)
        put(path, task, [replace(r, timestamp=r.timestamp + 1000 * number) for r in measured(task, 20)])
    monkeypatch.setattr(transfer, "MOST_RECORDS", 50)
    assert str(transferred(path)) == "the cost model starts from 50 records of 3 other tasks"
    monkeypatch.setattr(transfer, "MOST_TASKS", 1)
    found = transferred(path)
    assert (found.samples, found.tasks, found.skipped) == (20, 1, 30)


def test_a_model_that_starts_from_others_is_asked_when_it_knows_the_task(path: Path) -> None:
    task = task_of(32)
    put(path, task, measured(task, 20))
    model = transferred(path).model(0)
    assert isinstance(model, Pretrained) and not model.ready
    model.fit(np.zeros((1, len(task.sketches[0].feature_names)), dtype=np.float32), np.ones(1))
    assert model.ready


@pytest.mark.parametrize("options", [{}, {"transfer": False}, {"cost_model": "linear"}])
@pytest.mark.few(1)
def test_tuning_learns_from_the_file_unless_told_otherwise(
    path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    fit = BoostedTrees.fit
    monkeypatch.setattr(
        BoostedTrees, "fit", lambda self, f, s, tasks=None: (sizes.append(len(s)), fit(self, f, s, tasks))[1]
    )
    new = task_of(16, "llvm cores=1")
    known = task_of(32, "llvm cores=1")
    put(path, known, measured(known, 20))
    shown = io.StringIO()
    usual = new.measure_options()
    quick = replace(usual, builders=1, timing=replace(usual.timing, repeat=1, min_repeat_ms=1.0))
    tuning = lw.TuningOptions(
        num_measure_trials=5, batch_size=3, records=path, progress=ProgressLines(shown), final_laps=1, **options
    )
    assert new.tune(tuning, quick).best.ok
    said = "product: the cost model starts from 20 records of 1 other task"
    assert (said in shown.getvalue().splitlines()) == (not options)
    assert (max(sizes, default=0) > 20) == (not options)
