"""Zeros beyond the terms of products in shared memory, and sums stored beyond the edge of a workspace, are right."""

import re

import numpy as np
import pytest
from effort import usual
from lowered_runs import exact_inputs
from pipelined_matmul import CUDA, OPENCL, lower, matmul, tile

import loopwright as lw
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
