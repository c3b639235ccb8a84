"""Print how long candidates of a convolution take from the schedule to a cubin, compiled by several processes at once.

Candidates are drawn as the search draws them, from all sketches of the last convolution of ResNet-50. Two parts are
timed: applying the schedule, lowering and printing, which is Python; and NVRTC. No GPU is needed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

import cases
import numpy as np

import loopwright as lw
from loopwright.backends.cuda.compile import print_for
from loopwright.backends.cuda.nvrtc import compile_cubin
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.presets import preset_target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda model=h200")
    parser.add_argument("--candidates", type=int, default=96)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    target = preset_target(options.target)
    task = lw.SearchTask(cases.seed_convolution, target=target)
    rng, workload = np.random.default_rng(0), str(task.module)
    each = -(-options.candidates // len(task.sketches))
    jobs = [
        (workload, sketch.schedule(row), target.compute_capability)
        for sketch in task.sketches
        for row in sketch.sample(rng, each)
    ]
    start = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        list(pool.map(_built, jobs[: options.processes]))  # imports, and the compiler's own start
        start = time.perf_counter()
        times = list(pool.map(_built, jobs))
    elapsed_s = time.perf_counter() - start
    for name, part in (("to source", [t[0] for t in times]), ("NVRTC", [t[1] for t in times])):
        print(f"{name:10} median {statistics.median(part) * 1e3:6.0f} ms, longest {max(part) * 1e3:6.0f} ms")
    print(f"{len(times)} candidates by {options.processes} processes in {elapsed_s:.1f} s")


def _built(job: tuple[str, str, int]) -> tuple[float, float]:
    """Seconds to the source of one candidate, and from there to its cubin."""
    workload, schedule, capability = job
    start = time.perf_counter()
    source = print_for(scheduled_kernel(workload, schedule), capability).source
    printed = time.perf_counter()
    compile_cubin(f"{source}\n// {time.time_ns()}\n", capability)  # never one that is in the cache
    return printed - start, time.perf_counter() - printed


if __name__ == "__main__":
    main()
