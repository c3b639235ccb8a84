"""Hold the kernels that two versions of loopwright find to each other: the same cases, seeds and trials, timed in turn.

Each version is named by the Python that it is installed for. Its own search tunes a case, then both kernels are kept
and timed in alternation, so that what else the machine does meets both:

    python benchmarks/versions.py /old/.venv/bin/python --cases seed_conv softmax --seeds 2
    python benchmarks/versions.py /old/.venv/bin/python --target cuda --cases seed_conv network:resnet-18 --trials 64

A network gets so many trials for each of its tasks. Times are those of `benchmark`: on a GPU the device's own, of
recorded launches. The last column is the time before over the time after: above 1 the newer version is faster.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PATIENCE_S = 0.1
"""Seconds that a kernel is run for one timing."""
_NETWORK = "network:"


class Version:
    """A process of one version that has tuned a case and times its kernel when asked."""

    def __init__(self, python: str, case: str, target: str, trials: int, seed: int) -> None:
        command = [python, __file__, "--work", case, target, str(trials), str(seed)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self) -> float:
        """Return the seconds of one run of the kernel; the first call waits for tuning and returns those it took."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self._process.args} ended without an answer")
        return float(answer)

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> None:
    options = _options()
    if options.work:
        _work(*options.work)
        return
    pythons = (options.before, sys.executable)
    print(f"| case | seed | before (us) | after (us) | tuning before (s) | after (s) | before / after |\n|{'---|' * 7}")
    ratios = []
    for case in options.cases:
        for seed in range(options.seeds):
            versions, tuned_s = [], []
            for python in pythons:
                versions.append(Version(python, case, options.target, options.trials, seed))
                tuned_s.append(versions[-1].ask())
            times = [[version.ask() for version in versions] for _ in range(options.rounds)]
            for version in versions:
                version.end()
            before, after = (statistics.median(column) for column in zip(*times, strict=True))
            ratios.append(before / after)
            cells = (f"{before * 1e6:.1f}", f"{after * 1e6:.1f}", *(f"{s:.0f}" for s in tuned_s), f"{ratios[-1]:.2f}x")
            print(f"| {case} | {seed} | {' | '.join(cells)} |", flush=True)
    print(f"\nGeometric mean of before / after: {math.exp(statistics.mean(map(math.log, ratios))):.3f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", default=sys.executable, help="the Python of the older version")
    parser.add_argument("--cases", nargs="+", default=["seed_conv", "matmul_512", "conv_64x56x56", "softmax"])
    parser.add_argument("--target", default="llvm cores=1")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def _work(name: str, target: str, trials: str, seed: str) -> None:
    """Tune a case in this process, then time its kernel at each line that is read."""
    sys.stdin.readline()
    start = time.perf_counter()
    find = _network if name.startswith(_NETWORK) else _kernel
    timed = find(name.removeprefix(_NETWORK), target, int(trials), int(seed))
    print(time.perf_counter() - start, flush=True)
    while sys.stdin.readline():
        print(timed(), flush=True)


def _kernel(name: str, target: str, trials: int, seed: int) -> Callable[[], float]:
    """Tune a workload, and return what times its kernel."""
    sys.path.insert(0, str(Path(__file__).parent))
    from cases import CASES, GPU_CASES

    import loopwright as lw

    case = next(c for c in (GPU_CASES if target.startswith("cuda") else CASES) if c.name == name)
    task = lw.SearchTask(case.tensors, target=target)
    found = task.tune(lw.TuningOptions(num_measure_trials=trials, seed=seed, progress=False))
    return _timer(task.build(found.best.schedule), target, task.reference.inputs)


def _network(name: str, target: str, trials: int, seed: int) -> Callable[[], float]:
    """Tune the tasks of a network, and return what times all of it."""
    import loopwright as lw

    net = lw.testing.network(name, layout="NHWC")
    tasks, weights = lw.extract_tasks(net, target)
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.jsonl"
        scheduler = lw.TaskScheduler(tasks, weights, load_records=records)
        total = trials * len(tasks)
        scheduler.tune(lw.TuningOptions(num_measure_trials=total, batch_size=16, seed=seed, progress=False))
        executor = lw.compile(net, target, records=records).executor()
    return _timer(executor, target, ())


def _timer(timed: Any, target: str, arrays: Sequence[Any]) -> Callable[[], float]:
    """Return seconds of one run, over so many as take long enough."""
    graph = {"graph": True} if target.startswith("cuda") and arrays else {}
    return lambda: float(timed.benchmark(*arrays, repeat=1, min_repeat_ms=PATIENCE_S * 1e3, **graph).median)


if __name__ == "__main__":
    main()
