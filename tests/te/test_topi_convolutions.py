"""Convolutions and matrix products against plain NumPy, on odd and prime shapes."""

from typing import Any

import numpy as np
import pytest
from checked_operators import Array, Input, check, f32, of

from loopwright import te, topi
from loopwright.topi import testing as ref

CONVOLUTIONS = [
    # data, filters, window, stride, padding, dilation, groups
    ((1, 3, 7, 7), 5, (3, 3), 1, 1, 1, 1),
    ((2, 4, 11, 13), 6, (3, 3), 2, 1, 1, 2),
    ((1, 6, 13, 17), 9, (3, 2), (2, 3), (2, 1), (2, 1), 3),
    ((3, 5, 5, 7), 7, (1, 1), 1, 0, 1, 1),
    ((1, 2, 9, 8), 3, (5, 3), (1, 2), (0, 1, 2, 3), (1, 2), 1),
    ((2, 7, 1, 19), 7, (1, 4), 1, (0, 2, 0, 1), 1, 7),
]


@pytest.mark.parametrize("data, filters, window, stride, padding, dilation, groups", CONVOLUTIONS)
def test_conv2d(data: Any, filters: int, window: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
    n, c, h, w = data
    check(
        lambda x, k: topi.nn.conv2d_nchw(x, k, stride, padding, dilation, groups),
        lambda x, k: ref.conv2d_nchw_python(x, k, stride, padding, dilation, groups),
        f32(*data),
        f32(filters, c // groups, *window),
    )
    check(
        lambda x, k: topi.nn.conv2d_nhwc(x, k, stride, padding, dilation, groups),
        lambda x, k: ref.conv2d_nhwc_python(x, k, stride, padding, dilation, groups),
        f32(n, h, w, c),
        f32(*window, c // groups, filters),
    )


def test_convolutions_pad_with_a_number() -> None:
    """As those of quantised data do, whose zero is another number."""

    def padded(x: Any) -> Any:
        return np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)), constant_values=7)

    data, weights = Input((1, 6, 7, 5), "uint8", 0, 256), Input((4, 6, 3, 3), "int8", -128, 128)
    check(
        lambda x, k: topi.nn.conv2d_nchw(x, k, 2, (1, 2), pad_value=7),
        lambda x, k: ref.conv2d_nchw_python(padded(x).astype(np.int32), k.astype(np.int32), 2),
        data,
        weights,
    )
    check(
        lambda x, k: topi.nn.depthwise_conv2d_nchw(x, k, 2, (1, 2), pad_value=7),
        lambda x, k: ref.conv2d_nchw_python(padded(x).astype(np.int32), k.astype(np.int32), 2, groups=6),
        data,
        Input((6, 1, 3, 3), "int8", -128, 128),
    )


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8"])
def test_conv2d_types(dtype: str) -> None:
    check(
        lambda x, k: topi.nn.conv2d_nchw(x, k, 1, 1),
        lambda x, k: ref.conv2d_nchw_python(x, k, 1, 1),
        of(dtype, 1, 3, 7, 5),
        of(dtype, 4, 3, 3, 3),
    )


def test_int8_accumulates_in_int32() -> None:
    x, k = te.placeholder((1, 512, 1, 1), "int8"), te.placeholder((1, 512, 1, 1), "int8")
    assert topi.nn.conv2d_nchw(x, k).dtype == "int32"
    check(
        lambda a, b: topi.nn.dense(a, b),
        lambda a, b: a.astype(np.int32) @ b.astype(np.int32).T,
        Input((3, 517), "int8", -128, 128),
        Input((5, 517), "int8", -128, 128),
    )


def test_out_dtype_is_the_accumulator() -> None:
    check(
        lambda a, b: topi.nn.matmul(a, b, out_dtype="float32"),
        lambda a, b: a.astype(np.float64) @ b.astype(np.float64),
        of("float16", 5, 129),
        of("float16", 129, 3),
    )


@pytest.mark.parametrize("extent, stride, window", [(7, 1, 3), (8, 2, 3), (9, 2, 3), (11, 3, 5), (5, 2, 1), (6, 4, 2)])
def test_same_padding(extent: int, stride: int, window: int) -> None:
    output = -(-extent // stride)
    total = max((output - 1) * stride + window - extent, 0)
    pads = (total // 2, total // 2, total - total // 2, total - total // 2)
    check(
        lambda x, k: topi.nn.conv2d_nchw(x, k, stride, "SAME"),
        lambda x, k: ref.conv2d_nchw_python(x, k, stride, pads),
        f32(1, 2, extent, extent),
        f32(3, 2, window, window),
    )


def test_valid_padding_adds_no_stage() -> None:
    x, k = te.placeholder((1, 2, 5, 5)), te.placeholder((3, 2, 3, 3))
    for padding in (0, (0, 0), "VALID"):
        module = te.create_module([x, k, topi.nn.conv2d_nchw(x, k, 1, padding)])
        assert "pad_temp" not in str(module)
    assert "pad_temp" in str(te.create_module([x, k, topi.nn.conv2d_nchw(x, k, 1, 1)]))


@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 1, 1), (2, (0, 1, 2, 1), 1), ((1, 2), 2, 2)])
def test_depthwise(multiplier: int, stride: Any, padding: Any, dilation: int) -> None:
    channels = 5
    check(
        lambda x, k: topi.nn.depthwise_conv2d_nchw(x, k, stride, padding, dilation),
        lambda x, k: ref.conv2d_nchw_python(
            x, k.reshape(channels * multiplier, 1, 3, 3), stride, padding, dilation, channels
        ),
        f32(2, channels, 11, 13),
        f32(channels, multiplier, 3, 3),
    )
    check(
        lambda x, k: topi.nn.depthwise_conv2d_nhwc(x, k, stride, padding, dilation),
        lambda x, k: ref.conv2d_nhwc_python(
            x, k.reshape(3, 3, 1, channels * multiplier), stride, padding, dilation, channels
        ),
        f32(2, 11, 13, channels),
        f32(3, 3, channels, multiplier),
    )


@pytest.mark.parametrize("stride, before, after, dilation, groups", [(1, 1, 1, 1, 1), (2, 0, 2, 1, 2), (1, 2, 1, 2, 1)])
def test_conv1d(stride: int, before: int, after: int, dilation: int, groups: int) -> None:
    def expected(x: Array, k: Array) -> Array:
        return ref.convolve_python(x, k, (stride,), (before,), (after,), (dilation,), groups)

    check(
        lambda x, k: topi.nn.conv1d_ncw(x, k, stride, (before, after), dilation, groups),
        expected,
        f32(2, 4, 9),
        f32(6, 4 // groups, 3),
    )
    check(
        lambda x, k: topi.nn.conv1d_nwc(x, k, stride, (before, after), dilation, groups),
        lambda x, k: np.moveaxis(expected(np.moveaxis(x, 2, 1), k.transpose(2, 1, 0)), 1, 2),
        f32(2, 9, 4),
        f32(3, 4 // groups, 6),
    )


@pytest.mark.parametrize(
    "stride, before, after, dilation, groups",
    [((1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1), ((2, 1, 3), (0, 1, 2), (1, 0, 2), (1, 2, 1), 2)],
)
def test_conv3d(stride: Any, before: Any, after: Any, dilation: Any, groups: int) -> None:
    def expected(x: Array, k: Array) -> Array:
        return ref.convolve_python(x, k, stride, before, after, dilation, groups)

    check(
        lambda x, k: topi.nn.conv3d_ncdhw(x, k, stride, (*before, *after), dilation, groups),
        expected,
        f32(1, 4, 5, 7, 6),
        f32(6, 4 // groups, 2, 3, 3),
    )
    check(
        lambda x, k: topi.nn.conv3d_ndhwc(x, k, stride, (*before, *after), dilation, groups),
        lambda x, k: np.moveaxis(expected(np.moveaxis(x, 4, 1), k.transpose(4, 3, 0, 1, 2)), 1, 4),
        f32(1, 5, 7, 6, 4),
        f32(2, 3, 3, 4 // groups, 6),
    )


@pytest.mark.parametrize(
    "stride, padding, extra, groups, window",
    [
        ((1, 1), (0, 0, 0, 0), (0, 0), 1, (3, 3)),
        ((2, 3), (1, 0, 1, 0), (1, 2), 1, (3, 5)),
        ((2, 2), (2, 1, 0, 2), (0, 1), 2, (2, 3)),
        ((3, 1), (0, 1, 2, 1), (0, 0), 1, (1, 3)),
    ],
)
def test_conv2d_transpose(stride: Any, padding: Any, extra: Any, groups: int, window: Any) -> None:
    check(
        lambda x, k: topi.nn.conv2d_transpose_nchw(x, k, stride, padding, extra, groups),
        lambda x, k: ref.conv2d_transpose_nchw_python(x, k, stride, padding, extra, groups),
        f32(2, 4, 5, 7),
        f32(4, 3, *window),
    )


@pytest.mark.parametrize("stride, padding, extra, groups", [(2, (1, 0, 1, 0), (1, 0), 1), (1, 1, 0, 2)])
def test_conv2d_transpose_nhwc(stride: int, padding: Any, extra: Any, groups: int) -> None:
    def expected(x: Any, k: Any) -> Any:
        pads, more = ((v,) * n if isinstance(v, int) else v for v, n in ((padding, 4), (extra, 2)))
        first = ref.conv2d_transpose_nchw_python(
            np.moveaxis(x, 3, 1), k.transpose(2, 3, 0, 1), (stride, stride), pads, more, groups
        )
        return np.moveaxis(first, 1, 3)

    check(
        lambda x, k: topi.nn.conv2d_transpose_nhwc(x, k, stride, padding, extra, groups),
        expected,
        f32(2, 5, 6, 4),
        f32(3, 2, 4, 3),
    )


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("data, filters, padding", [((1, 3, 7, 7), 5, 1), ((2, 2, 9, 6), 3, 0), ((1, 1, 4, 11), 1, 1)])
@pytest.mark.few(2)
def test_winograd(tile: int, data: Any, filters: int, padding: int) -> None:
    n, c, h, w = data
    check(
        lambda x, k: topi.nn.conv2d_winograd_nchw(x, k, padding, tile),
        lambda x, k: ref.conv2d_nchw_python(x, k, 1, padding),
        f32(*data),
        f32(filters, c, 3, 3),
        tolerance=1e-4,
    )
    check(
        lambda x, k: topi.nn.conv2d_winograd_nhwc(x, k, padding, tile),
        lambda x, k: ref.conv2d_nhwc_python(x, k, 1, padding),
        f32(n, h, w, c),
        f32(3, 3, c, filters),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("extents, padding, dilation", [((9, 8), 2, 2), ((8, 9), (3, 0, 1, 4), (3, 2)), ((5, 7), 5, 5)])
@pytest.mark.few(2)
def test_dilated_winograd(tile: int, extents: Any, padding: Any, dilation: Any) -> None:
    h, w = extents
    check(
        lambda x, k: topi.nn.conv2d_winograd_nchw(x, k, padding, tile, dilation=dilation),
        lambda x, k: ref.conv2d_nchw_python(x, k, 1, padding, dilation),
        f32(2, 3, h, w),
        f32(5, 3, 3, 3),
        tolerance=1e-4,
    )
    check(
        lambda x, k: topi.nn.conv2d_winograd_nhwc(x, k, padding, tile, dilation=dilation),
        lambda x, k: ref.conv2d_nhwc_python(x, k, 1, padding, dilation),
        f32(2, h, w, 3),
        f32(3, 3, 3, 5),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    "planes, depth, padding, dilation", [(4, 3, 1, 1), (5, 1, (0, 1, 1), 1), (3, 2, (1, 0, 2), (2, 1, 2)), (1, 3, 1, 1)]
)
@pytest.mark.few(2)
def test_winograd_of_volumes(tile: int, planes: int, depth: int, padding: Any, dilation: Any) -> None:
    pads, apart = ((v,) * 3 if isinstance(v, int) else v for v in (padding, dilation))

    def expected(x: Array, k: Array) -> Array:
        return ref.convolve_python(x, k, (1, 1, 1), pads, pads, apart, 1)

    check(
        lambda x, k: topi.nn.conv3d_winograd_ncdhw(x, k, padding, tile, dilation=dilation),
        expected,
        f32(2, 3, planes, 7, 9),
        f32(5, 3, depth, 3, 3),
        tolerance=1e-4,
    )
    check(
        lambda x, k: topi.nn.conv3d_winograd_ndhwc(
            x, topi.nn.winograd_weight_transform(k, tile, "DHWIO"), padding, tile, dilation=dilation, pre_computed=True
        ),
        lambda x, k: np.moveaxis(expected(np.moveaxis(x, 4, 1), k.transpose(4, 3, 0, 1, 2)), 1, 4),
        f32(2, planes, 7, 9, 3),
        f32(depth, 3, 3, 3, 5),
        tolerance=1e-4,
    )


def test_winograd_with_a_transformed_kernel() -> None:
    check(
        lambda x, k: topi.nn.conv2d_winograd_nchw(x, topi.nn.winograd_weight_transform(k, 2), 1, 2, pre_computed=True),
        lambda x, k: ref.conv2d_nchw_python(x, k, 1, 1),
        f32(1, 3, 5, 7),
        f32(2, 3, 3, 3),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (7, 13, 5), (33, 65, 31)])
def test_matmul(transpose_a: bool, transpose_b: bool, m: int, k: int, n: int) -> None:
    def expected(a: Array, b: Array) -> Array:
        left = np.swapaxes(a, -1, -2) if transpose_a else a
        right = np.swapaxes(b, -1, -2) if transpose_b else b
        return left.astype(np.float64) @ right.astype(np.float64)

    a, b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
    check(lambda x, y: topi.matmul(x, y, transpose_a, transpose_b), expected, f32(*a), f32(*b))
    for left, right in ((3, 3), (1, 3), (3, 1)):
        check(lambda x, y: topi.batch_matmul(x, y, transpose_a, transpose_b), expected, f32(left, *a), f32(right, *b))


def test_dense() -> None:
    check(lambda x, w: topi.nn.dense(x, w), lambda x, w: x @ w.T, of("float64", 5, 11), of("float64", 7, 11))
    check(
        lambda x, w, b: topi.nn.dense(x, w, b),
        lambda x, w, b: x @ w.T + b,
        of("float64", 5, 11),
        of("float64", 7, 11),
        of("float64", 7),
    )
