"""Candidates whose blocks of threads take no more shared memory than their target has, as lowering counts it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.scheduled import scheduled_kernel

H200, MALI = "cuda model=h200", "opencl model=mali-g52"


def winograd(outputs: int, inputs: int, *taps: int) -> list[te.Tensor]:
    """Filters as weights are given, which threads of a block read at a distance."""
    data = te.placeholder((1, inputs, *[8] * len(taps)), name="data")
    kernel = te.placeholder((outputs, inputs, *taps), name="kernel")
    convolve = topi.nn.conv2d_winograd_nchw if len(taps) == 2 else topi.nn.conv3d_winograd_ncdhw
    return [data, kernel, convolve(data, kernel)]


def grouped(channels: int, filters: int, rows: int, columns: int) -> list[te.Tensor]:
    """Two groups, and results of one row, so that the axis before the last is that of filters."""
    data = te.placeholder((1, channels, rows, columns), name="data")
    kernel = te.placeholder((filters, channels // 2, rows, 5), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, groups=2)]


@pytest.mark.parametrize(
    ("target", "make"),
    [
        (MALI, lambda: winograd(500, 64, 3, 3)),  # two rows of filters: 36,000 bytes
        (H200, lambda: winograd(160, 80, 3, 3, 3)),  # a loop around inputs and filters, so inputs are a remainder
        (MALI, lambda: winograd(48, 48, 3, 3, 3)),
        (MALI, lambda: grouped(36, 52, 5, 23)),  # of both groups, and all channels in between
        (H200, lambda: grouped(512, 120, 3, 32)),
    ],
    ids=["rows of filters", "volumes", "small volumes", "groups", "large groups"],
)
def test_candidates_fit_what_the_target_has(target: str, make: Callable[[], list[te.Tensor]]) -> None:
    task = lw.SearchTask(make, target=target)
    for sketch in task.sketches:
        for row in (sketch.default, *sketch.sample(np.random.default_rng(0), 2)):
            scheduled_kernel(str(task.module), sketch.schedule(row))
