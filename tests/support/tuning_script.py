"""A user's script that tunes, with no `__main__` guard. Arguments: record file, trials, build behaviour, strategy."""

import sys

import numpy as np
from fake_space import FakeSpace

from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.sketch.population import Rows
from loopwright.search.tune.loop import TuningOptions, TuningTask, tune

path, trials, build, strategy = sys.argv[1:]


class Space(FakeSpace):
    def schedule(self, row: Rows) -> str:
        return f"build={build} {super().schedule(row)}"


print("begin", flush=True)
source = np.arange(8, dtype=np.float32)
task = TuningTask("doubling", "key", "text", "fake", [Space()], "time=0.01", [source], [source * 2], [EXACT])
options = TuningOptions(num_measure_trials=int(trials), records=path, batch_size=8, strategy=strategy, progress=True)
measure = MeasureOptions("fake_backend", builders=1, timing=TimingSettings(min_repeat_ms=0))
result = tune(task, options, measure)
print("end", len(result.trials))
