"""How many trials gradient boosting takes to reach the best of 500 random ones, on real devices, with and without help.

For each template: random configs are measured once; a goal is the best of 500 of them, drawn anew for each seed. Then
gradient boosting tunes until it has reached the goal, once on its own and once after learning from random trials of
other tasks of the same template (transfer). The table has the medians over the seeds; "150+" stands for a search that
did not reach its goal in 150 trials.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw
from loopwright.search.records import Record

RANDOM = 500
BUDGET = 150
BUDGET_WITH_HISTORY = 75


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
    "batch_matmul": Case("batch_matmul", "opencl", (4, 64, 64, 64), ((2, 64, 128, 64), (8, 64, 32, 64))),
}


@dataclass
class Row:
    """What came of one case: trials needed for each seed, and the times that were to be reached, in seconds."""

    name: str
    case: Case
    size: int
    goals_s: list[float]
    alone: list[int]
    helped: list[int]
    failed: int
    spent_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pool", type=int, default=1000, help="random configs that are measured for each template")
    parser.add_argument("--history", type=int, default=128, help="random trials of each of the other tasks")
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
    pool = _random(case, case.args, max(RANDOM, options.pool), seed=1)
    times_s = np.array([r.time_s for r in pool if r.ok])
    history = [r for k, args in enumerate(case.others) for r in _random(case, args, options.history, seed=2 + k)]
    draws = [np.random.default_rng(seed).permutation(len(times_s))[:RANDOM] for seed in range(options.seeds)]
    goals_s = [float(times_s[at].min()) for at in draws]
    row = Row(name, case, len(task.config_space), goals_s, [], [], len(pool) - len(times_s), 0.0)
    for seed, goal_s in enumerate(goals_s):
        row.alone.append(_needed(case, goal_s, seed, BUDGET, []))
        row.helped.append(_needed(case, goal_s, seed, BUDGET_WITH_HISTORY, history))
        print(f"{name} seed {seed}: {goal_s * 1e6:.1f} us, {row.alone[-1]} trials, {row.helped[-1]} helped", flush=True)
    row.spent_s = time.perf_counter() - start
    return row


def _random(case: Case, args: tuple[Any, ...], count: int, seed: int) -> Sequence[Record]:
    task = lw.TemplateTask(case.template, args=args, target=case.target)
    trials: Sequence[Record] = lw.tuners.RandomTuner(task, seed=seed).tune(count, measure_option=_measuring()).trials
    return trials


def _needed(case: Case, goal_s: float, seed: int, budget: int, history: Sequence[Record]) -> int:
    """The trials until a time is reached; one more than the budget where it is not."""
    task = lw.TemplateTask(case.template, args=case.args, target=case.target)
    tuner = lw.tuners.GradientBoostingTuner(task, seed=seed)
    if history:
        tuner.load_history(history)

    def reached(tuner: Any, records: Sequence[Record]) -> bool:
        return tuner.best is not None and tuner.best.time_s <= goal_s

    trials = tuner.tune(budget, measure_option=_measuring(), callbacks=[reached]).trials
    return next((k for k, r in enumerate(trials, 1) if r.ok and r.time_s <= goal_s), budget + 1)


def _measuring() -> Any:
    return lw.measure_option(runner=lw.LocalRunner(number=1, repeat=3, min_repeat_ms=10))


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    lines = [
        "# Trials until gradient boosting has reached the best of 500 random ones",
        "",
        f"{datetime.date.today()}, loopwright {lw.__version__}, {options.seeds} seeds, medians; asked: at most "
        f"{BUDGET} trials, and {BUDGET_WITH_HISTORY} after learning from {options.history} random trials of each of "
        "two other tasks.",
        "",
        "| template | target | arguments | configs | goal (us) | trials | of each seed | with history | of each seed "
        "| random trials that failed | spent (s) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        cells = (
            r.case.template,
            r.case.target,
            str(r.case.args),
            f"{r.size:,}",
            f"{statistics.median(r.goals_s) * 1e6:.1f}",
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
