"""Convolutions by Winograd's transforms: results beside NumPy, and the nest of all candidates beside that of the IR."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import blocks_in
from loopwright.dialects.presets import preset_target
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.features.of_sketch import SketchFeatures


def layer(layout: str, images: int, rows: int, columns: int, padding: int, dtype: str = "float32") -> list[te.Tensor]:
    """A convolution of 3 channels to 5 with a relu behind it."""
    last = layout == "nhwc"
    data = te.placeholder((images, rows, columns, 3) if last else (images, 3, rows, columns), dtype, "data")
    kernel = te.placeholder((3, 3, 3, 5) if last else (5, 3, 3, 3), dtype, "kernel")
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
    tensors = layer(layout, images, rows, columns, padding, "float64")
    sch = lw.Schedule(tensors)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tensor.shape) for tensor in tensors[:2]]
    (expected,) = run_loops(sch.module, inputs)
    sch.winograd(convolution(sch), tile_size)
    (found,) = run_loops(sch.module, inputs)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_tiles_of_two_are_as_exact_as_the_sum() -> None:
    data, kernel = te.placeholder((1, 64, 9, 9), name="data"), te.placeholder((8, 64, 3, 3), name="kernel")
    tensors = [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)]
    rng, direct = np.random.default_rng(0), lw.Schedule(tensors)
    inputs = [rng.standard_normal(tensor.shape).astype(np.float32) for tensor in tensors[:2]]
    by_tiles = direct.copy()
    by_tiles.winograd(convolution(by_tiles))
    wide = np.pad(inputs[0].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    exact = np.einsum("ncyxij,ocij->noyx", windows, inputs[1].astype(np.float64))
    errors = [float(np.abs(run_loops(sch.module, inputs)[0] - exact).max()) for sch in (direct, by_tiles)]
    assert errors[1] <= 2 * errors[0]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_all_candidates_have_the_nest_that_the_step_makes(layout: str) -> None:
    tensors, target = layer(layout, 2, 7, 6, 1), preset_target("cuda model=h200")
    sch = lw.Schedule(tensors, target=target)
    step = f'lw-winograd{{block="{convolution(sch)}"}}'
    template = f'lw-lower-te-to-loop,lw-split{{block="T_relu" loop="i1" factors=0,<n>}},{step}'
    module, numbers = te.create_module(tensors), np.array([1, 2, 3])
    found = SketchFeatures(module, target, "by_tiles", template, None)({"n": numbers}, len(numbers))
    for number, features in zip(numbers, found, strict=True):
        expected = features_of_schedule(module, target, template.replace("<n>", str(number)))
        np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4)
