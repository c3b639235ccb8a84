"""Zeros beyond the terms of products in shared memory, and sums stored beyond the edge of a workspace, are right."""

import re

import numpy as np
import pytest
from effort import usual
from lowered_runs import exact_inputs
from pipelined_matmul import CUDA, OPENCL, lower, matmul, tile

import loopwright as lw
from loopwright import te
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.search.named_workloads import matmul as product


def inputs_with_infinities(arrays: list[np.ndarray], *terms: int) -> list[np.ndarray]:
    """The same with one infinite factor in some terms, so that zero times what is beyond another part's end shows."""
    a, b = (array.copy() for array in arrays)
    for number, term in enumerate(terms):
        b[term, number] = np.inf
    a[a == 0] = 1
    return [a, b]


def check(module: object, inputs: list[np.ndarray], note: str = "") -> None:
    (got,) = run_kernel(module, inputs)  # type: ignore[arg-type]
    a, b = (array.astype(np.float64) for array in inputs)
    np.testing.assert_allclose(got, np.einsum("ik,kj->ij", a, b), rtol=1e-4, atol=1e-3, err_msg=note)


@pytest.mark.parametrize("terms", [29, 30, 13])
@pytest.mark.parametrize(
    ("target", "stages", "registers", "vector", "turned"),
    [
        (CUDA, 2, 0, 1, True),
        (CUDA, 3, 0, 4, False),
        (CUDA, 2, 1, 2, True),
        (OPENCL, 2, 0, 1, True),
        (CUDA, 1, 0, 2, False),
    ],
)
@pytest.mark.few(3)
def test_steps_beyond_the_terms_add_zeros(
    target: str, stages: int, registers: int, vector: int, turned: bool, terms: int
) -> None:
    sch, module = lower(matmul(33, 35, terms), lambda sch: tile(sch, stages, registers, vector, turned), target)
    check(module, inputs_with_infinities(exact_inputs(sch.workload), terms - 1, 0))


@pytest.mark.parametrize("shape", [(50, 37, 203), (64, 45, 256), (33, 64, 331)])
@pytest.mark.few(1)
def test_parts_of_sums(shape: tuple[int, int, int]) -> None:
    """Parts that fills do not divide, in the place of which the next part's terms lie, and tiles over the edge."""
    task = lw.SearchTask(lambda: product(*shape), target="cuda model=h200")
    text, found = str(task.module), [sketch for sketch in task.sketches if "split" in sketch.name]
    inputs = inputs_with_infinities(list(task.reference.inputs), *range(0, shape[2], shape[2] // 9 + 1))
    assert found
    for sketch in found:
        rows = sketch.sample(np.random.default_rng(4), usual(3))
        for schedule in map(sketch.schedule, (sketch.default, *rows)):
            check(scheduled_kernel(text, schedule), inputs, schedule)


def test_sums_of_parts_are_stored_as_vectors() -> None:
    """Columns are no multiple of a vector, rows of the workspace are."""
    task = lw.SearchTask(lambda: product(50, 37, 256), target="cuda model=h200")
    (sketch,) = (sketch for sketch in task.sketches if sketch.name == "j_split")
    drawn = map(sketch.schedule, sketch.sample(np.random.default_rng(0), 200))
    schedule = next(each for each in drawn if re.search(r'"T_matmul_rf" loop="j" factors=0,\d+,\d+,4}', each))
    stores = [op for op in scheduled_kernel(str(task.module), schedule).walk() if isinstance(op, kernel.StoreOp)]
    assert {op.align.data for op in stores if op.buffer.name_hint == "T_matmul_rf" and op.align is not None} == {16}


def test_factors_of_one_copy_that_end_along_other_axes_stay() -> None:
    """The rows beyond the terms of one factor are rows of the other."""
    a, k = te.placeholder((16, 16), "float32", "a"), te.reduce_axis((0, 10), "k")
    c = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="c")

    def steps(sch: lw.Schedule) -> None:
        sch.cache_read("c", "a", "shared", label="a_shared")
        block_tiles(sch, sch.cache_write("c", "c", "local"), "a_shared")

    sch, module = lower([a, c], steps, CUDA)
    (data,) = exact_inputs(sch.workload)
    (found,) = run_kernel(module, [data])
    np.testing.assert_array_equal(found, data[:, :10] @ data[:10])


def test_copies_that_others_read_stay() -> None:
    """Elements beyond the terms of the sum are read behind it."""
    x, b = te.placeholder((16, 16), "float32", "x"), te.placeholder((12, 16), "float32", "b")
    k = te.reduce_axis((0, 10), "k")
    p = te.compute((16, 16), lambda i, j: x[i, j], name="p")
    c = te.compute((16, 16), lambda i, j: te.sum(p[i, k] * b[k, j], axis=k), name="c")
    out = te.compute((16, 16), lambda i, j: c[i, j] + p[i, j], name="out")

    def steps(sch: lw.Schedule) -> None:
        sch.set_scope("p", "shared")
        sch.set_scope("c", "local")
        sch.cache_read("c", "b", "shared", label="b_shared")
        block_tiles(sch, "out", "p", "b_shared")

    sch, module = lower([x, b, out], steps, CUDA)
    inputs = exact_inputs(sch.workload)
    (found,) = run_kernel(module, inputs)
    np.testing.assert_array_equal(found, inputs[0][:, :10] @ inputs[1][:10] + inputs[0])


def block_tiles(sch: lw.Schedule, out: str, *copies: str) -> None:
    """Blocks of 4 x 16 sums of `c`, a thread each, in steps of four terms; `out` takes them, copies are a block's."""
    rows, row = sch.split("c", "i", [None, 4])
    steps, step = sch.split("c", "k", [None, 4])
    sch.reorder("c", rows, row, "j", steps, step)
    for loop, thread in ((rows, "blockIdx.x"), (row, "threadIdx.y"), ("j", "threadIdx.x")):
        sch.bind("c", loop, thread)
    sch.unroll("c", step)
    sch.reverse_compute_at(out, "j", "c")
    for copy in copies:
        sch.compute_at(copy, rows, unit_loops=True)
        _, thread_loop = sch.split(copy, sch.fuse(copy, *sch.get_loops(copy)[-2:]), [None, 16])
        sch.bind(copy, thread_loop, "threadIdx.x")
