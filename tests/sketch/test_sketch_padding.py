"""Convolutions most of whose windows reach into padding: tiles that read nothing else are left out."""

from itertools import product

import numpy as np
import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.draft import Draft, _descended
from loopwright.search.sketch.hole import Hole
from loopwright.search.sketch.known_seconds import KnownSeconds
from loopwright.search.sketch.population import Population
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.structure.anchor import find_anchor
from loopwright.search.structure.padding import PaddedWindow, padded_windows, part_read

CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"
CASES = {
    "dilated": (7, 3, 1, 6),
    "strided": (9, 3, 2, 5),
    "wide": (4, 7, 1, 1),
    "small": (2, 5, 1, 1),
    "most of all": (6, 3, 1, 6),
}
"""Pixels along an axis, taps, stride and dilation."""


def convolution(case: tuple[int, int, int, int], last: bool = False, constant: bool = False) -> list[te.Tensor]:
    size, taps, stride, dilation = case
    around = dilation * (taps // 2)
    data = te.placeholder((2, size, size + 1, 5) if last else (2, 5, size, size + 1), name="data")
    shape = (taps, taps, 5, 16) if last else (16, 5, taps, taps)
    kernel = te.placeholder(shape, name="kernel", constant=constant)
    if last:
        return [data, kernel, topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, stride, around, dilation))]
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, stride, around, dilation))]


def padded_sketches(
    case: tuple[int, int, int, int], last: bool = False, constant: bool = False
) -> tuple[lw.SearchTask, list[Sketch]]:
    task = lw.SearchTask(lambda: convolution(case, last, constant), target=CPU)
    return task, [s for s in task.sketches if s.name.startswith("ff_") and s.name.endswith("_padded")]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "NHWC"])
@pytest.mark.parametrize("constant", [False, True], ids=["", "constant"])
@pytest.mark.few(2)
def test_tiles_that_leave_out_padding_are_right(name: str, last: bool, constant: bool) -> None:
    task, sketches = padded_sketches(CASES[name], last, constant)
    assert {s.name for s in sketches} >= ({"ff_ahead_padded"} if constant else {"ff_inner_padded", "ff_root_padded"})
    for sketch in sketches:
        check_kernels(task, sketch, 2, 2)


def test_windows_that_are_mostly_inside_have_no_such_tiles() -> None:
    assert not padded_sketches((20, 3, 1, 1))[1]


def test_taps_are_the_outer_steps_and_estimates_know_of_them() -> None:
    _, (sketch, *_) = padded_sketches(CASES["dilated"])
    order = sketch.template.partition("lw-reorder")[2].partition("}")[0]
    assert order.index('"ry0"') < order.index('"rx0"') < order.index('"rc')
    task = lw.SearchTask(lambda: convolution(CASES["dilated"]), target=CPU)
    plain = next(s for s in task.sketches if s.name == sketch.name.removesuffix("_padded"))
    drawn = [(s, s.columns(s.sample(np.random.default_rng(0), 300))) for s in (sketch, plain)]
    least = [s.prior(columns).min() for s, columns in drawn if s.prior is not None]
    assert least[0] < least[1]


def test_windows_that_read_nothing_but_padding_have_an_estimate_and_a_schedule() -> None:
    """Strides may step over all data: no tile has a step to take, and each stores its zeros."""

    def tensors() -> list[te.Tensor]:
        data, kernel = te.placeholder((1, 8, 1, 7), name="data"), te.placeholder((32, 8, 3, 3), name="kernel")
        return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, (4, 1), (3, 1)))]

    task = lw.SearchTask(tensors, target=CPU)
    assert any(s.name.endswith("_padded") for s in task.sketches)
    for sketch in task.sketches:
        row = sketch.sample(np.random.default_rng(0), 50)
        estimates = sketch.estimate(row)
        assert estimates is None or (estimates > 0).all(), sketch.name
        schedule = sketch.schedule(sketch.default)
        np.testing.assert_array_equal(task.build(schedule)(*task.reference.inputs), 0, err_msg=schedule)


@pytest.mark.parametrize("seconds", [0.0, -1.0, np.nan, np.inf])
def test_a_choice_of_defaults_ends_whatever_an_estimate_is(seconds: float) -> None:
    """Such as 0, which no change makes less."""
    population = Population((Hole("rows", (1, 2, 4), 2),), (), ())
    known = KnownSeconds(lambda rows: np.full(len(rows), seconds))
    assert len(_descended(population, known, population.default[None]))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(2)
def test_lanes_along_pixels_leave_out_rows(name: str) -> None:
    task = lw.SearchTask(lambda: convolution(CASES[name]), target=CPU)
    if not (sketches := [s for s in task.sketches if s.name == "xx_direct_padded"]):
        pytest.skip("strided rows are not read in place")
    (sketch,) = sketches
    order = sketch.template.partition("lw-reorder")[2].partition("}")[0]
    assert order.index('"ry0"') < order.index('"rc') < order.index('"rx0"')
    check_kernels(task, sketch, 3, 3)


def test_what_is_packed_leaves_no_rows_out() -> None:
    names = {s.name for s in lw.SearchTask(lambda: convolution(CASES["dilated"]), target=CPU).sketches}
    assert {"xx_inner", "xx_root"} <= names and not {"xx_inner_padded", "xx_root_padded"} & names


@pytest.mark.parametrize("name", CASES)
def test_windows_of_a_padded_operand_are_found(name: str) -> None:
    size, taps, stride, dilation = CASES[name]
    task = lw.SearchTask(lambda: convolution(CASES[name]), target=CPU)
    module = Draft.of(task.module).module
    anchor = find_anchor(module, "compute")
    assert anchor is not None
    windows = padded_windows(module, anchor)
    around = dilation * (taps // 2)
    assert [(w.spatial, w.tap, w.low, w.high) for w in windows] == [
        ("yy", "ry", around, around + size - 1),
        ("xx", "rx", around, around + size),
    ]
    read = [
        0 <= stride * y + dilation * t - around < extent
        for extent, (y, t) in ((w.high - w.low + 1, pair) for w in windows for pair in _pairs(w))
    ]
    counts = [w.extent * w.taps for w in windows]
    expected = np.prod([np.mean(read[: counts[0]]), np.mean(read[counts[0] :])])
    assert part_read(windows) == pytest.approx(expected)


def _pairs(window: PaddedWindow) -> list[tuple[int, int]]:
    return list(product(range(window.extent), range(window.taps)))


@pytest.mark.parametrize("tile", range(1, 9))
@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize(("start", "dilation"), [(1, 5), (11, -5)])
def test_parts_of_steps_are_counted(tile: int, taps: int, start: int, dilation: int) -> None:
    window = PaddedWindow("x", 7, 2, "r", 3, dilation, start, 4, 11)
    given = np.array([tile, tile]), np.array([taps, taps])
    if tile >= 7 and taps == 3:  # all is one tile, each step of which is written out
        tile = taps = 1
    steps, some = 0, 0
    for first, tap in product(range(0, 7, tile), range(0, 3, taps)):
        at = product(range(first, min(first + tile, 7)), range(tap, min(tap + taps, 3)))
        places = [start + 2 * x + dilation * t for x, t in at]
        steps += 1
        some += min(places) <= 11 and max(places) >= 4
    assert window.parts(*given).tolist() == [some / steps] * 2


@pytest.mark.parametrize("tile", range(1, 9))
@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 5])
def test_what_padded_tiles_read_is_counted(tile: int, taps: int, dilation: int) -> None:
    window = PaddedWindow("x", 9, 1, "r", 3, dilation, 0, dilation, dilation + 8)
    found = window.steps(tile, taps)
    if tile >= 9 and taps == 3:
        tile = taps = 1
    parts, starts = [], set()
    for first, tap in product(range(0, 9, tile), range(0, 3, taps)):
        copies = list(product(range(first, min(first + tile, 9)), range(tap, min(tap + taps, 3))))
        inside = [dilation <= x + dilation * t <= dilation + 8 for x, t in copies]
        parts.append(np.mean(inside))
        low, high = first + dilation * tap, first + tile - 1 + dilation * (tap + taps - 1)
        if (low < dilation or high > dilation + 8) and high >= dilation and low <= dilation + 8:
            starts.add(low)
    assert found.read == pytest.approx(np.mean(parts))
    assert found.whole == pytest.approx(np.mean(np.array(parts) == 1))
    assert found.cuts == len(starts)


@pytest.mark.parametrize("number", range(40))
@pytest.mark.few(8)
def test_tiles_between_the_edges_are_counted_as_those_at_them(number: int) -> None:
    """Of windows in any place, of which tiles and taps at a time are cut off: all of them one by one."""
    rng = np.random.default_rng(number)
    extent, stride, taps = (int(rng.integers(*ends)) for ends in ((2, 40), (1, 5), (1, 8)))
    dilation, start, low = int(rng.choice([1, 2, 6, -1, -3])), int(rng.integers(-3, 12)), int(rng.integers(0, 12))
    high = int(rng.integers(0, 90))
    tile, step = int(rng.integers(1, extent)), int(rng.integers(1, taps + 2))
    found = PaddedWindow("x", extent, stride, "r", taps, dilation, start, low, high).steps(tile, step)
    read, cut = [], set()
    for first, tap in product(range(0, extent, tile), range(0, taps, step)):
        copies = product(range(first, min(first + tile, extent)), range(tap, min(tap + step, taps)))
        read.append(np.mean([low <= start + stride * x + dilation * t <= high for x, t in copies]))
        ends = [start + stride * x + dilation * t for x in (first, first + tile - 1) for t in (tap, tap + step - 1)]
        if max(ends) >= low and min(ends) <= high and (min(ends) < low or max(ends) > high):
            cut.add(start + stride * first + dilation * tap)
    assert found.read == pytest.approx(np.mean(read))
    assert found.whole == pytest.approx(np.mean(np.array(read) == 1))
    assert found.cuts == len(cut)


def test_tiles_of_a_long_signal_are_not_counted_one_by_one() -> None:
    window = PaddedWindow("x", 1 << 40, 1, "r", 25, 1, 0, 12, (1 << 40) + 11)
    found = window.steps(16, 5)
    assert found.cuts == 6 and 1 - found.read == pytest.approx(sum(2 * n for n in range(13)) / 25 / 2**40, rel=1e-3)


TRANSPOSED = {"3x3/2": (3, 3, 2, 9), "5x5/3": (5, 5, 3, 25), "3x5/2": (3, 5, 2, 15)}
"""Rows and columns of windows, strides, and the taps of all phases together, of transposed convolutions."""


def transposed(name: str, size: int = 9) -> list[te.Tensor]:
    rows, columns, stride, _ = TRANSPOSED[name]
    data = te.placeholder((1, 6, size, size + 1), name="data")
    kernel = te.placeholder((6, 8, rows, columns), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_transpose_nchw(data, kernel, stride, (rows // 2, columns // 2)))]


@pytest.mark.parametrize("name", TRANSPOSED)
@pytest.mark.few(2)
def test_phases_have_their_own_taps(name: str) -> None:
    *_, stride, taps = TRANSPOSED[name]
    task = lw.SearchTask(lambda: transposed(name), target=CPU)
    module = Draft.of(task.module).module
    anchor = find_anchor(module, "compute")
    assert anchor is not None
    windows = [window for window in padded_windows(module, anchor) if window.moves_back]
    assert [(w.spatial, w.extent, w.pad) for w in windows] == [
        ("py", stride, "kernel_taps"),
        ("px", stride, "kernel_taps"),
    ]
    assert part_read(windows) == pytest.approx(taps / np.prod([w.extent * w.taps for w in windows]))
    sketches = [sketch for sketch in task.sketches if sketch.name.endswith("_taps")]
    assert {"xx_direct_taps", "yy_xx_inner_taps"} <= {sketch.name for sketch in sketches}
    for sketch in sketches:
        assert 'lw-compute-inline{block="kernel_taps"}' in sketch.template
        check_kernels(task, sketch, 1, 1)


def test_strides_that_divide_the_window_leave_no_taps_out() -> None:
    data, kernel = te.placeholder((1, 6, 9, 9), name="data"), te.placeholder((6, 8, 4, 4), name="kernel")
    task = lw.SearchTask(lambda: [data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, 2, 1)], target=CPU)
    assert not [sketch.name for sketch in task.sketches if "taps" in sketch.name]
