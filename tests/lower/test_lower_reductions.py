"""Reductions lowered for a CPU: lanes that are joined, combiners, sums of wide types."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowered_programs import check, count, matmul, placeholder, times

from loopwright import te, topi
from loopwright.dialects.kernel import ConvertOp
from loopwright.schedule import Schedule

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
    assert count(module, ConvertOp) == (4 if vectorized == "k1" else 1)  # of terms there is a last vector apart


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
