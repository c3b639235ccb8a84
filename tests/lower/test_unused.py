"""Masks that no access reads are left out of kernels, and loops with them become assembly."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.kernel import MaskOp
from loopwright.passes.lower import write_kernel


@pytest.fixture(scope="module")
def convolution() -> tuple[str, str]:
    """A convolution with stride whose rows no tile divides, and the schedule of a candidate in slices."""
    data, kernel = te.placeholder((1, 128, 1599), name="data"), te.placeholder((128, 128, 3), name="kernel")
    task = lw.SearchTask([data, kernel, topi.nn.conv1d_ncw(data, kernel, 2)], target="cuda model=h200")
    sliced = next(sketch for sketch in task.sketches if sketch.name == "im2col_xx_sliced_large")
    return str(task.module), sliced.schedule(sliced.sample(np.random.default_rng(0), 8)[1])


def test_of_masks_those_are_left_that_are_read(convolution: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for erases in (True, False):
        if not erases:
            monkeypatch.setattr(write_kernel, "erase_unused", lambda func: None)
        module = scheduled_kernel(*convolution)
        masks = [op for op in module.walk() if isinstance(op, MaskOp)]
        read = sum(any(result.uses for result in op.results) for op in masks)
        found[erases] = read, len(masks) - read, print_cuda(module).source.count("fma.rn.f32")
    read, unread, products = found[True]
    assert found[False][0] == read and found[False][1] > 0 == unread
    assert products > 0 == found[False][2]  # products between loads whose masks nobody reads
