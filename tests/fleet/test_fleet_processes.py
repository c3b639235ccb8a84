"""A fleet of processes, by its commands: a device that is killed costs no trial, and `stop` leaves nothing."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import fake_backend
import pytest
from commands import call
from fake_space import FakeSpace
from fleets import KEY, fake_fleet, options_on
from patience import PATIENCE_S, wait_until
from processes import marked_processes

import loopwright as lw
from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.tune.loop import TuningTask, tune
from loopwright.search.tune.progress import ProgressLines

pytest.importorskip("distributed")
SUPPORT = Path(fake_backend.__file__).parent


@contextlib.contextmanager
def started(*words: str, mark: str, first: Path = SUPPORT) -> Iterator[subprocess.Popen[str]]:
    """A command of a fleet, ended at the end; modules are looked for in `first` before anywhere else."""
    name, _, value = mark.partition("=")
    path = os.pathsep.join([str(first), str(SUPPORT), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-m", "loopwright", "fleet", *words],
        env={**os.environ, "PYTHONPATH": path, name: value},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def line_with(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout is not None
    return next(line for line in process.stdout if words in line)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_measuring")
def test_a_killed_device_costs_no_trial_and_stop_leaves_nothing() -> None:
    mark = f"LOOPWRIGHT_TEST_FLEET={os.getpid()}-{time.time_ns()}"
    with started("tracker", "--port", "0", mark=mark) as tracker:
        at = line_with(tracker, "tracker at ").split()[-1]
        device = ["device", "--tracker", at, "--key", KEY, "--target", "llvm cores=1", "--backend", "fake_backend"]
        with (
            started(*device, "--name", "a", mark=mark) as first,
            started(*device, "--name", "b", mark=mark) as second,
        ):
            for each in (first, second):
                line_with(each, "is registered under")
            runner = lw.FleetRunner(KEY, at, repeat=1, min_repeat_ms=0)
            source, expected = fake_backend.data()
            with Measurer(runner.options(MeasureOptions("fake_backend", builders=1, threads=1))) as measurer:
                measurer.use(MeasureTask("t", [source], [expected], [EXACT]))
                numbers = measurer.submit([f"time=0.001 n={n}" for n in range(40)])
                results = measurer.results()
                found = [next(results) for _ in range(5)]
                first.kill()
                found += results
            assert sorted(m.job for m in found) == numbers and all(m.ok for m in found)
            code, out, _ = call("fleet", "status", "--tracker", at, "--json")
            assert code == 0 and [d["name"] for d in json.loads(out)["devices"]] == ["b"]
            code, out, err = call("fleet", "stop", "--tracker", at)
            assert (code, err) == (0, "") and out == f"ended devices and the tracker at {at}: b\n"
            assert second.wait(60) == 0 and tracker.wait(60) == 0
    assert wait_until(lambda: not marked_processes(mark))


TWO_GPUS = """
from loopwright.backends.cuda import driver
from loopwright.backends.targets import resolve_target
driver.device_count = lambda: 2
driver.target_of_device = lambda number: resolve_target("cuda model=h200")
"""
"""The start-up code (`sitecustomize`) of a Python on a machine that is taken to have two GPUs."""


def visible_gpus(mark: str) -> set[str]:
    """The GPUs that processes of a fleet are shown, where it is not all."""
    found = set()
    for pid in marked_processes(mark):
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            found |= {each.partition("=")[2] for each in variables if each.startswith("CUDA_VISIBLE_DEVICES=")}
    return found


@pytest.mark.slow(1.2)
@pytest.mark.usefixtures("quick_measuring")
def test_each_gpu_of_a_machine_is_a_device_and_an_interrupt_ends_all(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TWO_GPUS)
    mark = f"LOOPWRIGHT_TEST_FLEET={os.getpid()}-{time.time_ns()}"
    words = ["--key", KEY, "--target", "cuda", "--backend", "fake_backend", "--devices", "all", "--name", "host"]
    with (
        fake_fleet(0) as fleet,
        started("device", "--tracker", fleet.tracker, *words, mark=mark, first=tmp_path) as both,
    ):
        assert wait_until(lambda: [d.name for d in lw.fleet_status(fleet.tracker).devices] == ["host-0", "host-1"])
        assert wait_until(lambda: visible_gpus(mark) == {"0", "1"})
        with Measurer(options_on(fleet)) as measurer:
            source, expected = fake_backend.data()
            measurer.use(MeasureTask("t", [source], [expected], [EXACT]))
            found = measurer.measure([f"time=0.001 n={n}" for n in range(20)])
        assert all(m.ok for m in found)
        assert wait_until(lambda: sum(d.done for d in lw.fleet_status(fleet.tracker).devices) == 20)
        assert all(d.done for d in lw.fleet_status(fleet.tracker).devices)
        both.send_signal(signal.SIGINT)
        assert both.wait(PATIENCE_S) == 130
        assert wait_until(lambda: not marked_processes(mark) and not lw.fleet_status(fleet.tracker).devices)


TUNER = """
import sys
import fake_backend
import loopwright as lw
from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT
key, tracker = sys.argv[1:]
remote = lw.request_device(key, tracker)
remote.array([1.0])
source, expected = fake_backend.data()
runner = lw.FleetRunner(key, tracker, repeat=1, min_repeat_ms=0, timeout=2)
with Measurer(runner.options(MeasureOptions("fake_backend", builders=1))) as measurer:
    measurer.use(MeasureTask("t", [source], [expected], [EXACT]))
    measurer.submit([f"time=1 run=hang n={n}" for n in range(50)])
    next(measurer.results())
    print("first", flush=True)
    list(measurer.results())
"""


@pytest.mark.slow(1.2)
@pytest.mark.usefixtures("quick_measuring")
def test_a_killed_tuner_frees_what_it_held() -> None:
    """Its jobs leave the queue, and its arrays the device; they stayed there for 15 minutes."""
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    with fake_fleet(1) as fleet:
        words = [sys.executable, "-c", TUNER, KEY, fleet.tracker]
        with subprocess.Popen(
            words, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
        ) as tuner:
            line_with(tuner, "first")
            sessions = fleet.devices[0]._sessions
            assert len(sessions._held) == 1
            tuner.kill()

        def queues() -> list[tuple[int, int]]:
            return [(queue.free, queue.pending) for queue in lw.fleet_status(fleet.tracker).queues]

        assert wait_until(lambda: queues() == [(1, 0)] and not sessions._held)
        assert lw.fleet_status(fleet.tracker).devices[0].failed < 50


@pytest.mark.parametrize("action", ["device", "builder"])
def test_no_room_for_temporary_files_is_a_sentence(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(root: Path) -> None:
        raise OSError(28, "No space left on device")

    words = {"device": ["--key", KEY, "--target", "llvm", "--backend", "fake_backend"], "builder": []}
    with fake_fleet(0) as fleet:
        monkeypatch.setattr("loopwright.search.measure.scratch._make", full)
        monkeypatch.setattr("loopwright.fleet.register.take_plain_data_only", lambda: None)
        code, out, err = call("fleet", action, "--tracker", fleet.tracker, *words[action])
    said = "cannot make a temporary folder: No space left on device; TMPDIR says where they go"
    assert code == 1 and not out and said in err and err.count("\n") == 1


def test_a_fleet_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's scheduler had a folder beside ours, which stayed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with fake_fleet(1):
        assert all(path.name.startswith("loopwright-scratch-") for path in tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("quick_measuring")
def test_a_full_disk_is_one_sentence_and_the_search_goes_on() -> None:
    source, expected = fake_backend.data(16)
    task = TuningTask("t", "key", "text", "fake", [FakeSpace()], "time=0.002", [source], [expected], [EXACT])
    shown = StringIO()
    options = lw.TuningOptions(
        num_measure_trials=8, records="/dev/full", progress=ProgressLines(shown), cost_model="random"
    )
    with fake_fleet(1) as fleet:
        result = tune(task, options, options_on(fleet))
    assert len(result.trials) == 8 and result.best is not None
    assert shown.getvalue().count("No space left on device") == 1


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (["status", "--tracker", "here"], "a tracker is given as HOST:PORT, as in 127.0.0.1:9190, got 'here'", 2),
        (["status", "--tracker", "127.0.0.1:1"], "no tracker can be reached at 127.0.0.1:1 (Connection refused): ", 1),
        (
            ["tracker", "--host", "0.0.0.0"],
            "0.0.0.0 can be reached by others, and whoever reaches a fleet runs code on",
            2,
        ),
        (["device", "--tracker", "127.0.0.1:1", "--key", "a b", "--target", "llvm"], "a key is up to 64 letters, ", 2),
        (
            ["device", "--tracker", "127.0.0.1:1", "--key", "k", "--devices", "1", "--target", "llvm"],
            "there is no llvm ",
            1,
        ),
        (["device", "--tracker", "127.0.0.1:1", "--key", "k", "--target", "nonsense"], "target 'nonsense'", 2),
    ],
)
def test_bad_input_is_a_sentence(words: list[str], said: str, status: int) -> None:
    code, out, err = call("fleet", *words)
    assert code == status and not out and err.startswith(f"loopwright: {said}") and err.count("\n") == 1


def test_a_device_without_its_driver_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopwright.backends.cuda.driver import MissingCuda

    def missing() -> int:
        raise MissingCuda("no GPU here to run on: CUDA's driver does not load")

    monkeypatch.setattr("loopwright.backends.cuda.driver.device_count", missing)
    code, out, err = call("fleet", "device", "--tracker", "127.0.0.1:1", "--key", "k", "--target", "cuda")
    assert (code, out) == (1, "") and err == "loopwright: no GPU here to run on: CUDA's driver does not load\n"


def test_tuning_names_tracker_and_key_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call("tune", "matmul", "--m", "8", "--n", "8", "--k", "8", "--tracker", "127.0.0.1:1")
    assert (code, err.splitlines()[-1]) == (2, "loopwright: a fleet is named by both --tracker HOST:PORT and --key KEY")
