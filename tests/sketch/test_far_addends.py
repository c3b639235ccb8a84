"""Residuals of convolutions that come from far away: asked for a tile ahead, and added up right."""

import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi

TARGET = "llvm cores={} vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes={}"


def with_residual(pixels: int, channels: int, filters: int) -> list[te.Tensor]:
    """A convolution of one tap, to which a bias and as many elements as results are added; channels last."""
    data = te.placeholder((1, pixels, pixels, channels), name="data")
    kernel = te.placeholder((1, 1, channels, filters), name="kernel", constant=True)
    bias = te.placeholder((1, 1, 1, filters), name="bias")
    residual = te.placeholder((1, pixels, pixels, filters), name="residual")
    summed = topi.add(topi.add(topi.nn.conv2d_nhwc(data, kernel, 1, 0), bias), residual)
    return [data, kernel, bias, residual, topi.nn.relu(summed)]


@pytest.mark.parametrize(("l2_bytes", "cores"), [(1 << 14, 1), (1 << 14, 2), (1 << 20, 1)])
@pytest.mark.few(2)
def test_the_residual_is_asked_for_where_results_are_more_than_the_cache_keeps(l2_bytes: int, cores: int) -> None:
    task = lw.SearchTask(with_residual(9, 24, 80), target=TARGET.format(cores, l2_bytes))
    asked = 'lw-prefetch{block="T_relu" buffer="residual"'
    assert {asked in sketch.template for sketch in task.sketches} == {l2_bytes == 1 << 14}
    assert not any('buffer="bias"' in sketch.template for sketch in task.sketches)
    for sketch in task.sketches[:2]:
        check_kernels(task, sketch, cores, 2)
