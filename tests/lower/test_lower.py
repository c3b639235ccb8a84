"""Scheduled loops as kernels of a CPU, interpreted and compiled: kinds of loops, tails, masks, versions, odd shapes."""

import operator
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from lowered_programs import CPU, MARKS, check, convolution, convolved, count, mark, matmul, placeholder, times
from lowered_runs import lowered
from xdsl.dialects import math, scf
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand
from xdsl.utils.exceptions import PassFailedException

from loopwright import te, topi
from loopwright.dialects import kernel
from loopwright.dialects.kernel import CompareOp, GatherOp, MaskOp, ScatterOp
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule
from loopwright.topi import testing


@pytest.mark.parametrize("how", MARKS)
@pytest.mark.parametrize("loop", "ijk")
def test_loop_kinds(loop: str, how: str) -> None:
    def steps(sch: Schedule) -> None:
        if how == "vectorize":
            sch.reorder("c", *[x for x in "ijk" if x != loop], loop)
        if loop == "k" and how in ("parallel", "vthread"):
            with pytest.raises(ScheduleError):
                mark(sch, loop, how)
        else:
            mark(sch, loop, how)

    module = check(matmul(), steps, times)
    assert count(module, kernel.ParallelOp) == (how == "parallel" and loop != "k")


def test_threads_of_a_gpu_are_refused_on_a_cpu() -> None:
    sch = Schedule(matmul(), target=CPU)
    sch.bind("c", "i", "blockIdx.x")
    with pytest.raises(PassFailedException, match=r"'i' is bound to blockIdx\.x, which a CPU does not have; mark it"):
        lowered(sch.module)


@pytest.mark.parametrize("inner", ["serial", "vectorize", "unroll"])
@pytest.mark.parametrize("outer", ["serial", "parallel", "unroll"])
@pytest.mark.parametrize("loop", "ijk")
@pytest.mark.few(8)
def test_tails(loop: str, outer: str, inner: str) -> None:
    """A split that leaves a rest, either loop of it marked."""

    def steps(sch: Schedule) -> None:
        rest = [x for x in "ijk" if x != loop]
        sch.split("c", loop, [None, 4])
        sch.reorder("c", f"{loop}0", *rest, f"{loop}1")
        if loop != "k" or outer != "parallel":
            mark(sch, f"{loop}0", outer)
        mark(sch, f"{loop}1", inner)

    check(matmul(7, 11, 13), steps, times)


@pytest.mark.parametrize("order", list(permutations(["i0", "i10", "i11"])))
@pytest.mark.parametrize("how", ["serial", "vectorize", "unroll"])
@pytest.mark.few(9)
def test_tails_of_tails(how: str, order: tuple[str, ...]) -> None:
    """23 elements in tiles of 8 in tiles of 3: two predicates on one axis, loops in any order."""
    x = placeholder("x", 23)

    def steps(sch: Schedule) -> None:
        sch.split("c", "i", [None, 8])
        sch.split("c", "i1", [None, 3])
        sch.reorder("c", *order)
        mark(sch, order[-1], how)

    check([x, te.compute((23,), lambda i: x[22 - i] * 2.0, name="c")], steps, lambda x: 2 * x[::-1])


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 17, 1), (17, 1, 3), (16, 16, 16), (3, 2, 1)])
@pytest.mark.few(3)
def test_register_tile(m: int, n: int, k: int) -> None:
    """Tails in two directions of an unrolled and vectorized tile, loops of extent 1 among them."""

    def steps(sch: Schedule) -> None:
        sch.split("c", "i", [None, 3])
        sch.split("c", "j", [None, 2, 8])
        sch.split("c", "k", [None, 2])
        sch.reorder("c", "i0", "j0", "k0", "k1", "i1", "j1", "j2")
        sch.fuse("c", "i0", "j0")
        sch.parallel("c", "i0_j0")
        sch.vectorize("c", "j2")
        for loop in ("j1", "i1", "k1"):
            sch.unroll("c", loop)

    check(matmul(m, n, k), steps, times)


def test_unrolling_up_to_a_limit() -> None:
    def steps(sch: Schedule, limit: int, here: int = 1) -> None:
        sch.split("c", "j", [None, 4])
        sch.reorder("c", "i", "j0", "k", "j1")
        sch.pragma("c", "i", auto_unroll_max_step=limit, unroll_explicit=here)

    left = [partial(steps, limit=n) for n in (0, 4, 20, 1000)] + [partial(steps, limit=1000, here=0)]
    loops = [count(check(matmul(3, 8, 5), how, times), scf.ForOp) for how in left]
    assert loops == [5, 3, 2, 0, 5], "two for each row, one for the start of its sums, as far as the limit leaves them"


@pytest.mark.parametrize("vectorized", ["", "xx", "ff", "rx", "rc"])
@pytest.mark.few(3)
def test_masked_loads_on_borders(vectorized: str) -> None:
    """Padding read through conditions in the loads themselves, with lanes along the border and across channels."""

    def steps(sch: Schedule) -> None:
        sch.compute_inline("pad_temp")
        if vectorized:
            sch.reorder("compute", *[x for x in sch.get_loops("compute") if x != vectorized], vectorized)
            sch.vectorize("compute", vectorized)

    check(convolution(7), steps, convolved(1))


@pytest.mark.parametrize(("steps", "block"), [(1, 16), (4, 16), (4, 32)])
def test_nothing_is_asked_for_while_a_cut_tile_is_summed(steps: int, block: int) -> None:
    """Rows, columns and terms that tiles do not divide: which copies of the last tile are needed is told before.

    Of 30 terms in blocks of 16 the last block is cut, and of all in a block of 32 the last step.
    """

    def tiled(sch: Schedule) -> None:
        for axis, factors in (("i", (None, 2, 4)), ("j", (None, 1, 8)), ("k", (None, block // steps, steps))):
            sch.split("c", axis, factors)
        sch.reorder("c", "i0", "j0", "k0", "j1", "i1", "k1", "k2", "i2", "j2")
        sch.unroll("c", "k2")
        sch.unroll("c", "i2")
        sch.vectorize("c", "j2")

    module = check(matmul(13, 21, 30), tiled)
    around = [op for op in module.walk() if isinstance(op, scf.ForOp) and count(op, math.FmaOp)]
    innermost = [op for op in around if not any(other is not op for other in op.walk() if other in around)]
    assert {count(loop, math.FmaOp) for loop in innermost} == {4 * steps, steps}, "rows 0 to 11, and row 12"
    assert not any(count(loop, scf.IfOp) for loop in innermost)


def test_whole_tiles_are_written_apart() -> None:
    """The inside of a padded image, and whole tiles, come without a test: the nest is there twice."""
    data = placeholder("data", 13, 13)
    inside = lambda y, x: te.all(y >= 1, y < 14, x >= 1, x < 14)  # noqa: E731
    pad = te.compute((15, 15), lambda y, x: te.if_then_else(inside(y, x), data[y - 1, x - 1], 0.0), name="p")
    r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    out = te.compute((13, 13), lambda y, x: te.sum(pad[y + r, x + s], axis=[r, s]), name="c")

    def steps(sch: Schedule) -> None:
        sch.compute_inline("p")
        sch.split("c", "x", [None, 4])
        sch.reorder("c", "y", "x0", "r", "s", "x1")
        sch.unroll("c", "x1")

    module = check([data, out], steps)
    twice = [op for op in module.walk() if isinstance(op, scf.IfOp) and op.false_region.blocks]
    masked = [
        [any(isinstance(x, kernel.LoadOp) and x.mask is not None for x in region.walk()) for region in op.regions]
        for op in twice
    ]
    columns = [[True, True], [False, True]]  # whole tiles, of which those inside of the image ask nothing, and the last
    assert masked == [[True, True], *columns, *columns], "rows inside of the image or not, columns in both"
    left_out = [
        op for op in module.walk() if isinstance(op, scf.IfOp) and any(isinstance(x, scf.ForOp) for x in op.walk())
    ]
    assert [op for op in left_out if op not in twice], "taps of rows outside of the image"


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "float64"])
@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.few(8)
def test_lanes_compared(sign: str, dtype: str) -> None:
    x, y = placeholder("x", 37, dtype=dtype), placeholder("y", 37, dtype=dtype)
    compare = COMPARISONS[sign]
    out = te.compute((37,), lambda i: te.select(compare(x[i], y[36 - i]), x[i], y[i]), name="c")
    steps = 'lw-split{block="c" loop="i" factors=0,8},lw-vectorize{block="c" loop="i1"}'
    module = check([x, y, out], steps, lambda x, y: np.where(compare(x, y[::-1]), x, y))
    assert count(module, CompareOp)


TYPES = ["int8", "int32", "float16", "float32", "float64"]


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.few(13)
def test_lanes_converted(dtype: str, to: str) -> None:
    x = placeholder("x", 13, dtype=dtype)
    out = te.compute((13,), lambda i: x[i].astype(to), name="c")
    steps = 'lw-split{block="c" loop="i" factors=0,8},lw-vectorize{block="c" loop="i1"}'
    check([x, out], steps, lambda x: x.astype(to))


def test_positions_as_values() -> None:
    x = placeholder("x", 13)
    out = te.compute((13,), lambda i: x[i] + (i * 3 % 5).astype("float32"), name="c")
    steps = 'lw-split{block="c" loop="i" factors=0,8},lw-vectorize{block="c" loop="i1"}'
    check([x, out], steps, lambda x: x + np.arange(13) * 3 % 5)


def test_uneven_lanes_are_gathered() -> None:
    x = placeholder("x", 30)
    out = te.compute((21,), lambda i: x[i * 4 // 3] + x[i // 7 * 9 + i % 7], name="c")
    steps = 'lw-split{block="c" loop="i" factors=0,8},lw-vectorize{block="c" loop="i1"}'
    i = np.arange(21)
    module = check([x, out], steps, lambda x: x[i * 4 // 3] + x[i // 7 * 9 + i % 7])
    assert count(module, GatherOp) == 4  # of whole vectors, and of the last one


@pytest.mark.parametrize("how", ["serial", "vectorize"])
def test_diagonal_written_by_scatters(how: str) -> None:
    """A transposed write: lanes a row apart."""
    x = placeholder("x", 5, 9)
    a = te.compute((9, 5), lambda j, i: x[i, j] + 1.0, name="a")

    def steps(sch: Schedule) -> None:
        sch.reorder("a", "i", "j")
        mark(sch, "j", how, "a")

    check([x, a], steps, lambda x: x.T + 1)


@pytest.mark.parametrize("steps", ["", 'lw-split{block="s" loop="k" factors=0,4},lw-vectorize{block="s" loop="k1"}'])
def test_output_without_dimensions(steps: str) -> None:
    x, k = placeholder("x", 11), te.reduce_axis((0, 11), "k")
    check([x, te.compute((), lambda: te.sum(x[k], axis=k), name="s")], steps, np.sum)


@pytest.mark.parametrize("shape", [(1, 13), (13, 1)])
def test_a_fused_row_with_a_tail_is_read_in_vectors(shape: tuple[int, int]) -> None:
    """Where one of the axes has one element, lanes are neighbours in the transpose too."""
    x = placeholder("x", *shape)
    out = te.compute(shape[::-1], lambda i, j: x[j, i] * 2.0, name="c")

    def steps(sch: Schedule) -> None:
        sch.vectorize("c", sch.split("c", sch.fuse("c", "i", "j"), [None, 8])[1])

    module = check([x, out], steps, lambda x: x.T * 2)
    assert count(module, GatherOp) == count(module, ScatterOp) == 0


@pytest.mark.parametrize("how", MARKS)
def test_loops_of_extent_1(how: str) -> None:
    def steps(sch: Schedule) -> None:
        sch.split("c", "j", [None, 1])
        sch.reorder("c", "i", "j0", "k", "j1")
        mark(sch, "j1", how)
        if how in ("unroll", "serial"):
            mark(sch, "i", how)

    check(matmul(1, 3, 1), steps, times)


def test_several_nests_and_outputs() -> None:
    x = placeholder("x", 4, 6)
    doubled = te.compute((4, 6), lambda i, j: x[i, j] * 2.0, name="doubled")
    both = te.compute((4, 6), lambda i, j: (doubled[i, j] + 1.0, x[i, j] - 1.0), name="both")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((4,), lambda i: te.sum(doubled[i, k], axis=k), name="total")

    def steps(sch: Schedule) -> None:
        sch.vectorize("both", sch.get_loops("both")[-1])
        sch.parallel("total", "i")

    check(
        [x, doubled, *both, total],
        steps,
        lambda x: 2 * x,
        lambda x: 2 * x + 1,
        lambda x: x - 1,
        lambda x: (2 * x).sum(axis=1),
    )


def test_rows_normalised_in_parallel() -> None:
    """Several reductions in one parallel loop, each thread with buffers of its own."""
    x = placeholder("x", 6, 21)

    def steps(sch: Schedule) -> None:
        last = sch.blocks[-1]
        row = sch.get_loops(last)[0]
        for block in reversed(sch.blocks[:-1]):
            sch.compute_at(block, row)
        sch.parallel(last, row)

    check([x, topi.nn.softmax(x)], steps, testing.softmax_python)


def test_one_of_the_lanes_writes_an_extent_of_1() -> None:
    """Four lanes for one column, of which three are beyond it: what they read differs, where they write does not."""
    x = placeholder("x", 5, 1)
    y = te.compute((5, 1), lambda i, j: x[i, j] + 1.0, name="y")
    steps = 'lw-cache-write{block="y" buffer="y" layout="i*j/2","i*j%2"},lw-split{block="y" loop="j" factors=0,4}'
    check([x, y], f'{steps},lw-vectorize{{block="y" loop="j1"}}')


def test_the_last_vector_alone_has_a_mask() -> None:
    """197 elements in vectors of 64: three whole ones in a loop, and one of 5 lanes that are known."""
    x, k = placeholder("x", 3, 197), te.reduce_axis((0, 197), "k")
    c = te.compute((3,), lambda i: te.max(x[i, k], axis=k), name="c")
    steps = 'lw-split{block="c" loop="k" factors=0,64},lw-rfactor{block="c" loop="k1"},'
    steps += 'lw-vectorize{block="c_rf" loop="k1"},lw-vectorize{block="c" loop="k1"}'
    module = check([x, c], steps, lambda x: x.max(axis=1))
    assert count(module, MaskOp) == 1
    (mask,) = (op for op in module.walk() if isinstance(op, MaskOp))
    assert const_evaluate_operand(mask.start) == 4
