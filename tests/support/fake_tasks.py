"""Tasks on the fake space, and how the scheduler's tests tune them."""

from pathlib import Path
from typing import Any

import numpy as np
from fake_space import FakeSpace

from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record, Role
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.space import Space
from loopwright.search.tune.loop import TuningOptions, TuningTask

MEASURE = MeasureOptions("fake_backend", builders=1, timing=TimingSettings(repeat=2, min_repeat_ms=0))
SOURCE = np.arange(16, dtype=np.float32)


def fake_task(
    number: int,
    slowdown: float = 1.0,
    space: Space | None = None,
    default: str | None = None,
    target: str = "fake",
) -> TuningTask:
    """A task that at its best takes `slowdown` times as long as FakeSpace does."""
    space = FakeSpace(slowdown=slowdown) if space is None else space
    default = f"time={0.002 * slowdown}" if default is None else default
    data = ([SOURCE], [SOURCE * 2], [Tolerance(1e-6, 1e-6)])
    return TuningTask(f"t{number}", f"key {number}", f"text {number}", target, [space], default, *data, 1e6 * slowdown)


def quietly(trials: int, **options: Any) -> TuningOptions:
    return TuningOptions(
        **{"num_measure_trials": trials, "batch_size": 8, "progress": False, "cost_model": "linear", **options}
    )


def trials_of(path: Path) -> list[Record]:
    return [r for r in rec.load(path) if r.role is Role.TRIAL]


class Failing(FakeSpace):
    def schedule(self, row: Rows) -> str:
        return f"run=raise row={','.join(map(str, row))}"
