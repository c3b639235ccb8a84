"""Random tilings of random workloads, lowered: interpreted and compiled, they touch and compute what they should."""

from random import Random

from effort import examples, exploring
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from lowered_runs import check_lowering, exact_inputs, instances
from tiled_schedules import tiled

from loopwright.dialects.interpret.te import run_te
from loopwright.passes.pipeline_text import schedule_text

MOST = 10_000_000
"""Instances of blocks: producers computed anew for each element of a deep nest make billions."""
EXAMPLES = 2000 if exploring() else examples(60)


@given(st.integers(0, 2**32))
@settings(max_examples=EXAMPLES, phases=[Phase.generate])
def test_tilings_compute_the_same(seed: int) -> None:
    workload, module, steps = tiled(Random(seed))
    assume(instances(module) < MOST)
    inputs = exact_inputs(workload)
    wanted = run_te(workload, inputs)
    half = any(array.dtype.itemsize == 2 for array in inputs)
    try:
        check_lowering(module, inputs, wanted, rtol=2e-2 if half else 2e-5, atol=0.1 if half else 1e-4)
    except Exception as error:
        raise AssertionError(f"{schedule_text(steps)}\n{workload!s}\n{module!s}") from error
