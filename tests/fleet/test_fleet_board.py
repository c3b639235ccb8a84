"""A board of another architecture in a fleet: this machine tunes and builds for it, and it runs what it is sent."""

from dataclasses import replace
from pathlib import Path

import pytest
from c_programs import Machine, emulated

import loopwright as lw
from loopwright import te, topi
from loopwright.fleet.device import DeviceOptions
from loopwright.fleet.local_fleet import LocalFleet

BOARD = "llvm model=cortex-a72 cores=1"
ROWS, INNER, COLUMNS = 13, 40, 24


def product(target: lw.Target) -> lw.SearchTask:
    a, b = te.placeholder((ROWS, INNER), name="a"), te.placeholder((INNER, COLUMNS), name="b")
    return lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target=target)


@pytest.mark.few(1)
@pytest.mark.usefixtures("quick_measuring")
@pytest.mark.parametrize(("machine", "target"), [emulated(BOARD, "aarch64")])
def test_a_board_of_another_architecture_is_tuned_from_here(machine: Machine, target: str, tmp_path: Path) -> None:
    options = lw.TuningOptions(num_measure_trials=4, batch_size=2, records=tmp_path / "r.jsonl", progress=False)
    board = DeviceOptions("board", "a72", lw.resolve_target(target), "qemu_board")
    with LocalFleet([board]) as fleet:
        task = product(lw.fleet_status(fleet.tracker).devices[0].limits)
        runner = lw.FleetRunner("board", fleet.tracker, number=1, repeat=1, min_repeat_ms=0, timeout=60)
        usual = replace(task.measure_options(), backend="qemu_board", preflight=None, builders=1)
        result = task.tune(options, measure=runner.options(usual))
    assert [trial.error for trial in result.trials] == ["OK"] * len(result.trials), result.trials[0].message
    assert {(trial.device, trial.fleet["device"]) for trial in result.trials if not trial.reused} == {
        ("aarch64 under QEMU", "a72")
    }
    assert result.best is not None and result.best.time_s > 0
