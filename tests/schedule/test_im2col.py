"""Windows laid out as matrices: results beside those of the convolution, and the nest of all candidates."""

import numpy as np
import pytest
from replayed_features import check_replayed_features

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.attributes import Axis
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import blocks_in


def row(length: int, taps: int, stride: int, images: int = 1, dtype: str = "float64") -> list[te.Tensor]:
    """A convolution along one axis, of 3 channels to 5."""
    data = te.placeholder((images, 3, length), dtype, "data")
    kernel = te.placeholder((5, 3, taps), dtype, "kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv1d_ncw(data, kernel, stride))]


def image(layout: str, stride: int, images: int) -> list[te.Tensor]:
    """A convolution of padded images, of 3 channels to 5."""
    last = layout == "nhwc"
    data = te.placeholder((images, 7, 6, 3) if last else (images, 3, 7, 6), "float64", "data")
    kernel = te.placeholder((3, 2, 3, 5) if last else (5, 3, 3, 2), "float64", "kernel")
    convolve = topi.nn.conv2d_nhwc if last else topi.nn.conv2d_nchw
    return [data, kernel, topi.nn.relu(convolve(data, kernel, stride, 1))]


@pytest.mark.parametrize(("length", "taps", "stride"), [(13, 3, 2), (9, 9, 1), (20, 5, 4), (11, 2, 3)])
@pytest.mark.parametrize("images", [1, 2])
def test_windows_along_an_axis_are_columns(length: int, taps: int, stride: int, images: int) -> None:
    product = agree(row(length, taps, stride, images))
    assert [a.extent for a in product if a.reduce] == [3 * taps]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("images", [1, 3])
def test_padded_windows_of_images_are_rows_or_columns(layout: str, stride: int, images: int) -> None:
    product = agree(image(layout, stride, images))
    assert [a.extent for a in product if a.reduce] == [3 * 3 * 2]


def agree(tensors: list[te.Tensor]) -> tuple[Axis, ...]:
    """Hold a convolution as a product to the one without; the iterators of the product."""
    sch = lw.Schedule(tensors)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tensor.shape) for tensor in tensors[:2]]
    (expected,) = run_loops(sch.module, inputs)
    if "pad_temp" in [block.block_name for block in blocks_in(sch.module)]:
        sch.compute_inline("pad_temp")
    sch.im2col(next(block.block_name for block in blocks_in(sch.module) if block.is_reduction))
    (found,) = run_loops(sch.module, inputs)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    return next(block.axes for block in blocks_in(sch.module) if block.is_reduction)


def test_all_candidates_have_the_nest_that_the_step_makes() -> None:
    tensors = row(13, 3, 2, 2, "float32")
    template = 'lw-lower-te-to-loop,lw-split{block="T_relu" loop="i1" factors=0,<n>},lw-im2col{block="compute"}'
    check_replayed_features(tensors, template, (1, 2, 3))


@pytest.mark.parametrize("name", ["k", "k_"])
def test_results_may_be_numbered_by_the_name_of_the_terms(name: str) -> None:
    data, kernel = te.placeholder((3, 9), "float64", "data"), te.placeholder((5, 3, 2), "float64", "kernel")
    c, r = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 2), "r")
    axes = ("k", name) if name != "k" else ("f", "k")
    total = te.compute((5, 4), lambda f, x: te.sum(data[c, x * 2 + r] * kernel[f, c, r], axis=[c, r]), "y", axes)
    assert [a.name for a in agree([data, kernel, total])][:2] == [*axes]
