"""Operators nobody thought of: sketches of random programs exist and keep their limits; tiles need not divide."""

from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest
from effort import exploring
from gpu_programs import opencl_device
from late_notes import noting
from random_workloads import random_workload

import loopwright as lw
from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.passes.analysis.nest import find_block
from loopwright.passes.pipeline_text import lower_to_loops
from loopwright.search.structure.anchor import pads_of

CPU = "llvm cores=2 vector_bytes=32"
OPENCL = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 warp_size=1 max_vthreads=8"
CUDA = (
    "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90"
)
EXPLORE = exploring()
GENERATED = range(1000, 3000) if EXPLORE else (*range(10, 33), 54, 71)


def task_of(seed: int, target: str) -> lw.SearchTask:
    return lw.SearchTask(lambda: random_workload(Random(seed)), target=target)


def check(got: object, task: lw.SearchTask, what: str) -> None:
    reference = task.reference
    outputs = got if isinstance(got, tuple | list) else (got,)
    for output, expected in zip(outputs, reference.expected, strict=True):
        with noting(what, task.compute_dag):
            np.testing.assert_allclose(
                np.asarray(output, np.float64),
                np.asarray(expected, np.float64),
                **reference.tolerances[0]._asdict(),
            )


@pytest.mark.parametrize("target", [CPU, OPENCL, CUDA])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_every_program_has_sketches_within_their_limits(target: str) -> None:
    for seed in GENERATED:
        task = task_of(seed, target)
        for sketch in task.sketches:
            rows = sketch.sample(np.random.default_rng(seed), 16)
            shown = f"seed {seed}, {sketch.name}\n{task.compute_dag}"
            assert len(rows) and sketch.legal(rows).all() and sketch.legal(sketch.default[None])[0], shown
            task.schedule_module(sketch.schedule(rows[0]))
            if sketch.seen_template != sketch.template:
                seen = replace(sketch, written=partial(getattr, sketch, "seen_template"))
                task.schedule_module(seen.schedule(rows[0]))


@pytest.mark.parametrize("extents", [(7, 49, 13), (97, 10, 31), (1, 1000, 7), (9, 18, 521)])
@pytest.mark.few(1)
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


def test_panels_may_be_one_lane_wide() -> None:
    """Doubles of which a register holds two: names of loops are the same for all widths."""
    a, b = te.placeholder((7, 8), "float64", name="a"), te.placeholder((8, 7), "float64", name="b")
    r = te.reduce_axis((0, 8), "r")
    product = te.compute((7, 7), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
    task = lw.SearchTask(te.create_module([a, b, product]), target="llvm cores=2 vector_bytes=16")
    narrow = 0
    for sketch in task.sketches:
        rows = sketch.population.sample(np.random.default_rng(0), 300)
        columns = sketch.columns(rows)
        for row in rows[columns["c_lanes"] * columns["c_vectors"] == 1][:2]:
            task.schedule_module(sketch.schedule(row))
            narrow += 1
    assert narrow


def test_rows_whose_stages_use_one_name_for_different_axes() -> None:
    """A row's loop takes the name that a reduction in it has for its own."""
    p, q = te.placeholder((12, 15), name="p"), te.placeholder((12, 15), name="q")
    i, k = te.reduce_axis((0, 15), "i"), te.reduce_axis((0, 15), "k")
    most = te.compute((12,), lambda x: te.max(p[x, i], axis=i), name="most")
    power = te.compute((12, 15), lambda i, j: te.exp(q[i, j] - most[i]), name="power")
    total = te.compute((12,), lambda i: te.sum(power[i, k], axis=k), name="total")
    rows = te.compute((12, 15), lambda i, j: power[i, j] / total[i], name="rows")
    for target in (CPU, OPENCL, CUDA):
        assert lw.SearchTask(te.create_module([p, q, rows]), target=target).sketches


def test_a_producer_of_two_outputs_is_no_padding() -> None:
    """It reads under a mask as padding does, but cannot be inlined."""
    p = te.placeholder((62, 27), name="p")
    r = te.reduce_axis((0, 3), "r")
    two = te.compute((63, 26), lambda x, i: (te.select(x < 61, p[x + 1, i], 0.0), p[x % 62, i]), name="two")
    windows = te.compute((61, 26), lambda x, i: te.sum(two[0][x + r, i], axis=r), name="windows")
    module = te.create_module([p, windows, two[1]])
    lower_to_loops(module)
    assert pads_of(find_block(None, module, "windows")) == []


def test_rows_that_end_in_a_maximum_and_its_place() -> None:
    """Threads join results by named combiners only: such a chain ends before the pair."""
    p = te.placeholder((3, 11), name="p")
    weight = te.placeholder((2,), name="weight")
    j, w, k = te.reduce_axis((0, 11), "j"), te.reduce_axis((0, 2), "w"), te.reduce_axis((0, 10), "k")
    most = te.compute((3,), lambda i: te.max(p[i, j], axis=j), name="most")
    power = te.compute((3, 11), lambda i, j: te.exp(p[i, j] - most[i]), name="power")
    pairs = te.compute((3, 10), lambda i, j: te.sum(power[i, j + w] * weight[w], axis=w), name="pairs")
    best = te.compute((3,), lambda i: te.comm_reducer(_larger, _least, "best")((pairs[i, k], k), axis=k), name="best")
    data = np.random.default_rng(0).standard_normal((3, 11)).astype(np.float32)
    module = te.create_module([p, weight, *best])
    for target in (OPENCL, CUDA):
        for sketch in lw.SearchTask(module, target=target).sketches:
            lower_to_kernel(lw.SearchTask(module, target=target).schedule_module(sketch.schedule(sketch.default)))
    opencl_device()
    _, places = lw.SearchTask(module, target=OPENCL).build()(data, np.ones(2, np.float32))
    power = np.exp(data - data.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(places, (power[:, 1:] + power[:, :-1]).argmax(axis=1))


def _larger(x: tuple[te.Expr, te.Expr], y: tuple[te.Expr, te.Expr]) -> tuple[te.Expr, te.Expr]:
    first = te.any(x[0] > y[0], te.all(x[0] == y[0], x[1] < y[1]))
    return te.select(first, x[0], y[0]), te.select(first, x[1], y[1])


def _least(value: str, place: str) -> tuple[te.Expr, te.Expr]:
    return te.min_value(value), te.max_value(place)
