"""Convolutions with lanes along their output channels: filters packed in lines, pixels read one by one."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sketch_kernels import check_kernels

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.schedule.compute_inline import ComputeInline
from loopwright.search.estimates.tile_model import (
    APART_PACK_CYCLES,
    CYCLES_PER_S,
    EASED,
    FAR_RUN_CYCLES,
    PACK_CYCLES,
    TileModel,
)
from loopwright.search.rules._tile_model import tile_model
from loopwright.search.rules._tile_plan import plan_tiles
from loopwright.search.rules._tile_variants import FEWEST_TERMS, variants
from loopwright.search.rules._turned_epilogue import ALIASED_CYCLES
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.likely import SURE_ON_CPU
from loopwright.search.sketch.sketch import Sketch
from loopwright.search.structure.anchor import anchors_in

AVX512 = "llvm cores=1 vector_bytes=64 vector_registers=32"
CPU = "llvm cores=1 vector_bytes=32 vector_registers=16"
Workload = Callable[[], list[te.Tensor]]


def convolution(
    n: int, c: int, size: int, f: int, k: int, stride: int = 1, dilation: int = 1, constant: bool = False
) -> list[te.Tensor]:
    data = te.placeholder((n, c, size, size + 1), name="data")
    kernel = te.placeholder((f, c, k, k), name="kernel", constant=constant)
    bias = te.placeholder((f,), name="bias")
    made = topi.nn.conv2d_nchw(data, kernel, stride, dilation * (k // 2), dilation)
    return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(made, bias))]


def to_channels_last() -> list[te.Tensor]:
    *inputs, out = convolution(1, 5, 6, 16, 3)
    return [*inputs, topi.transpose(out, (0, 2, 3, 1))]


def costly() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 5, 9, 9), name="data"), te.placeholder((32, 5, 3, 3), name="kernel")
    bias = te.placeholder((32,), name="bias")
    return [data, kernel, bias, topi.nn.gelu(topi.nn.bias_add(topi.nn.conv2d_nchw(data, kernel, 1, 1), bias))]


def of_lines() -> list[te.Tensor]:
    data, kernel = te.placeholder((2, 6, 31), name="data"), te.placeholder((19, 6, 3), name="kernel")
    return [data, kernel, topi.nn.conv1d_ncw(data, kernel, 2, 1)]


def of_volumes() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 3, 4, 5, 5), name="data"), te.placeholder((9, 3, 3, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, 1)]


WORKLOADS: dict[str, Workload] = {
    "plain": lambda: convolution(1, 5, 7, 17, 3),
    "strided batch": lambda: convolution(3, 4, 9, 24, 3, stride=2),
    "dilated": lambda: convolution(1, 6, 8, 8, 3, dilation=6),
    "pointwise": lambda: convolution(2, 7, 5, 21, 1),
    "constant": lambda: convolution(1, 5, 7, 17, 3, constant=True),
    "to channels last": to_channels_last,
    "costly": costly,
    "lines": of_lines,
    "volumes": of_volumes,
}


def channel_sketches(workload: Workload, target: str = CPU) -> tuple[lw.SearchTask, list[Sketch]]:
    task = lw.SearchTask(workload, target=target)
    return task, [sketch for sketch in task.sketches if sketch.name.startswith("ff_")]


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(1)
def test_candidates_with_lanes_along_channels_are_right(name: str) -> None:
    task, sketches = channel_sketches(WORKLOADS[name])
    assert sketches
    for sketch in sketches:
        check_kernels(task, sketch, 1, 1)


def test_filters_are_packed_in_lines_and_pixels_are_not() -> None:
    _, sketches = channel_sketches(WORKLOADS["plain"])
    assert [sketch.name for sketch in sorted(sketches, key=lambda s: s.name)] == ["ff_inner", "ff_root"]
    for sketch in sketches:
        assert 'buffer="kernel"' in sketch.template and "pad_temp_panel" not in sketch.template
        assert 'lw-vectorize{block="kernel_panel" loop="ff_i1"}' in sketch.template
    assert {s.name for s in channel_sketches(WORKLOADS["constant"])[1]} == {"ff_ahead"}


@pytest.mark.parametrize(
    "workload",
    [
        lambda: convolution(1, 8, 7, 7, 3),
        lambda: [
            (a := te.placeholder((9, 16), name="a")),
            (b := te.placeholder((16, 24), name="b")),
            topi.matmul(a, b),
        ],
    ],
    ids=["less than a vector of channels", "a product"],
)
def test_others_have_lanes_along_their_last_axes_alone(workload: Workload) -> None:
    assert not channel_sketches(workload)[1]


@pytest.mark.parametrize("k", [1, 3])
def test_pixels_are_no_lanes_where_channels_are_last(k: int) -> None:
    data, kernel = te.placeholder((1, 20, 20, 9), name="data"), te.placeholder((k, k, 9, 11), name="kernel")
    task = lw.SearchTask(lambda: [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, k // 2)], target=CPU)
    assert {sketch.name.split("_")[0] for sketch in task.sketches} == {"ff"}


def models(workload: Workload, target: str = CPU) -> dict[str, TileModel]:
    """The estimates of a convolution's structures, by their names."""
    task = lw.SearchTask(workload, target=target)
    draft = Draft.of(task.module)
    draft.do(ComputeInline, block="T_bias_add")
    (anchor,) = anchors_in(draft.module)
    plans = {one.name: plan_tiles(draft, anchor, one, task.target) for one in variants(anchor, task.target)}
    return {name: tile_model(plan) for name, plan in plans.items()}


def test_what_is_packed_in_lines_or_vectors_costs_less_than_single_lanes() -> None:
    found = models(lambda: convolution(1, 5, 13, 17, 3, stride=2))
    cycles = {name: model.pack_cycles for name, model in found.items()}
    assert cycles["ff_root"] == cycles["ff_inner"] == PACK_CYCLES
    assert cycles["xx_root"] == cycles["xx_inner"] == APART_PACK_CYCLES


@pytest.mark.parametrize(("stride", "cycles"), [(2, PACK_CYCLES), (4, PACK_CYCLES), (5, APART_PACK_CYCLES)])
def test_lanes_that_are_a_few_apart_are_loaded_together(stride: int, cycles: float) -> None:
    """Where no model that was trained with another estimate chooses, which is on several threads."""
    found = models(lambda: convolution(1, 5, 41, 17, 3, stride=stride), CPU.replace("cores=1", "cores=2"))
    assert found["xx_root"].pack_cycles == found["xx_inner"].pack_cycles == cycles


def test_lanes_that_are_stored_apart_are_charged() -> None:
    """One by one where they are costly to compute for less than a vector of pixels, else in vectors of pixels."""
    apart, turned = models(costly), models(WORKLOADS["plain"])
    assert apart["ff_root"].turning > 0 == apart["xx_direct"].turning and not apart["ff_root"].turned
    assert turned["ff_root"].turning == turned["xx_direct"].turning == 0
    assert turned["ff_root"].turned and not turned["xx_direct"].turned


def planes(size: int) -> list[te.Tensor]:
    """A convolution of one tap, whose results' planes have `size` squared places."""
    data, kernel = te.placeholder((1, 24, size, size), name="data"), te.placeholder((32, 24, 1, 1), name="kernel")
    bias = te.placeholder((32,), name="bias")
    return [data, kernel, bias, topi.nn.relu(topi.nn.bias_add(topi.nn.conv2d_nchw(data, kernel, 1, 0, 1), bias))]


def test_lines_of_planes_that_share_a_set_are_charged_once_each() -> None:
    """Results that were turned before are stored in vectors, so that no set is asked for again by each of their lanes.

    Before, planes of 32x32 were charged 20 cycles a result: 16 times as much.
    """
    shared, spread = models(lambda: planes(32), AVX512)["ff_root"], models(lambda: planes(31), AVX512)["ff_root"]
    assert shared.turned and spread.turned and spread.turning == 0
    assert shared.turning == 32 * 32 * 32 * ALIASED_CYCLES / 16


def one_tap(channels: int, filters: int) -> list[te.Tensor]:
    data = te.placeholder((1, channels, 8, 8), name="data")
    kernel = te.placeholder((filters, channels, 1, 1), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 0, 1)]


@pytest.mark.parametrize(("filters", "is_far"), [(2048, True), (64, False)])
def test_short_runs_of_filters_from_far_are_charged(filters: int, is_far: bool) -> None:
    """Rows of 1024 filters are a page apart: 64 of each at a time are read as runs of four lines, unless all stay near.

    With the whole row at a time there is a run for each page.
    """
    task = lw.SearchTask(lambda: one_tap(1024, filters), target=f"{AVX512} l2_bytes=1048576 l3_bytes=33554432")
    sketch = next(sketch for sketch in task.sketches if sketch.name == "yy_xx_root")
    names = [hole.name for hole in sketch.holes]
    wanted = {"lanes": 16, "vectors": 2, "vector_tile": 2, "ff_rows": 8, "ff_tile": 8, "rc_unroll": 8}
    seconds = {}
    for block in (8, 128):
        row = sketch.default.copy()
        for end, value in (wanted | {"rc_block": block}).items():
            place = names.index(f"compute_{end}")
            row[place] = sketch.holes[place].choices.index(value)
        estimates = sketch.estimate(row[None])
        assert estimates is not None
        (seconds[block],) = estimates
    begun = FAR_RUN_CYCLES * filters * (1024 / 64 - 1) / CYCLES_PER_S
    assert bool(seconds[8] - seconds[128] > 0.4 * begun) is is_far  # arithmetic hides a part


@pytest.mark.parametrize(("channels", "dilation", "sure"), [(32, 1, True), (4, 1, False), (32, 16, False)])
def test_long_sums_in_lanes_along_channels_are_chosen_by_estimates(channels: int, dilation: int, sure: bool) -> None:
    """Short ones are not; those are that leave padding out, too: of much all, else those with lanes along channels."""
    task = lw.SearchTask(lambda: convolution(1, channels, 20, 24, 3, dilation=dilation), target=CPU)
    found = {sketch.name: sketch.sure for sketch in task.sketches}
    assert found.pop("ff_root") == found.pop("ff_inner") == (sure or dilation > 1)
    leaving = {name for name in found if name.endswith("_padded")}
    assert {name for name, by_estimate in found.items() if by_estimate} == {
        name for name in leaving if dilation > 1 or name.startswith("ff_")
    }
    assert ("ff_root_padded" in leaving) == (dilation > 1 or channels >= FEWEST_TERMS)


@pytest.mark.parametrize(("channels", "taps", "stride"), [(300, 1, 1), (300, 1, 2), (3, 11, 1)])
def test_sums_of_one_tap_or_few_channels_are_left_to_the_model(channels: int, taps: int, stride: int) -> None:
    """But for pixels in one line that each tile packs, in sums over channels alone; strided ones stay in rows."""
    task = lw.SearchTask(lambda: convolution(1, channels, 20, 24, taps, stride), target=CPU)
    found = {sketch.name for sketch in task.sketches if sketch.sure}
    assert found == ({"yy_xx_inner"} if (taps, stride) == (1, 1) else set())
    names = {sketch.name for sketch in task.sketches}
    assert {"ff_root", "xx_inner" if stride > 1 else "yy_xx_inner"} <= names and ("yy_xx_inner" in names) == (
        stride == 1
    )


@pytest.mark.parametrize("behind", [SURE_ON_CPU - 0.01, SURE_ON_CPU + 0.01])
def test_lanes_along_channels_are_taken_without_a_model_too(behind: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads have none: estimates of other lanes are as low as on one."""
    task = lw.SearchTask(lambda: convolution(1, 32, 9, 32, 3), target=CPU.replace("cores=1", "cores=2"))
    first, sure = (next(s for s in task.sketches if s.sure is wanted) for wanted in (False, True))
    first = replace(first, prior=lambda c: np.ones(len(next(iter(c.values())))))
    sure = replace(sure, prior=lambda c: np.full(len(next(iter(c.values()))), behind))
    monkeypatch.setattr(task, "_planned", [first, sure])
    chosen = sure if behind <= SURE_ON_CPU else first
    assert task.default_schedule == chosen.schedule(chosen.default)


def test_tails_cost_lanes_along_channels_less() -> None:
    found = models(lambda: convolution(1, 32, 13, 32, 3))
    model = found["ff_root"]
    assert model.sure and not found["xx_direct"].sure
    task = lw.SearchTask(lambda: convolution(1, 32, 13, 32, 3), target=CPU)
    sketch = next(sketch for sketch in task.sketches if sketch.name == "ff_root")
    columns = sketch.columns(sketch.sample(np.random.default_rng(0), 200))
    eased, whole = model._slowed(columns), replace(model, sure=False)._slowed(columns)
    assert (whole > 1).any() and np.allclose(eased, whole**EASED)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_pixels_that_several_taps_read_have_registers(stride: int, dilation: int) -> None:
    _, sketches = channel_sketches(lambda: convolution(1, 8, 16, 32, 3, stride, dilation))
    sketch = next(s for s in sketches if s.name == "ff_root")
    rows = sketch.sample(np.random.default_rng(0), 60)
    columns = {name.removeprefix("compute_"): values for name, values in sketch.columns(rows).items()}
    several = False
    for number in range(len(rows)):
        c = {name: int(values[number]) for name, values in columns.items()}
        spans = [
            [stride * pixel + dilation * tap for pixel in range(c[f"{i}{i}_rows"]) for tap in range(c[f"r{i}_unroll"])]
            for i in "yx"
        ]
        reads = Counter(product(*spans))
        again = sum(count > 1 for count in reads.values())
        several |= again > 1
        tiles = c["yy_rows"] * c["xx_rows"] * c["vectors"]
        assert tiles + c["vectors"] + max(1, again * c["rc_unroll"]) <= 16
    assert several


def of_one_tap(channels: int, constant: bool = True, k: int = 1) -> list[te.Tensor]:
    data = te.placeholder((1, 14, 14, channels), name="data")
    kernel = te.placeholder((k, k, channels, 128), name="kernel", constant=constant)
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, 1, k // 2))]


def product_of_three_axes() -> list[te.Tensor]:
    a, b = te.placeholder((4, 32, 64), name="a"), te.placeholder((64, 96), name="b", constant=True)
    k = te.reduce_axis((0, 64), name="k")
    return [a, b, te.compute((4, 32, 96), lambda n, i, j: te.sum(a[n, i, k] * b[k, j], axis=k), name="out")]


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("made", "sure"),
    [
        (lambda: of_one_tap(64), True),
        (lambda: of_one_tap(8), False),
        (lambda: of_one_tap(64, constant=False), False),
        (lambda: of_one_tap(64, k=3), False),
        (lambda: of_one_tap(4096), False),
        (product_of_three_axes, False),
    ],
)
@pytest.mark.few(6)
def test_one_tap_channels_last_is_chosen_by_estimates(made: Workload, sure: bool, cores: int) -> None:
    task = lw.SearchTask(made, target=f"llvm model=skylake-avx512 cores={cores}")
    found = {s.name: s.sure for s in task.sketches if s.name in ("ff_ahead", "ff_direct", "j_ahead", "j_direct")}
    expected = sure or made is product_of_three_axes  # products are chosen by theirs
    assert found and set(found.values()) == {expected}


def test_sums_of_one_tap_stay_in_registers() -> None:
    """A tile of 4 vectors by 6 pixels is a task of all channels; that of four such was chosen, in blocks of 64."""
    task = lw.SearchTask(lambda: of_one_tap(256), target="llvm model=skylake-avx512 cores=2")
    number, row = task.default_candidate
    sketch = task.sketches[number]
    c = {name.removeprefix("compute_"): int(v[0]) for name, v in sketch.columns(np.array([row])).items()}
    assert c["rc_unroll"] * c["rc_block"] >= 256 and c["yy_tile"] == c["xx_tile"] == c["vector_tile"] == 1
    rows = np.repeat([row], 2, axis=0)
    tile = next(n for n, hole in enumerate(sketch.holes) if hole.name == "compute_yy_tile")
    rows[1, tile] = sketch.holes[tile].choices.index(2)
    estimates_s = sketch.estimate(rows)
    assert estimates_s is not None and estimates_s[0] < estimates_s[1]


@pytest.mark.parametrize(("width", "lanes"), [(32, 16), (13, 16), (7, 8), (4, 4)])
def test_results_are_stored_in_vectors_of_pixels(width: int, lanes: int) -> None:
    """Of tiles of a row, as many pixels as it has; lanes beyond are off."""
    task, sketches = channel_sketches(lambda: convolution(1, 5, width - 1, 32, 3), AVX512)
    sketch = next(one for one in sketches if one.name == "ff_root")
    rows = sketch.sample(np.random.default_rng(0), 400)
    found = sketch.columns(rows)
    tile = np.minimum(found["compute_xx_tile"] * found["compute_xx_rows"], width)
    across = found["compute_stored_lanes"]
    assert set(across[tile >= width]) == {lanes}
    assert np.all((across >= np.minimum(tile, 16)) & (across < np.maximum(2 * tile, 5)))
    whole = rows[(tile >= width) & (found["compute_yy_tile"] == 1)]
    for row in whole[:3]:
        schedule = sketch.schedule(row)
        kernel = task.build(schedule)
        np.testing.assert_allclose(
            kernel(*task.reference.inputs), task.reference.expected[0], rtol=1e-4, atol=1e-4, err_msg=schedule
        )
        assert "scatter" not in kernel.source, schedule


def test_results_that_are_costly_or_lie_along_channels_are_stored_along_channels() -> None:
    for made in (costly, to_channels_last):
        _, sketches = channel_sketches(made, AVX512)
        numbers = [n.name for s in sketches if "apart" not in s.name for n in s.population.derived]
        assert sketches and "compute_stored_lanes" not in numbers
