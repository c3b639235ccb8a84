"""Scheduled loops as kernels: interpreted with every access checked, and compiled, they compute what NumPy does."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from lowered_runs import check_lowering, exact_inputs, lowered
from xdsl.dialects import math, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from loopwright import te, topi
from loopwright.dialects import kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.kernel import CompareOp, ConvertOp, GatherOp, ScatterOp
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule
from loopwright.topi import testing

CPU = "llvm cores=2 vector_bytes=64"
Steps = Callable[[Schedule], Any]


def check(tensors: Sequence[te.Tensor], steps: Steps | str = "", *wanted: Any, rtol: float = 1e-5) -> ModuleOp:
    """Schedule, lower and run; hold the outputs to the interpreter of the DAG, or to functions of the inputs."""
    sch = Schedule(tensors, target=CPU)
    if isinstance(steps, str):
        sch.apply(steps)
    else:
        steps(sch)
    inputs = exact_inputs(sch.workload)
    expected = [w(*inputs) for w in wanted] or run_te(sch.workload, inputs)
    return check_lowering(sch.module, inputs, [np.asarray(e) for e in expected], rtol=rtol, atol=rtol / 10)


def count(op: Operation, kind: type) -> int:
    return sum(isinstance(inner, kind) for inner in op.walk())


def placeholder(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def matmul(m: int = 7, n: int = 11, k: int = 5, dtype: str = "float32", out: str = "") -> list[te.Tensor]:
    a, b, r = placeholder("a", m, k, dtype=dtype), placeholder("b", k, n, dtype=dtype), te.reduce_axis((0, k), "k")
    kind = out or dtype
    product = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(kind) * b[r, j].astype(kind), axis=r), name="c")
    return [a, b, product]


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


# -- loop kinds and tails ---------------------------------------------------------------------------------------------

MARKS = ("serial", "parallel", "vectorize", "unroll", "vthread")


def mark(sch: Schedule, loop: str, how: str, block: str = "c") -> None:
    if how == "vthread":
        sch.bind(block, loop, "vthread")
    elif how != "serial":
        getattr(sch, how)(block, loop)


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


# -- reductions -------------------------------------------------------------------------------------------------------

REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (te.sum, np.sum),
    "prod": (te.prod, np.prod),
    "max": (te.max, np.max),
    "min": (te.min, np.min),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.few(10)
def test_lanes_joined(name: str, dtype: str) -> None:
    """A vectorized reduction with a rest: the lanes that are off count as the combiner's identity."""
    combine, reference = REDUCTIONS[name]
    x, k = placeholder("x", 3, 13, dtype=dtype), te.reduce_axis((0, 13), "k")
    out = te.compute((3,), lambda i: combine(te.minimum(x[i, k], 2), axis=k), name="c")

    def expected(values: np.ndarray) -> np.ndarray:
        return reference(np.minimum(values, 2), axis=1).astype(dtype)

    steps = 'lw-split{block="c" loop="k" factors=0,8},lw-vectorize{block="c" loop="k1"}'
    module = check([x, out], steps, expected, rtol=1e-5 if dtype != "float16" else 4e-3)
    assert "vector.reduction" in str(module)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_lanes_that_add_the_same_are_joined(name: str) -> None:
    """A reduction over lanes of what is the same for all of them takes it once for each lane that is on."""
    combine, _ = REDUCTIONS[name]
    x, k = placeholder("x", 3), te.reduce_axis((0, 13), "k")
    out = te.compute((3,), lambda i: combine(x[i] * 2.0, axis=k), name="c")
    for factor in (13, 8):
        module = check(
            [x, out], f'lw-split{{block="c" loop="k" factors=0,{factor}}},lw-vectorize{{block="c" loop="k1"}}'
        )
        assert "vector.reduction" in str(module)


def argmax(m: int = 5, n: int = 11) -> list[te.Tensor]:
    x = placeholder("x", m, n)
    return [x, topi.argmax(x, axis=1)]


@pytest.mark.parametrize("steps", ["", "parallel", "unroll", "vectorize", "split"])
def test_own_combiner(steps: str) -> None:
    def schedule(sch: Schedule) -> None:
        block = sch.blocks[0]
        row, column = sch.get_loops(block)
        if steps == "split":
            sch.split(block, column, [None, 4])
            sch.split(block, row, [None, 4])
        elif steps == "vectorize":
            sch.reorder(block, column, row)
            sch.vectorize(block, row)
        elif steps:
            getattr(sch, steps)(block, row)

    check(argmax(), schedule, lambda x: np.argmax(x, axis=1).astype(np.int32))


def test_own_combiner_in_parts_of_a_vector() -> None:
    def schedule(sch: Schedule) -> None:
        block = sch.blocks[0]
        column = sch.get_loops(block)[-1]
        _, inner = sch.split(block, column, [None, 4])
        part = sch.rfactor(block, inner)
        assert part is not None
        sch.vectorize(part, inner)

    check(argmax(3, 19), schedule, lambda x: np.argmax(x, axis=1).astype(np.int32))


@pytest.mark.parametrize("vectorized", ["j1", "k1"])
def test_int8_with_int32_sums(vectorized: str) -> None:
    def steps(sch: Schedule) -> None:
        sch.split("c", vectorized[0], [None, 4])
        sch.reorder("c", *[x for x in sch.get_loops("c") if x != vectorized], vectorized)
        sch.vectorize("c", vectorized)

    wide = lambda a, b: a.astype(np.int32) @ b.astype(np.int32)  # noqa: E731
    module = check(matmul(5, 9, 7, "int8", "int32"), steps, wide)
    assert count(module, ConvertOp) == (2 if vectorized == "k1" else 1)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_element_types(dtype: str) -> None:
    steps = 'lw-split{block="c" loop="j" factors=0,4},lw-reorder{block="c" loops="i","k","j0","j1"}'
    steps += ',lw-vectorize{block="c" loop="j1"},lw-unroll{block="c" loop="j0"}'
    check(matmul(5, 9, 7, dtype), steps, times, rtol=1e-5 if dtype != "float16" else 2e-2)


def test_rows_kept_apart_from_their_starts() -> None:
    """A reduction whose start is a block of its own, with loops and lanes of its own."""

    def steps(sch: Schedule) -> None:
        sch.split("c", "j", [None, 4])
        sch.reorder("c", "i", "k", "j0", "j1")
        start = sch.decompose_reduction("c", "k")
        assert start is not None
        sch.vectorize(start, sch.get_loops(start)[-1])
        sch.vectorize("c", "j1")

    check(matmul(), steps, times)


# -- moved and cached -------------------------------------------------------------------------------------------------


def convolution(size: int = 9, stride: int = 1, channels: int = 5) -> list[te.Tensor]:
    data, weight = placeholder("data", 1, 3, size, size), placeholder("weight", channels, 3, 3, 3)
    bias = placeholder("bias", 1, channels, 1, 1)
    return [data, weight, bias, topi.nn.relu(topi.nn.conv2d_nchw(data, weight, stride, 1) + bias)]


def convolved(stride: int) -> Callable[..., np.ndarray]:
    def reference(data: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return np.maximum(testing.conv2d_nchw_python(data, weight, stride, 1) + bias, 0)

    return reference


@pytest.mark.parametrize("at", ["yy0", "xx0", "rc", "yy1"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.few(4)
def test_padded_producer_moved_to_its_reader(stride: int, at: str) -> None:
    def steps(sch: Schedule) -> None:
        sch.split("compute", "yy", [None, 2])
        sch.split("compute", "xx", [None, 3])
        sch.reorder("compute", "nn", "ff", "yy0", "xx0", "rc", "yy1", "xx1")
        sch.compute_at("pad_temp", at)
        sch.vectorize("pad_temp", sch.get_loops("pad_temp")[-1])
        sch.parallel("compute", "ff")

    check(convolution(stride=stride), steps, convolved(stride))


@pytest.mark.parametrize("size", [7, 5])
@pytest.mark.parametrize("layout", ['"yy*xx/16","rc","ry*rx","yy*xx%16"', '"rc","ry*rx","yy*xx"'])
@pytest.mark.few(2)
def test_fused_pixels_from_a_panel(size: int, layout: str) -> None:
    """49 (or 25) pixels as one axis, in vectors of 16 with a rest, read from a panel in the order they are used in."""
    steps = (
        f'lw-cache-read{{block="compute" buffer="pad_temp" layout={layout} label="panel"}},'
        'lw-compute-inline{block="pad_temp"},lw-fuse{block="compute" loops="yy","xx"},'
        'lw-split{block="compute" loop="yy_xx" factors=0,2,16},lw-split{block="compute" loop="ff" factors=0,3},'
        'lw-reorder{block="compute" loops="ff0","yy_xx0","rc","ry","rx","ff1","yy_xx1","yy_xx2"},'
        'lw-compute-inline{block="T_add"},lw-reverse-compute-at{block="T_relu" loop="yy_xx0"},'
        'lw-vectorize{block="compute" loop="yy_xx2"},lw-unroll{block="compute" loop="yy_xx1"},'
        'lw-unroll{block="compute" loop="ff1"},lw-parallel{block="compute" loop="ff0"}'
    )
    module = check(convolution(size), steps, convolved(1))
    assert "mask" in str(module)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_tile_written_at_its_end(scope: str) -> None:
    """A tile of sums in a buffer of its own, which the epilogue reads; both run over the edge of the output."""
    a, b, c = matmul(9, 19, 5)
    d = te.compute((9, 19), lambda i, j: c[i, j] * 2.0, name="d")

    def steps(sch: Schedule) -> None:
        sch.split("c", "i", [None, 4])
        sch.split("c", "j", [None, 8])
        sch.reorder("c", "i0", "j0", "k", "i1", "j1")
        sch.reverse_compute_at("d", "j0")
        sch.set_scope("c", scope)
        sch.vectorize("c", "j1")
        sch.unroll("c", "i1")
        sch.vectorize("d", sch.get_loops("d")[-1])

    module = check([a, b, d], steps, lambda a, b: 2 * (a @ b))
    (tile,) = (op.buffer.type.get_shape() for op in module.walk() if isinstance(op, kernel.AllocOp))
    assert tile == (4 * 8,)


def chain(m: int = 5, n: int = 9, outputs: int = 2) -> list[te.Tensor]:
    x, y = placeholder("x", m, n), placeholder("y", n)
    a = te.compute((m, n), lambda i, j: x[i, j] + y[j], name="a")
    b = te.compute((m, n), lambda i, j: a[i, j] * a[i, n - 1 - j], name="b")
    c = te.compute((m, n), lambda i, j: b[i, j] + a[i, j], name="c")
    return [x, y, b, c] if outputs == 2 else [x, y, c]


@pytest.mark.parametrize("how", ["serial", "unroll", "vectorize", "parallel"])
def test_two_outputs_one_read_by_the_other(how: str) -> None:
    """What a nest stores it reads again: no load may be taken from before the store."""

    def steps(sch: Schedule) -> None:
        sch.reverse_compute_at("c", "j", producer="b")
        sch.compute_at("a", "i")
        mark(sch, "i" if how == "parallel" else "j", how)

    check(chain(), steps)


@pytest.mark.parametrize("how", ["serial", "unroll", "vectorize"])
def test_temporaries_in_one_nest(how: str) -> None:
    """Two producers in the loops of their reader, one of them read at two places that change from lane to lane."""

    def steps(sch: Schedule) -> None:
        sch.compute_at("b", "j")
        sch.compute_at("a", "i")
        mark(sch, "j", how)

    check(chain(outputs=1), steps)


def test_buffer_of_lanes() -> None:
    """A buffer used in one vectorized loop only has an element for each lane, not one for all."""

    def steps(sch: Schedule) -> None:
        sch.compute_inline("a")
        cached = sch.cache_read("c", "b", "local")
        assert cached is not None
        sch.compute_at(cached, "j")
        sch.vectorize("c", "j")

    check(chain(), steps)


def test_aligned_rows() -> None:
    module = check(chain(4, 6), lambda sch: sch.storage_align("a", 0, 16, 3))
    sizes = [op.buffer.type.get_shape() for op in module.walk() if isinstance(op, kernel.AllocOp)]
    assert sizes == [(3 * 19 + 6,)], "three rows of 19 elements, 3 modulo 16, and the last one"


@pytest.mark.parametrize(("size", "scope"), [(16384, "local"), (16385, "")])
def test_large_local_buffers_live_in_memory(size: int, scope: str) -> None:
    x = placeholder("x", size)
    a = te.compute((size,), lambda i: x[i] * 2.0, name="a")
    c = te.compute((size,), lambda i: a[size - 1 - i] + x[i], name="c")

    def steps(sch: Schedule) -> None:
        sch.set_scope("a", "local")
        sch.split("a", "i", [None, 64])
        sch.vectorize("a", "i1")

    module = check([x, c], steps, lambda x: 2 * x[::-1] + x)
    (alloc,) = (op for op in module.walk() if isinstance(op, kernel.AllocOp))
    space = alloc.buffer.type.memory_space
    assert getattr(space, "data", "") == scope


# -- masks and versions -----------------------------------------------------------------------------------------------


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
    assert count(module, GatherOp) == 2


@pytest.mark.parametrize("how", ["serial", "vectorize"])
def test_diagonal_written_by_scatters(how: str) -> None:
    """A transposed write: lanes a row apart."""
    x = placeholder("x", 5, 9)
    a = te.compute((9, 5), lambda j, i: x[i, j] + 1.0, name="a")

    def steps(sch: Schedule) -> None:
        sch.reorder("a", "i", "j")
        mark(sch, "j", how, "a")

    check([x, a], steps, lambda x: x.T + 1)


# -- shapes -----------------------------------------------------------------------------------------------------------


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
