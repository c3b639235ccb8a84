"""The worth of the cost model: the best of N trials with it beside the best of N candidates drawn at random.

Random candidates are drawn evenly from all that keep the target's limits, from each sketch in turn; no model, no
estimate and no evolution chooses among them. With `--estimates` a third search draws at random too, but the candidates
that the sketches' own rough estimates favour (`cost_model="random"`). The default schedule, which every search
measures as well, counts for none of them. The winners of all searches are timed again, in turn; "ratio" is the random
winner's time over the model's.
"""

from __future__ import annotations

import argparse
import datetime
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, GPU_CASES, Case
from tables import table_lines

import loopwright as lw
from loopwright.search.cost_model import CostModel
from loopwright.search.measure.measurer import Measurer
from loopwright.search.records.file import Record
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.tune.loop import DEFAULT_SKETCH, TaskTuner, TuningTask

FINALISTS = 3
"""Candidates of each search that are timed again: its best few by the search's own timing."""


@dataclass(frozen=True)
class Uniform:
    """A sketch whose rows are drawn evenly from those within the limits."""

    sketch: Sketch

    def __getattr__(self, name: str) -> Any:
        if name in ("estimate", "adopt"):
            raise AttributeError(name)
        return getattr(self.sketch, name)

    def sample(self, rng: np.random.Generator, n: int) -> Any:
        if not self.sketch.holes:
            return self.sketch.sample(rng, n)
        return self.sketch.population.sample(rng, n)


@dataclass(frozen=True)
class Row:
    """One line of the table: the best time of each search in seconds, and trials until the model's beat the random."""

    name: str
    model_s: float
    random_s: float
    estimates_s: float
    caught_up: int
    sketches: int
    spent_s: float

    @property
    def ratio(self) -> float:
        return self.random_s / self.model_s


def main() -> None:
    options = _options()
    known = {c.name: c for c in (CASES if options.target.startswith("llvm") else GPU_CASES)}
    rows: list[Row] = []
    for name in options.cases or known:
        if name not in known:
            raise SystemExit(f"there is no case '{name}' for {options.target}; there are {', '.join(known)}")
        for seed in range(options.seeds):
            rows.append(compare(known[name], seed, options))
            print(_line(rows[-1]), flush=True)
            if options.output:
                Path(options.output).write_text(_table(rows, options))
    print(_table(rows, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1, help="searches of each kind, each a line of the table")
    parser.add_argument("--model", default="trees", help="the cost model to compare: trees, rank or linear")
    parser.add_argument("--shipped", action="store_true", help="start from the model that ships, as task.tune does")
    parser.add_argument("--limit-s", type=float, default=300.0, help="seconds a search may take, at most")
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--estimates", action="store_true", help="also draw at random what the estimates favour")
    parser.add_argument("--builders", type=int, help="processes that compile (default: one a core)")
    parser.add_argument("--output", help="write the table to this file")
    return parser.parse_args()


def compare(case: Case, seed: int, options: argparse.Namespace) -> Row:
    """Search with and without the model, and time the winners in turn."""
    task = lw.SearchTask(case.tensors, target=options.target)
    described = task.tuning_task()
    uniform = replace(described, spaces=[Uniform(s) for s in task.sketches])
    start = time.perf_counter()
    with Measurer(replace(task.measure_options(), builders=options.builders)) as measurer:
        found = [
            right(search(described, started(task, options, seed), seed, options, measurer)),
            right(search(uniform, "random", seed, options, measurer)),
            right(search(described, "random", seed, options, measurer)) if options.estimates else [],
        ]
        best = _retimed(described, found, measurer)
    caught_up = trials_to_reach(found[0], min((r.time_s for r in found[1]), default=math.inf))
    return Row(case.name, *best, caught_up, len(task.sketches), time.perf_counter() - start)


def started(task: lw.SearchTask, options: argparse.Namespace, seed: int) -> str | CostModel:
    """The model of a search: with `--shipped`, on top of the one that comes with the package."""
    asked = lw.TuningOptions(cost_model=options.model, seed=seed)
    return task.taught(asked).cost_model if options.shipped else options.model


def search(
    task: TuningTask, model: str | CostModel, seed: int, options: argparse.Namespace, measurer: Measurer
) -> list[Record]:
    """All trials of a search, in their order; the default schedule is the first."""
    tuning = lw.TuningOptions(
        num_measure_trials=options.trials + 1,  # the default comes on top
        seed=seed,
        time_limit_s=options.limit_s,
        cost_model=model,
        progress=False,
    )
    tuner = TaskTuner(task, tuning, measurer)
    tuner.enter()
    tuner.round(options.trials + 1)
    return list(tuner.trials)


def right(trials: Sequence[Record]) -> list[Record]:
    """The right candidates, the default left out."""
    return [r for r in trials if r.ok and r.sketch != DEFAULT_SKETCH]


def _retimed(task: TuningTask, searches: Sequence[Sequence[Record]], measurer: Measurer) -> list[float]:
    """The shortest time of each search's best few, all of them measured again in turn.

    Candidates whose timing was stopped early compete where there are no others: a search at random may have none that
    comes near the untuned schedule.
    """
    ranked = [sorted(s, key=lambda r: (r.stopped_early, r.time_s))[:FINALISTS] for s in searches]
    measurer.use(task.measured())
    schedules = list(dict.fromkeys(r.schedule for finalists in ranked for r in finalists))
    found = dict(zip(schedules, measurer.measure(schedules, fresh=True, laps=5), strict=True))
    return [
        min((min(found[r.schedule].times_s) for r in finalists if found[r.schedule].ok), default=math.nan)
        for finalists in ranked
    ]


def trials_to_reach(trials: Sequence[Record], time_s: float) -> int:
    """After how many trials a search was as fast as `time_s`; 0 where it never was."""
    return next((n for n, record in enumerate(trials, 1) if record.time_s <= time_s), 0)


def _line(row: Row) -> str:
    estimates = f"{row.estimates_s * 1e6:.1f}" if math.isfinite(row.estimates_s) else "-"
    return (
        f"| {row.name} | {row.model_s * 1e6:.1f} | {row.random_s * 1e6:.1f} | {row.ratio:.2f}x | {estimates} "
        f"| {row.caught_up or 'never'} | {row.sketches} | {row.spent_s:.0f} |"
    )


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    ratios = [row.ratio for row in rows if math.isfinite(row.ratio)]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    target = lw.SearchTask(CASES[0].tensors, target=options.target).target
    heading = (
        "| case | with the model (us) | random (us) | ratio | random by estimates (us) | trials to reach random's best "
        "| sketches | spent (s) |"
    )
    lines = [
        f"# The best of {options.trials} trials: with the cost model `{options.model}`, and at random",
        "",
        f"{datetime.date.today()}, target `{target}`, loopwright {lw.__version__}, {options.seeds} search(es) of each "
        f"kind. Geometric mean of the ratios: **{mean:.2f}x** (asked: 1.3x).",
        "",
        "Random: drawn evenly from all candidates within the limits, no model, estimate or evolution. The default",
        "schedule counts for none. The winners are timed again in turn.",
        "",
        *table_lines(heading, map(_line, rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
