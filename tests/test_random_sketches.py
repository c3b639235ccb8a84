"""Operators nobody thought of: sketches of random programs exist, keep their limits, and compute what they should."""

from random import Random

import numpy as np
import pytest
from gpu_programs import opencl_device
from hypothesis import settings
from random_workloads import random_workload

import loopwright as lw
from loopwright import te
from loopwright.backends.opencl import device as opencl

CPU = "llvm cores=2 vector_bytes=32"
OPENCL = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 warp_size=1 max_vthreads=8"
CUDA = (
    "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90"
)
EXPLORE = not settings.default.derandomize
RUN = range(1000, 1400) if EXPLORE else range(10)
GENERATED = range(1000, 3000) if EXPLORE else (*range(10, 33), 54, 71)


def task_of(seed: int, target: str) -> lw.SearchTask:
    return lw.SearchTask(lambda: random_workload(Random(seed)), target=target)


def check(got: object, task: lw.SearchTask, what: str) -> None:
    reference = task.reference
    outputs = got if isinstance(got, tuple | list) else (got,)
    for output, expected in zip(outputs, reference.expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(output, np.float64),
            np.asarray(expected, np.float64),
            atol=reference.atol,
            rtol=reference.rtol,
            err_msg=f"{what}\n{task.compute_dag}",
        )


@pytest.mark.parametrize("target", [CPU, OPENCL, CUDA])
def test_every_program_has_sketches_within_their_limits(target: str) -> None:
    for seed in GENERATED:
        task = task_of(seed, target)
        for sketch in task.sketches:
            rows = sketch.sample(np.random.default_rng(seed), 16)
            shown = f"seed {seed}, {sketch.name}\n{task.compute_dag}"
            assert len(rows) and sketch.legal(rows).all() and sketch.legal(sketch.default[None])[0], shown
            task.schedule_module(sketch.schedule(rows[0]))


def test_random_candidates_are_right_on_this_cpu() -> None:
    for seed in RUN:
        task = task_of(seed, CPU)
        for sketch in task.sketches:
            schedule = sketch.schedule(sketch.sample(np.random.default_rng(seed), 1)[0])
            check(task.build(schedule)(*task.reference.inputs), task, f"seed {seed}: {schedule}")


def test_random_candidates_are_right_on_opencl() -> None:
    opencl_device()
    for seed in RUN:
        task = task_of(seed, OPENCL)
        for sketch in task.sketches:
            schedule = sketch.schedule(sketch.sample(np.random.default_rng(seed), 1)[0])
            kernel = opencl.load(opencl.build(str(task.module), schedule))
            outputs = [np.full(e.shape, np.nan, e.dtype) for e in task.reference.expected]
            kernel.run([*task.reference.inputs, *outputs])
            check(outputs, task, f"seed {seed}: {schedule}")


@pytest.mark.parametrize("extents", [(7, 49, 13), (97, 10, 31), (1, 1000, 7), (9, 18, 521)])
def test_tiles_need_not_divide_extents(extents: tuple[int, int, int]) -> None:
    """Extents without useful factors are tiled all the same, with a tail."""
    m, n, k = extents

    def product() -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
        r = te.reduce_axis((0, k), "r")
        return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]

    task = lw.SearchTask(product, target=CPU)
    tails = 0
    for sketch in task.sketches:
        rows = sketch.sample(np.random.default_rng(0), 64)
        columns = sketch.columns(rows)
        widths = columns["c_lanes"] * columns["c_vectors"]
        with_tail = (n % widths != 0) | (m % columns.get("c_i_rows", np.ones_like(widths)) != 0)
        tails += int(with_tail.sum())
        for row in rows[with_tail][:1]:
            check(task.build(sketch.schedule(row))(*task.reference.inputs), task, sketch.schedule(row))
    assert tails
