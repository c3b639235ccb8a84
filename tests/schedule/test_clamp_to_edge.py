"""Repeated edges read at clamped positions: results beside those that are padded, and the nest of all candidates."""

import numpy as np
import pytest
from replayed_features import check_replayed_features

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import blocks_in
from loopwright.passes.primitive import ScheduleError
from loopwright.passes.schedule.clamp_to_edge import edges_of
from loopwright.topi.image import MODES


def repeated(extent: int, before: int, after: int, dtype: str = "float64") -> list[te.Tensor]:
    """Elements of a row with repeated edges, each beside the one two places on."""
    data, total = te.placeholder((3, extent), dtype, "data"), extent + before + after

    def element(c: te.Expr, x: te.Expr) -> te.Expr:
        inner = data[c, x - before]
        if after:
            inner = te.select(x < extent + before, inner, data[c, extent - 1])
        return te.select(x < before, data[c, 0], inner) if before else inner

    padded = te.compute((3, total), element, "padded")
    return [data, te.compute((3, total - 2), lambda c, x: padded[c, x] - padded[c, x + 2] * 0.5, "out")]


@pytest.mark.parametrize("extent", [1, 2, 6])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 0), (0, 4), (2, 5)])
def test_rows_of_any_edges_agree(extent: int, before: int, after: int) -> None:
    assert agree(repeated(extent, before, after)) == ["out"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", [(9, 14), (4, 3), (12, 7)])
def test_resizes_agree(mode: str, layout: str, size: tuple[int, int]) -> None:
    shape = (2, 3, 4, 7) if layout == "NCHW" else (2, 4, 7, 3)
    data = te.placeholder(shape, "float64", "data")
    assert agree([data, topi.resize2d(data, size, layout=layout, coordinate_mode=mode)]) == ["resize"]


def agree(tensors: list[te.Tensor]) -> list[str]:
    """Hold a program whose edges are read clamped to the one that pads; the blocks that are left."""
    sch = lw.Schedule(tensors)
    inputs = [np.random.default_rng(0).standard_normal(tensors[0].shape)]
    (expected,) = run_loops(sch.module, inputs)
    for block in reversed([b.block_name for b in blocks_in(sch.module) if edges_of(b) is not None]):
        sch.clamp_to_edge(block)
    (found,) = run_loops(sch.module, inputs)
    np.testing.assert_array_equal(found, expected)
    return [block.block_name for block in blocks_in(sch.module)]


def unlike(first: int, before: int, last: int) -> list[te.Tensor]:
    """Two elements before six and one behind them: repeated edges if these are the first and the last one."""
    data = te.placeholder((6,), "float32", "data")

    def element(x: te.Expr) -> te.Expr:
        return te.select(x < 2, data[first], te.select(x < 6 + before, data[x - before], data[last]))

    padded = te.compute((9,), element, "padded")
    return [data, te.compute((9,), lambda x: padded[x] * 2.0, "out")]


@pytest.mark.parametrize(("first", "before", "last"), [(1, 2, 5), (0, 1, 5), (0, 2, 4)])
def test_others_are_refused(first: int, before: int, last: int) -> None:
    with pytest.raises(ScheduleError, match="block 'padded' must repeat the first or the last elements of a buffer"):
        lw.Schedule(unlike(first, before, last)).clamp_to_edge("padded")


def test_what_reads_more_dimensions_than_it_writes_is_refused() -> None:
    """It is asked of all blocks of a GPU's drafts, such as sums of the two halves of complex numbers."""
    data = te.placeholder((6, 2), "float32", "data")
    both = te.compute((6,), lambda x: data[x, 0] + data[x, 1], "both")
    tensors = [data, te.compute((6,), lambda x: both[x] * both[x], "out")]
    with pytest.raises(ScheduleError, match="block 'both' must repeat the first or the last elements of a buffer"):
        lw.Schedule(tensors).clamp_to_edge("both")
    assert lw.SearchTask(tensors, target="cuda model=h200").sketches


def test_edges_are_known_by_what_is_selected() -> None:
    assert agree(unlike(0, 2, 5)) == ["out"]


@pytest.mark.parametrize("edge", [0, 7])
def test_edges_under_a_mask_are_refused(edge: int) -> None:
    """They are zero where the mask does not hold, as they are all along here."""
    data = te.placeholder((6,), "float32", "data")

    def at(x: te.Expr, place: int) -> te.Expr:
        element = data[0 if place == 0 else 5]
        masked = te.if_then_else(x >= 1 if place == 0 else x < 7, element, 0.0)
        return masked if place == edge else element

    padded = te.compute((8,), lambda x: te.select(x < 1, at(x, 0), te.select(x < 7, data[x - 1], at(x, 7))), "padded")
    with pytest.raises(ScheduleError, match="block 'padded' must repeat the first or the last elements of a buffer"):
        lw.Schedule([data, te.compute((8,), lambda x: padded[x] * 2.0, "out")]).clamp_to_edge("padded")


def test_what_is_read_under_a_mask_is_refused() -> None:
    data = te.placeholder((6,), "float32", "data")
    padded = te.compute((7,), lambda x: te.select(x < 1, data[0], data[x - 1]), "padded")
    with pytest.raises(ScheduleError, match="'out' must read 'padded' at its iterators, not under a mask"):
        lw.Schedule([data, topi.nn.pad(padded, (1,), name="out")]).clamp_to_edge("padded")


def test_outputs_are_refused() -> None:
    data = te.placeholder((6,), "float32", "data")
    padded = te.compute((7,), lambda x: te.select(x < 1, data[0], data[x - 1]), "padded")
    with pytest.raises(ScheduleError, match="'padded' must not be an output of the function"):
        lw.Schedule([data, padded]).clamp_to_edge("padded")


def test_all_candidates_have_the_nest_that_the_step_makes() -> None:
    tensors = repeated(6, 1, 2, "float32")
    template = 'lw-lower-te-to-loop,lw-split{block="out" loop="x" factors=0,<n>},lw-clamp-to-edge{block="padded"}'
    check_replayed_features(tensors, template, (1, 2, 4))


def test_an_element_in_front_of_a_row_is_no_edge() -> None:
    """Reads of fewer dimensions than are written, and of more."""
    row, plane = te.placeholder((6,), "float32", "row"), te.placeholder((6, 2), "float32", "plane")
    wide = te.compute((7, 2), lambda i, j: te.select(i < 1, row[0], row[i - 1]), "wide")
    narrow = te.compute((7,), lambda i: te.select(i < 1, plane[0, 0], plane[i - 1, 1]), "narrow")
    for data, made in ((row, wide), (plane, narrow)):
        with pytest.raises(ScheduleError, match="must repeat the first or the last elements of a buffer"):
            lw.Schedule([data, te.compute(made.shape, lambda *i, m=made: m[i] * 2.0, "out")]).clamp_to_edge(made.name)
