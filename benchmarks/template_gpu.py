"""The classic convolution template on a GPU: random trials, gradient boosting, and the search without a template.

The template is `conv2d_no_batching` with the arguments of the published GPU tutorial. First random configs are
measured, to count those that are not valid kernels; then gradient boosting and the template-free search get as many
trials each. The winners are timed again, in turn.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from pathlib import Path
from typing import Any

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.search.measure.backend_api import backend_path, load_backend

ARGS = (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))
ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    target = resolve_target(options.target)
    task = lw.TemplateTask("conv2d_no_batching", args=ARGS, target=target)
    lines = [
        f"# The template of the GPU convolution tutorial on {load_backend(backend_path(target.kind)).device_name()}",
        "",
        f"{datetime.date.today()}, loopwright {lw.__version__}; {len(task.config_space):,} configs; 512x7x7, 3x3.",
        "",
        "| search | trials | not valid | best (us) | again, in turn (us) | spent (s) |",
        "|---|---|---|---|---|---|",
    ]
    found = [
        ("random configs", *_tuned(lw.tuners.RandomTuner(task, seed=options.seed), options.random)),
        ("gradient boosting", *_tuned(lw.tuners.GradientBoostingTuner(task, seed=options.seed), options.trials)),
        ("without a template", *_free(task, options.trials, options.seed)),
    ]
    timers = [_timer(task, result.best.schedule, target.kind) for _, result, _ in found]
    rounds = [[timer() for timer in timers] for _ in range(ROUNDS)]
    for (name, result, spent_s), again_s in zip(found, zip(*rounds, strict=True), strict=True):
        wrong = result.state.error_counts() or "none"
        best_s, median_s = result.best.time_s, statistics.median(again_s)
        cells = f"{len(result.trials)} | {wrong} | {best_s * 1e6:.1f} | {median_s * 1e6:.1f} | {spent_s:.0f}"
        lines.append(f"| {name} | {cells} |")
    print("\n".join(lines))
    if options.output:
        Path(options.output).write_text("\n".join(lines) + "\n")


def _tuned(tuner: Any, trials: int) -> tuple[Any, float]:
    start = time.perf_counter()
    result = tuner.tune(trials)
    return result, time.perf_counter() - start


def _free(task: lw.TemplateTask, trials: int, seed: int) -> tuple[Any, float]:
    """The same workload, searched without the template."""
    start = time.perf_counter()
    free = lw.SearchTask(task.module, target=task.target)
    result = free.tune(lw.TuningOptions(num_measure_trials=trials, seed=seed, progress=False))
    return result, time.perf_counter() - start


def _timer(task: lw.TemplateTask, schedule: str, kind: str) -> Any:
    """Seconds of a run by the device's clock, of a schedule of the task's workload."""
    kernel = lw.SearchTask(task.module, target=task.target).build(schedule)
    replayed = {"graph": True} if kind == "cuda" else {}
    return lambda: kernel.benchmark(min_repeat_ms=5, repeat=3, **replayed).median


if __name__ == "__main__":
    main()
