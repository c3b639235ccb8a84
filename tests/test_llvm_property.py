"""Random legal schedules of random workloads, lowered and compiled, compute what the workload says."""

from functools import cache

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_schedules import draw_step, primitives, workloads
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from loopwright.backends.build import build, lower_to_kernel
from loopwright.dialects.combiner import dtype_name
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Target
from loopwright.passes.pipeline_text import lower_to_loops, schedule_text
from loopwright.passes.primitive import Primitive, ScheduleError

EXAMPLES = 40 if settings.default.derandomize else 2000


@cache
def _primitives() -> dict[str, type[Primitive]]:
    return {name: primitive for name, primitive in primitives().items() if primitive.name != "lw-bind"}


def _inputs(workload: ModuleOp) -> list[np.ndarray]:
    function = next(op for op in workload.ops if isinstance(op, FuncOp))
    rng = np.random.default_rng(0)
    arrays = []
    for kind in function.function_type.inputs:
        dtype = np.dtype(dtype_name(kind.element_type))
        whole = rng.integers(-3, 4, kind.get_shape())
        arrays.append((rng.uniform(-1, 1, kind.get_shape()) if dtype.kind == "f" else whole).astype(dtype))
    return arrays


@given(st.data())
@settings(max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_compiled_schedules_compute_the_same(data: st.DataObject) -> None:
    workload = data.draw(workloads(), label="workload")
    module = workload.clone()
    lower_to_loops(module)
    steps: list[Primitive] = []
    for _ in range(data.draw(st.integers(0, 16), label="attempts")):
        step = draw_step(data.draw, module, _primitives())
        if step is None:
            continue
        try:
            step.run(module)
        except ScheduleError:
            continue
        steps.append(step)
    inputs = _inputs(workload)
    expected = run_te(workload, inputs)
    target = Target(cores=data.draw(st.integers(1, 2)), vector_bytes=64)
    try:
        kernel = build(module, target)
        got = kernel(*inputs)
    except Exception as error:
        raise AssertionError(f"{schedule_text(steps)}\n{workload}") from error
    outputs = got if isinstance(got, tuple) else (got,)
    interpreted = run_kernel(lower_to_kernel(module, target), inputs)
    for mine, again, right in zip(outputs, interpreted, expected, strict=True):
        for name, values in (("interpreted", again), ("compiled", mine)):
            message = f"{name}: {schedule_text(steps)}\n{workload}"
            np.testing.assert_allclose(values, right, rtol=2e-4, atol=2e-4, err_msg=message)
