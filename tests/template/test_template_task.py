"""Template tasks from a function to a kernel: measured on this CPU, recorded, found again, and used."""

import io
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import template_workloads
from patience import PATIENCE_S

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.buffers import Buffers
from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records import pretuned
from loopwright.search.records.file import ErrorCode, Record, append, load
from loopwright.search.records.index import History, Source, histories
from loopwright.search.records.known import best_known
from loopwright.search.template.config import Config
from loopwright.search.template.fallback import fallback_config
from loopwright.search.template.history import FallbackWarning
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.search.template.registry import Template
from loopwright.search.tune.callback import Callback
from loopwright.search.tune.loop import TuningResult
from loopwright.search.tune.progress import TuningState

pytestmark = pytest.mark.usefixtures("quick_measuring")
ARGS = (16, 24, 8)
TARGET = "llvm cores=1 vector_bytes=32"
QUICK = lw.measure_option(
    lw.LocalBuilder(timeout=PATIENCE_S, n_parallel=1),
    lw.LocalRunner(timeout=PATIENCE_S, number=1, repeat=2, min_repeat_ms=0),
)


def made_task(args: Sequence[int] = ARGS, target: str = TARGET) -> lw.TemplateTask:
    return lw.TemplateTask("tests_matmul", args, target)


Tuned = tuple[lw.TemplateTask, Path, TuningResult, str]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, quick_measuring: None) -> Tuned:
    """A task, the file of its records, and what tuning it returned."""
    path = tmp_path_factory.mktemp("records") / "matmul.jsonl"
    task = made_task()
    bar = io.StringIO()
    callbacks: list[Callback[TuningState]] = [
        lw.callbacks.log_to_file(path),
        lw.callbacks.progress_bar(6, "[Task  1/ 1]", stream=bar),
    ]
    result = lw.tuners.RandomTuner(task).tune(6, QUICK, callbacks=callbacks)
    return task, path, result, bar.getvalue()


def chosen(history: History, task: lw.TemplateTask) -> Config:
    """The config that a history has for a task."""
    config = history.config(task)
    assert config is not None
    return config


def test_every_trial_is_a_record_with_its_config(tuned: Tuned) -> None:
    task, path, result, _ = tuned
    records = load(path)
    assert records == list(result.trials) and len(records) == 6
    assert {r.error for r in records} == {ErrorCode.OK}
    assert len({r.decisions for r in records}) == 6
    for record in records:
        config = task.config(record.decisions)
        assert record.template == {
            "name": "tests_matmul",
            "args": list(ARGS),
            "index": config.index,
            "config": config.values,
        }
        assert record.schedule == task.schedule(config)
    assert result.best.time_s == min(r.time_s for r in records)


def test_progress_bar_is_the_published_one(tuned: Tuned) -> None:
    _, _, _, bar = tuned
    lines = bar.split("\r")
    assert len(lines) == 7 and lines[-1].endswith(" Done.\n")
    assert lines[3].startswith("[Task  1/ 1] Current/Best: ") and "GFLOPS | Progress: (3/6) | " in lines[3]


def test_template_and_sketch_records_share_a_file_and_a_best(tuned: Tuned, tmp_path: Path) -> None:
    task, path, result, _ = tuned
    a, b = te.placeholder((16, 8), name="a"), te.placeholder((8, 24), name="b")
    search = lw.SearchTask(lambda: [a, b, topi.matmul(a, b)], target=TARGET)
    assert search.best_record(path) == result.best
    x, y = np.random.default_rng(0).standard_normal((2, 8, 24), dtype=np.float32)
    x = np.ascontiguousarray(x[:, :16].T)
    for kernel in (search.apply_best(path), task.apply_best(path), task.build(result.best.template["index"])):
        np.testing.assert_allclose(kernel(x, y), x @ y, rtol=1e-4, atol=1e-4)
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(path.read_text())
    options = lw.TuningOptions(num_measure_trials=2, records=mixed, progress=False, final_candidates=1)
    sketches = search.tune(options)
    assert len(sketches.trials) == 2 and not any(r.template for r in sketches.trials)
    assert len(load(mixed)) >= 8
    best = task.best_record(mixed)
    assert best == search.best_record(mixed)
    # The winner of a run-off stands for what it was faster than as a trial, however long its laps took.
    assert best.role == "winner" or (best.role == "trial" and best.time_s <= result.best.time_s)


def test_tuner_resumes_without_measuring_again(tuned: Tuned) -> None:
    task, path, result, _ = tuned
    measured: list[Config] = []

    def simulated(task: lw.TemplateTask, configs: Sequence[Config]) -> list[float]:
        measured.extend(configs)
        return [1.0] * len(configs)

    tuner = lw.tuners.GridSearchTuner(task)
    assert tuner.resume(path) == 6
    again = tuner.tune(4, simulated)
    assert len(again.trials) == 10 and again.best == result.best
    assert not {c.index for c in measured} & {r.template["index"] for r in result.trials}


def test_history_is_a_context_and_a_function(tuned: Tuned) -> None:
    task, path, result, _ = tuned
    history = lw.apply_history_best(path)
    assert history.query(task.target, task.compute_dag.hash) == result.best
    assert chosen(history, task).index == result.best.template["index"]
    assert history.query("cuda model=h200", task.compute_dag.hash) is None
    with history, warnings.catch_warnings():
        warnings.simplefilter("error")
        sch = template_workloads.matmul(*ARGS, target=TARGET)
        assert best_known(task).record == result.best
    assert sch.pipeline == result.best.schedule
    assert histories() == ()


def test_a_history_is_asked_as_in_the_classic_autotuner(tuned: Tuned) -> None:
    task, path, result, _ = tuned
    history = lw.apply_history_best(path)
    for workload in (task.workload, task.workload_key, task.compute_dag.hash, task, task.search_task):
        assert history.query(task.target, workload) == result.best
    assert history.query(TARGET, task.workload) == history.query(str(task.target), task.workload) == result.best
    assert history.query(task.target, task.workload, "another") is None
    with pytest.raises(TypeError, match="a workload is a task, its workload key or hash, got int"):
        history.query(task.target, 3)  # type: ignore[arg-type]


def test_llvm_alone_is_this_machine() -> None:
    task = made_task(target="llvm")
    record = lw.tuners.RandomTuner(task).tune(1, lambda task, configs: [1.0]).best
    assert "cores=" in record.target or "model=" in record.target
    assert lw.apply_history_best(record).query("llvm", task.workload) == record


def test_histories_of_files_and_records(tuned: Tuned, tmp_path: Path) -> None:
    task, path, result, _ = tuned
    slower = max(result.trials, key=lambda r: r.time_s)
    append(tmp_path / "one.jsonl", [slower])
    sources: list[Source] = [path, [path], [tmp_path / "one.jsonl", str(path)], [slower, path], list(result.trials)]
    for source in sources:
        assert chosen(lw.apply_history_best(source), task).index == result.best.template["index"]
    assert chosen(lw.apply_history_best(slower), task).index == slower.template["index"]
    with pytest.raises(TypeError, match="records are a file, a Record, or a list of those, got int"):
        lw.apply_history_best(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got a list with NoneType"):
        lw.apply_history_best([None])  # type: ignore[list-item]


def test_records_that_break_the_limits_of_this_target_are_passed_over() -> None:
    wide = lw.TemplateTask("dense", (64, 64, 64), "cuda model=h200")
    narrow = lw.TemplateTask("dense", (64, 64, 64), "cuda model=h200 max_threads_per_block=64")
    rows = wide.config_space.sample(np.random.default_rng(0), 512)
    rows = rows[wide.legal(rows)]
    fits = narrow.legal(rows)
    assert fits.any() and not fits.all()
    wanted = [*rows[~fits][:3], *rows[fits][:2]]

    def simulated(task: lw.TemplateTask, configs: Sequence[Config]) -> list[float]:
        return [1.0 + next(i for i, row in enumerate(wanted) if c.row == tuple(row)) for c in configs]

    class Chosen(lw.tuners.RandomTuner):
        def propose(self, count: int) -> list[int]:
            return [] if self.visited else self.space.indices(np.array(wanted)).tolist()

    records = Chosen(wide).tune(5, simulated).trials
    history = lw.apply_history_best(records)
    assert chosen(history, wide).row == tuple(wanted[0])
    assert chosen(history, narrow).row == tuple(wanted[3])
    assert lw.apply_history_best([r for r in records if r.time_s <= 3]).config(narrow) is None
    for target, workload in ((wide.target, narrow), (narrow.target, wide.workload)):
        found = history.query(target, workload)
        assert found is not None and found.time_s == 1.0
    for task in (wide, narrow):
        found = history.query(narrow.target, task)
        assert found is not None and found.time_s == 4.0  # which fits


def test_inner_contexts_are_asked_first(tuned: Tuned) -> None:
    result = tuned[2]
    ranked = sorted(result.trials, key=lambda r: r.time_s)
    with lw.apply_history_best(ranked[:1]):
        with lw.apply_history_best(ranked[-1:]):
            assert template_workloads.matmul(*ARGS, target=TARGET).pipeline == ranked[-1].schedule
        assert template_workloads.matmul(*ARGS, target=TARGET).pipeline == ranked[0].schedule
        with lw.apply_history_best([]):
            assert template_workloads.matmul(*ARGS, target=TARGET).pipeline == ranked[0].schedule


@pytest.fixture
def nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.search.template.history._warned", set())


@pytest.mark.usefixtures("nothing_said_yet")
def test_without_a_record_a_fallback_is_used_and_said_once() -> None:
    with pytest.warns(FallbackWarning, match="a config nobody measured is used$") as caught:
        sch = template_workloads.matmul(*ARGS, target=TARGET)
        template_workloads.matmul(*ARGS, target=TARGET)
        made = made_task().template
        assert isinstance(made, Template)
        made(*ARGS, target=TARGET)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(FallbackWarning, match=r"template tests_matmul\(8, 24, 8\) on llvm"):
        template_workloads.matmul(8, 24, 8, target=TARGET)
    config = fallback_config(made_task())
    assert sch.pipeline == made_task().schedule(config)
    assert config.values["tile_j"] == [3, 1, 8]  # 8 first, then of 24 / 8 what is at most 2


@pytest.mark.usefixtures("nothing_said_yet")
@pytest.mark.parametrize(
    ("choose", "refusal"),
    [
        (lambda cfg: cfg.__setitem__("nosuch", 3), "there is no knob 'nosuch'; knobs are tile, vec"),
        (lambda cfg: cfg.__setitem__("vec", 3), r"knob 'vec' has no choice 3: OtherOption\(\[0, 1\]\)"),
        (lambda cfg: cfg.fallback_split("tile", [8]), "fallback_split 'tile': one number for each part"),
        (lambda cfg: cfg.__setitem__("vec", 1), "lw-vectorize.*"),
    ],
)
def test_a_fallback_that_cannot_be_is_named(choose: Callable[[Config], None], refusal: str) -> None:
    @lw.template("tests_mistaken")
    def mistaken(cfg: Config, n: int, mistake: int) -> lw.Schedule:
        x = te.placeholder((n,), name="x")
        y = topi.nn.relu(x)
        sch = lw.Schedule([x, y], target=cfg.target)
        cfg.define_split("tile", n)
        cfg.define_knob("vec", [0, 1])
        if cfg.is_fallback:
            choose(cfg)
        outer, inner = cfg["tile"].apply(sch, y, sch.get_loops(y)[0])
        if cfg["vec"].val:
            sch.vectorize(y, inner)
            sch.vectorize(y, outer)
        return sch

    with pytest.warns(FallbackWarning, match=f"is used, and not the one that the template chooses for that: {refusal}"):
        mistaken(16, 0, target=TARGET)


def test_fixed_config_by_index_and_by_values() -> None:
    task = made_task()
    values = task.config(77).values
    by_index = template_workloads.matmul(*ARGS, target=TARGET, config=77).pipeline
    assert by_index == template_workloads.matmul(*ARGS, target=TARGET, config=values).pipeline == task.schedule(77)


def test_config_of_the_space_is_one_that_the_task_takes() -> None:
    task = made_task()
    config = task.config_space.get(77)
    assert config.target == task.target and config.index == 77
    assert task.schedule(config) == task.schedule(77) == task.schedule(config.row)


@pytest.mark.parametrize(
    ("config", "error", "sentence"),
    [
        ([1, 99, 1], ConfigError, "a row has a position for each of 6 knobs, got 3"),
        ([0, 99, 0, 0, 0, 0], ConfigError, r"a position of knob 'tile_j' is a number in \[0, 30\), got 99"),
        ([0, 0.5, 0, 0, 0, 0], ConfigError, "got 0.5"),
        ("3", TypeError, "a config is an index, a value for each knob, a row or a Config, got '3'"),
        (None, TypeError, "got None"),
        (10**6, IndexError, r"a config index is in \[0, \d+\), got 1000000"),
    ],
)
def test_config_that_is_none_is_one_sentence(config: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        made_task().config(config)


def test_pick_best_keeps_one_record_of_each_workload_and_merges(tuned: Tuned, tmp_path: Path) -> None:
    _, path, result, _ = tuned
    out = tmp_path / "best.jsonl"
    assert lw.pick_best(path, out) == [result.best] == load(out)
    slower = [r for r in result.trials if r is not result.best][:1]
    append(path.with_suffix(".other"), slower)
    assert lw.pick_best(path.with_suffix(".other"), out) == [result.best]


def test_pick_best_keeps_the_best_of_each_template_too(tuned: Tuned, tmp_path: Path) -> None:
    task, path, result, _ = tuned
    faster = replace(result.best, sketch="cpu/tiles", template={}, times_s=(result.best.time_s / 2,))
    out = tmp_path / "best.jsonl"
    assert lw.pick_best([path, faster], out) == [faster, result.best]
    assert lw.pick_best(path, out) == [faster, result.best] == lw.pick_best(out)
    assert chosen(lw.apply_history_best(out), task).index == result.best.template["index"]
    assert lw.apply_history_best(out).query(task.target, task) == task.best_record(out) == faster


@pytest.mark.usefixtures("nothing_said_yet")
def test_pretuned_set_is_looked_up_last_and_tells_where_it_comes_from(
    tuned: Tuned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, path, result, _ = tuned
    monkeypatch.setattr(pretuned, "FOLDER", tmp_path)
    pretuned.index.cache_clear()
    try:
        with pytest.warns(FallbackWarning):
            template_workloads.matmul(*ARGS, target=TARGET)
        pretuned.add(path, "here", tmp_path)
        assert pretuned.lookup(task.target, task.compute_dag.hash) == result.best
        (origin,) = pretuned.provenance()
        assert origin.device == result.best.device and origin.versions["numpy"] == np.__version__
        assert origin.date.startswith("20") and origin.time_s == result.best.time_s
        assert template_workloads.matmul(*ARGS, target=TARGET).pipeline == result.best.schedule
        other = min((r for r in result.trials if r != result.best), key=lambda r: r.time_s)
        with lw.apply_history_best([other]):
            assert template_workloads.matmul(*ARGS, target=TARGET).pipeline == other.schedule
    finally:
        pretuned.index.cache_clear()


def test_shipped_pretuned_records_are_whole() -> None:
    for file in pretuned.files():
        for line in file.read_text().splitlines():
            record = Record.from_json(line)
            assert record.ok and record.device and record.timestamp and record.versions["xdsl"]


def test_measure_option_reaches_the_measurer() -> None:
    option = lw.measure_option(lw.LocalBuilder(timeout=7, n_parallel=3), lw.LocalRunner(5, 6, 7, 8, 0.25))
    options = option.options(made_task().measure_options())
    assert (options.build_timeout_s, options.builders, options.run_timeout_s) == (7, 3, 8)
    timing = options.timing
    assert (timing.number, timing.repeat, timing.min_repeat_ms, timing.cooldown_s) == (5, 6, 7.0, 0.25)
    with pytest.raises(TypeError, match="runner must be a LocalRunner, got str"):
        lw.measure_option(runner="local")  # type: ignore[arg-type]


def test_a_builder_and_a_runner_are_taken_wherever_something_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Asked(Exception):
        pass

    def measurer(options: MeasureOptions) -> NoReturn:
        seen.append(options)
        raise Asked

    for home in ("search.tune.loop", "search.tune.scheduler"):
        monkeypatch.setattr(f"loopwright.{home}.Measurer", measurer)
    task, builder = made_task(), lw.LocalBuilder(n_parallel=3)
    runner = lw.LocalRunner(repeat=7, flush_bytes=64, check_correctness=False)
    option, options = lw.measure_option(builder, runner), lw.TuningOptions(progress=False)
    scheduler = lw.TaskScheduler([task])
    for tuned in (task, task.search_task, scheduler):
        for given in ({"builder": builder, "runner": runner}, {"measure": option}):
            with pytest.raises(Asked):
                tuned.tune(options, **given)
        with pytest.raises(TypeError, match="measure says how to measure already: give that, or builder and runner"):
            tuned.tune(options, option, runner=runner)
    assert seen == [option.options(task.measure_options())] * 6
    assert (seen[0].builders, seen[0].timing.repeat, seen[0].timing.flush_bytes, seen[0].check) == (3, 7, 64, False)
    assert seen[0].timing.min_repeat_ms == task.measure_options().timing.min_repeat_ms  # as usual


def test_without_a_check_any_output_passes(tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones(8, np.float32))
    files = [str(tmp_path / "ones.npy")]
    for check_correctness in (True, False):
        option = lw.measure_option(runner=lw.LocalRunner(check_correctness=check_correctness))
        with Measurer(option.options(MeasureOptions("fake_backend", builders=1))) as measurer:
            measurer.use(MeasureTask("text", [], [np.ones(8, np.float32)], [Tolerance(1e-3, 1e-3)]))
            rule = measurer._tasks.message("runner", 1, {})
        buffers = Buffers([], files, rule["tolerances"])
        for value in (np.nan, np.inf, 2.0):
            buffers.outputs[0].fill(value)
            assert (buffers.wrong() is None) is not check_correctness
        assert buffers.memory_violation() is None


def test_record_of_a_template_is_one_line_of_the_common_format(tuned: Tuned) -> None:
    _, path, _, _ = tuned
    line = json.loads(path.read_text().splitlines()[0])
    assert line["sketch"] == "template:tests_matmul" and line["schema"] == 1
    assert set(line["template"]) == {"name", "args", "index", "config"}
