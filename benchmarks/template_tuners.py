"""Trials that gradient boosting takes to reach the best of 500 random ones, on real devices, with and without help.

For each template: random configs are measured once; a goal is the best of 500 of them, drawn anew for each seed. Then
gradient boosting tunes until it has reached the goal, once on its own and once after learning from random trials of
other tasks of the same template (transfer). The table has the medians over the seeds; "150+" stands for a search that
did not reach its goal in 150 trials.

Clocks of a shared machine drift by more than what separates good configs. So each batch is timed together with one
config that stays the same, the fallback, and times are multiples of its time; a goal counts as reached within 2%, which
the same config varies by.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw
from loopwright.search.measure.measurer import Measurer
from loopwright.search.measure.timing import TimingSettings
from loopwright.search.records.file import Record
from loopwright.search.template.fallback import fallback_config
from loopwright.search.tune.progress import TuningState

RANDOM = 500
BUDGET = 150
BUDGET_WITH_HISTORY = 75
NEAR = 1.02
TIMING = TimingSettings(min_repeat_ms=5.0, stop_factor=None)


@dataclass(frozen=True)
class Case:
    """A template, the arguments of the task, and those of other tasks to learn from."""

    template: str
    target: str
    args: tuple[Any, ...]
    others: tuple[tuple[Any, ...], ...]


CASES = {
    "conv2d": Case(
        "conv2d_nchw",
        "llvm",
        (1, 28, 28, 128, 96, 3, 3, (1, 1), (1, 1)),
        ((1, 14, 14, 128, 128, 3, 3, (1, 1), (1, 1)), (1, 28, 28, 64, 64, 3, 3, (1, 1), (1, 1))),
    ),
    "dense": Case("dense", "llvm", (192, 768, 512), ((128, 512, 512), (64, 768, 768))),
    "conv2d_opencl": Case(
        "conv2d_nchw",
        "opencl",
        (1, 14, 14, 32, 32, 3, 3, (1, 1), (1, 1)),
        ((1, 14, 14, 16, 32, 3, 3, (1, 1), (1, 1)), (1, 7, 7, 32, 64, 3, 3, (1, 1), (1, 1))),
    ),
    "batch_matmul": Case("batch_matmul", "opencl", (4, 64, 64, 64), ((2, 64, 128, 64), (8, 64, 32, 64))),
}


@dataclass
class Row:
    """The outcome of one case: trials needed for each seed, and the goals, in units of the time of the fallback."""

    name: str
    case: Case
    size: int
    goals: list[float]
    alone: list[int]
    helped: list[int]
    failed: int
    spent_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pool", type=int, default=700, help="random configs that are measured for each template")
    parser.add_argument("--history", type=int, default=96, help="random trials of each of the other tasks")
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.cases:
        rows.append(compare(name, CASES[name], options))
        table = _table(rows, options)
        if options.output:
            Path(options.output).write_text(table)
    print(table)


def compare(name: str, case: Case, options: argparse.Namespace) -> Row:
    """Measure the random pool, then tune with each seed, alone and with the history of other tasks."""
    start = time.perf_counter()
    task = lw.TemplateTask(case.template, args=case.args, target=case.target)
    pool = _random(case, case.args, max(RANDOM, options.pool), 1)
    times = np.array([r.time_s for r in pool if r.ok])
    history: list[Record] = []
    for k, args in enumerate(case.others):
        history += _random(case, args, options.history, 2 + k)
    draws = [np.random.default_rng(seed).permutation(len(times))[:RANDOM] for seed in range(options.seeds)]
    goals = [float(times[at].min()) for at in draws]
    row = Row(name, case, len(task.config_space), goals, [], [], len(pool) - len(times), 0.0)
    for seed, goal in enumerate(goals):
        row.alone.append(_needed(case, goal, seed, BUDGET, []))
        row.helped.append(_needed(case, goal, seed, BUDGET_WITH_HISTORY, history))
        print(f"{name} seed {seed}: goal {goal:.3f}, {row.alone[-1]} trials, {row.helped[-1]} helped", flush=True)
    row.spent_s = time.perf_counter() - start
    return row


class Ruler:
    """Measures configs of a task in units of its fallback's time, which is taken anew with every batch."""

    def __init__(self, task: lw.TemplateTask) -> None:
        self._fallback = task.schedule(fallback_config(task))
        options = replace(task.measure_options(), timing=TIMING)
        self._measurer = Measurer(options)
        described = task.search_task.tuning_task()
        self._task = described.measured()

    def __enter__(self) -> Ruler:
        self._measurer.__enter__()
        self._measurer.use(self._task)
        return self

    def __exit__(self, *error: Any) -> None:
        self._measurer.__exit__(*error)

    def __call__(self, task: lw.TemplateTask, configs: Sequence[Any]) -> list[float]:
        """Times, infinite for failures; the fallback is timed before and after the batch."""
        schedules = [self._fallback, *task.schedules(configs), self._fallback]
        found = self._measurer.measure(schedules, fresh=True)
        unit_s = min(min(f.times_s) for f in (found[0], found[-1]))
        return [min(f.times_s) / unit_s if f.ok else float("inf") for f in found[1:-1]]


def _random(case: Case, args: tuple[Any, ...], count: int, seed: int) -> Sequence[Record]:
    task = lw.TemplateTask(case.template, args=args, target=case.target)
    with Ruler(task) as ruler:
        trials: Sequence[Record] = lw.tuners.RandomTuner(task, seed=seed).tune(count, measure_option=ruler).trials
    return trials


def _needed(case: Case, goal: float, seed: int, budget: int, history: Sequence[Record]) -> int:
    """The trials until a time is reached; one more than the budget where it is not."""
    task = lw.TemplateTask(case.template, args=case.args, target=case.target)
    tuner = lw.tuners.GradientBoostingTuner(task, seed=seed)
    if history:
        tuner.load_history(history)

    def reached(state: TuningState, record: Record) -> bool:
        return state.best is not None and state.best.time_s <= NEAR * goal

    with Ruler(task) as ruler:
        trials = tuner.tune(budget, measure_option=ruler, callbacks=[reached]).trials
    best = min(r.time_s for r in trials)
    print(f"  seed {seed}: {len(trials)} trials, best {best / goal:.3f} of the goal", flush=True)
    return next((k for k, r in enumerate(trials, 1) if r.ok and r.time_s <= NEAR * goal), budget + 1)


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    lines = [
        "# Trials until gradient boosting has reached the best of 500 random ones",
        "",
        f"{datetime.date.today()}, loopwright {lw.__version__}, {options.seeds} seeds, medians; asked: at most "
        f"{BUDGET} trials, and {BUDGET_WITH_HISTORY} after learning from {options.history} random trials of each of "
        "two other tasks.",
        "",
        "| template | target | arguments | configs | goal, of the fallback | trials | of each seed | with history "
        "| of each seed | random trials that failed | spent (s) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        cells = (
            r.case.template,
            r.case.target,
            str(r.case.args),
            f"{r.size:,}",
            f"{statistics.median(r.goals):.3f}",
            _trials([statistics.median(r.alone)], BUDGET),
            _trials(r.alone, BUDGET),
            _trials([statistics.median(r.helped)], BUDGET_WITH_HISTORY),
            _trials(r.helped, BUDGET_WITH_HISTORY),
            str(r.failed),
            f"{r.spent_s:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _trials(counts: Sequence[float], budget: int) -> str:
    return ", ".join(f"{budget}+" if n > budget else f"{n:g}" for n in counts)


if __name__ == "__main__":
    main()
