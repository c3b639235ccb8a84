"""Tiled reductions on GPUs over extents that powers of two divide badly: their divisors are tried, tails are right."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from gpu_programs import check_interpreted, check_on_opencl
from sketch_rows import require_features_of_ir

import loopwright as lw
from loopwright import te, topi
from loopwright.search.named_workloads import conv2d, conv2d_nhwc, matmul
from loopwright.search.rules._gpu_factors import largest_divisors
from loopwright.search.sketch.population import Rows
from loopwright.search.sketch.sketch import Sketch

OPENCL = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"
H200 = "cuda model=h200"


def with_epilogue() -> list[te.Tensor]:
    x, w = te.placeholder((20, 101), name="x"), te.placeholder((101, 36), name="w")
    bias = te.placeholder((36,), name="bias")
    product = topi.nn.matmul(x, w)
    return [x, w, bias, topi.nn.relu(te.compute((20, 36), lambda i, j: product[i, j] + bias[j], name="sum"))]


def task_of(tensors: Sequence[te.Tensor], target: str) -> lw.SearchTask:
    return lw.SearchTask(te.create_module(tensors), target=target)


def choices(sketch: Sketch, end: str) -> set[int]:
    return {n for hole in sketch.holes if hole.name.endswith(end) for n in hole.choices}


def anywhere(sketch: Sketch, count: int) -> Rows:
    """Legal rows from anywhere within the limits, but for those that unroll most: compiling one takes seconds."""
    rng = np.random.default_rng(3)
    most = [2 if h.name.endswith("_unroll") else len(h.choices) for h in sketch.holes]
    rows = rng.integers(0, most, size=(4096, len(sketch.holes)))
    return rows[sketch.legal(rows)][:count]


@pytest.mark.parametrize(
    ("extent", "steps", "parts"),
    [
        (49, {7, 49}, set()),
        (225, {9, 15, 25}, {3, 5, 9, 15, 25}),
        (625, {5, 25}, {5, 25}),
        (1009, set(), {2, 4, 8, 16, 32}),
        (2401, {7, 49}, {7}),
        (4097, {17}, {17}),
    ],
)
def test_divisors_of_a_reduction_are_tried(extent: int, steps: set[int], parts: set[int]) -> None:
    sketches = task_of(matmul(32, 32, extent), H200).sketches
    plain = next(s for s in sketches if s.name == "j")
    assert steps <= choices(plain, "_step")
    assert parts == {n for s in sketches if s.name == "j_split" for n in choices(s, "_parts")}


@pytest.mark.parametrize(
    ("rows", "extent", "parts"),
    [
        (64, 50000, {50, 125}),
        (128, 8192, {64, 128}),
        (64, 8193, set()),  # no divisor leaves parts of 64 terms
        (64, 2000, set()),  # parts of fewer terms
        (512, 8192, set()),  # 32 parts of as many tiles are enough
    ],
)
def test_long_reductions_to_few_results_go_to_many_blocks(rows: int, extent: int, parts: set[int]) -> None:
    """With 16 parts at most, a product of 64x50000 and 50000x64 took twice cuBLAS's time on an H200."""
    sketches = task_of(matmul(rows, rows, extent), H200).sketches
    found = {n for s in sketches if s.name == "j_split" for n in choices(s, "_parts")}
    assert {n for n in found if n > 32} == parts


def test_a_reduction_in_many_parts_is_right() -> None:
    task = task_of(matmul(8, 8, 4800), H200)
    (sketch,) = (s for s in task.sketches if s.name == "j_split")
    parts = next(n for n, hole in enumerate(sketch.holes) if hole.name.endswith("_parts"))
    drawn = sketch.sample(np.random.default_rng(0), 100)
    rows = [row for row in drawn if sketch.holes[parts].choices[row[parts]] > 32]
    assert rows
    check_interpreted(task.module, task.reference, [sketch.schedule(row) for row in rows[:2]])


def test_the_phases_of_a_transposed_convolution_are_left_to_the_grid() -> None:
    """Its channels were, though all of them read the same image: 3.2 times cuDNN's time for 64 channels on an H200."""
    data, kernel = te.placeholder((1, 8, 9, 9), name="data"), te.placeholder((8, 12, 4, 4), name="kernel")
    task = task_of([data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, 2, 1)], H200)
    for sketch in (sketch for sketch in task.sketches if "col2im" not in sketch.name):
        assert any(hole.name.endswith("ff_threads") for hole in sketch.holes)
    check_interpreted(task.module, task.reference, [s.schedule(s.default) for s in task.sketches[:2]])


def test_divisors_of_tiles_are_tried() -> None:
    sketch = next(s for s in task_of(matmul(225, 45, 64), H200).sketches if s.name == "j")
    assert {3, 5, 9, 15} <= choices(sketch, "_inner")
    assert {25, 75} <= choices(sketch, "_threads")


@pytest.mark.parametrize("tensors", [lambda: matmul(1024, 1000, 512), lambda: conv2d(1, 7, 7, 512, 512)])
def test_what_powers_of_two_and_sevens_divide_is_as_it_was(tensors: Callable[[], list[te.Tensor]]) -> None:
    for sketch in task_of(tensors(), H200).sketches:
        if sketch.name.endswith("_large"):
            continue  # those have factors of their own
        assert choices(sketch, "_inner") <= {1, 2, 4, 7, 8}
        assert choices(sketch, "_step") <= {2, 4, 8, 16, 32, 64}


ODD = {
    "matmul_exact": lambda: matmul(33, 29, 225),
    "matmul_prime": lambda: matmul(31, 35, 127),
    "matmul_transposed": lambda: matmul(18, 22, 103, True, True),
    "epilogue": with_epilogue,
    "conv": lambda: conv2d(1, 4, 5, 67, 6, 1, 2),
    "conv_nhwc": lambda: conv2d_nhwc(1, 5, 7, 75, 15),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.few(1)
def test_odd_extents_are_right(name: str) -> None:
    task = task_of(ODD[name](), OPENCL)
    assert any(s.name.endswith("_split") for s in task.sketches)
    schedules = [sketch.schedule(row) for sketch in task.sketches for row in anywhere(sketch, 1)]
    check_on_opencl(task.module, task.reference, schedules)


@pytest.mark.parametrize("target", [H200, "cuda compute_capability=75", OPENCL])
@pytest.mark.parametrize("shape", [(5, 33, 100), (1, 70, 33), (2, 96, 128)])
@pytest.mark.few(3)
def test_products_of_few_rows_are_free_of_races(shape: tuple[int, int, int], target: str) -> None:
    """Threads beyond their last column read on behind their stage of a pipeline."""
    task = task_of(matmul(*shape), target)
    rng = np.random.default_rng(1)
    check_interpreted(task.module, task.reference, [s.schedule(row) for s in task.sketches for row in s.sample(rng, 4)])


@pytest.mark.parametrize("name", ODD)
@pytest.mark.few(1)
def test_odd_extents_are_right_when_interpreted_for_cuda(name: str) -> None:
    task = task_of(ODD[name](), H200)
    schedules = [sketch.schedule(row) for sketch in task.sketches for row in anywhere(sketch, 1)]
    check_interpreted(task.module, task.reference, schedules)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.few(1)
def test_matrix_features_equal_those_of_the_ir(name: str) -> None:
    task = task_of(ODD[name](), H200)
    for sketch in task.sketches:
        rows = anywhere(sketch, 2)
        require_features_of_ir(task.module, task.target, sketch, rows)


def test_the_largest_divisor_within_a_bound_is_found() -> None:
    rng = np.random.default_rng(0)
    counts, most = rng.integers(1, 5000, size=300), rng.integers(1, 600, size=300)
    wanted = [max(n for n in range(1, bound + 1) if count % n == 0) for count, bound in zip(counts, most, strict=True)]
    assert largest_divisors(counts, most).tolist() == wanted
