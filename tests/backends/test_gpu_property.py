"""Random schedules for a GPU: right as they are interpreted, without races, and on OpenCL; compiled for CUDA."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest
from effort import exploring, usual
from gpu_programs import CAPABILITIES, compile_cuda, opencl_device, run_opencl
from late_notes import noting
from lowered_runs import exact_inputs
from random_gpu_schedules import TARGET, gpu_scheduled
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from loopwright.backends.cuda.nvrtc_library import libraries
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import schedule_text

SEEDS = range(1000, 3000) if exploring() else range(10, 10 + 6 * usual(14))
COMPILED = SEEDS[: max(20, len(SEEDS) // 2)]
CUDA = "cuda warp_size=32 compute_capability=90"
OLDER = (61, 70)
"""Architectures that only the compiler of CUDA 12 knows."""


def lowered(seeds: Sequence[int], target: str, outcomes: Counter[str]) -> Iterator[tuple[ModuleOp, ModuleOp, str]]:
    """Random programs, each with its kernel for a target and a text to show; those that are refused are counted."""
    for seed in seeds:
        workload, kernel, steps = gpu_scheduled(Random(seed))
        kernel.attributes["lw.target"] = TargetAttr(parse_target(target))
        shown = f"seed {seed}: {schedule_text(steps)}"
        try:
            lower_loop_to_kernel(kernel)
        except PassFailedException as error:
            assert str(error).startswith("lw-lower-loop-to-kernel: "), shown
            outcomes["refused"] += 1
            continue
        kernel.verify()
        yield workload, kernel, shown


def test_random_schedules_are_right_on_opencl() -> None:
    opencl_device()
    outcomes: Counter[str] = Counter()
    for workload, kernel, shown in lowered(SEEDS, TARGET, outcomes):
        inputs = exact_inputs(workload)
        for got, wanted in zip(run_opencl(kernel, *inputs), run_te(workload, inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5, err_msg=shown)
        outcomes["run"] += 1
    assert outcomes["run"] > outcomes["refused"], "most of what is drawn is meant to run"


@pytest.mark.parametrize("target", [TARGET, CUDA])
@pytest.mark.few(1)
def test_random_schedules_are_right_when_interpreted(target: str) -> None:
    outcomes: Counter[str] = Counter()
    for workload, kernel, shown in lowered(SEEDS, target, outcomes):
        inputs = exact_inputs(workload)
        with noting(shown):
            for got, wanted in zip(run_kernel(kernel, inputs), run_te(workload, inputs), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)
        outcomes["run"] += 1
    assert outcomes["run"] > outcomes["refused"], "most of what is drawn is meant to run"


def test_random_schedules_compile_for_cuda() -> None:
    """For each architecture, with what it has: shuffles, maxima by one instruction from sm_80."""
    known = {capability for library in libraries() for capability in library.capabilities}
    capabilities = (*CAPABILITIES, *(capability for capability in OLDER if capability in known))
    outcomes: Counter[str] = Counter()
    for _, kernel, shown in lowered(COMPILED, CUDA, outcomes):
        with noting(shown):
            compile_cuda(kernel, capabilities)
        outcomes["compiled"] += 1
    assert outcomes["compiled"] > outcomes["refused"], "most of what is drawn is meant to compile"
