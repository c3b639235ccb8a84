"""Filters that the second-level cache does not keep: where sketches ask for panels of them, and that they are right."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.sketch import Sketch

TARGET = "llvm cores={} vector_bytes=64 vector_registers=32 l1_bytes=49152 l2_bytes={}"


def convolution(
    pixels: int, channels: int, filters: int, window: int = 1, stride: int = 1, constant: bool = True
) -> list[te.Tensor]:
    """A convolution with relu, channels last."""
    data = te.placeholder((1, pixels, pixels, channels), name="data")
    kernel = te.placeholder((window, window, channels, filters), name="kernel", constant=constant)
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, stride, window // 2))]


def product(rows: int, terms: int, columns: int, constant: bool = True) -> list[te.Tensor]:
    a, b = te.placeholder((rows, terms), name="a"), te.placeholder((terms, columns), name="b", constant=constant)
    return [a, b, topi.nn.matmul(a, b)]


def task_of(tensors: list[te.Tensor], l2_bytes: int = 1 << 16, cores: int = 1) -> lw.SearchTask:
    return lw.SearchTask(tensors, target=TARGET.format(cores, l2_bytes))


def asking(task: lw.SearchTask) -> list[Sketch]:
    return [sketch for sketch in task.sketches if "lw-prefetch-panel" in sketch.template]


@pytest.mark.parametrize(
    ("tensors", "l2_bytes", "asks"),
    [
        (convolution(7, 96, 160), 1 << 16, True),
        (convolution(7, 96, 160), 1 << 20, False),  # near
        (convolution(7, 96, 160, constant=False), 1 << 16, False),  # not packed ahead
        (convolution(1, 96, 160), 1 << 16, False),  # each is read once
        (convolution(7, 96, 160, window=3), 1 << 16, False),  # a panel of two vectors takes the cache
        (convolution(7, 96, 160, window=3), 1 << 19, True),
        (convolution(40, 96, 160), 1 << 16, False),  # pixels are the larger operand
        (product(24, 96, 300), 1 << 16, True),
        (product(24, 96, 300), 1 << 20, False),
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_where_panels_are_asked_for_ahead(tensors: list[te.Tensor], l2_bytes: int, asks: bool, cores: int) -> None:
    assert bool(asking(task_of(tensors, l2_bytes, cores))) is asks


@pytest.mark.parametrize(
    ("tensors", "l2_bytes"),
    [
        (convolution(7, 96, 168), 1 << 16),
        (convolution(9, 33, 520, stride=2), 1 << 15),
        (convolution(5, 40, 200, window=3), 1 << 18),
        (convolution(9, 48, 96, window=3, stride=2), 1 << 18),
        (product(21, 67, 333), 1 << 16),
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.few(4)
def test_candidates_are_right(tensors: list[te.Tensor], l2_bytes: int, cores: int) -> None:
    task = task_of(tensors, l2_bytes, cores)
    (sketch,) = asking(task)
    for row in (sketch.default, *sketch.sample(np.random.default_rng(cores), 3)):
        schedule = sketch.schedule(row)
        kernel = task.build(schedule)
        assert kernel.source.count("i32 0, i32 2, i32 1)") > 0, schedule
        np.testing.assert_allclose(
            kernel(*task.reference.inputs), task.reference.expected[0], rtol=1e-4, atol=1e-4, err_msg=schedule
        )


def test_the_untuned_choice_asks_for_panels_of_far_filters() -> None:
    tensors = convolution(14, 512, 512)
    assert "lw-prefetch-panel" in task_of(tensors, 1 << 20).default_schedule
    assert "lw-prefetch-panel" not in task_of(tensors, 1 << 23).default_schedule


def asking_for_blocks(task: lw.SearchTask) -> list[Sketch]:
    return [sketch for sketch in asking(task) if 'buffer="b_panel"' in sketch.template]


@pytest.mark.parametrize(
    ("tensors", "asks"),
    [
        (product(40, 96, 300, constant=False), True),
        (product(40, 96, 80, constant=False), False),  # the cache keeps all panels
        (product(40, 96, 300), False),  # packed ahead: whole panels are asked for
    ],
)
def test_products_ask_for_blocks_of_panels_that_are_laid_out_before_all_tiles(
    tensors: list[te.Tensor], asks: bool
) -> None:
    task = task_of(tensors)
    found = asking_for_blocks(task)
    assert bool(found) is asks
    assert all("_root" in sketch.name for sketch in found)


@pytest.mark.parametrize("shape", [(40, 96, 300), (33, 131, 257), (9, 520, 101), (70, 64, 700)])
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.few(4)
def test_products_that_ask_for_blocks_are_right(shape: tuple[int, int, int], cores: int) -> None:
    task = task_of(product(*shape, constant=False), cores=cores)
    sketches = asking_for_blocks(task)
    assert sketches
    for sketch in sketches:
        for row in (sketch.default, *sketch.sample(np.random.default_rng(cores), 2)):
            schedule = sketch.schedule(row)
            kernel = task.build(schedule)
            assert "i32 0, i32 2, i32 1)" in kernel.source, schedule
            np.testing.assert_allclose(
                kernel(*task.reference.inputs), task.reference.expected[0], rtol=1e-4, atol=1e-4, err_msg=schedule
            )
