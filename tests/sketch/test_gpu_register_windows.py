"""Windows of one channel in the registers of a thread: which are, and that they are right."""

import numpy as np
import pytest
from gpu_programs import check_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.sketch import Sketch

TARGET = "cuda model=h200"


def depthwise(
    images: int, channels: int, extents: tuple[int, int], window: int, stride: int = 1, dilation: int = 1
) -> list[te.Tensor]:
    data = te.placeholder((images, channels, *extents), name="data")
    kernel, bias = (
        te.placeholder((channels, 1, window, window), name="kernel"),
        te.placeholder((channels,), name="bias"),
    )
    found = topi.nn.conv2d_nchw(data, kernel, stride, dilation * (window // 2), dilation, channels)
    return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(found, bias))]


def channels_last(images: int, channels: int, size: int, window: int, stride: int = 1) -> list[te.Tensor]:
    data = te.placeholder((images, size, size, channels), name="data")
    kernel = te.placeholder((window, window, channels, 1), name="kernel")
    return [data, kernel, topi.nn.depthwise_conv2d_nhwc(data, kernel, stride, window // 2)]


def in_registers(task: lw.SearchTask) -> list[Sketch]:
    return [sketch for sketch in task.sketches if sketch.name.endswith("in_registers")]


@pytest.mark.parametrize(
    "tensors",
    [
        depthwise(1, 3, (9, 7), 3),
        depthwise(2, 5, (8, 10), 5, stride=2),
        depthwise(2, 4, (7, 11), 3, dilation=2),
        depthwise(1, 2, (2, 9), 3),
        channels_last(2, 6, 7, 3),
        channels_last(1, 8, 9, 5, stride=2),
        channels_last(1, 7, 5, 3),
    ],
)
@pytest.mark.few(4)
def test_candidates_are_right(tensors: list[te.Tensor]) -> None:
    task = lw.SearchTask(tensors, target=TARGET)
    (sketch,) = in_registers(task)
    rows = sketch.sample(np.random.default_rng(1), 4)
    check_interpreted(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))


def test_other_sums_are_not_in_registers() -> None:
    """Several channels or filters, larger windows, other devices and types."""
    data, kernel = te.placeholder((1, 8, 9, 9), name="data"), te.placeholder((8, 8, 3, 3), name="kernel")
    one, filters = te.placeholder((1, 1, 9, 9), name="one"), te.placeholder((8, 1, 3, 3), name="filters")
    half, small = (te.placeholder(shape, "float16") for shape in ((1, 8, 9, 9), (8, 1, 3, 3)))
    others = [
        [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)],
        [one, filters, topi.nn.conv2d_nchw(one, filters, 1, 1)],
        depthwise(1, 8, (20, 20), 9),
        [half, small, topi.nn.conv2d_nchw(half, small, 1, 1, 1, 8)],
    ]
    assert not any(in_registers(lw.SearchTask(tensors, target=TARGET)) for tensors in others)
    assert not in_registers(lw.SearchTask(depthwise(1, 8, (9, 9), 3), target="opencl model=mali-t860"))


def test_a_thread_loads_each_element_once() -> None:
    """Four rows of results of 3x3 windows that move by 2 are of nine rows of three elements."""
    task = lw.SearchTask(depthwise(1, 64, (40, 40), 3, stride=2), target=TARGET)
    (sketch,) = in_registers(task)
    holes = {"compute_xx_held": 1, "compute_yy_held": 4, "compute_window_threads": 128}
    row = np.array([hole.choices.index(holes[hole.name]) for hole in sketch.holes])
    assert "float pad_temp_local[27]" in str(task.render(sketch.schedule(row), "source"))
