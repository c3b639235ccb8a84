"""Candidates that a search has under way while it thinks of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from doubling_task import MEASURE, doubling, quietly
from fake_space import FakeSpace

from loopwright.search.records.file import Record
from loopwright.search.tune.backlog import Backlog
from loopwright.search.tune.loop import TaskTuner


@dataclass
class Pending:
    """A measurer with candidates under way, some of which are built."""

    pending: int
    built: int = 0
    builders: int = 16
    devices: int = 1
    overlap: bool = True

    @property
    def options(self) -> Any:
        return self


def tried(build_s: float, run_s: float, schedule: str = "") -> Record:
    return Record("key", "hash", "fake", "s", (), schedule, (1.0,), build_s=build_s, run_s=run_s)


def backlog(under_way: Pending, asked: int = 512, trials: Sequence[Record] = ()) -> Backlog:
    return Backlog(cast(Any, under_way), quietly(), trials, asked)


def test_a_short_search_waits_for_half_a_batch() -> None:
    assert backlog(Pending(8, 8), asked=64).is_low and not backlog(Pending(9, 9), asked=64).is_low
    assert backlog(Pending(24, devices=2), asked=64).is_low and not backlog(Pending(25, devices=2), asked=64).is_low


def test_where_builds_and_runs_take_turns_nothing_is_proposed_meanwhile() -> None:
    assert backlog(Pending(0, overlap=False)).is_low and not backlog(Pending(1, overlap=False)).is_low
    assert backlog(Pending(0, overlap=False)).most_unled_while(workers_start=True) == 1  # one batch, as ever


@pytest.mark.parametrize(("run_s", "waits"), [(0.02, False), (0.04, True)])
def test_what_waits_for_a_device_keeps_no_builder_at_work(run_s: float, waits: bool) -> None:
    """16 builders make one in half a second each, 32 in a second: more than a device runs in the second case."""
    trials = [tried(0.5, run_s)] * 40
    assert backlog(Pending(32), trials=trials).is_low
    assert not backlog(Pending(33), trials=trials).is_low
    assert backlog(Pending(33, 1), trials=trials).is_low == (not waits)
    assert backlog(Pending(96, 64), trials=trials).is_low == (not waits)


def test_before_the_first_result_an_eighth_of_the_trials_may_wait_for_the_device() -> None:
    assert backlog(Pending(0)).most_unled == 64 and backlog(Pending(0), asked=64).most_unled == 8
    assert backlog(Pending(96, 96)).is_low and not backlog(Pending(97, 97)).is_low


def test_a_run_off_is_expected_to_be_built_by_all_builders_at_once() -> None:
    measurer = Pending(0, builders=8)
    tuner = TaskTuner(doubling(FakeSpace()), quietly(final_laps=2), cast(Any, _Idle(measurer)))
    tuner.trials += [tried(build_s, 0.01, str(build_s)) for build_s in (0.4, 0.5, 0.6)]
    tuner.state.best = tuner.trials[0]
    assert tuner.run_off.expected_s == pytest.approx(0.6 * (1 + 3 / 8) + 2 * 0.03)
    measurer.builders = 1
    assert tuner.run_off.expected_s == pytest.approx(4 * 0.6 + 2 * 0.03)


@dataclass
class _Idle:
    """A measurer with usual options."""

    pending: Pending

    @property
    def options(self) -> Any:
        return MEASURE

    @property
    def builders(self) -> int:
        return self.pending.builders
