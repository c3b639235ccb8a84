"""Transposed convolutions phase by phase, against pixels scattered one by one, and the products that they take."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te, topi
from loopwright.topi.testing import conv2d_transpose_nchw_python

Array = npt.NDArray[Any]
Pair = tuple[int, int]


def pairs(low: int, high: int) -> st.SearchStrategy[Pair]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


@settings(max_examples=examples(100))
@given(
    stride=pairs(1, 4),
    window=pairs(1, 5),
    before=pairs(0, 5),
    after=pairs(0, 5),
    extents=pairs(1, 5),
    extra=pairs(0, 3),
    groups=st.integers(1, 2),
    channels_last=st.booleans(),
)
@pytest.mark.slow(1.2)
def test_all_strides_windows_and_paddings_are_those_of_scattered_pixels(
    stride: Pair,
    window: Pair,
    before: Pair,
    after: Pair,
    extents: Pair,
    extra: Pair,
    groups: int,
    channels_last: bool,
) -> None:
    parts = zip(extents, stride, window, before, after, extra, strict=True)
    assume(all((n - 1) * s + k - b - a + e >= 1 and e < s for n, s, k, b, a, e in parts))
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (2, 2 * groups, *extents)).astype("float32")
    w = rng.integers(-9, 9, (2 * groups, 3, *window)).astype("float32")
    padding = (*before, *after)
    expected = conv2d_transpose_nchw_python(x, w, stride, padding, extra, groups)
    operator = topi.nn.conv2d_transpose_nchw
    if channels_last:
        operator, expected = topi.nn.conv2d_transpose_nhwc, np.moveaxis(expected, 1, -1)
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    data, kernel = te.placeholder(x.shape, name="data"), te.placeholder(w.shape, name="kernel")
    module = te.create_module([data, kernel, operator(data, kernel, stride, padding, extra, groups)])
    np.testing.assert_array_equal(lw.interpret(module, x, w), expected)


@pytest.mark.parametrize(("window", "stride", "taps"), [(4, 2, 4), (2, 2, 1), (3, 1, 9), (3, 2, 4), (2, 3, 1)])
def test_products_are_those_of_a_phase_and_not_of_zeros_between_pixels(window: int, stride: int, taps: int) -> None:
    data, kernel = te.placeholder((1, 5, 8, 8), name="data"), te.placeholder((5, 6, window, window), name="kernel")
    task = lw.SearchTask([data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, stride)], target="llvm cores=2")
    height = 8 * stride if window <= stride else 7 * stride + window
    rows = -(-height // stride) * stride
    assert task.compute_dag.flops == 2 * 5 * 6 * rows * rows * taps


@pytest.mark.parametrize("channels_last", [False, True])
def test_one_pixel_is_multiplied_by_each_tap_once(channels_last: bool) -> None:
    """Each result was a sum of all taps, of which all but one met padding: 12 times as long for a batch of 16."""
    rng = np.random.default_rng(1)
    x, w = rng.integers(-9, 9, (3, 5, 1, 1)).astype("float32"), rng.integers(-9, 9, (5, 6, 4, 3)).astype("float32")
    expected, operator = conv2d_transpose_nchw_python(x, w, (2, 2), (0, 0, 0, 0), (0, 0)), topi.nn.conv2d_transpose_nchw
    if channels_last:
        operator, expected = topi.nn.conv2d_transpose_nhwc, np.moveaxis(expected, 1, -1)
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    data, kernel = te.placeholder(x.shape, name="data"), te.placeholder(w.shape, name="kernel")
    task = lw.SearchTask([data, kernel, operator(data, kernel, 2)], target="llvm cores=1")
    assert task.compute_dag.flops == 2 * 3 * 5 * 6 * 4 * 3
    np.testing.assert_array_equal(task.build(task.default_schedule)(x, w), expected)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("stride, before, extra", [(3, (1, 1), (2, 2)), (2, (1, 0), (1, 0))])
def test_one_pixel_whose_padding_is_made_up_for_is_no_product(
    stride: int, before: Pair, extra: Pair, channels_last: bool
) -> None:
    """There are as many results as taps, but their first rows are cut, and the last ones zeros."""
    rng, after = np.random.default_rng(2), tuple(e - b for e, b in zip(extra, before, strict=True))
    x, w = rng.integers(-9, 9, (2, 3, 1, 1)).astype("float32"), rng.integers(-9, 9, (3, 2, 4, 4)).astype("float32")
    padding = (*before, *after)
    expected = conv2d_transpose_nchw_python(x, w, (stride,) * 2, padding, extra)
    operator = topi.nn.conv2d_transpose_nchw
    if channels_last:
        operator, expected = topi.nn.conv2d_transpose_nhwc, np.moveaxis(expected, 1, -1)
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    data, kernel = te.placeholder(x.shape, name="data"), te.placeholder(w.shape, name="kernel")
    module = te.create_module([data, kernel, operator(data, kernel, stride, padding, extra)])
    np.testing.assert_array_equal(lw.interpret(module, x, w), expected)


def test_templates_say_which_loops_one_pixel_has_not() -> None:
    with pytest.raises(ValueError, match="tiles loop 'ry', the computation has nn, yy, xx, ff, rc alone"):
        lw.TemplateTask("conv2d_transpose_nhwc_cpu", (1, 1, 1, 8, 16, 4, 4), target="llvm cores=1")
