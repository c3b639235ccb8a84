"""Products of few rows on CPUs: dot products in lanes where an operand is contiguous along the terms."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

CPU = "llvm cores=2 vector_bytes=32"


def dense(rows: int, terms: int, columns: int, dtype: str = "float32", constant: bool = False) -> list[te.Tensor]:
    data = te.placeholder((rows, terms), dtype, name="data")
    weight = te.placeholder((columns, terms), dtype, name="weight", constant=constant)
    bias = te.placeholder((columns,), dtype, name="bias")
    return [data, weight, bias, topi.nn.relu(topi.dense(data, weight, bias))]


def activated(rows: int, terms: int, columns: int) -> list[te.Tensor]:
    data, weight, bias, _ = dense(rows, terms, columns)
    return [data, weight, bias, topi.nn.gelu(topi.dense(data, weight, bias))]


def scores(heads: int, rows: int, columns: int) -> list[te.Tensor]:
    q, k = te.placeholder((heads, rows, 64), name="q"), te.placeholder((heads, columns, 64), name="k")
    return [q, k, topi.batch_matmul(q, k, transpose_b=True)]


def many_columns() -> list[te.Tensor]:
    """The few are on the other side."""
    data, weight = te.placeholder((50, 90), name="data"), te.placeholder((3, 90), name="weight")
    return [data, weight, topi.dense(data, weight)]


def one_pixel() -> list[te.Tensor]:
    """A convolution of one pixel for each of three images, as of squeezed ones: terms are neighbours too."""
    data, kernel = te.placeholder((3, 70, 1, 1), name="data"), te.placeholder((29, 70, 1, 1), name="kernel")
    bias = te.placeholder((29,), name="bias")
    return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(topi.nn.conv2d_nchw(data, kernel), bias))]


FITTING: dict[str, Callable[[], list[te.Tensor]]] = {
    "one row": lambda: dense(1, 200, 37),
    "odd rows": lambda: dense(5, 77, 41),
    "activated": lambda: activated(5, 77, 41),
    "doubles": lambda: dense(3, 40, 19, "float64"),
    "batched": lambda: scores(3, 1, 21),
    "batched rows": lambda: scores(2, 6, 11),
    "turned": many_columns,
    "one pixel": one_pixel,
}


@pytest.mark.parametrize("name", FITTING)
@pytest.mark.few(2)
def test_dot_products_are_right(name: str) -> None:
    task = lw.SearchTask(FITTING[name], target=CPU)
    (sketch,) = (s for s in task.sketches if s.name == "dots")
    assert "lw-cache-read" not in sketch.template and "lw-rfactor" in sketch.template
    reference = task.reference
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 2)]:
        schedule = sketch.schedule(row)
        got = task.build(schedule)(*reference.inputs)
        np.testing.assert_allclose(got, reference.expected[0], **reference.tolerances[0]._asdict(), err_msg=schedule)


def test_one_row_is_never_packed_without_a_search() -> None:
    assert lw.SearchTask(lambda: dense(1, 512, 256), target=CPU).sketches[0].name == "dots"


def test_what_takes_long_of_each_result_is_in_lanes_behind_all_tiles() -> None:
    def of_dots(tensors: list[te.Tensor]) -> str:
        return next(s.template for s in lw.SearchTask(lambda: tensors, target=CPU).sketches if s.name == "dots")

    assert 'lw-vectorize{block="T_gelu"' in of_dots(activated(5, 77, 41))
    assert 'lw-reverse-compute-at{block="T_relu"' in of_dots(dense(5, 77, 41)), "a maximum takes no longer so"


def test_a_convolution_of_one_pixel_is_a_row_too() -> None:
    data, kernel = te.placeholder((1, 640, 1, 1), name="data"), te.placeholder((101, 640, 1, 1), name="kernel")
    task = lw.SearchTask(lambda: [data, kernel, topi.nn.conv2d_nchw(data, kernel)], target="llvm cores=1")
    assert task.sketches[0].name == "dots" and task.default_schedule.count("lw-rfactor") == 1


@pytest.mark.parametrize(
    "workload",
    [
        lambda: dense(64, 200, 300),  # reused often
        lambda: dense(2, 16, 300),  # joining lanes is most of the work
        lambda: dense(2, 200, 300, constant=True),  # packed ahead
    ],
)
def test_others_are_tiled(workload: Callable[[], list[te.Tensor]]) -> None:
    assert all("dots" not in s.name for s in lw.SearchTask(workload, target=CPU).sketches)


def test_tiles_of_few_columns_are_estimated_as_those_of_products() -> None:
    """As tiles of other reductions they were estimated at twice their time: dot products in 0.40 ms for 0.31."""
    target = "llvm cores=1 vector_bytes=64 vector_registers=32 l1_bytes=32768 l2_bytes=1048576 l3_bytes=33554432"
    task = lw.SearchTask(dense(256, 2047, 29), target=target)
    assert {"dots", "j_root"} <= {sketch.name for sketch in task.sketches}
    assert "lw-rfactor" not in task.default_schedule
