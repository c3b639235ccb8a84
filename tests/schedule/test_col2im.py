"""Sums over taps as products: results beside those of the sum, and the nest of all candidates beside that of the IR."""

import numpy as np
import pytest
from replayed_features import check_replayed_features

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import blocks_in

WINDOWS = [(2, 2, 0), (3, 2, 1), (4, 2, 1), (5, 3, 1), (5, 2, 0), (3, 1, 1), (1, 2, 0)]
"""Taps, stride and padding."""


def transposed(layout: str, images: int, window: tuple[int, int, int], dtype: str = "float64") -> list[te.Tensor]:
    """A transposed convolution of 3 channels to 5 with a relu behind it."""
    taps, stride, padding = window
    last = layout == "nhwc"
    data = te.placeholder((images, 4, 6, 3) if last else (images, 3, 4, 6), dtype, "data")
    kernel = te.placeholder((taps, taps, 3, 5) if last else (3, 5, taps, taps), dtype, "kernel")
    made = topi.nn.conv2d_transpose_nhwc if last else topi.nn.conv2d_transpose_nchw
    return [data, kernel, topi.nn.relu(made(data, kernel, stride, padding))]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("multiple", "by_rows"), [(1, False), (4, False), (7, False), (1, True)])
def test_results_are_those_of_the_sum(
    layout: str, images: int, window: tuple[int, int, int], multiple: int, by_rows: bool
) -> None:
    agree(transposed(layout, images, window), multiple, by_rows)


def test_convolutions_are_products_of_each_tap() -> None:
    data, kernel = te.placeholder((2, 3, 7, 6), "float64", "data"), te.placeholder((5, 3, 3, 2), "float64", "kernel")
    sch = agree([data, kernel, topi.nn.conv2d_nchw(data, kernel, 2, 1)], 1)
    products = next(block for block in blocks_in(sch.module) if block.is_reduction)
    assert [axis.extent for axis in products.axes] == [2, 5 * 3 * 2, 7 * 6, 3]


def agree(tensors: list[te.Tensor], multiple: int, by_rows: bool = False) -> lw.Schedule:
    """Hold a sum by products to the one without."""
    sch = lw.Schedule(tensors)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tensor.shape) for tensor in tensors[:2]]
    (expected,) = run_loops(sch.module, inputs)
    for block in [b.block_name for b in blocks_in(sch.module) if b.block_name.startswith(("pad_temp", "kernel_taps"))]:
        sch.compute_inline(block)
    sch.col2im(next(b.block_name for b in blocks_in(sch.module) if b.is_reduction), multiple, by_rows)
    (found,) = run_loops(sch.module, inputs)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    return sch


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("options", ["multiple=4", "by_rows=true"])
def test_all_candidates_have_the_nest_that_the_step_makes(layout: str, images: int, options: str) -> None:
    tensors = transposed(layout, images, (3, 2, 1), "float32")
    before = 'lw-lower-te-to-loop,lw-split{block="T_relu" loop="i1" factors=0,<n>},lw-compute-inline{block="pad_temp"}'
    template = f'{before},lw-compute-inline{{block="kernel_taps"}},lw-col2im{{block="compute" {options}}}'
    check_replayed_features(tensors, template, (1, 2, 3), rtol=1e-6, atol=0.0)
