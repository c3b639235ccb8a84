"""Reductions taken apart: partial results, and a start of their own."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.analysis.nest import functions


def assert_same(sch: lw.Schedule) -> None:
    """The schedule computes what its workload says, on numbers whose sums and products are exact."""
    sch.module.verify()
    rng = np.random.default_rng(3)
    workload = sch.workload
    (func,) = functions(workload)
    shapes = [t.get_shape() for t in func.function_type.inputs if isinstance(t, TensorType)]
    drawn = [rng.permutation(160)[: np.prod(shape)].reshape(shape) for shape in shapes]
    inputs = [(a - 80).astype(np.float32) / 8 for a in drawn]
    for result, wanted in zip(run_loops(sch.module, inputs), run_te(workload, inputs), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


REDUCERS: dict[str, Callable[..., Any]] = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def rows(combiner: str, m: int, n: int) -> list[te.Tensor]:
    x = te.placeholder((m, n), name="x")
    if combiner in REDUCERS:
        k = te.reduce_axis((0, n), "k")
        return [x, te.compute((m,), lambda i: REDUCERS[combiner](x[i, k], axis=k), name="y")]
    return [x, topi.argmax(x, axis=1)]


FACTORS = [(None, 4), (4, None), (1, 16), (5, 3), (8, 8), (11, 1), (2, 2, None)]


@pytest.mark.parametrize("combiner", [*REDUCERS, "argmax"])
@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.few(18)
def test_any_loop_of_a_split_reduction_can_be_factored(combiner: str, factors: tuple[int | None, ...]) -> None:
    for position in range(len(factors)):
        sch = lw.Schedule(rows(combiner, 3, 11))
        block = sch.blocks[0]
        loops = sch.split(block, sch.get_loops(block)[1], factors)
        partial = sch.rfactor(block, loops[position])
        assert partial == f"{block}_rf"
        assert_same(sch)


@pytest.mark.parametrize("order", list(itertools.permutations(["i", "k0", "k1"])), ids=str)
def test_the_final_reduction_follows_the_outermost_reduce_loop(order: tuple[str, ...]) -> None:
    sch = lw.Schedule(rows("sum", 3, 11))
    sch.split("y", "k", [None, 4])
    sch.reorder("y", *order)
    for loop, axis in itertools.product(("k0", "k1"), (None, 0, 1, -1)):
        other = sch.copy()
        other.rfactor("y", loop, axis)
        assert_same(other)
        shared = order.index("i") < min(order.index("k0"), order.index("k1"))
        assert other.get_loops("y") == ["i", loop]
        (func,) = functions(other.module)
        finals = func.body.block
        assert len([op for op in finals.ops if op.name == "lw_loop.for"]) == (1 if shared else 2)


def test_partial_results_run_in_parallel_and_in_lanes() -> None:
    sch = lw.Schedule(rows("argmax", 3, 11))
    block = sch.blocks[0]
    k0, k1 = sch.split(block, sch.get_loops(block)[1], [None, 4])
    i = sch.get_loops(block)[0]
    sch.reorder(block, k0, i, k1)
    partial = sch.rfactor(block, k0)
    sch.parallel(partial, k0)
    again = sch.rfactor(partial, k1)
    sch.vectorize(again, k1)
    assert_same(sch)


def test_a_fused_reduction_with_tails_can_be_factored() -> None:
    x = te.placeholder((3, 5, 7), name="x")
    r, s = te.reduce_axis((0, 5), "r"), te.reduce_axis((0, 7), "s")
    y = te.compute((3,), lambda i: te.sum(x[i, r, s], axis=[r, s]), name="y")
    sch = lw.Schedule([x, y])
    r0, r1 = sch.split(y, "r", [None, 2])
    fused = sch.fuse(r1, "s")
    outer, inner = sch.split(fused, [None, 4])
    for loop in (r0, outer, inner):
        other = sch.copy()
        other.rfactor(y, loop)
        assert_same(other)


def test_int_division_by_what_is_not_there_is_refused() -> None:
    x = te.placeholder((10,), "int32", "x")
    k = te.reduce_axis((0, 10), "k")
    y = te.compute((1,), lambda i: te.sum(te.const(7, "int32") // x[k], axis=k), name="y")
    sch = lw.Schedule([x, y])
    sch.split(y, "k", [5, 4])
    with pytest.raises(lw.ScheduleError, match="would divide by elements that do not exist"):
        sch.rfactor(y, "k0")
    sch.rfactor(y, "k1")
    data = np.arange(1, 11, dtype=np.int32)
    np.testing.assert_array_equal(run_loops(sch.module, [data])[0], [np.sum(7 // data)])


@pytest.mark.parametrize("by", [7, -1, 0])
def test_int_division_by_a_constant_that_cannot_fail_is_not(by: int) -> None:
    x = te.placeholder((10,), "int32", "x")
    k = te.reduce_axis((0, 10), "k")
    y = te.compute((1,), lambda i: te.sum(x[k] // te.const(by, "int32"), axis=k), name="y")
    sch = lw.Schedule([x, y])
    sch.split(y, "k", [5, 4])
    if by != 7:
        with pytest.raises(lw.ScheduleError, match="would divide by elements that do not exist"):
            sch.rfactor(y, "k0")
        return
    sch.rfactor(y, "k0")
    data = np.arange(10, dtype=np.int32) * 11 - 40
    np.testing.assert_array_equal(run_loops(sch.module, [data])[0], [np.sum(data // by)])


def test_the_final_reduction_stays_beside_its_reader() -> None:
    x, y = rows("sum", 3, 11)
    sch = lw.Schedule([x, te.compute((3,), lambda i: y[i] * 2.0, name="z")])
    sch.compute_at("y", "i")
    sch.split("y", "k", [None, 4])
    sch.rfactor("y", "k1")
    assert sch.get_loops("y_rf")[0] == sch.get_loops("y")[0] == sch.get_loops("z")[0]
    assert_same(sch)


# -- decompose_reduction -----------------------------------------------------------------------------------------------


ORDERS = [("i0", "i1", "k0", "k1"), ("i0", "k0", "i1", "k1"), ("k1", "i0", "k0", "i1")]


@pytest.mark.parametrize("combiner", [*REDUCERS, "argmax"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_reduction_starts_before_any_loop_outside_of_its_own(combiner: str, order: tuple[str, ...]) -> None:
    sch = lw.Schedule(rows(combiner, 5, 11))
    block = sch.blocks[0]
    i, k = sch.get_loops(block)
    split = [*sch.split(block, i, [None, 2]), *sch.split(block, k, [None, 4])]
    loops = [split[("i0", "i1", "k0", "k1").index(x)] for x in order]
    sch.reorder(block, *loops)
    first = next(n for n, x in enumerate(order) if x[0] == "k")
    for position, loop in enumerate(loops):
        other = sch.copy()
        if position > first:
            with pytest.raises(lw.ScheduleError, match="initialisation must stand before every reduce loop"):
                other.decompose_reduction(block, loop)
            continue
        assert other.decompose_reduction(block, loop) == f"{block}_init"
        assert_same(other)


def test_a_started_reduction_may_still_be_split_and_moved() -> None:
    x, w = te.placeholder((4, 9), name="x"), te.placeholder((9, 5), name="w")
    y = topi.matmul(x, w)
    sch = lw.Schedule([x, w, topi.nn.relu(y)])
    block = sch.blocks[0]
    i, j, k = sch.get_loops(block)
    sch.reorder(block, k, i, j)
    init = sch.decompose_reduction(block, k)
    sch.split(block, k, [None, 2])
    sch.vectorize(block, j)
    sch.vectorize(init, j)
    assert_same(sch)


def test_a_reduction_that_is_computed_again_keeps_its_start() -> None:
    x = te.placeholder((3, 5), name="x")
    k = te.reduce_axis((0, 5), "k")
    y = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="y")
    z = te.compute((3, 4), lambda i, j: y[i] * x[i, j], name="z")
    sch = lw.Schedule([x, z])
    sch.compute_at(y, "j")
    for loop in ("i", "j"):
        with pytest.raises(lw.ScheduleError, match="'j' may share elements of 'y'"):
            sch.decompose_reduction(y, loop)
    sch.decompose_reduction(y, "k")
    assert_same(sch)
