"""Trials and seconds until a search is within 5% of the best of a long one, with the cost model and at random.

    python benchmarks/trials_to_best.py --target cuda --trials 2000 --cases seed_conv matmul_1024

The best is the shortest time of `--trials` trials with the model and of everything else that is measured here. Then
`--seeds` searches with the model, of other seeds and at most `--short` trials, and one of candidates drawn evenly from
all that keep the limits (`model_vs_random.py`; without the default schedule, with which every search begins) are asked
when their first candidate came near it. Times are those of
the searches themselves, with a clock that begins with the first trial's; all trials count, wrong and failed ones too.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from cases import CASES, GPU_CASES, Case
from model_vs_random import Uniform, search, started, trials_to_reach

import loopwright as lw
from loopwright.search.measure.measurer import Measurer
from loopwright.search.records.file import Record
from loopwright.search.report.pace import NEAR
from loopwright.search.tune.loop import DEFAULT_SKETCH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=2000, help="of the search that finds the best")
    parser.add_argument("--short", type=int, default=256, help="trials of the other searches, at most")
    parser.add_argument("--seeds", type=int, default=3, help="searches with the model that are judged")
    parser.add_argument("--limit-s", type=float, default=120.0, help="seconds of each search, at most")
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--builders", type=int, help="processes that compile (default: one a core)")
    options = parser.parse_args()
    options.model, options.shipped = "trees", True
    known = {c.name: c for c in (CASES if options.target.startswith("llvm") else GPU_CASES)}
    heads = ("case", "best (us)", "trials", "trials/s", "trials until near it", "seconds until", "at random: trials")
    print(f"| {' | '.join((*heads, 'best of random'))} |\n|{'---|' * (len(heads) + 1)}", flush=True)
    until: list[float] = []
    for name in options.cases or known:
        until += _compare(known[name], options)
    print(f"\nMedian of all searches with the model: {statistics.median(until)} trials (asked: 40 at most).")


def _compare(case: Case, options: argparse.Namespace) -> list[float]:
    """Print the line of a case; returns the trials until near its best, of each search with the model."""
    task = lw.SearchTask(case.tensors, target=options.target)
    described = task.tuning_task()
    uniform = replace(described, spaces=[Uniform(s) for s in task.sketches])
    short = argparse.Namespace(**{**vars(options), "trials": options.short})
    with Measurer(replace(task.measure_options(), builders=options.builders)) as measurer:
        long = search(described, started(task, options, 0), 0, options, measurer)
        found = [
            search(described, started(task, options, seed), seed, short, measurer)
            for seed in range(1, options.seeds + 1)
        ]
        drawn = search(uniform, "random", 0, short, measurer)
    random = [r for r in drawn if r.sketch != DEFAULT_SKETCH]
    best_s = min(r.time_s for trials in (long, *found, random) for r in trials)
    near = [_near(trials, best_s) for trials in (long, *found)]
    trials, seconds = ([_cell(values) for values in column] for column in zip(*near, strict=True))
    by_chance = min(r.time_s for r in random)
    cells = (
        f"{best_s * 1e6:.1f}",
        str(len(long)),
        f"{len(long) / max(1e-9, long[-1].timestamp - long[0].timestamp):.1f}",
        ", ".join(trials),
        ", ".join(seconds),
        _cell(_near(random, best_s)[0]),
        f"{by_chance * 1e6:.1f} of {len(random)}",
    )
    print(f"| {case.name} | {' | '.join(cells)} |", flush=True)
    return [count for count, _ in near]


def _near(trials: Sequence[Record], best_s: float) -> tuple[float, float]:
    """Trials and seconds until the first that takes at most NEAR times the best; infinite where none does."""
    count = trials_to_reach(trials, NEAR * best_s)
    return (count, trials[count - 1].timestamp - trials[0].timestamp) if count else (math.inf, math.inf)


def _cell(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "never"


if __name__ == "__main__":
    main()
