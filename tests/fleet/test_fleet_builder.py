"""Builders of a fleet: candidates are built on machines without a device, beside those that are built here."""

from collections.abc import Iterator
from dataclasses import replace

import fake_backend
import pytest
from fleets import fake_device, options_on
from patience import wait_until

import loopwright as lw
from loopwright.fleet.builder import FleetBuilder
from loopwright.fleet.local_fleet import LocalFleet
from loopwright.fleet.protocol import PROTOCOL, FleetError
from loopwright.search.measure.measurer import Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.records.file import ErrorCode

pytestmark = pytest.mark.usefixtures("quick_measuring")


@pytest.fixture
def fleet() -> Iterator[LocalFleet]:
    """A fleet of the test's own, whose builder counts what it did for nobody else."""
    builder = FleetBuilder("b", 2, "fake_backend")
    with LocalFleet([fake_device("d0")], builders=[builder]) as running:
        yield running


def doubling() -> MeasureTask:
    source, expected = fake_backend.data()
    return MeasureTask("doubling", [source], [expected], [EXACT])


def test_builders_of_the_fleet_build_beside_those_here(fleet: LocalFleet) -> None:
    with Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        found = measurer.measure([f"time=0.001 build=sleep n={n}" for n in range(16)])
    assert all(m.ok and m.artifact for m in found)
    assert wait_until(lambda: 0 < lw.fleet_status(fleet.tracker).builders[0].done < 16)  # told with its heartbeats
    (builder,) = (status := lw.fleet_status(fleet.tracker)).builders
    assert (builder.name, builder.builders, builder.failed) == ("b", 2, 0)
    assert f"\n\nbuilder  at once  done  failed\nb        2        {builder.done}" in str(status)


def test_what_ends_a_build_there_is_its_record(fleet: LocalFleet) -> None:
    kinds = {
        "refuse": ErrorCode.INSTANTIATION_ERROR,
        "raise": ErrorCode.COMPILE_ERROR,
        "hang": ErrorCode.COMPILE_TIMEOUT,
        "killed": ErrorCode.UNKNOWN,
    }
    with Measurer(replace(options_on(fleet), builders=0, build_timeout_s=0.5)) as measurer:
        measurer.versions = fake_backend.versions()
        measurer.use(doubling())
        found = measurer.measure([f"time=0.001 build={kind}" for kind in kinds] + ["time=0.001 last=1"])
    assert [m.error for m in found] == [*kinds.values(), ErrorCode.OK]


def test_a_builder_of_other_versions_is_one_sentence(fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"^builder 'b' has fake 1.0, this has 2.0: install the same on both$"
    with Measurer(replace(options_on(fleet), builders=0)) as measurer, pytest.raises(FleetError, match=said):
        measurer.versions = {**fake_backend.versions(), "fake": "2.0"}
        measurer.use(doubling())
        measurer.measure(["time=0.001"])


def test_a_builder_builds_for_known_backends_only() -> None:
    with FleetBuilder("b", 1) as builder:
        order = {"op": "build", "protocol": PROTOCOL, "backend": "os", "versions": {}}
        assert builder.serve(order)["message"] == "builder 'b' has no backend 'os'"
        assert builder.serve({"op": "build", "protocol": 9, "version": "9"})["message"].startswith("the tuner is loopw")
    with pytest.raises(ValueError, match=r"^builders must be a whole number of at least 1, got 0$"):
        FleetBuilder("b", 0)


@pytest.mark.slow(1.2)
def test_without_builders_all_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.fleet.link._NO_BUILDER_S", 1.0)
    builder = FleetBuilder("b", 2, "fake_backend")
    with LocalFleet([fake_device("d0")], builders=[builder]) as fleet, Measurer(options_on(fleet)) as measurer:
        measurer.use(doubling())
        numbers = measurer.submit([f"time=0.001 build=sleep n={n}" for n in range(30)])
        results = measurer.results()
        found = [next(results)]
        builder.stopped.set()
        found += results
        assert sorted(m.job for m in found) == numbers and all(m.ok for m in found)
        assert wait_until(lambda: not lw.fleet_status(fleet.tracker).builders)
