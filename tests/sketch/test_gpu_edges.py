"""Resizes on a GPU: one kernel, whose reads are clamped at the edges."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

H200 = "cuda model=h200"


def resized(layout: str, size: tuple[int, int], mode: str) -> list[te.Tensor]:
    shape = (1, 6, 5, 9) if layout == "NCHW" else (1, 5, 9, 6)
    data = te.placeholder(shape, name="data")
    return [data, topi.nn.relu(topi.resize2d(data, size, layout=layout, coordinate_mode=mode))]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("size", "mode"), [((10, 18), "half_pixel"), ((7, 4), "align_corners"), ((20, 21), "asymmetric")]
)
@pytest.mark.few(3)
def test_a_resize_is_one_kernel_and_right(layout: str, size: tuple[int, int], mode: str) -> None:
    task = lw.SearchTask(resized(layout, size, mode), target=H200)
    (sketch,) = task.sketches
    assert sketch.template.count('thread="blockIdx.x"') == 1
    rows = sketch.sample(np.random.default_rng(0), 4)
    for schedule in {sketch.schedule(row) for row in rows}:
        found = lw.interpret(task.schedule_module(schedule), *task.reference.inputs)
        np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-5, atol=1e-6)


def test_windows_over_repeated_edges_are_tiled_as_others() -> None:
    data, kernel = te.placeholder((4, 20), name="data"), te.placeholder((8, 4, 3), name="kernel")
    padded = te.compute((4, 21), lambda c, x: te.select(x < 1, data[c, 0], data[c, x - 1]), "padded")
    c, k = te.reduce_axis((0, 4), name="c"), te.reduce_axis((0, 3), name="k")
    conv = te.compute((8, 19), lambda f, x: te.sum(padded[c, x + k] * kernel[f, c, k], axis=[c, k]), name="conv")
    assert all("clamp" not in each.template for each in lw.SearchTask([data, kernel, conv], target=H200).sketches)


def test_on_a_cpu_edges_are_there() -> None:
    task = lw.SearchTask(resized("NCHW", (10, 18), "half_pixel"), target="llvm")
    assert all("clamp" not in each.template for each in task.sketches)


def test_large_resizes_keep_the_kernel_that_pads() -> None:
    data = te.placeholder((1, 19, 65, 65), name="data")
    (sketch,) = lw.SearchTask([data, topi.resize2d(data, (520, 520))], target=H200).sketches
    assert "clamp" not in sketch.template and sketch.template.count('thread="blockIdx.x"') == 2
