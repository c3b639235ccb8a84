"""Fleets inside this process, of devices that run the fake backend."""

from pathlib import Path

from loopwright.dialects.target import Target
from loopwright.fleet.device import DeviceOptions
from loopwright.fleet.local_fleet import LocalFleet
from loopwright.fleet.runner import FleetRunner
from loopwright.search.measure.measurer import MeasureOptions

KEY = "fake"


def fake_device(name: str, key: str = KEY, aside_s: float = 60.0) -> DeviceOptions:
    return DeviceOptions(key, name, Target(), "fake_backend", aside_s=aside_s)


def fake_fleet(count: int, tls_dir: Path | None = None, aside_s: float = 60.0) -> LocalFleet:
    devices = [fake_device(f"d{n}", aside_s=aside_s) for n in range(count)]
    return LocalFleet(devices, None if tls_dir is None else str(tls_dir))


def options_on(fleet: LocalFleet, tls_dir: Path | None = None, **terms: float) -> MeasureOptions:
    """Options of a measurer with one builder whose candidates run on a fleet."""
    runner = FleetRunner(KEY, fleet.tracker, tls_dir=tls_dir, repeat=2, min_repeat_ms=0, **terms)  # type: ignore[arg-type]
    return runner.options(MeasureOptions("fake_backend", builders=1))
