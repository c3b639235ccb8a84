"""Convolutions by Winograd's transforms: results beside NumPy, and the nest of all candidates beside that of the IR."""

import numpy as np
import pytest
from replayed_features import check_replayed_features

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import blocks_in
from loopwright.dialects.minimal_filtering import IN_PARTS


def layer(
    layout: str, images: int, rows: int, columns: int, padding: int, dtype: str = "float32", window: int = 3
) -> list[te.Tensor]:
    """A convolution of 3 channels to 5 with a relu behind it."""
    last = layout == "nhwc"
    data = te.placeholder((images, rows, columns, 3) if last else (images, 3, rows, columns), dtype, "data")
    kernel = te.placeholder((window, window, 3, 5) if last else (5, 3, window, window), dtype, "kernel")
    convolve = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    return [data, kernel, topi.nn.relu(convolve(data, kernel, 1, padding))]


def convolution(sch: lw.Schedule) -> str:
    """The block of the sum."""
    return next(block.block_name for block in blocks_in(sch.module) if block.is_reduction)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("tile_size", [2, 4])
@pytest.mark.parametrize(("images", "rows", "columns", "padding"), [(1, 4, 8, 1), (2, 7, 5, 1), (3, 6, 9, 0)])
def test_results_are_those_of_the_convolution(
    layout: str, tile_size: int, images: int, rows: int, columns: int, padding: int
) -> None:
    agree(layer(layout, images, rows, columns, padding, "float64"), tile_size)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(("window", "tile_size"), [(4, 4), (5, 3), (5, 4), (6, 3), (7, 3), (7, 4), (9, 3)])
@pytest.mark.parametrize(("images", "rows", "columns", "padding"), [(2, 7, 10, 2), (1, 10, 12, 0)])
def test_larger_windows_are_computed_in_parts(
    layout: str, window: int, tile_size: int, images: int, rows: int, columns: int, padding: int
) -> None:
    agree(layer(layout, images, rows, columns, padding, "float64", window), tile_size)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("window", "tile_size", "dilation"),
    [(3, 2, (2, 2)), (3, 4, (3, 1)), (5, 3, (2, 4)), (7, 4, (2, 2)), (3, 2, (9, 9))],
)
@pytest.mark.parametrize(("extents", "padding"), [((2, 7, 10), 3), ((1, 12, 9), (12, 4))])
@pytest.mark.few(5)
def test_each_phase_of_a_dilated_window_has_tiles_of_its_own(
    last: bool,
    window: int,
    tile_size: int,
    dilation: tuple[int, int],
    extents: tuple[int, ...],
    padding: tuple[int, int] | int,
) -> None:
    images, rows, columns = extents
    rows, columns = (n + (window - 1) * d for n, d in zip((rows, columns), dilation, strict=True))
    data = te.placeholder((images, rows, columns, 3) if last else (images, 3, rows, columns), "float64", "data")
    kernel = te.placeholder((window, window, 3, 5) if last else (5, 3, window, window), "float64", "kernel")
    convolve = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    agree([data, kernel, topi.nn.relu(convolve(data, kernel, 1, padding, dilation))], tile_size)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("window", "tile_size"), [((3, 3, 3), 2), ((1, 3, 3), 4), ((2, 5, 5), 3), ((5, 3, 3), 2)])
@pytest.mark.parametrize(
    ("extents", "padding"), [((2, 4, 5, 6), (1, 1, 1)), ((1, 1, 4, 4), (2, 2, 1)), ((1, 5, 8, 7), 0)]
)
def test_planes_of_volumes_are_added_up_as_parts_are(
    last: bool, window: tuple[int, int, int], tile_size: int, extents: tuple[int, ...], padding: tuple[int, ...] | int
) -> None:
    agree(volume(last, extents, window, padding, "float64"), tile_size)


def test_planes_of_dilated_volumes_are_added_up_where_they_lie() -> None:
    data, kernel = te.placeholder((2, 3, 9, 8, 9), "float64", "data"), te.placeholder((5, 3, 3, 3, 3), "float64")
    agree([data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, (2, 1, 0), (3, 1, 2))], 2)


def volume(
    last: bool, extents: tuple[int, ...], window: tuple[int, ...], padding: tuple[int, ...] | int, dtype: str
) -> list[te.Tensor]:
    """A convolution of images of planes, 3 channels to 5, with a relu behind it."""
    images, *sizes = extents
    data = te.placeholder((images, *sizes, 3) if last else (images, 3, *sizes), dtype, "data")
    kernel = te.placeholder((*window, 3, 5) if last else (5, 3, *window), dtype, "kernel")
    convolve = topi.nn.conv3d_ndhwc if last else topi.nn.conv3d_ncdhw
    return [data, kernel, topi.nn.relu(convolve(data, kernel, 1, padding))]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("window", "tile_size", "images", "rows", "columns", "padding"),
    [(5, 3, 1, 3, 2, 6), (5, 3, 2, 1, 1, 2), (7, 4, 1, 7, 7, 0), (3, 4, 1, 3, 3, 0), (6, 4, 1, 6, 1, 3)],
)
def test_images_of_one_pixel_and_padding_wider_than_windows(
    layout: str, window: int, tile_size: int, images: int, rows: int, columns: int, padding: int
) -> None:
    agree(layer(layout, images, rows, columns, padding, "float64", window), tile_size)


@pytest.mark.parametrize(
    ("window", "stride", "groups"), [((3, 5), 1, 1), ((3, 3), 2, 1), ((3, 3), 1, 2), ((2, 2), 1, 1)]
)
def test_other_windows_are_refused(window: tuple[int, int], stride: int, groups: int) -> None:
    data, kernel = te.placeholder((1, 4, 9, 9), name="data"), te.placeholder((4, 4 // groups, *window), name="kernel")
    sch = lw.Schedule([data, kernel, topi.nn.conv2d_nchw(data, kernel, stride, 1, groups=groups)])
    with pytest.raises(lw.ScheduleError, match="must be a convolution of square windows of 3x3 or more that move by 1"):
        sch.winograd(convolution(sch))


@pytest.mark.parametrize("output", [3, 4])
def test_matrices_through_points_filter_exactly(output: int) -> None:
    one, rng = IN_PARTS[output], np.random.default_rng(0)
    taps, data = rng.integers(-9, 9, one.kernel), rng.integers(-9, 9, one.tile)
    found = np.array(one.a) @ ((np.array(one.g) @ taps) * (np.array(one.b) @ data))
    np.testing.assert_allclose(found, np.correlate(data, taps), atol=1e-12)


def agree(tensors: list[te.Tensor], tile_size: int) -> None:
    """Hold a convolution by transforms to the one without."""
    sch = lw.Schedule(tensors)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tensor.shape) for tensor in tensors[:2]]
    (expected,) = run_loops(sch.module, inputs)
    sch.winograd(convolution(sch), tile_size)
    (found,) = run_loops(sch.module, inputs)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("window", "tile_size", "times"), [(3, 2, 1), (5, 3, 2), (7, 4, 4)])
def test_tiles_that_rules_take_round_little_more_than_sums(window: int, tile_size: int, times: int) -> None:
    """By norm, beside terms that are added up one by one; the largest error is half of what a check allows at most."""
    data, kernel = te.placeholder((1, 64, 6, 6), name="data"), te.placeholder((8, 64, window, window), name="kernel")
    rng, by_tiles = (
        np.random.default_rng(0),
        lw.Schedule([data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, window // 2)]),
    )
    inputs = [rng.uniform(-1, 1, tensor.shape).astype(np.float32) for tensor in (data, kernel)]
    by_tiles.winograd(convolution(by_tiles), tile_size)
    around = (window // 2, window // 2)
    padded = np.pad(inputs[0], ((0, 0), (0, 0), around, around))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (2, 3))
    terms = np.einsum("ncyxij,ocij->noyxcij", windows, inputs[1]).reshape(1, 8, 6, 6, -1)
    exact = np.einsum("ncyxij,ocij->noyx", windows.astype(np.float64), inputs[1].astype(np.float64))
    results = (np.cumsum(terms, axis=-1)[..., -1], run_loops(by_tiles.module, inputs)[0])
    direct, found = (float(np.sqrt(np.square(result - exact).mean())) for result in results)
    assert found <= times * direct
    allowed = 4 * np.finfo(np.float32).eps * terms.shape[-1]
    assert np.abs(results[1] - exact).max() <= allowed / 2


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(("window", "tile_size"), [(3, 2), (5, 3)])
def test_all_candidates_have_the_nest_that_the_step_makes(layout: str, window: int, tile_size: int) -> None:
    tensors = layer(layout, 2, 7, 6, 1, window=window)
    sch = lw.Schedule(tensors, target="cuda model=h200")
    step = f'lw-winograd{{block="{convolution(sch)}" tile_size={tile_size}}}'
    template = f'lw-lower-te-to-loop,lw-split{{block="T_relu" loop="i1" factors=0,<n>}},{step}'
    check_replayed_features(tensors, template, (1, 2, 3))


@pytest.mark.parametrize("last", [False, True])
def test_all_candidates_of_a_volume_have_the_nest_that_the_step_makes(last: bool) -> None:
    tensors = volume(last, (2, 3, 7, 6), (3, 3, 3), (1, 1, 1), "float32")
    sch = lw.Schedule(tensors, target="cuda model=h200")
    step = f'lw-winograd{{block="{convolution(sch)}"}}'
    template = f'lw-lower-te-to-loop,lw-split{{block="T_relu" loop="i1" factors=0,<n>}},{step}'
    check_replayed_features(tensors, template, (1, 2, 3))


@pytest.mark.parametrize(("stride", "window"), [((2, 1, 1), (3, 3, 3)), (1, (3, 3, 1)), (1, (3, 1, 3))])
def test_other_volumes_are_refused(stride: tuple[int, ...] | int, window: tuple[int, ...]) -> None:
    data, kernel = te.placeholder((1, 4, 9, 9, 9), name="data"), te.placeholder((4, 4, *window), name="kernel")
    sch = lw.Schedule([data, kernel, topi.nn.conv3d_ncdhw(data, kernel, stride, 1)])
    with pytest.raises(lw.ScheduleError, match="must be a convolution of square windows of 3x3 or more that move by 1"):
        sch.winograd(convolution(sch))
