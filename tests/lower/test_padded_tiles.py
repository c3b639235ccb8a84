"""Tiles of sums that read padding in part: versions that leave it out, beside the expressions."""

from itertools import product

import numpy as np
import pytest
from lowered_runs import exact_inputs, lowered
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.dialects.index import IndexExpr
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower._cut_tiles import Cut
from loopwright.passes.lower._padded_tiles import MOST_VERSIONS, padded_tiles
from loopwright.schedule import Schedule

TARGET = "llvm cores=1 vector_bytes=32 vector_registers=16"


def convolution(size: int, taps: int, dilation: int) -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 4, size, size), name="data"), te.placeholder((8, 4, taps, taps), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, dilation * (taps // 2), dilation)]


def tiled(tensors: list[te.Tensor], rows: int, columns: int, taps: int = 1) -> Schedule:
    """Tiles of pixels with filters as lanes, of which each tap reads all channels."""
    sch = Schedule(tensors, target=TARGET)
    sch.compute_inline("pad_temp")
    nn, ff, yy, xx, rc, ry, rx = sch.get_loops("compute")
    y0, y1 = sch.split("compute", yy, [None, rows])
    x0, x1 = sch.split("compute", xx, [None, columns])
    t0, t1 = sch.split("compute", rx, [None, taps])
    sch.reorder(nn, y0, x0, ry, t0, rc, t1, y1, x1, ff)
    sch.vectorize(ff)
    for loop in (t1, y1, x1):
        sch.unroll(loop)
    return sch


def checked(sch: Schedule) -> ModuleOp:
    module = lowered(sch.module)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return module


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("dilation", [1, 2, 3, 5])
@pytest.mark.parametrize(("rows", "columns", "together"), [(1, 3, 1), (2, 4, 1), (2, 7, 1), (1, 4, 2), (3, 5, 3)])
@pytest.mark.few(8)
def test_versions_of_padded_tiles_are_right(taps: int, dilation: int, rows: int, columns: int, together: int) -> None:
    """With tails of tiles and of taps among them, and tiles that are cut in more ways than there are versions."""
    checked(tiled(convolution(7, taps, dilation), rows, columns, together))


def test_a_version_has_the_products_of_pixels_alone() -> None:
    """Of two tiles of five pixels the last tap cuts the first, the first tap the second: two and two are left."""
    module = checked(tiled(convolution(10, 3, 8), 1, 5))
    counts = sorted(
        sum(isinstance(inner, math.FmaOp) for inner in block.ops)
        for op in module.walk()
        for region in op.regions
        for block in region.blocks
        if any(isinstance(inner, math.FmaOp) for inner in block.ops)
    )
    assert counts == [2, 2, 5]
    assert not [op for op in module.walk() if isinstance(op, arith.SelectOp)]


def conditions(dilation: int) -> dict[IndexExpr, IndexExpr]:
    """Of `x0 * 5 + x1 + t * dilation` between 8 and 17."""
    place = IndexExpr((("x0", 5), ("x1", 1), ("t", dilation)), 0)
    return {c: c for c in (place - 8, -place + 17)}


def test_tiles_that_are_cut_are_told_by_the_loops_around() -> None:
    (found,) = padded_tiles(conditions(8), {"x1": (0, 4)}, {"x0": (0, 1), "t": (0, 2)}) or []
    assert set(found.conditions) == set(conditions(8))
    assert found.cuts == (Cut((("t", 8), ("x0", 5)), 5), Cut((("t", 8), ("x0", 5)), 16))


@pytest.mark.parametrize("dilation", range(1, 9))
def test_for_each_value_some_pixels_are_none(dilation: int) -> None:
    (found,) = padded_tiles(conditions(dilation), {"x1": (0, 4)}, {"x0": (0, 3), "t": (0, 2)}) or []
    starts = {x0 * 5 + t * dilation for x0, t in product(range(4), range(3))}
    inside = {start: sum(8 <= start + x1 <= 17 for x1 in range(5)) for start in starts}
    assert {cut.value * 5 // dict(cut.terms)["x0"] for cut in found.cuts} == {
        start for start, pixels in inside.items() if 0 < pixels < 5
    }


def test_many_ways_to_be_cut_have_no_versions_of_their_own() -> None:
    inside, around = {"x1": (0, 4 * MOST_VERSIONS)}, {"x0": (0, 7), "t": (0, 2)}
    assert padded_tiles(conditions(1), inside, around) is None
    assert padded_tiles(conditions(8), {"x1": (0, 4)}, {"x0": (0, 1), "t": (0, 10**6)}) is None
