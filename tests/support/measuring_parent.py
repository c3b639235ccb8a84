"""A measuring process to be killed from outside: prints its workers' ids and waits for a kernel that never ends.

The kernel makes the file `begun`.
"""

import numpy as np

from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT


def main(run: str, overlap: bool, begun: str) -> None:
    source = np.arange(4, dtype=np.float32)
    with Measurer(MeasureOptions("fake_backend", builders=1, run_timeout_s=1000, overlap=overlap)) as measurer:
        measurer.use(MeasureTask("workload", [source], [source * 2], [EXACT]))
        print(*measurer.pids, flush=True)
        measurer.measure([f"run={run} begun={begun} time=1"])
