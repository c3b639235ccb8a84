"""Print how long candidates of a convolution take from the schedule to a cubin, compiled by several processes at once.

Candidates are drawn as the search draws them, from all sketches of the last convolution of ResNet-50. Two parts are
timed: applying the schedule, lowering and printing, which is Python; and NVRTC. No GPU is needed. The last line is the
line through the seconds of both by the statements that are written out, which `search/estimates/build_model.py` has of
one machine.
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
from loopwright.search.estimates.build_model import BUILD_S, STATEMENT_S


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
    drawn = [(sketch, row) for sketch in task.sketches for row in sketch.sample(rng, each)]
    jobs = [(workload, sketch.schedule(row), target.compute_capability) for sketch, row in drawn]
    estimated_s = np.concatenate([sketch.build_seconds(row[None]) for sketch, row in drawn])
    start = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        list(pool.map(_built, jobs[: options.processes]))  # imports, and the compiler's own start
        start = time.perf_counter()
        times = list(pool.map(_built, jobs))
    elapsed_s = time.perf_counter() - start
    for name, part in (("to source", [t[0] for t in times]), ("NVRTC", [t[1] for t in times])):
        print(f"{name:10} median {statistics.median(part) * 1e3:6.0f} ms, longest {max(part) * 1e3:6.0f} ms")
    print(f"{len(times)} candidates by {options.processes} processes in {elapsed_s:.1f} s")
    statements, build_s = (estimated_s - BUILD_S) / STATEMENT_S, np.array(times).sum(axis=1)
    spread_s = np.sqrt(estimated_s)  # what takes long differs more
    line = np.stack([np.ones(len(statements)), statements], axis=1)
    least_s, each_s = np.linalg.lstsq(line / spread_s[:, None], build_s / spread_s, rcond=None)[0]
    print(f"{least_s:.2f} s, and {each_s * 1e3:.2f} s for each thousand statements that are written out")


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
