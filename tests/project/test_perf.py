"""Times of parts beside something else that is timed in the same run; run with `-m perf` on a quiet machine.

Seconds mean nothing on a machine that others use: `benchmarks/` prints them. Both sides of a comparison here are one
core's processor time, the least of several rounds that alternate.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import template_workloads  # noqa: F401 (registers its template)
from analytic_cost import analytic_cost

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm.jit import compile_text
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule
from loopwright.search.cost_model import make_model, relative_speed
from loopwright.search.features.catalogue import names
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.named_workloads import conv2d

pytestmark = pytest.mark.perf

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def least_s(*actions: Callable[[], object], rounds: int = 5) -> list[float]:
    """The least processor time of each action, in seconds, over rounds that take them in turn."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for number, action in enumerate(actions):
            start_s = time.process_time()
            action()
            best[number] = min(best[number], time.process_time() - start_s)
    return best


@pytest.fixture
def compile_time(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("compile_time", None)
    import compile_time

    return compile_time


def test_scheduling_and_lowering_take_less_than_llvm(compile_time: ModuleType) -> None:
    """40 steps, lowering and printing: at most as long as LLVM takes for what comes out (measured: 0.5 of it)."""
    module, schedule = compile_time.workload(), ",".join(compile_time.STEPS)
    text = compile_time.compile_once(module, schedule)[1]
    ours_s, llvm_s = least_s(lambda: compile_time.compile_once(module, schedule), lambda: compile_text(text.source))
    assert ours_s < llvm_s


def test_reading_a_schedule_takes_less_than_applying_it(compile_time: ModuleType) -> None:
    text = ",".join(compile_time.STEPS)

    def apply() -> None:
        apply_schedule(compile_time.workload(), text)

    read_s, applied_s = least_s(lambda: parse_schedule(text), apply)
    assert read_s < 0.5 * applied_s


def test_a_population_is_scored_faster_than_its_candidates() -> None:
    """Limits, features and predictions of 4096 candidates at once beside reading features from the IR of one."""
    rng = np.random.default_rng(0)
    task = lw.SearchTask(conv2d, (1, 7, 7, 512, 512), "cuda model=h200")
    sketch, model = task.sketches[0], make_model("trees")
    rows = rng.integers(0, [len(h.choices) for h in sketch.holes], size=(4096, sketch.n_decisions))
    model.fit(sketch.features(rows[:256]), rng.random(256))
    one = sketch.schedule(sketch.sample(rng, 1)[0])
    population_s, alone_s = least_s(
        lambda: (sketch.legal(rows), model.predict(sketch.features(rows))),
        lambda: features_of_schedule(task.module, task.target, one),
        rounds=3,
    )
    assert 100 * population_s / len(rows) < alone_s


@pytest.mark.parametrize("name", ["trees", "rank"])
def test_learning_grows_no_faster_than_the_records(name: str) -> None:
    def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
        features = np.random.default_rng(0).random((n, len(names()) + 1)).astype(np.float32)
        return features, relative_speed(np.exp2(4 * features[:, 0] + 3 * (features[:, 1] > 0.6)))

    few, many = samples(1_000), samples(10_000)
    few_s, many_s = least_s(lambda: make_model(name).fit(*few), lambda: make_model(name).fit(*many), rounds=3)
    assert many_s < 15 * few_s


def test_the_interpreter_of_expressions_is_no_loop_over_points() -> None:
    """A product of 256^3 multiplications beside one of 32^3 takes less than their number says, 512 times."""

    def product(n: int) -> Callable[[], object]:
        a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
        module = te.create_module([a, b, topi.matmul(a, b)])
        arrays = [np.ones((n, n), np.float32)] * 2
        return lambda: run_te(module, arrays)

    small_s, large_s = least_s(product(32), product(256))
    assert large_s < 50 * small_s


@pytest.mark.parametrize("count", [192, 1000])
@pytest.mark.parametrize("options", [{}, {"loss_type": "reg", "feature_type": "curve"}], ids=["usual", "slowest"])
def test_proposing_does_not_grow_with_the_space(count: int, options: dict[str, Any]) -> None:
    """A batch of 64, the fit included: of ten million configs beside a hundred thousand of the same template."""
    spans = []
    for extent, channels in ((7, 512), (2, 6)):
        args = (1, extent, extent, channels, channels, 3, 3, (1, 1), (1, 1))
        task = lw.TemplateTask("conv2d_no_batching", args, "cuda model=h200")
        trials = lw.tuners.RandomTuner(task, seed=5).tune(count, analytic_cost).trials
        tuner = lw.tuners.GradientBoostingTuner(task, plan_size=64, **options)
        tuner.resume(trials)

        spans.append((len(task.config_space), partial(_propose, tuner, task)))
    assert spans[0][0] > 1e7 > 50 * spans[1][0]
    large_s, small_s = least_s(spans[0][1], spans[1][1], rounds=3)
    assert large_s < 3 * small_s


def _propose(tuner: lw.tuners.GradientBoostingTuner, task: lw.TemplateTask) -> None:
    task.features(task.config_space.rows(tuner.propose(64)))  # fits again, too


def test_importing_takes_less_than_numpy_and_a_model() -> None:
    """`import loopwright` in a fresh interpreter beside the import of scikit-learn's trees, which it does without."""

    def fresh(statement: str) -> float:
        program = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
        runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(3)]
        return min(float(run.stdout) for run in runs)

    assert fresh("import loopwright") < 0.5 * fresh("import sklearn.ensemble")
