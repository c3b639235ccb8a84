"""The run-off of a tuned network: a kernel goes back to its untuned schedule where that is faster among the others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.backends.llvm.device import device_name
from loopwright.graph import network_run_off
from loopwright.graph.network_run_off import FASTER_LAPS, compile_tuned, is_faster, lap_ratios, rivals_of
from loopwright.graph.runtime.executor import Executor
from loopwright.graph.runtime.network import CompiledNetwork
from loopwright.search.measure.local import LocalRunner, MeasureOption, Runner, runs_here
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record, Role

T = "llvm cores=1"
ROWS, DEPTH, COLUMNS = 8, 64, 48


def product() -> lw.Network:
    rng = np.random.default_rng(0)
    net = lw.Network("product")
    weight = net.constant(rng.standard_normal((COLUMNS, DEPTH)).astype(np.float32), "weight")
    net.output(net.relu(net.dense(net.input("x", (ROWS, DEPTH)), weight)))
    return net


def searched(folder: Path) -> tuple[lw.SearchTask, Path, Record]:
    """A file of records, as a search writes it, in which another schedule than the untuned one is chosen."""
    (task,), _ = lw.extract_tasks(product(), T)
    untuned = Record(
        *(task.workload_key, task.compute_dag.hash, str(task.target), "default", (), task.default_schedule),
        times_s=(2e-6, 3e-6),
        build_s=0.5,
        run_s=0.1,
        stopped_early=True,
        device=device_name(),
    )
    tuned = replace(
        untuned, sketch="by hand", schedule="lw-lower-te-to-loop", times_s=(1e-6, 2e-6), stopped_early=False
    )
    path = folder / "records.jsonl"
    rec.append(path, [untuned, tuned, replace(tuned, role=Role.WINNER), replace(untuned, role=Role.FINAL)])
    return task, path, tuned


def schedule_of(network: CompiledNetwork) -> str:
    (kernel,) = network.kernels
    return kernel.schedule


@pytest.mark.parametrize("ratio", [0.8, 1.1])
def test_faster_untuned_schedule_is_taken_and_kept(
    ratio: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, path, tuned = searched(tmp_path)
    seen: list[Executor] = []

    def measured(first: Executor, second: Executor) -> Mapping[str, Sequence[float]]:
        seen.extend((first, second))
        return {task.workload_key: [ratio] * 8}

    monkeypatch.setattr(network_run_off, "lap_ratios", measured)
    before = path.read_text()
    made = compile_tuned(product(), T, path)
    assert len(seen) == 2
    wanted = task.default_schedule if ratio < 1 else tuned.schedule
    assert schedule_of(made) == wanted == schedule_of(lw.compile(product(), T, path))
    if ratio > 1:
        assert path.read_text() == before
        return
    best = rec.best(rec.load(path))
    assert (best.role, best.schedule) == (Role.WINNER, wanted)
    assert best.time_s == pytest.approx(ratio * tuned.time_s)
    assert (best.build_s, best.run_s, best.stopped_early) == (0, 0, False)
    later = replace(tuned, schedule="lw-lower-te-to-loop,canonicalize", times_s=(0.5e-6,))
    rec.append(path, [later])
    assert rec.best(rec.load(path)) == later  # a trial after it competes, by the clock of trials


def test_both_are_timed_in_the_network(tmp_path: Path) -> None:
    task, path, tuned = searched(tmp_path)
    fast, slow = lw.compile(product(), T), lw.compile(product(), T, path)
    assert schedule_of(slow) == tuned.schedule != schedule_of(fast)
    (ratios,) = lap_ratios(slow.executor(), fast.executor()).values()
    assert len(ratios) == network_run_off.LAPS and is_faster(ratios)  # vectors beside single elements
    (backwards,) = lap_ratios(fast.executor(), slow.executor()).values()
    assert not is_faster(backwards)
    (rival,) = rivals_of(slow, rec.load(path), task.target)
    assert (rival.key, rival.untuned.schedule, rival.chosen.schedule) == (
        task.workload_key,
        task.default_schedule,
        tuned.schedule,
    )
    assert not rivals_of(fast, rec.load(path), task.target)
    assert schedule_of(compile_tuned(product(), T, path)) == task.default_schedule


def elsewhere(records: Sequence[Record], target: lw.Target) -> list[list[Record]]:
    """The same records, four times as fast, of a CPU of another name, and of four cores."""
    faster = [replace(record, times_s=tuple(s / 4 for s in record.times_s)) for record in records]
    cores = str(target.with_cores(4))
    return [[replace(r, device="another") for r in faster], [replace(r, target=cores) for r in faster]]


def test_records_of_other_machines_are_neither_judged_nor_in_the_way(tmp_path: Path) -> None:
    task, path, _ = searched(tmp_path)
    own = rec.load(path)
    slow = lw.compile(product(), T, path)
    another, four_cores = elsewhere(own, task.target)
    for file in ([*own, *four_cores], [*four_cores, *own], [*own, *[replace(r, times_s=(1.0,)) for r in another]]):
        (rival,) = rivals_of(slow, file, task.target)
        assert rival.chosen in own and rival.untuned in own
    for file in ([*own, *another], another, four_cores):
        assert not rivals_of(slow, file, task.target)  # it was chosen by their times


def test_most_laps_decide() -> None:
    assert is_faster([0.9, 0.9, 0.9, 2.0]) and FASTER_LAPS == 0.75
    assert not is_faster([0.5, 0.5, 1.0, 1.0]) and not is_faster([]) and not is_faster([1.0, 1.0])


def test_candidates_that_ran_elsewhere_are_left_as_they_are(tmp_path: Path) -> None:
    class Elsewhere(Runner):
        pass

    _, path, tuned = searched(tmp_path)
    elsewhere = MeasureOption(None, Elsewhere())
    assert not runs_here(elsewhere)
    assert runs_here(None) and runs_here(MeasureOption()) and runs_here(MeasureOption(None, LocalRunner()))
    assert schedule_of(compile_tuned(product(), T, path, measure=elsewhere)) == tuned.schedule
