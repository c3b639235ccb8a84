"""The total latency of a network over time, as callbacks write it and its records tell it again."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from fake_tasks import MEASURE, Failing, fake_task, quietly

import loopwright as lw
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record
from loopwright.search.records.network_files import NetworkFileError, TunedNetwork, write_network
from loopwright.search.report.group import duration, groups
from loopwright.search.report.network import NetworkTrace, traces
from loopwright.search.report.write import networks_of, write_report
from loopwright.search.tune.progress import TuningState
from loopwright.search.tune.state import SchedulerState, TaskRow
from loopwright.search.tune.table import HEADINGS
from loopwright.search.tune.task_strategy import TaskHistory

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_the_total_latency_is_written_over_time(tmp_path: Path) -> None:
    path = tmp_path / "total_latency.tsv"
    scheduler = lw.TaskScheduler([fake_task(0), fake_task(1)], callbacks=[lw.callbacks.log_estimated_latency(path)])
    result = scheduler.tune(quietly(32), MEASURE)
    heading, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert heading == ["ElapsedTime(s)", "EstimatedLatency(ms)", "Trials"]
    assert [int(row[2]) for row in rows] == [*range(1, 33)] and rows[0][1] == ""
    latencies = [float(row[1]) for row in rows if row[1]]
    assert len(latencies) >= 24
    assert latencies == sorted(latencies, reverse=True) and latencies[-1] > 0 and math.isfinite(result.latency_s)


def traces_of(path: Path) -> list[NetworkTrace]:
    return traces(networks_of(path), groups(rec.load(path)))


def test_records_of_a_network_tell_its_total_latency_again(tmp_path: Path) -> None:
    """As a callback wrote it while it was tuned, and as the result has it."""
    path, written = tmp_path / "net.jsonl", tmp_path / "total_latency.tsv"
    logged = [lw.callbacks.log_estimated_latency(written)]
    scheduler = lw.TaskScheduler([fake_task(0), fake_task(1)], [3, 0.5], load_records=path, callbacks=logged)
    result = scheduler.tune(quietly(32), MEASURE)
    (trace,) = traces_of(path)
    rows = [line.split("\t") for line in written.read_text().splitlines()[1:]]
    assert [f"{s * 1e3:.6g}" if math.isfinite(s) else "" for s in trace.totals_s] == [row[1] for row in rows]
    assert trace.state.latency_s == result.latency_s
    assert [trace.state.cells(row) for row in trace.state.rows] == [*map(result.state.cells, result.state.rows)]
    assert list(trace.elapsed_s) == sorted(trace.elapsed_s) and trace.elapsed_s[0] == 0.0
    assert trace.summary.startswith(f"Estimated total latency: {duration(result.latency_s)}; 32 trials in ")
    scheduler.tune(quietly(40), MEASURE)  # gone on with, by a call of its own
    (longer,) = traces_of(path)
    assert len(longer.totals_s) == 40 and list(longer.totals_s[:32]) == list(trace.totals_s)


def test_networks_in_one_file_of_records_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    for weights, tasks in (((2, 1), (0, 1)), ((5, 7), (1, 2))):
        lw.TaskScheduler([fake_task(n) for n in tasks], weights, load_records=path).tune(quietly(24), MEASURE)
    found = {tuple(row.weight for row in trace.state.rows): trace for trace in traces_of(path)}
    assert found.keys() == {(2, 1), (5, 7)}
    for shares, trace in found.items():
        best_s = [row.latency_s for row in trace.state.rows]
        assert trace.state.latency_s == sum(w * s for w, s in zip(shares, best_s, strict=True))
    page = write_report(path, tmp_path / "both.html", measure=False).read_text()
    assert page.count("<h2>Network</h2>") == 2 and page.count('aria-label="Estimated total latency"') == 4
    assert '<a href="#w0">t0</a>' in page


def test_of_ways_to_compute_the_same_the_fastest_is_in_the_total(tmp_path: Path) -> None:
    path = tmp_path / "ways.jsonl"
    tasks = [fake_task(0), fake_task(1)]
    lw.TaskScheduler(tasks, [2, 2], load_records=path).tune(quietly(16), MEASURE)
    (known,) = networks_of(path)
    (file,) = tmp_path.glob("*.network.json")
    file.unlink()
    first, second = known.tasks
    file = write_network(path, replace(known, tasks=(first, replace(second, instead_of=first.workload_hash))))
    (trace,) = traces_of(path)
    assert trace.state.latency_s == 2 * min(row.latency_s for row in trace.state.rows)
    assert [row.is_another_way for row in trace.state.rows] == [False, True]
    rows = sorted(trace.state.rows, key=lambda row: row.latency_s)
    shown = [trace.state.cells(row)[HEADINGS.index("Share")] for row in rows]
    assert shown == ["100%", f"({rows[1].latency_s / rows[0].latency_s:.0%})"]
    file.write_text(file.read_text().replace(first.workload_hash + '"]', first.workload_hash + '", 1]'))
    with pytest.raises(NetworkFileError, match="the task that it stands for"):
        TunedNetwork.from_json(file.read_text())


def test_shares_of_the_tasks_that_are_taken_are_the_whole() -> None:
    latencies = [3.0, 2.0, math.inf, 4.0, math.inf]
    tunings = [TuningState(f"t{number}", 0, 1.0) for number in range(5)]
    for number, latency in enumerate(latencies):
        if math.isfinite(latency):
            tunings[number].best = Record("k", "h", "fake", "default", (), "", (latency,))
    rows = [TaskRow(number, 2.0, tuning, TaskHistory(1.0)) for number, tuning in enumerate(tunings)]
    state = SchedulerState(rows, 8, sum, [[0, 1, 2], [3], [4]])
    assert [state.is_taken(row) for row in rows] == [False, True, False, True, True]
    shown = [state.cells(row)[HEADINGS.index("Share")] for row in rows]
    assert shown == ["(50%)", "33%", "-", "67%", "-"]


def test_a_network_with_a_task_that_is_not_tried_has_no_total(tmp_path: Path) -> None:
    path = tmp_path / "net.jsonl"
    tasks = [fake_task(0), fake_task(1, space=Failing(), default="run=raise")]
    lw.TaskScheduler(tasks, load_records=path).tune(quietly(16, cost_model="random"), MEASURE)
    (trace,) = traces_of(path)
    assert all(map(math.isinf, trace.totals_s)) and "total latency: -, as not every task" in trace.summary
    assert "<h3>Total latency</h3>" not in write_report(path, tmp_path / "net.html", measure=False).read_text()


DAMAGED = {
    "not JSON": "{",
    "no object": "[]",
    "no tasks": '{"target": "llvm", "tasks": []}',
    "a weight below 0": '{"target": "llvm", "tasks": [["t", "abc", -1]]}',
    "a weight that is none": '{"target": "llvm", "tasks": [["t", "abc", NaN]]}',
    "a weight that is a truth value": '{"target": "llvm", "tasks": [["t", "abc", true]]}',
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_weights_are_left_out_with_a_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "net.jsonl"
    scheduler = lw.TaskScheduler([fake_task(0)], load_records=path)
    scheduler.tune(quietly(8), MEASURE)
    (tmp_path / "net.x.network.json").write_text(DAMAGED[kind])
    (tmp_path / "net.other.abc.network.json").write_text("of net.other.jsonl")
    with pytest.warns(rec.RecordWarning, match=r"weights of networks are left out: net\.x\.network\.json: a \S+"):
        assert len(networks_of(path)) == 1
