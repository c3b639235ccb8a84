"""Panels that are asked for ahead: all lines of the next one, each in its turn, and nothing else changes."""

from itertools import product

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.analysis.nest import find_block, find_loop
from loopwright.passes.analysis.panels import panel_of


def panelled(rows: int, terms: int, columns: int, width: int, tile: int, cores: int = 1) -> tuple[lw.Schedule, str]:
    """A product whose weight is packed ahead in panels of `width` columns, the tiles of rows within; its outer loop."""
    a = te.placeholder((rows, terms), name="a")
    b = te.placeholder((terms, columns), name="b", constant=True)
    sch = lw.Schedule([a, b, topi.nn.matmul(a, b)], target=f"llvm cores={cores} vector_bytes=64")
    block = "T_matmul"
    sch.transform_layout(block, "b", [f"j/{width}", "k", f"j%{width}"])
    j0, j1, j2 = sch.split(block, "j", [None, width // 16, 16])
    i0, i1 = sch.split(block, "i", [None, tile])
    k0, k1 = sch.split(block, "k", [None, 2])
    sch.reorder(block, j0, i0, k0, k1, i1, j1, j2)
    task = sch.fuse(block, j0, i0)
    for loop in (k1, i1, j1):
        sch.unroll(block, loop)
    sch.vectorize(block, j2)
    if cores > 1:
        sch.parallel(block, task)
    sch.prefetch_panel(block, "b", task)
    return sch, task


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "width", "tile"),
    [(12, 40, 96, 32, 4), (7, 6, 64, 16, 1), (8, 34, 80, 32, 8), (9, 10, 100, 48, 4)],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_what_is_computed_stays_the_same(
    rows: int, terms: int, columns: int, width: int, tile: int, cores: int
) -> None:
    sch, _ = panelled(rows, terms, columns, width, tile, cores)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((rows, terms), dtype=np.float32)
    b = rng.standard_normal((terms, columns), dtype=np.float32)
    kernel = lw.build(sch, params={"b": b})
    np.testing.assert_allclose(kernel(a), a @ b, rtol=1e-4, atol=1e-4)
    assert "i32 0, i32 2, i32 1)" in kernel.source  # into the second-level cache


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "width", "tile"),
    [(12, 40, 96, 32, 4), (8, 12, 64, 16, 1), (8, 34, 64, 32, 8), (21, 10, 96, 48, 3)],
)
def test_while_a_panel_is_used_every_line_of_the_next_one_is_asked_for(
    rows: int, terms: int, columns: int, width: int, tile: int
) -> None:
    sch, task = panelled(rows, terms, columns, width, tile)
    block = find_block(None, sch.module, "T_matmul")
    load = block.loads[1]
    panel = panel_of(block, load, find_loop(None, block, task))
    assert panel is not None
    loops = [loop for loop in block.enclosing_loops if loop.loop_kind == "serial"]
    tiles, asked = rows // tile, dict[int, list[int]]()
    for place in product(*(range(loop.size) for loop in loops)):
        values = {loop.loop_name: n for loop, n in zip(loops, place, strict=True)}
        first = (panel.start + panel.place).evaluate(values)
        asked.setdefault(values[task] // tiles, []).extend(range(first, first + panel.share))
    for number, elements in asked.items():
        start = (number + 1) * terms * width
        assert set(range(start, start + terms * width)) <= {*elements}
        assert max(elements) < start + terms * width + panel.share
        assert elements == sorted(elements) or panel.share > 1  # in the order in which they are read


def test_a_gpu_whose_threads_hide_latency_gets_no_hint() -> None:
    a, b = te.placeholder((4, 32), name="a"), te.placeholder((32, 16), name="b")
    sch = lw.Schedule([a, b, topi.nn.matmul(a, b)], target="opencl max_threads_per_block=64")
    sch.reorder("T_matmul", "k", "i", "j")
    sch.prefetch_panel("T_matmul", "b", "k")
    assert "prefetch" not in lw.build(sch).source


def test_where_one_panel_is_all_there_is_nothing_to_ask_for() -> None:
    sch, _ = panelled(12, 40, 32, 32, 4)
    assert "prefetch" not in lw.build(sch).source


def test_where_the_program_reads_which_panel_it_takes_nothing_is_asked_for() -> None:
    tables, which = te.placeholder((5, 6, 32), name="tables"), te.placeholder((4,), dtype="int32", name="which")
    k = te.reduce_axis((0, 32), "k")
    total = te.compute((4, 6), lambda i, t: te.sum(tables[which[i], t, k], axis=k), "total", ("i", "t"))
    sch = lw.Schedule([tables, which, total], target="llvm cores=1 vector_bytes=64")
    sch.prefetch_panel("total", "tables", "t")
    kernel = lw.build(sch)
    a, b = np.random.default_rng(0).standard_normal((5, 6, 32), dtype=np.float32), np.array([4, 0, 2, 2], np.int32)
    np.testing.assert_allclose(kernel(a, b), a[b].sum(axis=2), rtol=1e-4, atol=1e-4)
    assert "prefetch" not in kernel.source


@pytest.mark.parametrize("lanes", ["i", "j"])
def test_where_lanes_are_in_different_panels_nothing_is_asked_for(lanes: str) -> None:
    x = te.placeholder((8, 8), name="x")
    sch = lw.Schedule([x, te.compute((8, 8), lambda i, j: x[i, j] * 2.0, "y", ("i", "j"))], target="llvm cores=1")
    sch.reorder("y", *("ji" if lanes == "i" else "ij"))
    sch.prefetch_panel("y", "x", lanes)
    sch.vectorize("y", lanes)
    kernel = lw.build(sch)
    values = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    np.testing.assert_array_equal(kernel(values), values * 2)
    assert "prefetch" not in kernel.source
