"""The candidate that analytic models like best, which untuned kernels for CUDA devices take."""

from math import prod

import numpy as np
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.kernel import LaunchOp
from loopwright.search.named_workloads import conv2d_nhwc, matmul
from loopwright.search.sketch.likely import likeliest


def test_a_convolution_to_few_channels_keeps_the_device_busy() -> None:
    """The defaults' tiles are so large that 4 of the 132 multiprocessors of an H200 would work."""
    task = lw.SearchTask(lambda: conv2d_nhwc(1, 64, 64, 32, 9, 3, 3), target="cuda model=h200")
    first = task.sketches[0]

    def blocks(schedule: str) -> int:
        lowered = lower_to_kernel(task.schedule_module(schedule), task.target)
        return max(prod(op.grid_size) for op in lowered.walk() if isinstance(op, LaunchOp))

    assert blocks(first.schedule(first.default)) < 16
    assert blocks(task.default_schedule) >= 64


@pytest.mark.parametrize("target", ["cuda model=h200", "llvm cores=2"])
def test_an_untuned_schedule_is_the_same_each_time(target: str) -> None:
    schedules = {lw.SearchTask(lambda: matmul(96, 200, 64), target=target).default_schedule for _ in range(2)}
    assert len(schedules) == 1


def test_no_candidate_that_is_looked_at_has_a_lower_estimate() -> None:
    task = lw.SearchTask(lambda: matmul(128, 768, 768), target="cuda model=h200")
    sketch = task.sketches[0]
    rows = np.concatenate([sketch.default[None], sketch.population.sample(np.random.default_rng(0), 512)])
    estimates_s = sketch.estimate(rows)
    assert estimates_s is not None
    chosen = likeliest(sketch)
    assert chosen == task.default_schedule == sketch.schedule(rows[int(np.argmin(estimates_s))])


def test_defaults_stay_where_nothing_is_estimated_and_elsewhere() -> None:
    for name, target in (
        ("transpose", "cuda model=h200"),
        ("dense", "llvm cores=2"),
        ("dense", "opencl model=mali-t860"),
    ):
        task = lw.SearchTask(SAMPLES[name], target=target)
        assert task.default_schedule == task.sketches[0].schedule(task.sketches[0].default)
