"""One rule says which records are of use on a target, wherever records are looked up."""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import call

import loopwright as lw
from loopwright import te, topi
from loopwright.graph.chosen_schedules import KnownSchedules, UntunedWarning
from loopwright.search.measure.measurer import MeasureOptions, Measurer
from loopwright.search.records import file as rec
from loopwright.search.records import pretuned
from loopwright.search.records.file import ErrorCode, Record, RecordWarning
from loopwright.search.records.workload_files import write_workload
from loopwright.search.task_in_search import TaskInSearch
from loopwright.search.template.limits import usage
from loopwright.search.tune.display import Silent
from loopwright.search.tune.loop import TaskTuner

PRESET = "cuda model=h200"
DEVICE = "NVIDIA H200 (some driver)"
NARROW = "cuda model=h200 max_threads_per_block=64"


class Notes(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def resumed(task: lw.SearchTask, records: list[Record], shown: Notes) -> TaskTuner:
    """A tuner of a task that has taken over records, on the device that they are of."""
    measurer = Measurer(MeasureOptions("none"))
    measurer.device = DEVICE
    tuner = TaskTuner(TaskInSearch(task), lw.TuningOptions(progress=shown), measurer)
    tuner.resume(records)
    return tuner


def product(n: int = 64) -> list[te.Tensor]:
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    return [a, b, topi.matmul(a, b)]


def task_on(target: str) -> lw.SearchTask:
    return lw.SearchTask(product, target=target)


def device_target() -> lw.Target:
    """The target as a driver reports it: one figure differs from the preset's."""
    return replace(task_on(PRESET).target, l1_bytes=233472)


def records_of(task: lw.SearchTask, count: int = 12) -> list[Record]:
    """Trials of random candidates of a task, those of more threads the faster."""
    sketch = next(
        each for each in task.sketches if each.name == "j"
    )  # of one kernel: joining parts has threads of its own
    found = []
    for row in sketch.sample(np.random.default_rng(0), count):
        text = sketch.schedule(row)
        found.append(
            Record(
                task.workload_key,
                task.compute_dag.hash,
                str(device_target()),
                sketch.name,
                tuple(int(v) for v in row),
                text,
                times_s=(1e-3 / threads_of(task, text),),
                device=DEVICE,
                versions=dict(task.versions()),
            )
        )
    return found


THREADS: dict[tuple[str, str], int] = {}
"""Threads of a block by the hash of a workload and a schedule of it: targets change nothing about them."""


def threads_of(task: lw.SearchTask, schedule: str) -> int:
    known = task.compute_dag.hash, schedule
    if known not in THREADS:
        THREADS[known] = int(np.asarray(usage(task.schedule_module(schedule)).threads))
    return THREADS[known]


@functools.cache
def threads_on_preset(schedule: str) -> int:
    """The threads of a block under a schedule of the product, which several tests ask of all trials."""
    return threads_of(task_on(PRESET), schedule)


@pytest.fixture(scope="module")
def trials() -> list[Record]:
    found = records_of(lw.SearchTask(product, target=device_target()))
    counts = {threads_on_preset(r.schedule) for r in found}
    assert min(counts) <= 64 < max(counts)
    return found


@pytest.mark.slow(1.2)
def test_records_of_a_device_and_of_its_preset_find_each_other(trials: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rec.append(path, trials)
    preset = task_on(PRESET)
    best = rec.best(trials)
    assert preset.best_record(path) == lw.load_best(path, preset) == best
    assert lw.load_best(path, preset.workload_key, target=PRESET) == lw.load_best(path, preset.name, PRESET) == best
    assert preset.print_best(path) == best.schedule and "__global__" in preset.print_best(path, "source")
    assert lw.apply_history_best(path).query(PRESET, preset) == best
    tuner = resumed(preset, rec.load(path), Notes())
    assert tuner.state.done == len(trials) and tuner.state.best == best


def test_a_schedule_that_breaks_the_limits_is_passed_over_and_named(trials: list[Record]) -> None:
    narrow = task_on(NARROW)
    with pytest.warns(RecordWarning, match=r"faster records of product are not used: \d+ .*64 threads") as said:
        found = narrow.best_record(trials)
    assert len(said) == 1
    fitting = [r for r in trials if threads_on_preset(r.schedule) <= 64]
    assert found in fitting and found.time_s == min(r.time_s for r in fitting)
    assert lw.load_best(trials, narrow) == found == lw.apply_history_best(trials).query(NARROW, narrow)
    wide = [r for r in trials if r not in fitting]
    with pytest.raises(lw.RecordError, match=r"of \d+ record\(s\) none can be used \(\d+ .*64 threads"):
        narrow.best_record(wide)
    shown = Notes()
    tuner = resumed(narrow, trials, shown)
    assert tuner.state.done == len(fitting) and tuner.state.best == found
    assert shown.said[0].startswith("records of product that are not gone on with: ") and "64 threads" in shown.said[0]


def test_a_workload_by_key_or_hash_is_held_to_the_limits_too(trials: list[Record], tmp_path: Path) -> None:
    """By the IR beside the records; without, a sentence says that the limits were not looked at."""
    path, narrow = tmp_path / "r.jsonl", task_on(NARROW)
    rec.append(path, trials)
    key, digest = narrow.workload_key, narrow.compute_dag.hash
    asked = [lambda: lw.apply_history_best(path).query(NARROW, key), lambda: lw.load_best(path, key, target=NARROW)]
    for ask in asked:
        with pytest.warns(
            RecordWarning, match=f"best record of workload {digest} is of a 'cuda model=h200' with wider limits"
        ):
            assert ask() == rec.best(trials)
    write_workload(path, digest, str(narrow.module))
    best = min((r for r in trials if threads_on_preset(r.schedule) <= 64), key=lambda r: r.time_s)
    for history in (lw.apply_history_best(path), lw.apply_history_best([path])):
        assert history.query(NARROW, key) == history.query(NARROW, digest) == history.query(NARROW, narrow) == best
    assert lw.load_best(path, key, target=NARROW) == lw.load_best(path, digest, target=NARROW) == best
    code, out, err = call("show", str(path), "--target", NARROW)
    assert code == 0 and out.strip() == best.schedule, err
    wide = tmp_path / "wide.jsonl"
    rec.append(wide, [r for r in trials if threads_on_preset(r.schedule) > 64])
    write_workload(wide, digest, str(narrow.module))
    assert lw.apply_history_best(wide).query(NARROW, key) is None
    with pytest.raises(lw.RecordError, match=rf"of \d+ record\(s\) none can be used on {NARROW} \(\d+ .*64 threads"):
        lw.load_best(wide, key, target=NARROW)


def test_the_key_of_a_named_workload_tells_its_limits() -> None:
    narrow = lw.SearchTask("matmul", (64, 64, 32, False, False, "float32"), NARROW)
    found = records_of(lw.SearchTask("matmul", narrow.args, device_target()))
    fitting = [r for r in found if threads_of(lw.SearchTask("matmul", narrow.args, PRESET), r.schedule) <= 64]
    assert 0 < len(fitting) < len(found)
    best = lw.apply_history_best(found).query(NARROW, narrow.workload_key)
    assert best == min(fitting, key=lambda r: r.time_s)


def test_another_model_is_another_device(trials: list[Record]) -> None:
    other = task_on("cuda model=a100")
    reason = r"no valid record for workload \w+, target .*: of 12 record\(s\) none can be used "
    with pytest.raises(lw.RecordError, match=reason + r"\(12 another device: cuda model=h200\)"):
        other.best_record(trials)
    failed = [replace(r, error=ErrorCode.WRONG_RESULT, times_s=()) for r in trials[:2]]
    with pytest.raises(lw.RecordError, match=r"\(10 another device: cuda model=a10; 2 failed: WRONG_RESULT\)"):
        task_on(PRESET).best_record([*failed, *(replace(r, target="cuda model=a10") for r in trials[2:])])
    with pytest.raises(lw.RecordError, match=r"no record for workload \w+, target .*: tune it first"):
        other.best_record([])


def test_times_of_fewer_cores_do_not_count_but_their_schedules_do() -> None:
    one, two = (lw.SearchTask(product, target=f"llvm model=x86-64-v2 cores={n}") for n in (1, 2))
    schedule = one.default_schedule
    record = Record(one.workload_key, one.compute_dag.hash, str(one.target), "default", (), schedule, (1e-3,))
    assert two.best_record([record]) == record
    shown = Notes()
    tuner = resumed(two, [replace(record, device=DEVICE)], shown)
    assert tuner.state.done == 0 and "1 of another target: llvm model=x86-64-v2" in shown.said[0]
    generic = lw.SearchTask(product, target=lw.Target())
    with pytest.raises(lw.RecordError, match="another device: llvm model=x86-64-v2"):
        generic.best_record([record])


def test_a_build_takes_the_best_schedule_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    task = lw.SearchTask(product, target="llvm cores=1")
    sketch = task.sketches[0]
    rows = sketch.sample(np.random.default_rng(1), 2)
    made = [
        Record(
            task.workload_key, task.compute_dag.hash, str(task.target), sketch.name, (), sketch.schedule(row), (time_s,)
        )
        for row, time_s in zip(rows, (2e-3, 1e-3), strict=True)
    ]
    assert task.known_schedule() == task.default_schedule
    built: list[str] = []
    monkeypatch.setattr(lw.SearchTask, "schedule_module", lambda self, text, limits: built.append(text) or self.module)
    with lw.apply_history_best(made):
        task.build()
        with lw.apply_history_best(made[:1]):
            task.build()
        task.build(task.default_schedule)
    monkeypatch.setattr(pretuned, "index", lambda: lw.apply_history_best(made))
    task.build()
    assert built == [made[1].schedule, made[0].schedule, task.default_schedule, made[1].schedule]


def test_shipped_records_are_for_as_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, seven = (lw.SearchTask(product, target=f"llvm model=x86-64-v2 cores={n}") for n in (1, 2, 7))
    row = seven.sketches[0].sample(np.random.default_rng(1), 1)[0]
    schedule = seven.sketches[0].schedule(row)
    record = Record(seven.workload_key, seven.compute_dag.hash, str(seven.target), "default", (), schedule, (1e-3,))
    monkeypatch.setattr(pretuned, "index", functools.cache(lambda: lw.apply_history_best([record])))
    assert seven.known_schedule() == schedule
    for fewer in (one, two):
        assert fewer.known_schedule() == fewer.default_schedule != schedule
        with lw.apply_history_best([record]):
            assert fewer.known_schedule() == schedule
    net = lw.Network("one")
    x = net.input("x", (24, 40))
    net.output(net.dense(x, np.ones((32, 40), np.float32)))
    kernels = {n: lw.extract_tasks(net, f"llvm model=x86-64-v2 cores={n}")[0][0] for n in (1, 2, 7)}
    own = replace(record, workload_hash=kernels[7].compute_dag.hash, schedule=kernels[7].default_schedule)
    monkeypatch.setattr(pretuned, "index", functools.cache(lambda: lw.apply_history_best([own])))
    found = {n: KnownSchedules(None, task.versions(), task.target).best(task) for n, task in kernels.items()}
    assert found[1] is None and found[2] is None and found[7] is not None


def test_compiling_asks_whether_a_record_keeps_the_limits(trials: list[Record]) -> None:
    net = lw.Network("one")
    a, b = net.input("a", (64, 64)), net.input("b", (64, 64))
    net.output(net.matmul(a, b))
    (task,), _ = lw.extract_tasks(net, NARROW)
    own = [
        replace(r, workload_hash=task.compute_dag.hash)
        for r in records_of(lw.SearchTask(task.compute_dag.module, target=device_target()))
    ]
    with pytest.warns(RecordWarning, match=f"a record of {task.name} is left out: .*64 threads"):
        compiled = lw.compile(net, NARROW, own)
    assert compiled.kernels[0].tuned
    with pytest.warns(UntunedWarning, match=r"another device: cuda model=a10"):
        lw.compile(net, NARROW, [replace(r, target="cuda model=a10") for r in own])
