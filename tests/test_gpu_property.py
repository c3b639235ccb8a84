"""Random schedules for a GPU: lowered, they stay inside of their buffers and give NumPy's result on OpenCL."""

from collections import Counter
from random import Random

import numpy as np
from gpu_programs import opencl_device, run_opencl
from hypothesis import settings
from kernel_bounds import outside
from lowered_runs import exact_inputs
from random_gpu_schedules import gpu_scheduled
from xdsl.utils.exceptions import PassFailedException

from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import schedule_text

SEEDS = range(80) if settings.default.derandomize else range(1000, 3000)


def test_random_schedules_are_right_on_opencl() -> None:
    opencl_device()
    outcomes: Counter[str] = Counter()
    for seed in SEEDS:
        workload, module, steps = gpu_scheduled(Random(seed))
        shown = f"seed {seed}: {schedule_text(steps)}\n{module!s}"
        kernel = module.clone()
        try:
            lower_loop_to_kernel(kernel)
        except PassFailedException as error:
            assert str(error).startswith("lw-lower-loop-to-kernel: "), shown
            outcomes["refused"] += 1
            continue
        kernel.verify()
        assert not outside(kernel), shown
        inputs = exact_inputs(workload)
        for got, wanted in zip(run_opencl(kernel, *inputs), run_te(workload, inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5, err_msg=shown)
        outcomes["run"] += 1
    assert outcomes["run"] > outcomes["refused"], "most of what is drawn is meant to run"
