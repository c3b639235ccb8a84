"""Print where the wall time of a search goes: when it could begin, who worked, and what its end took.

    python benchmarks/search_timeline.py --trials 512 --limit-s 24 --cases seed_conv matmul_1024

Seconds count from before the task is made. Builders are at work from when they are given a candidate until they answer:
how many there were on average, and for which part of the time none, counts from the first candidate that one was given
until the last trial. Thinking is that of the search itself, by the wall clock and by the CPU time of its thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases import CASES, GPU_CASES
from drawn_cases import drawn
from operator_cases import CASES as OPERATORS

import loopwright as lw
from loopwright.search.measure.measurer import Measurer
from loopwright.search.report.pace import pace_of
from loopwright.search.tune.loop import TaskTuner

AFTER = (1, 32, 64, 128, 256, 512)
"""Trials after which the best is printed."""


class Timeline:
    """Moments of one search, in seconds since this was made."""

    def __init__(self) -> None:
        self._start_s = time.monotonic()
        self.at: dict[str, float] = {}
        self.work: dict[str, list[tuple[float, float]]] = {"builder": [], "runner": []}
        self.thinking: list[tuple[float, float, float]] = []
        """When each batch was begun and was there, and the CPU seconds of its thread."""
        self._begun: dict[int, float] = {}

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._start_s

    def mark(self, name: str) -> None:
        """Remember that something came to be now; the first time counts."""
        self.at.setdefault(name, self.now_s)

    def give(self, original: Callable[..., None], measurer: Any, worker: Any, *rest: Any) -> None:
        self._begun[id(worker)] = self.now_s
        original(measurer, worker, *rest)

    def answered(self, original: Callable[..., None], measurer: Any, worker: Any, *rest: Any) -> None:
        self.work[worker.role].append((self._begun[id(worker)], self.now_s))
        original(measurer, worker, *rest)

    def think(self, original: Callable[..., Any], *arguments: Any) -> Any:
        begin_s, cpu_s = self.now_s, time.thread_time()
        found = original(*arguments)
        self.thinking.append((begin_s, self.now_s, time.thread_time() - cpu_s))
        return found

    def then(self, name: str) -> Callable[..., Any]:
        def marked(original: Callable[..., Any], *arguments: Any) -> Any:
            found = original(*arguments)
            self.mark(name)
            return found

        return marked

    def first(self, name: str) -> Callable[..., Any]:
        def marked(original: Callable[..., Any], *arguments: Any) -> Any:
            self.mark(name)
            return original(*arguments)

        return marked


@contextmanager
def watched(timeline: Timeline) -> Iterator[None]:
    """Note what a search does meanwhile."""
    watches: list[tuple[type, str, Callable[..., Any]]] = [
        (Measurer, "_give", timeline.give),
        (Measurer, "_answered", timeline.answered),
        (Measurer, "_check_preflight", timeline.first("workers there")),
        (Measurer, "__enter__", timeline.then("measurer ready")),
        (Measurer, "close", timeline.first("closing")),
        (TaskTuner, "propose", timeline.think),
        (TaskTuner, "enter", timeline.then("data there")),
        (TaskTuner, "finish", timeline.first("last trial")),
    ]
    originals = [(kind, name, getattr(kind, name)) for kind, name, _ in watches]
    for (kind, name, original), (_, _, watch) in zip(originals, watches, strict=True):
        setattr(kind, name, lambda *arguments, o=original, w=watch: w(o, *arguments))
    try:
        yield
    finally:
        for kind, name, original in originals:
            setattr(kind, name, original)


def _load(spans: list[tuple[float, float]], begin_s: float, end_s: float) -> tuple[float, float]:
    """Return how many of the spans there were on average between two moments, and the part of that time with none."""
    inside = sorted((max(a, begin_s), min(b, end_s)) for a, b in spans if b > begin_s and a < end_s)
    covered, until_s = 0.0, begin_s
    for a, b in inside:
        covered += max(0.0, b - max(a, until_s))
        until_s = max(until_s, b)
    length = max(1e-9, end_s - begin_s)
    return sum(b - a for a, b in inside) / length, 1.0 - covered / length


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--limit-s", type=float, default=24.0, help="seconds of each search, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="+", default=["seed_conv"])
    parser.add_argument("--drawn", type=int, help="a seed of `drawn_cases.py`, whose cases may be named too")
    parser.add_argument("--output", type=Path, help="a file to add each search's moments to, as a line of JSON")
    options = parser.parse_args()
    known = {each.name: each.operator.tensors for each in OPERATORS}
    known |= {each.name: each.tensors for each in (CASES if options.target.startswith("llvm") else GPU_CASES)}
    if options.drawn is not None:
        known |= {each.name: each.operator.tensors for each in drawn(options.drawn)}
    for name in options.cases:
        timeline = Timeline()
        with watched(timeline):
            task = lw.SearchTask(known[name](), target=options.target)
            timeline.mark("task made")
            asked = lw.TuningOptions(
                num_measure_trials=options.trials, time_limit_s=options.limit_s, seed=options.seed, progress=False
            )
            result = task.tune(asked)
        timeline.mark("end")
        _print(name, timeline, result)
        if options.output is not None:
            trials = [(r.timestamp, r.time_s, r.build_s, r.run_s, r.sketch, list(r.decisions)) for r in result.trials]
            line = {
                "case": name,
                "at": timeline.at,
                "thinking": timeline.thinking,
                "work": timeline.work,
                "trials": trials,
            }
            with options.output.open("a") as file:
                file.write(json.dumps(line) + "\n")


def _print(name: str, timeline: Timeline, result: lw.TuningResult) -> None:
    trials, at = result.trials, timeline.at
    builds = timeline.work["builder"]
    begin_s = min((a for a, _ in builds), default=at["measurer ready"])
    builders, none_builds = _load(builds, begin_s, at["last trial"])
    _, none_runs = _load(timeline.work["runner"], begin_s, at["last trial"])
    print(f"{name}: {len(trials)} trials in {at['end']:.1f} s, best {result.best.time_s * 1e6:.2f} us")
    moments = sorted((s, what) for what, s in at.items())
    print("  " + ", ".join(f"{what} {s:.2f}" for s, what in [*moments, (begin_s, "first candidate")]))
    print(f"  builders at work {builders:.1f}, none {none_builds:.0%}; device idle {none_runs:.0%}")
    walls, cpus = [b - a for a, b, _ in timeline.thinking], [cpu for _, _, cpu in timeline.thinking]
    print(f"  thinking {sum(walls):.1f} s, {sum(cpus):.1f} s of CPU; batches {[round(wall, 2) for wall in walls]}")
    means = [sum(getattr(r, part) for r in trials) / len(trials) for part in ("build_s", "run_s")]
    best = {k: round(min(r.time_s for r in trials[:k]) * 1e6, 2) for k in AFTER if k <= len(trials)}
    print(f"  a build takes {means[0]:.3f} s, a run {means[1]:.3f} s; best after {best}")
    if (pace := pace_of(trials)) is not None and pace.near_s is not None:
        print(f"  near the best after {pace.near_trials} trials, {pace.near_s:.1f} s after the first", flush=True)


if __name__ == "__main__":
    main()
