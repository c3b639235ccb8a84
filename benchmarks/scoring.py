"""Print how many candidates a second a search scores on one core, and how well cost models rank recorded ones.

Scoring is limits, features and prediction of random candidates of every GPU sketch of the last convolution of
ResNet-50 (target `cuda model=h200`). Times are of the processor, the least of several rounds, on one thread. With
`--records` and a workload as the command line names it, each batch of its trials is predicted before it is learned:

    python benchmarks/scoring.py --records conv2d.jsonl --workload conv2d --args 1 7 7 512 512 --target llvm
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import loopwright as lw
from loopwright.search.cost_model import MODELS, make_model, relative_speed
from loopwright.search.cost_model.samples import ranking_by_round, samples_of
from loopwright.search.named_workloads import named_workloads
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.strategies.make import STRATEGIES
from loopwright.search.task import SearchTask
from loopwright.search.template.in_search import TemplateSpace

ROWS = 4096
SAMPLES = 256
"""Measured candidates that the model of the benchmark has learned from: four rounds of a search of 512 trials."""
ROUNDS = 7


def least_cpu_s(function: Callable[[], object]) -> float:
    """The least processor time of several calls, in seconds: what a core that does nothing else would take."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def fitted_model(name: str, sketches: list[Sketch], rng: np.random.Generator) -> object:
    """A cost model that has learned the rules' estimates, with noise, of so many candidates."""
    rows = [sketch.sample(rng, SAMPLES // len(sketches)) for sketch in sketches]
    features = np.concatenate([s.features(r) for s, r in zip(sketches, rows, strict=True)])
    times_s = np.concatenate([_estimates(s, r) for s, r in zip(sketches, rows, strict=True)])
    model = make_model(name)
    model.fit(features, relative_speed(times_s * np.exp2(rng.normal(size=len(times_s)) / 4)))
    return model


def _estimates(sketch: Sketch, rows: np.ndarray) -> np.ndarray:
    assert sketch.prior is not None
    return np.asarray(sketch.prior(sketch.columns(rows)))


def print_speed(target: str, name: str) -> float:
    """Print the table for a target; returns candidates per second over all sketches."""
    task = SearchTask(named_workloads()["conv2d"], (1, 7, 7, 512, 512, 3, 3, 1, 1), target)
    rng = np.random.default_rng(0)
    model = fitted_model(name, task.sketches, rng)
    print(f"conv2d 512x7x7 3x3 on '{target}', model '{name}', {ROWS} candidates at once, one core")
    print(f"{'sketch':<24}{'limits':>9}{'features':>10}{'predict':>9}{'all':>9}  candidates/s")
    whole_s = 0.0
    for sketch in task.sketches:
        sizes = [len(h.choices) for h in sketch.holes]
        rows = rng.integers(0, sizes, size=(ROWS, len(sizes)))
        features = sketch.features(rows)
        parts = (
            least_cpu_s(lambda s=sketch, r=rows: s.legal(r)),
            least_cpu_s(lambda s=sketch, r=rows: s.features(r)),
            least_cpu_s(lambda f=features: model.predict(f)),  # type: ignore[attr-defined]
        )
        whole_s += sum(parts)
        shown = "".join(f"{part / ROWS * 1e6:>9.2f}" for part in (*parts, sum(parts)))
        print(f"{sketch.name:<24}{shown[:9]}{shown[9:18]:>10}{shown[18:]}  {ROWS / sum(parts):>12,.0f}")
    rate = ROWS * len(task.sketches) / whole_s
    print(f"{'all (us a candidate)':<24}{'':>28}{1e6 / rate:>9.2f}  {rate:>12,.0f}")
    return rate


def print_quality(path: str, workload: str, args: list[object], target: str) -> None:
    """Print each model's rank correlation and recall, round by round, on the trials of a record file."""
    task = SearchTask(named_workloads()[workload], tuple(args), target)
    history = samples_of(path, [task])
    print(f"\n{workload}{tuple(args)} on '{target}': {len(history.times_s)} trials; each batch before it is measured")
    for name in MODELS:
        found = {k: q for k, q in ranking_by_round(history, make_model(name)).items() if q is not None}
        if found:
            correlation = np.mean([q.rank_correlation for q in found.values()])
            recall = np.mean([q.recall for q in found.values()])
            rounds = " ".join(f"{k}:{q.rank_correlation:.2f}" for k, q in found.items())
            print(f"{name:<9} rank correlation {correlation:.2f}, {recall:.0%} of the best quarter  ({rounds})")


def print_fit(name: str) -> None:
    """Print how long a model takes to learn from 10,000 records of eight tasks."""
    rng = np.random.default_rng(0)
    task = SearchTask(named_workloads()["conv2d"], (1, 7, 7, 512, 512, 3, 3, 1, 1), "cuda model=h200")
    sketch = task.sketches[0]
    rows = sketch.sample(rng, 10_000)
    features = sketch.features(rows)[np.arange(10_000) % len(rows)]
    tasks = np.arange(10_000) % 8
    times_s = _estimates(sketch, rows)[np.arange(10_000) % len(rows)] * np.exp2(rng.normal(size=10_000) / 4)
    model = make_model(name)
    scores = relative_speed(times_s, tasks)
    start = time.process_time()
    model.fit(features, scores, tasks)
    print(f"fit of '{name}' to 10,000 records: {time.process_time() - start:.2f} s")


def print_proposals(after: int) -> None:
    """Print the processor time of a batch of 64 configs of a large template, learning from `after` trials included.

    For strategies with the cost models of sketches, learning and proposing apart.
    """
    task = lw.TemplateTask("conv2d_no_batching", (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1)), "cuda model=h200")
    rng = np.random.default_rng(0)

    def simulated(_: object, configs: Sequence[object]) -> np.ndarray:
        return np.exp2(rng.normal(size=len(configs)))

    trials = lw.tuners.RandomTuner(task, seed=5).tune(after, simulated).trials
    tuner = lw.tuners.GradientBoostingTuner(task, plan_size=64)
    tuner.resume(trials)

    def propose() -> None:
        task.features(task.config_space.rows(tuner.propose(64)))

    took_s = least_cpu_s(propose)
    print(f"a batch of 64 of {len(task.config_space):,} configs after {after} trials: {took_s:.2f} s")
    for name in ("annealing", "evolution"):
        for learner in ("trees", "rank"):
            strategy, model = STRATEGIES[name]([TemplateSpace(task)], seed=0, note=print), make_model(learner)
            for trial in trials:
                strategy.observe(0, trial.decisions, trial.time_s)
            features, times_s = strategy.training_set()
            fit_s = least_cpu_s(partial(model.fit, features, relative_speed(times_s)))
            print(
                f"  {name} with '{learner}': {fit_s:.2f} s, {least_cpu_s(partial(strategy.propose, model, 64)):.2f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="trees", choices=[n for n in MODELS if n != "random"])
    parser.add_argument("--records", help="a record file to rank")
    parser.add_argument("--workload", default="conv2d", choices=sorted(named_workloads()))
    parser.add_argument("--args", nargs="*", default=[], help="its arguments, in order")
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    if options.records:
        given = [json.loads(a) if a[:1] in "-0123456789tf" else a for a in options.args]
        print_quality(options.records, options.workload, given, options.target)
        return
    print_speed("cuda model=h200", options.model)
    for name in ("trees", "rank"):
        print_fit(name)
    for after in (192, 1000):
        print_proposals(after)


if __name__ == "__main__":
    main()
