"""Measuring survives whatever a candidate does, reports it, and leaves no process behind."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from order_backend import noted, runs_noted
from patience import PATIENCE_S, hurried, wait_until
from process_limits import limited
from processes import alive, marked_processes

from loopwright.search.measure.measurer import MeasureError, MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.process import WorkerStartError
from loopwright.search.measure.scratch import sweep
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records.file import ErrorCode

OPTIONS = MeasureOptions(
    "fake_backend",
    builders=1,
    build_timeout_s=PATIENCE_S,
    run_timeout_s=PATIENCE_S,
    timing=TimingSettings(repeat=3, min_repeat_ms=0.0, stop_factor=2.0),
)


OVERLAPPING = replace(OPTIONS, overlap=True)
FORKED = pytest.mark.usefixtures("forked_workers")
"""Of tests of what candidates do, and in which order; those of processes start them as everybody does."""


def doubling_task(n: int = 64) -> MeasureTask:
    source = np.arange(n, dtype=np.float32)
    return MeasureTask("workload", [source], [source * 2], [Tolerance(1e-6, 1e-6)])


@contextlib.contextmanager
def measuring(options: MeasureOptions = OPTIONS, task: MeasureTask | None = None) -> Iterator[Measurer]:
    with Measurer(options) as measurer:
        measurer.use(task or doubling_task())
        yield measurer


@FORKED
def test_good_candidates_are_timed_and_slow_ones_stopped() -> None:
    with measuring() as measurer:
        fast, slow, near = measurer.measure(["time=0.001", "time=0.01", "time=0.0015"])
        assert measurer.device == "fake device" and measurer.versions["lw-fake"] == "1"
        assert fast.times_s == pytest.approx((0.001,) * 3) and fast.ok and not fast.stopped_early
        assert slow.ok and slow.stopped_early and slow.times_s == (0.01,)
        assert not near.stopped_early
        assert measurer.best_s == pytest.approx(0.001)
        assert measurer.measure(["time=0.02"], fresh=True)[0].times_s == pytest.approx((0.02,) * 3)


MISBEHAVIOUR = [
    ("build=raise", ErrorCode.COMPILE_ERROR, "no such instruction: frobnicate"),
    ("build=assert", ErrorCode.UNKNOWN, "our bug"),
    ("run=disk", ErrorCode.UNKNOWN, "No space left on device"),
    ("build=killed", ErrorCode.COMPILE_ERROR, "killed by SIGKILL"),
    ("run=raise", ErrorCode.RUNTIME_ERROR, "launch failed"),
    ("run=segv", ErrorCode.RUNTIME_ERROR, "killed by SIGSEGV"),
    ("run=exit", ErrorCode.RUNTIME_ERROR, "exited with status 3"),
    ("build=sysexit", ErrorCode.COMPILE_ERROR, "it called sys.exit(3)"),
    ("run=sysexit", ErrorCode.RUNTIME_ERROR, "it called sys.exit(3)"),
    ("run=twice", ErrorCode.RUNTIME_ERROR, "the kernel started a process"),
    ("run=lost", ErrorCode.DEVICE_LOST, "fell off the bus"),
    ("run=wrong", ErrorCode.WRONG_RESULT, "64 of 64 elements differ"),
    ("run=partial", ErrorCode.WRONG_RESULT, "1 of them NaN"),
    ("run=accumulate", ErrorCode.WRONG_RESULT, "64 of 64"),
    ("run=racy", ErrorCode.WRONG_RESULT, "after repeated runs"),
    ("run=overrun", ErrorCode.WRONG_RESULT, "outside of argument 1"),
    ("run=dirty", ErrorCode.WRONG_RESULT, "changed its input 0"),
]


@FORKED
def test_misbehaviour_becomes_a_code_and_spares_the_next_candidate() -> None:
    with measuring() as measurer:
        schedules = [
            s for n, (text, _, _) in enumerate(MISBEHAVIOUR) for s in (f"{text} time=0.001", f"time=0.001 after={n}")
        ]
        found = measurer.measure(schedules)
        for (text, code, words), bad, good in zip(MISBEHAVIOUR, found[::2], found[1::2], strict=True):
            assert (bad.error, bad.times_s) == (code, ()), text
            assert words in bad.message, text
            assert good.ok, text


@FORKED
def test_refused_schedules_are_instantiation_errors() -> None:
    primitive = pytest.importorskip("loopwright.passes.primitive")
    assert issubclass(primitive.ScheduleError, Exception)
    with measuring() as measurer:
        (found,) = measurer.measure(["build=refuse"])
        assert found.error is ErrorCode.INSTANTIATION_ERROR


def test_hangs_end_at_their_timeouts() -> None:
    with measuring() as measurer:
        with hurried(measurer, build_timeout_s=0.3):
            found = measurer.measure(["build=hang"])
        with hurried(measurer, run_timeout_s=0.3):
            found += measurer.measure(["run=hang time=1", "run=spin time=1"])
        found += measurer.measure(["time=0.001"])
        codes = [ErrorCode.COMPILE_TIMEOUT, ErrorCode.RUN_TIMEOUT, ErrorCode.RUN_TIMEOUT, ErrorCode.OK]
        assert [m.error for m in found] == codes
        assert "longer than 0.3 s" in found[1].message and found[1].run_s >= 0.3


@pytest.mark.slow(1.2)
def test_children_of_a_builder_die_with_it(tmp_path: Path) -> None:
    with measuring(replace(OPTIONS, env={"LOOPWRIGHT_TEST": str(tmp_path)})) as measurer:
        with hurried(measurer, build_timeout_s=1.0):
            assert measurer.measure(["build=child"])[0].error is ErrorCode.COMPILE_TIMEOUT
        assert measurer.measure(["time=0.001"])[0].ok
        assert len(marked_processes(f"LOOPWRIGHT_TEST={tmp_path}")) == 4, "a builder, a runner, and their guards"


@pytest.mark.slow(1.2)
def test_a_worker_killed_while_idle_costs_no_candidate() -> None:
    with measuring() as measurer:
        for pid in measurer.pids:
            os.kill(pid, signal.SIGKILL)
        assert [m.ok for m in measurer.measure(["time=0.001", "time=0.002"])] == [True, True]


@pytest.mark.parametrize("role", ["builder", "runner"])
def test_a_worker_killed_at_work_from_outside_gets_a_second_chance(role: str, tmp_path: Path) -> None:
    with measuring(OVERLAPPING) as measurer:
        begun, kind = tmp_path / "begun", "build" if role == "builder" else "run"
        assert measurer.measure(["time=0.01"])[0].ok  # the task is taken over
        measurer.submit([f"{kind}=hang_at_first path={begun} time=0.001"])
        worker: Any = next(w for w in measurer._workers if w.role == role)
        assert wait_until(begun.exists)
        os.kill(worker.pid, signal.SIGKILL)
        (found,) = measurer.results()
        assert found.ok and worker.pid not in measurer.pids


def test_every_error_code_is_tested_for() -> None:
    tested = {code for _, code, _ in MISBEHAVIOUR}
    elsewhere = {
        ErrorCode.OK,
        ErrorCode.INSTANTIATION_ERROR,  # test_refused_schedules_are_instantiation_errors
        ErrorCode.COMPILE_TIMEOUT,  # test_hangs_end_at_their_timeouts
        ErrorCode.RUN_TIMEOUT,
    }
    assert tested | elsewhere == set(ErrorCode)


@FORKED
def test_a_device_that_stays_lost_ends_measuring() -> None:
    with measuring() as measurer, pytest.raises(MeasureError, match="lost 5 times in a row"):
        measurer.measure([f"run=lost n={n}" for n in range(6)])


@FORKED
def test_equal_artifacts_are_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    same = f"run=log,path={log},time=0.001".replace(",", "\t")
    schedules = [f"{same} build=none n={n}" for n in range(3)]
    with measuring(options=replace(OPTIONS, backend="same_artifact_backend")) as measurer:
        found = measurer.measure(schedules)
        assert [m.reused for m in found] == [False, True, True]
        assert len({m.times_s for m in found}) == 1 and len({m.artifact for m in found}) == 1
        assert log.read_text() == "run\n"
        measurer.measure(schedules[:1], fresh=True)
        assert log.read_text() == "run\nrun\n"


@FORKED
def test_laps_time_candidates_in_turn(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with measuring(replace(OPTIONS, backend="order_backend")) as measurer:
        candidates = [f"name={n} path={log} time=0.00{n} timed=yes" for n in (1, 2)]
        found = measurer.measure(candidates, fresh=True, laps=3)
        assert [len(m.times_s) for m in found] == [3, 3]
        timed = [line.removeprefix("time ") for line in noted(log) if line.startswith("time ")]
        assert [name for name, _ in groupby(timed)] == [*"121212"]
        assert runs_noted(log) == "12"  # checked in the first lap, and kept loaded


@FORKED
def test_races_of_many_load_the_last_of_them_in_each_lap(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with measuring(replace(OPTIONS, backend="order_backend")) as measurer:
        candidates = [f"name={n} path={log} time=0.001" for n in "abcdefghijklmnopqr"]
        assert all(len(m.times_s) == 2 for m in measurer.measure(candidates, fresh=True, laps=2))
        assert runs_noted(log) == "abcdefghijklmnopqrqr"


@FORKED
@pytest.mark.parametrize("overlap", [False, True])
def test_builds_and_runs_overlap_only_on_request(tmp_path: Path, overlap: bool) -> None:
    """Where they are to overlap, the last build waits for the first run, for ever if they do not."""
    options = replace(OPTIONS, backend="order_backend", overlap=overlap)
    log = tmp_path / "log"
    with measuring(options) as measurer:
        schedules = [f"build=sleep name={n} path={log} time=1e-3" for n in range(4)]
        if overlap:
            schedules[-1] += " after=run_0"
        assert all(m.ok for m in measurer.measure(schedules))
    in_turn = [f"{what} {n}" for what in ("build", "run") for n in range(4)]
    assert sorted(noted(log)) == in_turn and (noted(log) != in_turn) == overlap


@FORKED
def test_runs_follow_in_the_order_of_submission_whatever_was_built_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with measuring(replace(OPTIONS, backend="order_backend", builders=2)) as measurer:
        slow, quick = (f"build={how} name={n} path={log} time=1e-3" for n, how in enumerate(("sleep", "at_once")))
        measurer.submit([slow, quick, quick.replace("name=1", "name=2")])
        assert [measurement.schedule[:7] for measurement in measurer.results()] == ["build=s", "build=a", "build=a"]
        assert runs_noted(log) == "012"


@FORKED
def test_work_goes_on_while_the_caller_thinks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with measuring(replace(OVERLAPPING, backend="order_backend")) as measurer:
        measurer.submit([f"name={n} path={log} time=1e-3" for n in range(6)])
        assert wait_until(lambda: len(runs_noted(log)) == 6), "nobody asked for a result yet"
        assert measurer.pending == 6
        assert [m.ok for m in measurer.results()] == [True] * 6 and measurer.pending == 0


@FORKED
def test_what_ends_measuring_reaches_the_caller_of_an_overlapping_one() -> None:
    with measuring(OVERLAPPING) as measurer:
        with pytest.raises(MeasureError, match="lost 5 times in a row"):
            measurer.measure([f"run=lost n={n}" for n in range(6)])
        pids = measurer.pids
    assert not any(map(alive, pids))


@FORKED
def test_overlapping_measurers_end_whatever_they_do() -> None:
    for schedule in ("time=0.001", "run=hang time=1", "build=hang"):
        with measuring(OVERLAPPING) as measurer:
            measurer.submit([schedule] * 3)
            pids = measurer.pids
        assert not any(map(alive, pids))
    with measuring(OVERLAPPING) as measurer:
        with hurried(measurer, run_timeout_s=0.3):
            found = measurer.measure(["run=hang time=1"])
        with hurried(measurer, build_timeout_s=0.3):
            found += measurer.measure(["build=hang"])
        codes = [m.error for m in found + measurer.measure(["run=segv", "time=0.001"])]
        assert codes == [ErrorCode.RUN_TIMEOUT, ErrorCode.COMPILE_TIMEOUT, ErrorCode.RUNTIME_ERROR, ErrorCode.OK]
        measurer.use(doubling_task(n=8))
        assert measurer.measure(["time=0.001"])[0].ok


@FORKED
def test_workers_are_recycled() -> None:
    with measuring(replace(OPTIONS, recycle_after=2)) as measurer:
        before = measurer.pids
        assert all(m.ok for m in measurer.measure([f"time=0.001 n={n}" for n in range(5)]))
        assert not set(before) & set(measurer.pids)


@FORKED
def test_another_task_takes_other_data() -> None:
    with measuring() as measurer:
        assert measurer.measure(["time=0.001"])[0].ok
        measurer.use(doubling_task(n=8))
        assert measurer.best_s is None
        found = measurer.measure(["time=0.001", "run=wrong"])
        assert found[0].ok and not found[0].reused
        assert "8 of 8" in found[1].message


@FORKED
def test_a_backend_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(WorkerStartError, match="'no_such_backend' cannot be imported"),
        measuring(replace(OPTIONS, backend="no_such_backend")),
    ):
        pass
    with (
        pytest.raises(WorkerStartError, match=r"lacks the function.* load, device_name, versions"),
        measuring(replace(OPTIONS, backend="partial_backend")),
    ):
        pass


def test_no_process_stays_after_leaving() -> None:
    with measuring() as measurer:
        pids = measurer.pids
        assert all(map(alive, pids))
    assert not any(map(alive, pids))
    with contextlib.suppress(KeyboardInterrupt), measuring() as measurer:
        pids = measurer.pids
        raise KeyboardInterrupt
    assert not any(map(alive, pids))


def start_parent(
    tmp_path: Path, run: str = "hang", overlap: bool = False, before: str = ""
) -> tuple[subprocess.Popen[str], Path]:
    """Start a program that measures a candidate which never ends, and has begun; the process, its temporary files."""
    begun, temporary = tmp_path / "begun", tmp_path / "tmp"
    temporary.mkdir()
    script = textwrap.dedent(f"""
        import signal, sys
        sys.path[:0] = {sys.path!r}
        from measuring_parent import main
        {before}
        main({run!r}, {overlap}, {str(begun)!r})
        """)
    parent = subprocess.Popen(
        [sys.executable, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "LOOPWRIGHT_TEST": str(tmp_path)},
    )
    assert parent.stdin is not None and parent.stdout is not None
    parent.stdin.write(script)
    parent.stdin.close()
    pids = [int(p) for p in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    assert wait_until(begun.exists)
    return parent, temporary


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(("run", "overlap"), [("hang", False), ("spin", False), ("hang", True)])
@pytest.mark.few(1)
def test_nothing_outlives_its_measurer(tmp_path: Path, number: signal.Signals, run: str, overlap: bool) -> None:
    parent, temporary = start_parent(tmp_path, run, overlap)
    assert len(marked_processes(f"LOOPWRIGHT_TEST={tmp_path}")) == 5, "itself, a builder, a runner, and their guards"
    parent.send_signal(number)
    parent.wait(PATIENCE_S)
    assert parent.stdout is not None
    parent.stdout.close()
    assert parent.returncode == -number
    assert wait_until(lambda: not marked_processes(f"LOOPWRIGHT_TEST={tmp_path}"))
    if number == signal.SIGKILL:
        assert len(list(temporary.iterdir())) == 1
        sweep(temporary)
    assert not list(temporary.iterdir())


@pytest.mark.slow(1.2)
def test_a_program_that_handles_sigterm_is_left_to_it(tmp_path: Path) -> None:
    parent, temporary = start_parent(tmp_path, before="signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))")
    parent.terminate()
    assert parent.wait(PATIENCE_S) == 7
    assert parent.stdout is not None
    parent.stdout.close()
    assert wait_until(lambda: not marked_processes(f"LOOPWRIGHT_TEST={tmp_path}")) and not list(temporary.iterdir())


@FORKED
def test_signals_are_handled_as_before_after_measuring() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    with measuring() as measurer:
        assert measurer.measure(["time=0.001"])[0].ok
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_forked_child_ends_neither_workers_nor_files() -> None:
    with measuring() as measurer:
        child = os.fork()
        if child == 0:
            measurer.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert measurer.measure(["time=0.001"])[0].ok


@pytest.mark.parametrize("role", ["builder", "runner"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_worker_killed_as_it_starts_is_started_again(role: str) -> None:
    with measuring(replace(OPTIONS, recycle_after=1)) as measurer:
        assert measurer.measure(["time=0.001"])[0].ok
        measurer._dispatch()  # starts both anew
        starting: Any = next(w for w in measurer._workers if w.role == role)
        assert not starting.ready
        os.kill(starting.pid, signal.SIGKILL)
        assert measurer.measure(["time=0.002"])[0].ok and starting.pid not in measurer.pids


def test_what_a_worker_cannot_be_started_with_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    for spare in range(2, 14, 3):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, limits[1]))
        try:
            with pytest.raises((WorkerStartError, MeasureError), match="Too many open files"), measuring():
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert len(os.listdir("/proc/self/fd")) == used
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(MeasureError, match="cannot make a temporary folder: No such file or directory; TMPDIR"):
        measuring().__enter__()


@FORKED
def test_builders_are_as_many_as_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    with Measurer(replace(OPTIONS, builders=None)) as measurer:
        assert len(measurer.pids) == 2  # and a runner


@FORKED
def test_data_too_large_for_the_temporary_folder_is_a_sentence() -> None:
    too_large = pytest.raises(MeasureError, match=r"data cannot be written to .*; TMPDIR says where")
    with Measurer(OPTIONS) as measurer, limited(resource.RLIMIT_FSIZE, 10_000), too_large:
        measurer.use(doubling_task(100_000))


@FORKED
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.few(1)
def test_what_is_withdrawn_is_not_begun(tmp_path: Path, overlap: bool) -> None:
    log = tmp_path / "log"
    schedules = [f"time=0.001 run=log path={log} n={n}" for n in range(6)]
    with measuring(replace(OPTIONS, overlap=overlap)) as m:
        with m._changed:  # one that overlaps cannot begin in between
            m.submit(schedules)
            m.withdraw(keep=2)
        assert len(list(m.results())) == 2 and m.pending == 0
        with m._changed:
            m.submit(schedules)
            m.withdraw()
        assert not list(m.results()) and m.pending == 0
        assert len(m.measure(["time=0.5"])) == 1  # and it goes on with others


@FORKED
def test_repeats_timed_in_turn_end_where_they_are() -> None:
    schedules = [f"time=0.00{n}" for n in (1, 2, 3)]
    with measuring() as m:
        calls = []

        def meanwhile() -> None:
            calls.append(1)
            if len(calls) > 12:
                m.withdraw()

        m.submit(schedules, fresh=True, laps=1000)
        found = list(m.results(meanwhile))
        assert len(found) == 3 and all(f.ok and 1 <= len(f.times_s) <= 12 for f in found)


@FORKED
def test_an_answer_that_came_while_the_process_was_stopped_counts() -> None:
    """epoll_wait is interrupted by SIGCONT, and Python's wait then ends at its deadline without another look."""
    with measuring(replace(OPTIONS, run_timeout_s=1.0)) as measurer:
        assert measurer.measure(["time=0.002"])[0].ok  # the task is taken over
        selector: Any = measurer._selector
        select, stops = selector.select, [1.5]

        def stopped(timeout_s: float | None = None) -> Any:
            if stops and any(w.role == "runner" and w.job is not None for w in measurer._workers):
                time.sleep(stops.pop())
                return []
            return select(timeout_s)

        selector.select = stopped
        (found,) = measurer.measure(["time=0.001"])
        assert found.ok and not stops
