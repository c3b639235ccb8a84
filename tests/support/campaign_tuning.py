"""A user's script that tunes machine code, to be disturbed: prints a line for each trial that is in its records.

Arguments: record file, trials in all, `task` or `scheduler`, seed, and whether some candidates are hostile (0 or 1).
"""

import hashlib
import sys

import numpy as np
import numpy.typing as npt
from process_faults import PROCESS_FAULTS
from raw_llvm_backend import DOUBLE, one_line

from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.measure.tolerance import Tolerance
from loopwright.search.records.file import Record
from loopwright.search.sketch.population import Mask, Rows
from loopwright.search.tune.loop import TuningOptions, TuningTask, tune
from loopwright.search.tune.scheduler import TaskScheduler

MEASURE = MeasureOptions(
    "raw_llvm_backend", builders=1, run_timeout_s=3.0, timing=TimingSettings(repeat=2, min_repeat_ms=4.0)
)
SOURCE = np.arange(64, dtype=np.float32)
_HOSTILE_EVERY = 8


class Programs:
    """4096 programs, all right and each with machine code of its own, but for those that are hostile."""

    n_decisions = 1

    def __init__(self, name: str, hostile: bool) -> None:
        self.name, self.hostile = name, hostile

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        return rng.integers(4096, size=(n, 1))

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self.sample(rng, len(rows))

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return a

    def legal(self, rows: Rows) -> Mask:
        return np.ones(len(rows), bool)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        return np.concatenate([rows // 64, rows % 64], axis=1).astype(np.float32)

    def schedule(self, row: Rows) -> str:
        number = int(row[0])
        body = DOUBLE
        if self.hostile and number % _HOSTILE_EVERY == 0:
            faults = [body for body, _ in PROCESS_FAULTS.values()]
            body = faults[number // _HOSTILE_EVERY % len(faults)]
        else:
            body += stores(number // 64, "one") + stores(number % 64, "other")
        return one_line(f"{body}\n ; {self.name} {number}")


def stores(element: int, name: str) -> str:
    """Machine code that writes what is right to an element once more."""
    return f"""
 %{name} = getelementptr float, ptr %y, i64 {element}
 store volatile float {2.0 * element}, ptr %{name}"""


def name_of(record: Record) -> str:
    return hashlib.sha256(f"{record.workload_key} {record.schedule}".encode()).hexdigest()[:16]


def main() -> None:
    path, trials, kind, seed, hostile = sys.argv[1:]
    default = PROCESS_FAULTS["returns twice"][0] if hostile == "1" else DOUBLE
    tasks = [
        TuningTask(
            name=f"t{n}",
            workload_key=f"key {n}",
            workload=f"text {n}",
            target="llvm",
            spaces=[Programs(f"programs {n}", hostile == "1")],
            default_schedule=one_line(default),
            inputs=[SOURCE],
            expected=[2 * SOURCE],
            tolerances=[Tolerance(1e-6, 1e-6)],
            flop=64.0,
        )
        for n in range(1 if kind == "task" else 2)
    ]
    options = TuningOptions(
        num_measure_trials=int(trials),
        records=path,
        seed=int(seed),
        batch_size=8,
        cost_model="random",
        final_laps=2,
        callbacks=[lambda _, record: print("trial", name_of(record), flush=True)],
    )
    if kind == "task":
        print("end", len(tune(tasks[0], options, MEASURE).trials))
    else:
        print("end", TaskScheduler(tasks, load_records=path).tune(options, MEASURE).state.done)


main()
