"""Hold the kernels that two versions of loopwright find to each other: the same cases, seeds and trials, timed in turn.

Each version is named by the Python that it is installed for. Its own search tunes a case, then both kernels are kept
and timed in alternation, so that what else the machine does meets both:

    python benchmarks/versions.py /old/.venv/bin/python --cases seed_conv softmax --seeds 2

The last column is the time before over the time after: above 1 the newer version is faster.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_S = 0.1
"""Seconds that a kernel is run for one timing."""


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
    sys.path.insert(0, str(Path(__file__).parent))
    from cases import CASES

    import loopwright as lw

    case = next(c for c in CASES if c.name == name)
    task = lw.SearchTask(case.tensors, target=target)
    sys.stdin.readline()
    start = time.perf_counter()
    found = task.tune(lw.TuningOptions(num_measure_trials=int(trials), seed=int(seed), progress=False))
    tuned_s = time.perf_counter() - start
    kernel, arrays = task.build(found.best.schedule), task.reference.inputs
    outputs = (
        [expected.copy() for expected in kernel(*arrays)] if len(task.reference.expected) > 1 else [kernel(*arrays)]
    )
    print(tuned_s, flush=True)
    while sys.stdin.readline():
        runs, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < PATIENCE_S:
            kernel(*arrays, *outputs)
            runs += 1
        print(passed / runs, flush=True)


if __name__ == "__main__":
    main()
