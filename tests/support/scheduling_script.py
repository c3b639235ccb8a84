"""A user's script that tunes two tasks for long. Argument: record file."""

import sys

import numpy as np
from fake_space import FakeSpace

import loopwright as lw
from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.tune.loop import TuningOptions, TuningTask

source = np.arange(16, dtype=np.float32)
data = ([source], [source * 2], [Tolerance(1e-6, 1e-6)])
tasks = [
    TuningTask(f"t{n}", f"key {n}", f"text {n}", "fake", [FakeSpace()], "time=0.002", *data, 1e6) for n in range(2)
]
measure = MeasureOptions("fake_backend", builders=1, timing=TimingSettings(repeat=2, min_repeat_ms=0))
lw.TaskScheduler(tasks, load_records=sys.argv[1]).tune(TuningOptions(num_measure_trials=100_000, batch_size=8), measure)
