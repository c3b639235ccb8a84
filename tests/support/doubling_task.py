"""A task that doubles numbers on the fake backend, and quiet options to tune it by."""

from typing import Any

import numpy as np

from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.sketch.space import Space
from loopwright.search.tune.display import Silent
from loopwright.search.tune.loop import TuningOptions, TuningTask

MEASURE = MeasureOptions("fake_backend", builders=1, timing=TimingSettings(repeat=2, min_repeat_ms=0))


def doubling(*spaces: Space, default: str = "time=0.002", flop: float = 0.0) -> TuningTask:
    """A task of 16 numbers, whose candidates say by themselves how long they take."""
    source = np.arange(16, dtype=np.float32)
    data = ([source], [source * 2], [Tolerance(1e-6, 1e-6)])
    return TuningTask("doubling", "key", "workload text", "fake", spaces, default, *data, flop)


def quietly(**options: Any) -> TuningOptions:
    """Options of a search that prints nothing."""
    return TuningOptions(**{"progress": False, **options})


class Notes(Silent):
    """A display that keeps what is said beside the trials."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)
