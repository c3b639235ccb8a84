"""The steps from loops to a kernel: each prints, parses back and verifies, and together they are the whole lowering."""

import functools
from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from effort import level, spread, usual
from lowered_runs import exact_inputs, instances
from random_gpu_schedules import gpu_scheduled
from tiled_schedules import tiled
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from loopwright.backends.context import create_context
from loopwright.dialects.interpret.loop import InterpretationError, run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.loop import ForOp, LoadOp
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.passes.lower.lower_loop_to_kernel import STEPS, lower_loop_to_kernel
from loopwright.passes.lower.place_buffers import PlaceBuffers
from loopwright.passes.pipeline_text import schedule_text
from loopwright.passes.primitive import ScheduleError
from loopwright.passes.schedule.unroll import Unroll

MOST = 20_000
"""Instances of blocks that are interpreted."""
TARGETS = ("opencl", "cuda warp_size=32 compute_capability=90", "cuda warp_size=32 compute_capability=70")

PIPELINED = (7, 55, 68, 99, 102, 125, 159, 164)
"""Seeds of schedules with copies that run ahead."""


def step_by_step(module: ModuleOp) -> Iterator[ModuleOp]:
    """What each step makes of a module that is printed and parsed before."""
    for step in STEPS:
        again = Parser(create_context(), str(module)).parse_module()
        assert str(again) == str(module)
        again.verify()
        step().apply(Context(), again)
        module = again
        yield module


def held_to_the_whole(module: ModuleOp, shown: str) -> list[ModuleOp]:
    """Lower in steps and at once; return what each step makes, nothing where that is refused for the same reason."""
    whole = module.clone()
    try:
        lower_loop_to_kernel(whole)
    except PassFailedException as error:
        with pytest.raises(PassFailedException) as refusal:
            list(step_by_step(module))
        assert str(refusal.value) == str(error), shown
        return []
    steps = list(step_by_step(module))
    assert str(steps[-1]) == str(whole), shown
    return steps


@functools.cache
def cpu_steps(seed: int) -> tuple[ModuleOp, ModuleOp, list[ModuleOp]]:
    """A workload, a tiled schedule of it, and what each step makes of that."""
    workload, module, steps = tiled(Random(seed))
    return workload, module, held_to_the_whole(module, schedule_text(steps))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.few(2)
def test_cpu(seed: int) -> None:
    workload, module, steps = cpu_steps(seed)
    assert steps
    if instances(module) > MOST:
        return
    inputs = exact_inputs(workload)
    for step in steps[:-1]:
        for got, wanted in zip(run_loops(step, inputs), run_te(workload, inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-2, atol=0.1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.few(1)
def test_gpu(target: str) -> None:
    attribute: Attribute = TargetAttr(parse_target(target))
    seeds, lowered = (*range(10, 10 + 3 * usual(4)), *spread(PIPELINED, 4 * level())), 0
    for seed in seeds:
        _, module, steps = gpu_scheduled(Random(seed))
        module.attributes["lw.target"] = attribute
        lowered += bool(held_to_the_whole(module, f"seed {seed}: {schedule_text(steps)}"))
    assert 2 * lowered >= len(seeds)


@pytest.mark.slow(1.2)
def test_what_steps_decide_stands_in_the_loops() -> None:
    found, wanted = Counter[str](), ("lw_loop.if", "lw_loop.versions", "as", "while", "lanes")
    for seed in range(20):
        if all(found[what] for what in wanted):
            break
        *_, last, _ = cpu_steps(seed)[2]
        for op in last.walk():
            found[op.name] += 1
            if isinstance(op, ForOp):
                found["as"] += op.written is not None
                found["while"] += op.ends is not None
            if isinstance(op, LoadOp):
                found["lanes"] += op.lanes is not None
    assert all(found[what] for what in wanted)


def block_only(where: str, loop: str = "") -> str:
    return f"""
func.func @f(%b: memref<8xf32> {{lw.name = "b", lw.output}}) attributes {{lw.lowered_by = "lw-place-predicates"}} {{
  lw_loop.for i in 8{loop} {{
    {where} {{
      lw_loop.block b (i in 8 = i) writes %b[i] : memref<8xf32> {{
        %0 = arith.constant 1.0 : f32
        lw_te.yield %0 : f32
      }}
    }}
  }}
  func.return
}}"""


@pytest.mark.parametrize(
    ("where", "loop"),
    [
        ("lw_loop.if (5 - i >= 0)", ""),
        ("lw_loop.for j in 1", " while (5 - i >= 0)"),
        ("lw_loop.for j in 1", " parallel as serial while (5 - i >= 0)"),
    ],
)
def test_predicates_are_interpreted(where: str, loop: str) -> None:
    module = Parser(create_context(), block_only(where, loop)).parse_module()
    with pytest.raises(InterpretationError, match="element 6 of output 'b' is never written"):
        run_loops(module, [])
    (all_of_it,) = run_loops(Parser(create_context(), block_only("lw_loop.versions (5 - i >= 0)")).parse_module(), [])
    np.testing.assert_array_equal(all_of_it, np.ones(8, "float32"))


def test_no_schedule_step_is_legal_between_them() -> None:
    _, module, _ = tiled(Random(0))
    for step in STEPS[: STEPS.index(PlaceBuffers) + 1]:
        step().apply(Context(), module)
    with pytest.raises(ScheduleError, match="schedule steps come before all of lowering"):
        Unroll("b", "i").run(module)
