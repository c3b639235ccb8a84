"""Reductions that groups of a block's threads take slices of: found by the search, right, and as large as it says."""

import effort
import numpy as np
import pytest
from effort import usual
from gpu_programs import check_interpreted, check_on_opencl

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.search.named_workloads import conv2d, conv2d_nhwc, matmul
from loopwright.search.rules import gpu_tiling
from loopwright.search.sketch.sketch import Sketch

OPENCL = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 warp_size=1 max_vthreads=8"


def batch_matmul() -> list[te.Tensor]:
    a, b = te.placeholder((3, 70, 128), name="a"), te.placeholder((3, 50, 128), name="b")
    return [a, b, topi.nn.batch_matmul(a, b, False, True)]


def with_epilogue() -> list[te.Tensor]:
    x, w = te.placeholder((40, 96), name="x"), te.placeholder((96, 36), name="w")
    bias = te.placeholder((36,), name="bias")
    product = topi.nn.matmul(x, w)
    return [x, w, bias, topi.nn.relu(te.compute((40, 36), lambda i, j: product[i, j] + bias[j], name="sum"))]


WORKLOADS = {
    "matmul_odd": lambda: matmul(97, 66, 76),
    "matmul_epilogue": with_epilogue,
    "batch_matmul": batch_matmul,
    "conv_strided": lambda: conv2d(2, 13, 11, 64, 20, 3, 3, 2),
    "conv_nhwc": lambda: conv2d_nhwc(1, 9, 9, 64, 40),
}
IN_BOTH = {
    "conv_strided": WORKLOADS["conv_strided"],
    "conv_small": lambda: conv2d(1, 7, 7, 64, 32),
    "conv_wide": lambda: conv2d(2, 6, 9, 96, 10, 5, 5),
}
"""Windows of many channels, which are divided among blocks, and again among the threads of each."""


def sliced(name: str, target: str, in_both: bool = False) -> tuple[lw.SearchTask, Sketch]:
    task = lw.SearchTask((IN_BOTH if in_both else WORKLOADS)[name], target=target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_tiling, "LEAST_FILTERS", 0 if in_both else gpu_tiling.LEAST_FILTERS)
        found = [s for s in task.sketches if s.name.endswith("_sliced")]
    (sketch,) = [s for s in found if s.name.endswith("_split_sliced") == in_both]
    return task, sketch


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_slices_add_up(name: str) -> None:
    task, sketch = sliced(name, OPENCL)
    rows = sketch.sample(np.random.default_rng(3), 3)[: int(min(3, effort.level()))]
    check_on_opencl(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_slices_add_up_when_interpreted_for_cuda(name: str) -> None:
    task, sketch = sliced(name, "cuda model=h200")
    rows = sketch.sample(np.random.default_rng(4), 2)
    check_interpreted(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_candidates_within_the_limits_are_within_those_of_the_kernel(name: str) -> None:
    """Lowering refuses what asks for more threads or shared memory than the target has."""
    task, sketch = sliced(name, "cuda model=h200")
    for row in sketch.sample(np.random.default_rng(5), usual(3) * 4):
        schedule = lw.Schedule(WORKLOADS[name](), target=task.target)
        schedule.apply(sketch.schedule(row))
        lower_to_kernel(schedule, task.target)


@pytest.mark.parametrize("name", IN_BOTH)
@pytest.mark.few(1)
def test_slices_of_parts_add_up(name: str) -> None:
    task, sketch = sliced(name, "cuda model=h200", in_both=True)
    rows = (sketch.default, *sketch.sample(np.random.default_rng(6), 2)[: usual(1)])
    check_interpreted(task.module, task.reference, map(sketch.schedule, rows))


@pytest.mark.parametrize("name", IN_BOTH)
@pytest.mark.few(1)
def test_slices_of_parts_are_as_large_as_the_search_says(name: str) -> None:
    task, sketch = sliced(name, "cuda model=h200", in_both=True)
    for row in sketch.sample(np.random.default_rng(7), usual(4)):
        schedule = lw.Schedule(IN_BOTH[name](), target=task.target)
        schedule.apply(sketch.schedule(row))
        lower_to_kernel(schedule, task.target)


def test_threads_that_add_up_slices_have_as_many_results_each() -> None:
    """Also of a whole image of 7x7 in a thread, which no power of two divides."""
    _, sketch = sliced("conv_small", "cuda model=h200", in_both=True)
    columns = sketch.population.all_columns(sketch.sample(np.random.default_rng(8), 400))
    results = np.prod([columns[f"compute_rf_rf_{axis}_tile"] for axis in ("xx", "yy", "ff")], axis=0)
    adding = columns["compute_rf_rf_adding_threads"]
    assert (results % (adding * columns["compute_rf_rf_join_vector"]) == 0).all()
    assert (2 * adding >= columns["compute_rf_rf_all_threads"]).all()
    assert (columns["compute_rf_rf_yy_inner"] == 7).any()


def test_parts_that_no_slices_divide_are_left_to_other_sketches() -> None:
    """Of 214 channels two parts have 107 each."""
    names = {
        sketch.name for sketch in lw.SearchTask(conv2d(4, 6, 6, 214, 192, 5, 5), target="cuda model=h200").sketches
    }
    assert names and not any(name.endswith("_split_sliced") for name in names)
