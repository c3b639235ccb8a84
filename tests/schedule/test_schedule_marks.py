"""Marks on loops: what may run at once, in lanes, on threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te
from loopwright.dialects.index import IndexExpr, axis
from loopwright.dialects.interpret.loop import run_loops
from loopwright.passes.analysis.disjoint import determines
from loopwright.passes.analysis.nest import find_block

GPU = "cuda max_threads_per_block=64 max_vthreads=4"


def elementwise(m: int, n: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    x = te.placeholder((m, n), name="x")
    a = te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="a")
    return x, a, te.compute((m, n), lambda i, j: a[i, j] + x[i, j], name="b")


def kinds(sch: lw.Schedule, block: str) -> list[str]:
    return [loop.loop_kind for loop in find_block(None, sch.module, block).enclosing_loops]


# -- which loops have iterations of their own --------------------------------------------------------------------------

RANGES = {"o": (0, 1), "p": (0, 3), "q": (0, 2), "r": (0, 4)}


def expressions() -> st.SearchStrategy[IndexExpr]:
    """What fusing and splitting leave: sums of axes with factors, their quotients and remainders."""
    terms = st.lists(
        st.tuples(st.sampled_from("opqr"), st.sampled_from([1, 1, 2, 3, 4, 5, 12, 15])), min_size=1, max_size=3
    )

    def build(parts: list[tuple[str, int]], shape: int, divisor: int) -> IndexExpr:
        total = sum((axis(name) * factor for name, factor in parts), start=axis("o") * 0)
        return (total, total // divisor, total % divisor)[shape]

    return st.builds(build, terms, st.integers(0, 2), st.integers(2, 7))


@given(st.lists(expressions(), min_size=1, max_size=3), st.sampled_from("pq"))
def test_what_determines_a_loop_does(exprs: list[IndexExpr], name: str) -> None:
    """Where two values of the loop are said to be told apart, no two points of the space contradict it."""
    varying = {"q", "r"} - {name}
    if not determines(name, exprs, varying, RANGES):
        return
    seen: dict[tuple[int, ...], int] = {}
    fixed = [n for n in RANGES if n != name and n not in varying]
    for point in itertools.product(*(range(RANGES[n][0], RANGES[n][1] + 1) for n in RANGES)):
        values = dict(zip(RANGES, point, strict=True))
        key = (*(values[n] for n in fixed), *(e.evaluate(values) for e in exprs))
        assert seen.setdefault(key, values[name]) == values[name], (values, key)


p, q, r = axis("p"), axis("q"), axis("r")


@pytest.mark.parametrize(
    ("exprs", "told_apart"),
    [
        ([p * 3 + q], True),
        ([p * 2 + q], False),
        ([q * 4 + p], True),
        ([q * 3 + p], False),
        ([q, r], False),
        ([(p * 3 + q) // 4, (p * 3 + q) % 4], True),
        ([(p * 3 + q) // 4], False),
        ([(p * 15 + q * 5 + r) // 12, (p * 15 + q * 5 + r) // 4 % 3, (p * 15 + q * 5 + r) % 4], True),
        ([(p * 15 + q * 5 + r) // 12, (p * 15 + q * 5 + r) % 4], False),
        ([(p * 3 + q) % 4, r, (p * 3 + q) // 4], True),
        ([p * 2 + q // 2, q % 2], True),
    ],
    ids=str,
)
def test_fused_and_split_loops_are_told_apart(exprs: list[IndexExpr], told_apart: bool) -> None:
    assert determines("p", exprs, {"q", "r"}, RANGES) == told_apart


# -- parallel and vectorize --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [(None, 4), (3, None), (None, 2, 5)])
def test_every_loop_of_a_fused_and_split_nest_may_be_parallel(factors: tuple[int | None, ...]) -> None:
    x, a, b = elementwise(7, 5)
    sch = lw.Schedule([x, b])
    sch.compute_inline(a)
    for loop in sch.split(sch.fuse(*sch.get_loops(b)), factors):
        other = sch.copy()
        other.parallel(loop)
        values = np.arange(35, dtype=np.float32).reshape(7, 5)
        np.testing.assert_array_equal(run_loops(other.module, [values])[0], values * 3)


def test_what_stays_within_an_iteration_is_no_sharing() -> None:
    x, a, b = elementwise(6, 5)
    sch = lw.Schedule([x, b])
    sch.compute_at(a, "i")
    sch.parallel(b, "i")
    assert kinds(sch, "a") == ["parallel", "serial"]


def test_an_output_that_is_read_in_the_same_iteration_is_no_sharing() -> None:
    x, a, b = elementwise(6, 5)
    sch = lw.Schedule([x, a, b])
    sch.reverse_compute_at(b, "i")
    sch.parallel(b, "i")
    assert kinds(sch, "b") == ["parallel", "serial"]


def test_overlapping_windows_are_sharing() -> None:
    """Under the loop of its reader a sum over a window is computed twice at the seams."""
    x = te.placeholder((12,), name="x")
    k, w = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 2), "w")
    a = te.compute((10,), lambda i: te.sum(x[i + k], axis=k), name="a")
    b = te.compute((9,), lambda i: te.sum(a[i + w], axis=w), name="b")
    sch = lw.Schedule([x, b])
    sch.compute_at(a, "i", consumer="b")
    own = sch.copy()
    own.parallel(b, "i")
    with pytest.raises(lw.ScheduleError, match="'i' may share elements of 'a'"):
        sch.decompose_reduction(a, "i")


@pytest.mark.parametrize(("combine", "legal"), [("sum", True), ("max", True), ("argmax", False)])
def test_lanes_join_by_named_combiners_only(combine: str, legal: bool) -> None:
    from loopwright import topi

    x = te.placeholder((3, 8), name="x")
    y = getattr(topi, combine)(x, axis=1)
    sch = lw.Schedule([x, y])
    reduction = sch.blocks[0]
    loop = sch.get_loops(reduction)[-1]
    if legal:
        sch.vectorize(loop)
        assert kinds(sch, reduction) == ["serial", "vectorized"]
        return
    with pytest.raises(lw.ScheduleError, match="lanes join by add, mul, max or min only") as caught:
        sch.vectorize(loop)
    sch.apply(str(caught.value.fix))
    sch.vectorize(f"{reduction}_rf", loop)


def test_a_parallel_loop_that_writes_one_element_is_refused() -> None:
    x, _, b = elementwise(6, 5)
    sch = lw.Schedule([x, b])
    sch.compute_at("a", "j")
    sch.split("b", "j", [None, 2])
    with pytest.raises(lw.ScheduleError, match="parallel loops must not nest, 'j0' is one"):
        sch.parallel("b", "j0")
        sch.parallel("b", "i")


# -- bind --------------------------------------------------------------------------------------------------------------


def test_bind_keeps_to_the_limits_of_the_target() -> None:
    x, a, b = elementwise(16, 8)
    sch = lw.Schedule([x, b], GPU)
    sch.bind(b, "j", "threadIdx.x")
    with pytest.raises(lw.ScheduleError, match="at most 64 threads on this target, got 128"):
        sch.bind(b, "i", "threadIdx.y")
    i0, i1 = sch.split(b, "i", [None, 8])
    sch.bind(i1, "threadIdx.y")
    with pytest.raises(lw.ScheduleError, match="one axis must not be bound twice"):
        sch.bind(i0, "threadIdx.y")
    sch.bind(i0, "blockIdx.x")
    sch.bind(a, "i", "blockIdx.y")
    assert kinds(sch, "b") == ["blockIdx.x", "threadIdx.y", "threadIdx.x"]


def test_the_widest_of_neighbouring_nests_counts() -> None:
    x, a, b = elementwise(4, 32)
    sch = lw.Schedule([x, b], GPU)
    sch.split(a, "j", [2, None])
    sch.split(b, "i", [2, None])
    sch.compute_at(a, "i0")
    sch.bind(b, "j", "threadIdx.x")
    sch.bind(a, sch.get_loops(a)[1], "threadIdx.y")
    with pytest.raises(lw.ScheduleError, match="got 128 "):
        sch.split(b, "i1", [1, 4])
        sch.bind(b, "i11", "threadIdx.y")


def test_without_limits_any_number_of_threads_goes() -> None:
    x, _, b = elementwise(64, 64)
    sch = lw.Schedule([x, b])
    sch.bind(b, "i", "threadIdx.y")
    sch.bind(b, "j", "threadIdx.x")


def test_virtual_threads_nest() -> None:
    x, _, b = elementwise(2, 2)
    sch = lw.Schedule([x, b], GPU)
    sch.bind(b, "i", "vthread")
    sch.bind(b, "j", "vthread")
    assert kinds(sch, "b") == ["vthread", "vthread"]


# -- pipelines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_pipelined_copies_compute_the_same(stages: int) -> None:
    a, b = te.placeholder((5, 13), name="A"), te.placeholder((13, 7), name="B")
    k = te.reduce_axis((0, 13), "k")
    c = te.compute((5, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = lw.Schedule([a, b, c])
    k0, k1 = sch.split(c, "k", [None, 3])
    sch.reorder(c, k0, "i", "j", k1) if stages == 3 else sch.reorder(c, "i", k0, k1, "j")
    for tensor in (a, b):
        sch.compute_at(sch.cache_read(c, tensor, "shared"), k0)
    sch.software_pipeline(c, k0, stages)
    assert f"memref<{stages}x5x13xf32" in str(sch)
    sch.module.verify()
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 4, (5, 13)).astype("f4"), rng.integers(-4, 4, (13, 7)).astype("f4")
    np.testing.assert_array_equal(run_loops(sch.module, [x, y])[0], x @ y)


def test_what_reads_a_pipelined_copy_stays_in_its_loop() -> None:
    x, k = te.placeholder((6, 5), name="x"), te.reduce_axis((0, 5), "k")
    a = te.compute((6,), lambda i: te.sum(x[i, k], axis=k), name="a")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="b")
    sch = lw.Schedule([x, b])
    copy = sch.cache_read(a, x)
    sch.compute_at(copy, "k")
    sch.software_pipeline(a, "k", 2)
    with pytest.raises(lw.ScheduleError, match=f"'a' must stay in the loop that is pipelined, '{copy}' has stages"):
        sch.compute_at(a, "i")


def test_a_source_that_the_loop_writes_is_not_read_ahead() -> None:
    x, a, b = elementwise(6, 5)
    sch = lw.Schedule([x, b])
    copy = sch.cache_read(b, a)
    sch.compute_at(copy, "i")
    sch.compute_at(a, "i", consumer=copy)
    with pytest.raises(lw.ScheduleError, match="'a' must be there before loop 'i', 'a' writes it inside"):
        sch.double_buffer(copy)
    with pytest.raises(lw.ScheduleError, match="must hold a copy"):
        sch.software_pipeline(b, "i", 2)


def test_sums_that_threads_join_begin_with_the_first_iteration() -> None:
    """Others that may run at once are interpreted backwards; the first of these says where a sum begins."""
    x, r = te.placeholder((5,), name="x"), te.reduce_axis((0, 3), "r")
    sums = te.compute((3,), lambda i: te.sum(x[i + r], axis=r), name="sums")
    sch = lw.Schedule([x, te.compute((3,), lambda i: sums[2 - i] + x[i], name="out")])
    sch.bind("sums", "r", "threadIdx.x")
    (found,) = run_loops(sch.module, [np.arange(5, dtype=np.float32)])
    np.testing.assert_allclose(found, [9, 7, 5])
