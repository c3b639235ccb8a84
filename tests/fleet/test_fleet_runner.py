"""Candidates that run on a fleet: every one is a result once, whatever happens to devices and tracker."""

import gc
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_backend
import pytest
from fake_space import FakeSpace
from fleets import KEY, fake_fleet, options_on
from patience import PATIENCE_S, wait_until

import loopwright as lw
from loopwright.cli import main
from loopwright.fleet.local_fleet import LocalFleet
from loopwright.fleet.protocol import PROTOCOL, FleetError
from loopwright.search.measure.measurer import Measurement, Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.records.file import ErrorCode
from loopwright.search.tune.loop import TuningTask, tune

pytestmark = pytest.mark.usefixtures("quick_measuring")


@pytest.fixture(scope="module")
def fleet(quick_measuring: None) -> Iterator[LocalFleet]:
    with fake_fleet(2) as running:
        yield running


def doubling(n: int = 64) -> MeasureTask:
    source, expected = fake_backend.data(n)
    return MeasureTask("doubling", [source], [expected], [EXACT])


def overlaps(found: list[Measurement]) -> list[tuple[float, float]]:
    """Ends of jobs on a device, and the beginning of the next one there before it."""
    spans = sorted((str(m.fleet["device"]), m.fleet["started"], m.fleet["ended"]) for m in found if m.fleet)
    return [(a[2], b[1]) for a, b in pairwise(spans) if a[0] == b[0] and b[1] < a[2]]


def test_every_candidate_is_a_result_and_no_two_overlap_on_a_device(fleet: LocalFleet) -> None:
    with Measurer(options_on(fleet)) as measurer:
        assert (measurer.device, measurer.devices) == ("fake device", 2)
        measurer.use(doubling())
        found = measurer.measure([f"time=0.001 n={n}" for n in range(12)] + ["time=1 run=wrong", "build=refuse"])
    assert [m.error for m in found] == [ErrorCode.OK] * 12 + [ErrorCode.WRONG_RESULT, ErrorCode.INSTANTIATION_ERROR]
    assert {m.fleet["device"] for m in found[:12]} == {"d0", "d1"} and not overlaps(found)
    assert len({m.job for m in found}) == 14


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("time=1 run=segv", ErrorCode.RUNTIME_ERROR),
        ("time=1 run=hang", ErrorCode.RUN_TIMEOUT),
        ("time=1 run=lost", ErrorCode.DEVICE_LOST),
    ],
)
def test_a_candidate_that_ends_its_runner_is_its_record_and_the_device_goes_on(
    fleet: LocalFleet, schedule: str, error: ErrorCode
) -> None:
    with Measurer(replace(options_on(fleet), run_timeout_s=0.5)) as measurer:
        measurer.use(doubling())
        (bad,) = measurer.measure([schedule])
        assert bad.error is error and not bad.times_s
        assert all(m.ok for m in measurer.measure([f"time=0.002 after={schedule[-4:]}{n}" for n in range(4)]))


def test_the_laps_of_a_run_off_are_on_one_device(fleet: LocalFleet) -> None:
    with Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        found = measurer.measure([f"time=0.00{n}" for n in range(1, 5)], fresh=True, laps=3)
    assert [len(m.times_s) for m in found] == [3] * 4 and len({m.fleet["device"] for m in found}) == 1


def test_data_of_a_task_goes_to_each_device_once(fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    for device in fleet.devices:
        keep = device._keep
        monkeypatch.setattr(device, "_keep", lambda order, keep=keep: (kept.append(order["task"]), keep(order))[1])
    for _ in range(2):
        with Measurer(options_on(fleet)) as measurer:
            measurer.use(doubling(77))
            assert all(m.ok for m in measurer.measure([f"time=0.003 n={n}" for n in range(6)]))
    assert 2 <= len(kept) <= 4, "a tuner does not know what another one sent"
    for device in fleet.devices:
        device._kept.clear()
    with Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling(77))
        assert measurer.measure(["time=0.003"])[0].ok
        for device in fleet.devices:  # as where others' tasks took its place
            device._kept.clear()
        assert all(m.ok for m in measurer.measure([f"time=0.003 m={n}" for n in range(4)]))


def test_records_of_a_search_name_device_and_time(fleet: LocalFleet, tmp_path: Path) -> None:
    options = lw.TuningOptions(
        num_measure_trials=40, batch_size=8, records=tmp_path / "r.jsonl", progress=False, cost_model="random"
    )
    source, expected = fake_backend.data(16)
    task = TuningTask("t", "key", "text", "fake", [FakeSpace()], "time=0.002", [source], [expected], [EXACT])
    result = tune(task, options, options_on(fleet))
    assert len(result.trials) == 40 and result.best.ok
    ran = [r for r in result.trials if r.fleet and not r.reused]
    assert {r.fleet["device"] for r in ran} == {"d0", "d1"}
    assert all(r.fleet["started"] <= r.fleet["ended"] for r in ran)


@pytest.mark.parametrize("bad", ["", "a b", "x" * 65, "../x"])
def test_a_key_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"^a key is up to 64 letters"):
        lw.FleetRunner(bad, "127.0.0.1:9190")


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("--key", "h200"), "no device 'h200' at "),
        (("--key", KEY, "--tracker", "127.0.0.1:1"), "no tracker can be reached at 127.0.0.1:1 (Connection refused)"),
    ],
)
def test_a_command_asks_for_the_fleet_before_all_else(
    fleet: LocalFleet,
    place: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before this machine is measured and the task is made, which take seconds."""
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "matmul", "--tracker", fleet.tracker, *place]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"loopwright: {sentence}") and said.err.count("\n") == 1 and not said.out
    assert not [*tmp_path.iterdir()]


def test_bad_input_is_one_sentence(fleet: LocalFleet) -> None:
    base = options_on(fleet)

    def measured(key: str, tracker: str) -> None:
        with Measurer(lw.FleetRunner(key, tracker).options(base)):
            raise AssertionError("there is no such fleet")

    with pytest.raises(FleetError, match=rf"^no device 'h200' at {fleet.tracker}; registered: fake \(`loopwright"):
        measured("h200", fleet.tracker)
    with pytest.raises(FleetError, match=r"^no tracker can be reached at 127.0.0.1:1 \(Connection refused\)"):
        measured(KEY, "127.0.0.1:1")
    with pytest.raises(FleetError, match=r"^a tracker is given as HOST:PORT, as in 127.0.0.1:9190, got 'here'$"):
        measured(KEY, "here")
    with pytest.raises(FleetError, match=r"^device 'd0' runs kernels for fake_backend, these are for cuda: "):
        other = replace(base, backend="loopwright.backends.cuda.device")
        with Measurer(lw.FleetRunner(KEY, fleet.tracker).options(other)):
            pass


def test_another_protocol_is_refused_by_both_sides(fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    device = fleet.devices[0]
    assert device.serve({"op": "run", "protocol": 99, "version": "9.9"}) == {
        "status": "refused",
        "message": f"the tuner is loopwright 9.9 with protocol 99, device 'd0' is loopwright {lw.__version__} with "
        f"protocol {PROTOCOL}: install the same version on both",
    }
    monkeypatch.setattr("loopwright.fleet.devices.PROTOCOL", PROTOCOL + 1)
    with pytest.raises(
        FleetError,
        match=rf"^device 'd0' is loopwright .* with protocol {PROTOCOL}, this is loopwright .* protocol {PROTOCOL + 1}",
    ):
        Measurer(options_on(fleet)).__enter__()


def test_a_search_goes_on_when_the_tracker_has_restarted() -> None:
    with fake_fleet(2) as fleet, Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        numbers = measurer.submit([f"time=0.004 n={n}" for n in range(30)])
        results = measurer.results()
        found = [next(results) for _ in range(5)]
        fleet.restart_tracker()
        found += results
        assert sorted(m.job for m in found) == numbers and all(m.ok for m in found) and not overlaps(found)


@pytest.mark.slow(1.2)
def test_a_device_that_fails_by_itself_is_set_aside_and_comes_back(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    with fake_fleet(1, aside_s=2.0) as fleet, Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        bad = f"time=0.004 unless={broken} then=disk"
        (found,) = measurer.measure([bad])
        assert found.error is ErrorCode.UNKNOWN and "No space left on device" in found.message
        assert wait_until(lambda: fleet.devices[0].aside)
        assert (
            fleet.devices[0]
            .statistics["aside"]
            .startswith(
                "device 'd0' is set aside after 3 jobs in a row that failed for its sake, and tried again after 2 s: "
            )
        )
        broken.unlink()
        assert measurer.measure([bad + " again=1"])[0].ok and not fleet.devices[0].aside


def test_what_waits_at_a_device_that_is_set_aside_goes_elsewhere() -> None:
    """It stayed there until that device was tried again."""
    with fake_fleet(2, aside_s=3600.0) as fleet, Measurer(options_on(fleet)) as measurer:
        device, go_on = fleet.devices[0], threading.Event()
        serve = device._run

        def slowly(job: dict[str, Any]) -> dict[str, Any]:
            assert go_on.wait(PATIENCE_S)
            return serve(job)

        device._run = slowly  # type: ignore[method-assign,assignment]
        measurer.use(doubling())
        numbers = measurer.submit([f"time=0.001 n={n}" for n in range(16)])
        assert wait_until(lambda: lw.fleet_status(fleet.tracker).devices[0].waiting > 0)
        device._set_aside("it is to rest")
        assert wait_until(lambda: bool(lw.fleet_status(fleet.tracker).devices[0].aside))
        go_on.set()
        found = list(measurer.results())
        assert sorted(m.job for m in found) == numbers and all(m.ok for m in found)
        assert device.aside and device.statistics["done"] == 0


@pytest.mark.slow(1.2)
def test_two_tuners_share_a_device_in_turn_and_priority_goes_first() -> None:
    order: list[str] = []
    with fake_fleet(1) as fleet:
        serve = fleet.devices[0]._run

        def noted(job: dict[str, Any]) -> dict[str, Any]:
            order.append(job["artifact"].decode().partition("who=")[2])
            return serve(job)

        fleet.devices[0]._run = noted  # type: ignore[method-assign,assignment]
        with Measurer(options_on(fleet)) as one, Measurer(options_on(fleet)) as two:
            for measurer, who in ((one, "a"), (two, "b")):
                measurer.use(doubling())
                measurer.submit([f"time=0.005 n={n} who={who}" for n in range(60)])
            found = [[m.ok for m in measurer.results()] for measurer in (one, two)]
    assert found == [[True] * 60] * 2
    both = [who for who in order if who]
    shared = both[both.index("b") : len(both) - both[::-1].index("a")]
    assert 0.45 <= shared.count("a") / len(shared) <= 0.55


def test_jobs_that_no_device_takes_are_pending_in_the_status() -> None:
    with fake_fleet(1) as fleet, Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        assert measurer.measure(["time=0.001"])[0].ok
        fleet.devices[0].stopped.set()
        assert wait_until(lambda: not lw.fleet_status(fleet.tracker).devices)
        measurer.submit(["time=0.001 n=1", "time=0.001 n=2"])
        assert wait_until(lambda: [q.pending for q in lw.fleet_status(fleet.tracker).queues] == [2])
        (queue,) = lw.fleet_status(fleet.tracker).queues
        assert (queue.key, queue.total, queue.free) == (KEY, 0, 0)
        assert str(lw.fleet_status(fleet.tracker)).startswith("key   total  free  pending\nfake  0      0     2\n")


@pytest.mark.slow(1.2)
def test_memory_does_not_grow_with_jobs() -> None:
    """Dask kept each job's task and kernel in its logs of 1000 steps, and a record of it for ever."""

    def kept() -> int:
        gc.collect()
        return sum(str(type(each).__module__).startswith(("dask", "distributed")) for each in gc.get_objects())

    with fake_fleet(1) as fleet, Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        measurer.measure([f"time=0.001 n={n}" for n in range(150)])
        before = kept()
        measurer.measure([f"time=0.001 n={n}" for n in range(150, 750)])
        assert (
            kept() - before < 300
        )  # half an object a job; logs of 50 messages, several jobs in each, hold more or fewer


@pytest.mark.parametrize("fails", ["submit", "exception"])
def test_a_job_that_is_lost_with_the_connection_is_sent_again(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search waited for ever for one whose error could not be asked for in time."""
    failures = iter([TimeoutError("the loop is late")] * 3)
    with fake_fleet(1) as fleet, Measurer(options_on(fleet)) as measurer:
        link = measurer._runners._link  # type: ignore[union-attr]

        def failing(*arguments: Any, again: Any) -> Any:
            if (failure := next(failures, None)) is not None:
                raise failure
            return again(*arguments)

        def late(*_: Any, timeout: float) -> Any:
            raise TimeoutError

        if fails == "submit":
            monkeypatch.setattr(link, "_submitted", partial(failing, again=link._submitted))
        else:
            monkeypatch.setattr(fleet.devices[0], "serve", partial(failing, again=fleet.devices[0].serve))
            monkeypatch.setattr("distributed.Future.exception", late)
        measurer.use(doubling())
        assert measurer.measure(["time=0.001"])[0].ok
