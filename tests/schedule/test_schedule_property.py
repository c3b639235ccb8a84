"""Random legal schedules of random workloads compute what the workload says, and are their own text."""

from collections import Counter
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from effort import examples, exploring
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from late_notes import noting
from random_schedules import draw_step, primitives, workloads
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from loopwright.dialects.element import dtype_name
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.pipeline_text import apply_schedule, lower_to_loops, parse_schedule, schedule_text
from loopwright.passes.primitive import Primitive, ScheduleError

# The profile with fixed seeds is for every run; `--hypothesis-profile=explore` looks for what it does not find.
EXAMPLES = 3000 if exploring() else examples(200)


@cache
def _primitives() -> dict[str, type[Primitive[Any]]]:
    return primitives()


@given(st.data())
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_random_schedules_compute_the_same(data: st.DataObject) -> None:
    workload = data.draw(workloads(), label="workload")
    module = workload.clone()
    lower_to_loops(module)
    steps: list[Primitive[Any]] = []
    random = data.draw(st.randoms(use_true_random=False), label="random")
    for _ in range(data.draw(st.integers(1, 24), label="attempts")):
        step = draw_step(random, module, _primitives())
        if step is None:
            continue
        before = str(module) if not steps else None
        try:
            step.run(module)
        except ScheduleError as error:
            assert before is None or str(module) == before, f"a refusal changed the program: {error}"
            assert str(error).startswith(f"{step}: ")
            continue
        steps.append(step)
        event(step.name)
        try:
            module.verify()
        except Exception as error:
            raise AssertionError(f"invalid after {schedule_text(steps)}\n{workload}\n{error}") from None
    _check(workload, module, steps)


def _check(workload: ModuleOp, module: ModuleOp, steps: list[Primitive[Any]]) -> None:
    text, printed = schedule_text(steps), str(module)
    assert parse_schedule(text) == tuple(steps), text
    with noting(text, workload, printed):
        again = Parser(_context(), printed).parse_module()
        assert str(again) == printed
        replayed = workload.clone()
        apply_schedule(replayed, text)
        assert str(replayed) == printed
        inputs = random_inputs(workload)
        results = run_loops(module, inputs)
        for result, wanted in zip(results, run_te(workload, inputs), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def random_inputs(workload: ModuleOp) -> list[np.ndarray]:
    """Values that differ from each other, in an order of no use, and whose sums are exact."""
    func = next(f for f in workload.ops if isinstance(f, FuncOp))
    arrays = []
    for position, kind in enumerate(func.function_type.inputs):
        assert isinstance(kind, TensorType)
        shape, dtype = kind.get_shape(), dtype_name(kind.get_element_type())
        size = prod(shape)
        values = np.random.default_rng(position).permutation(size) - size // 2
        scaled = values % 256 - 128 if dtype == "int8" else values / 8
        arrays.append(scaled.astype(dtype).reshape(shape))
    return arrays


@cache
def _context() -> Context:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


@pytest.mark.slow(1.2)
def test_the_offered_steps_are_legal() -> None:
    """Every step that `schedule_space` offers on a scheduled program applies, and computes the same."""
    rng = np.random.default_rng(7)
    applied: Counter[str] = Counter()
    for seed in range(6):
        workload = _fixed_workload(seed)
        module = workload.clone()
        lower_to_loops(module)
        for _ in range(6):
            offers = [s for c in _primitives().values() for s in c.schedule_space(Context(), module)]
            for step in offers:
                step.check(module)
            by_name: dict[str, list[Primitive[Any]]] = {}
            for step in offers:
                by_name.setdefault(step.name, []).append(step)
            chosen = by_name[sorted(by_name)[rng.integers(len(by_name))]]
            step = chosen[rng.integers(len(chosen))]
            step.run(module)
            module.verify()
            applied[step.name] += 1
        inputs = random_inputs(workload)
        for result, wanted in zip(run_loops(module, inputs), run_te(workload, inputs), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    assert len(applied) > 5


def _fixed_workload(seed: int) -> ModuleOp:
    from loopwright import te, topi

    if seed % 2:
        a, b = te.placeholder((5, 7), name="A"), te.placeholder((7, 6), name="B")
        return te.create_module([a, b, topi.nn.relu(topi.matmul(a, b))])
    data, w = te.placeholder((1, 2, 5, 5), name="data"), te.placeholder((3, 2, 3, 3), name="w")
    return te.create_module([data, w, topi.nn.relu(topi.nn.conv2d_nchw(data, w, 1, 1))])
