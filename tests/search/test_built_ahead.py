"""Candidates that are begun while workers start are built once, and wait for who submits them."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from order_backend import noted
from patience import PATIENCE_S, wait_until

from loopwright.search.measure import runners
from loopwright.search.measure.jobs import Jobs
from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.process import WorkerProcess
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records.file import ErrorCode

OPTIONS = MeasureOptions(
    "order_backend",
    builders=2,
    build_timeout_s=PATIENCE_S,
    run_timeout_s=PATIENCE_S,
    timing=TimingSettings(repeat=1, min_repeat_ms=0.0),
    overlap=True,
)
pytestmark = pytest.mark.usefixtures("forked_workers")


def doubling(workload: str = "workload") -> MeasureTask:
    source = np.arange(64, dtype=np.float32)
    return MeasureTask(workload, [source], [source * 2], [Tolerance(1e-6, 1e-6)])


def schedule(log: Path, name: str, more: str = "") -> str:
    return f"time=0.001 path={log} name={name} {more}"


@contextlib.contextmanager
def begun(schedules: Sequence[str], options: MeasureOptions = OPTIONS) -> Iterator[Measurer]:
    measurer = Measurer(options)
    measurer.meanwhile = lambda: measurer.begin("workload", schedules)
    with measurer:
        yield measurer


def test_what_was_begun_is_built_before_it_is_submitted_and_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    early = [schedule(log, name) for name in "abc"]
    with begun(early) as measurer:
        wait_until(lambda: sorted(noted(log)) == ["build a", "build b", "build c"])
        assert measurer.pending == 0
        measurer.use(doubling())
        found = measurer.measure([early[1], schedule(log, "d"), early[0]])
        assert [each.schedule for each in found] == [early[1], schedule(log, "d"), early[0]]
        assert all(each.ok and each.build_s > 0 for each in found) and measurer.pending == 0
        assert sorted(noted(log)) == [*(f"build {name}" for name in "abcd"), "run a", "run b", "run d"]
        (again,) = measurer.measure([early[1]], fresh=True)
        assert again.ok and noted(log).count("build b") == 2


def test_what_is_submitted_while_a_builder_is_at_it_waits_for_that(tmp_path: Path) -> None:
    log = tmp_path / "log"
    early = [schedule(log, "a", "after=build_z"), schedule(log, "b", "after=build_z"), schedule(log, "c")]
    with begun(early) as measurer:
        measurer.use(doubling())
        measurer.submit(early)
        assert measurer.pending == 3
        log.write_text("build z\n")
        assert [each.ok for each in measurer.results()] == [True] * 3
        assert sorted(noted(log)) == [
            f"{what} {n}" for what in ("build", "run") for n in "abcz" if (what, n) != ("run", "z")
        ]


def test_one_that_could_not_be_built_says_so_when_it_is_submitted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    early = [schedule(log, "a", "build=raise"), schedule(log, "b", "build=killed"), schedule(log, "c")]
    with begun(early) as measurer:
        wait_until(lambda: noted(log) == ["build c"])
        assert measurer.pending == 0
        measurer.use(doubling())
        raised, killed, right = measurer.measure(early)
        assert raised.error is killed.error is ErrorCode.COMPILE_ERROR and right.ok
        assert "frobnicate" in raised.message and "SIGKILL" in killed.message


def test_a_tiny_kernel_is_measured_before_what_was_begun_runs(tmp_path: Path) -> None:
    log, tiny = tmp_path / "log", tmp_path / "tiny"
    early = [schedule(log, name) for name in "abcd"]
    with begun(early, replace(OPTIONS, preflight=lambda: (doubling("tiny"), schedule(tiny, "0")))) as measurer:
        assert noted(tiny) == ["build 0", "run 0"]
        measurer.use(doubling())
        assert all(each.ok for each in measurer.measure(early))
        assert all(noted(log).count(f"{what} {name}") == 1 for what in ("build", "run") for name in "abcd")


@pytest.mark.parametrize("overlap", [False, True])
def test_a_builder_may_start_after_the_tiny_kernel_was_measured(
    overlap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny, measured = tmp_path / "tiny", tmp_path / "measured"
    start, ran, started = runners.start_process, Jobs.ran, list[str]()

    def start_late(role: str, options: MeasureOptions, folder: Path, *rest: Any) -> WorkerProcess:
        started.append(role)
        env = {"STARTS_AFTER": str(measured)} if started.count("builder") == OPTIONS.builders else {}
        return start(role, replace(options, env=env), folder, *rest)

    def note_run(jobs: Jobs, *result: Any) -> None:
        ran(jobs, *result)
        measured.touch()

    monkeypatch.setattr(runners, "start_process", start_late)
    monkeypatch.setattr(Jobs, "ran", note_run)
    preflight = doubling("tiny"), schedule(tiny, "0")
    with Measurer(replace(OPTIONS, overlap=overlap, preflight=lambda: preflight)) as measurer:
        assert measurer.builders == 2 and not measurer.pending
        assert noted(tiny) == ["build 0", "run 0"]


def test_of_another_task_nothing_that_was_begun_is_used(tmp_path: Path) -> None:
    log = tmp_path / "log"
    early = [schedule(log, "a"), schedule(log, "b", "after=build_z"), schedule(log, "c", "after=build_z")]
    with begun([*early, schedule(log, "d")]) as measurer:
        wait_until(lambda: "build a" in noted(log))
        measurer.use(doubling("another workload"))
        log.write_text(log.read_text() + "build z\n")
        assert all(each.ok for each in measurer.measure(early)) and measurer.pending == 0
        assert noted(log).count("build a") == 2 and "build d" not in noted(log)
        measurer.use(doubling())
        assert measurer.measure([early[0]])[0].ok


def test_once_all_is_withdrawn_nothing_is_built_for_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    early = [schedule(log, name, "after=build_z") for name in "abcd"]
    with begun(early) as measurer:
        wait_until(lambda: sum(each.job is not None for each in measurer._workers) == 2)  # both builders
        measurer.use(doubling())
        assert len(measurer.submit(early[:1])) == 1
        measurer.withdraw()
        assert not list(measurer.results())  # without waiting for builders
        log.write_text("build z\n")
        assert measurer.measure([schedule(log, "e")])[0].ok
        wait_until(lambda: not any(each.job is not None for each in measurer._workers))
        assert not {"build c", "build d", "run a", "run b"} & set(noted(log))


def test_a_task_without_a_workload_is_no_task_that_was_begun(tmp_path: Path) -> None:
    with Measurer(replace(OPTIONS, builders=0)) as measurer:
        measurer.use(doubling(""))
        kernel = f"\n{schedule(tmp_path / 'log', 'a')}".encode()
        assert measurer.run(kernel, TimingSettings(repeat=1, min_repeat_ms=0.0), None).ok


def test_nothing_is_begun_where_builds_and_runs_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with begun([schedule(log, "a")], replace(OPTIONS, overlap=False)) as measurer:
        measurer.use(doubling())
        assert measurer.measure([schedule(log, "b")])[0].ok
        assert noted(log) == ["build b", "run b"]


@pytest.mark.parametrize("overlap", [True, False])
def test_others_are_wanted_until_workers_are_there(tmp_path: Path, overlap: bool) -> None:
    """Also where more wait for builders than these are at, which they would be given more of later."""
    log = tmp_path / "log"
    held = [schedule(log, str(n), "after=build_z") for n in range(9)]
    measurer, wanted = Measurer(replace(OPTIONS, overlap=overlap)), []
    measurer.meanwhile = lambda: wanted.append(measurer.begin("workload", held))
    with measurer:
        assert wanted == [not overlap] and not measurer.begin("workload", [])
        log.write_text("build z\n")
