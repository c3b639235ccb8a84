"""Every operator against plain NumPy, on odd and prime shapes; its te-level IR verifies, prints and parses back."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.parser import Parser

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Lw
from loopwright.dialects.te import ComputeOp, LwTe
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.topi import testing as ref

Array = np.ndarray[Any, Any]
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


@dataclass(frozen=True)
class Input:
    """Random data of a shape and type: floats are normal, integers span the type or `[low, high)`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: int = -20
    high: int = 20
    positive: bool = False

    def make(self, rng: np.random.Generator) -> Array:
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if self.dtype.startswith("int"):
            return rng.integers(self.low, self.high, self.shape).astype(self.dtype)
        values = rng.standard_normal(self.shape)
        return (np.abs(values) + 0.1 if self.positive else values).astype(self.dtype)


def f32(*shape: int) -> Input:
    return Input(shape)


def positive(*shape: int) -> Input:
    return Input(shape, positive=True)


def of(dtype: str, *shape: int) -> Input:
    return Input(shape, dtype)


def reparsed(module: ModuleOp) -> ModuleOp:
    """The module after printing and parsing, which must change nothing."""
    context = Context()
    for dialect in (Builtin, Func, Arith, Math, Lw, LwTe):
        context.load_dialect(dialect)
    text = str(module)
    again = Parser(context, text).parse_module()
    again.verify()
    assert str(again) == text
    assert module.is_structurally_equivalent(again)
    return again


def check_lowered(module: ModuleOp, arrays: Sequence[Array], results: Sequence[Array]) -> None:
    """Loops, interpreted one element at a time, give the same (small programs only: it takes a microsecond a step)."""
    computes = [op for op in module.walk() if isinstance(op, ComputeOp)]
    if sum(prod(a.extent for a in op.axes.data) for op in computes) > 20_000:
        return
    loops = module.clone()
    lower_te_to_loop(loops)
    for result, lowered in zip(results, run_loops(loops, arrays), strict=True):
        assert lowered.dtype == result.dtype
        limit = 1e-4 if result.dtype != np.float16 else 4e-3
        np.testing.assert_allclose(lowered.astype(np.float64), result.astype(np.float64), rtol=limit, atol=limit)


def check(
    operator: Callable[..., Any], reference: Callable[..., Any], *inputs: Input, tolerance: float | None = None
) -> None:
    rng = np.random.default_rng(7)
    arrays = [i.make(rng) for i in inputs]
    placeholders = [te.placeholder(i.shape, i.dtype, f"x{k}") for k, i in enumerate(inputs)]
    outputs = operator(*placeholders)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    module = te.create_module([*placeholders, *outputs])
    module.verify()
    results = run_te(reparsed(module), arrays)
    check_lowered(module, arrays, results)
    expected = reference(*arrays)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    assert len(results) == len(expected)
    for output, result, wanted in zip(outputs, results, expected, strict=True):
        wanted = np.asarray(wanted)
        assert result.shape == wanted.shape == output.shape
        assert result.dtype == np.dtype(output.dtype)
        if result.dtype.kind != "f":
            np.testing.assert_array_equal(result, wanted)
            continue
        limit = tolerance or TOLERANCE[output.dtype]
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(result.astype(np.float64), wanted.astype(np.float64), rtol=limit, atol=limit * scale)


# -- convolutions -----------------------------------------------------------------------------------------------------

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


def test_winograd_with_a_transformed_kernel() -> None:
    check(
        lambda x, k: topi.nn.conv2d_winograd_nchw(x, topi.nn.winograd_weight_transform(k, 2), 1, 2, pre_computed=True),
        lambda x, k: ref.conv2d_nchw_python(x, k, 1, 1),
        f32(1, 3, 5, 7),
        f32(2, 3, 3, 3),
        tolerance=1e-4,
    )


# -- matrix products --------------------------------------------------------------------------------------------------


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


# -- pooling ----------------------------------------------------------------------------------------------------------

POOLS = [
    # kernel, stride, before, after
    ((3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 2), (3, 3), (0, 0), (0, 0)),
    ((4, 3), (3, 2), (2, 1), (1, 0)),
    ((2, 5), (1, 4), (0, 2), (1, 2)),
]


@pytest.mark.parametrize("kernel, stride, before, after", POOLS)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.few(4)
def test_pool(kernel: Any, stride: Any, before: Any, after: Any, ceil_mode: bool) -> None:
    data = f32(2, 3, 11, 13)
    padding = (*before, *after)
    check(
        lambda x: topi.nn.max_pool(x, kernel, stride, padding, ceil_mode=ceil_mode),
        lambda x: ref.pool_python(x, kernel, stride, before, after, "max", ceil_mode=ceil_mode),
        data,
    )
    for include in (False, True):
        check(
            lambda x: topi.nn.avg_pool(x, kernel, stride, padding, ceil_mode, include),  # noqa: B023
            lambda x: ref.pool_python(x, kernel, stride, before, after, "avg", None, ceil_mode, include),  # noqa: B023
            data,
        )


def test_pool_layouts_types_and_dilation() -> None:
    check(
        lambda x: topi.nn.max_pool(x, 3, 2, 1, layout="NHWC"),
        lambda x: ref.pool_python(x.transpose(0, 3, 1, 2), (3, 3), (2, 2), (1, 1), (1, 1), "max").transpose(0, 2, 3, 1),
        f32(2, 7, 9, 3),
    )
    check(
        lambda x: topi.nn.max_pool(x, (3, 2), 2, 1, dilation=(2, 1), ceil_mode=True),
        lambda x: ref.pool_python(x, (3, 2), (2, 2), (1, 1), (1, 1), "max", (2, 1), True),
        f32(2, 3, 11, 13),
    )
    check(
        lambda x: topi.nn.max_pool(x, 3, 2, 1),
        lambda x: ref.pool_python(x, (3, 3), (2, 2), (1, 1), (1, 1), "max").astype(np.int8),
        Input((1, 2, 7, 7), "int8", -128, 0),
    )
    check(
        lambda x: topi.nn.max_pool(x, 2, 1, 1),
        lambda x: ref.pool_python(x, (2, 2), (1, 1), (1, 1), (1, 1), "max"),
        of("float16", 1, 2, 5, 7),
    )
    for layout, shape in (("NCW", (2, 3, 17)), ("NCDHW", (1, 2, 5, 7, 6))):
        n = len(shape) - 2
        check(
            lambda x: topi.nn.avg_pool(x, 3, 2, 1, layout=layout),  # noqa: B023
            lambda x: ref.pool_python(x, (3,) * n, (2,) * n, (1,) * n, (1,) * n, "avg"),  # noqa: B023
            f32(*shape),
        )
    check(
        lambda x: topi.nn.max_pool(x, 3, 2, "SAME"),
        lambda x: ref.pool_python(x, (3, 3), (2, 2), (0, 1), (1, 1), "max"),
        f32(1, 2, 8, 9),
    )


def test_global_and_adaptive_pool() -> None:
    data = f32(2, 3, 11, 13)
    check(topi.nn.global_avg_pool, lambda x: x.astype(np.float64).mean((2, 3), keepdims=True), data)
    check(topi.nn.global_max_pool, lambda x: x.max((2, 3), keepdims=True), data)
    check(
        lambda x: topi.nn.global_avg_pool(x, "NHWC"),
        lambda x: x.astype(np.float64).mean((1, 2), keepdims=True),
        f32(2, 5, 7, 3),
    )
    for size in ((3, 5), (11, 13), (7, 1), (1, 1), (12, 20)):
        for kind, operator in (("avg", topi.nn.adaptive_avg_pool), ("max", topi.nn.adaptive_max_pool)):
            check(
                lambda x: operator(x, size),  # noqa: B023
                lambda x: ref.adaptive_pool_python(x, size, kind),  # noqa: B023
                data,
            )


# -- normalisation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(axis: int) -> None:
    check(lambda x: topi.nn.softmax(x, axis), lambda x: ref.softmax_python(x, axis), f32(5, 7, 13))
    check(lambda x: topi.nn.log_softmax(x, axis), lambda x: np.log(ref.softmax_python(x, axis)), f32(5, 7, 13))
    check(lambda x: topi.nn.softmax(x, axis), lambda x: ref.softmax_python(x, axis), of("float16", 5, 7, 13))


def test_softmax_survives_large_values() -> None:
    module_input = te.placeholder((2, 3), name="x")
    module = te.create_module([module_input, topi.nn.softmax(module_input)])
    (result,) = run_te(module, [np.array([[1e4, 0, -1e4], [-3e38, 3e38, 0]], dtype=np.float32)])
    np.testing.assert_array_equal(result, np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32))


def test_layer_and_rms_norm() -> None:
    check(
        lambda x, g, b: topi.nn.layer_norm(x, g, b, axis=(1, 2)),
        lambda x, g, b: ref.layer_norm_python(x, (1, 2)) * g + b,
        f32(5, 7, 13),
        f32(7, 13),
        f32(7, 13),
    )
    check(
        lambda x: topi.nn.layer_norm(x, epsilon=1e-3),
        lambda x: ref.layer_norm_python(x, (-1,), 1e-3),
        of("float16", 5, 67),
    )
    check(
        lambda x, g: topi.nn.rms_norm(x, g),
        lambda x, g: x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) * g,
        f32(5, 7, 13),
        f32(13),
    )


def test_batch_norm() -> None:
    def expected(shape: Sequence[int], x: Array, *vectors: Array) -> Array:
        g, b, m, v = (a.astype(np.float64).reshape(shape) for a in vectors)
        return (x - m) / np.sqrt(v + 1e-5) * g + b

    vectors = (f32(7), f32(7), f32(7), positive(7))
    check(topi.nn.batch_norm, lambda *a: expected((1, 7, 1, 1), *a), f32(2, 7, 5, 3), *vectors)
    check(partial(topi.nn.batch_norm, axis=-1), lambda *a: expected((1, 1, 1, 7), *a), f32(2, 5, 3, 7), *vectors)


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_lrn(size: int) -> None:
    check(
        lambda x: topi.nn.lrn(x, size, 1, 0.1, 0.75, 2.0),
        lambda x: ref.lrn_python(x, size, 1, 0.1, 0.75, 2.0),
        f32(2, 7, 5, 3),
    )
    check(
        lambda x: topi.nn.lrn(x, size, -1, 0.1, 0.5, 1.0),
        lambda x: ref.lrn_python(x, size, -1, 0.1, 0.5, 1.0),
        f32(2, 5, 3),
    )


# -- elementwise ------------------------------------------------------------------------------------------------------


def erf(x: Array) -> Array:
    from math import erf as scalar

    return np.vectorize(scalar)(x.astype(np.float64))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


ELEMENTWISE: dict[str, tuple[Callable[..., Any], Callable[..., Any], Input]] = {
    "relu": (topi.nn.relu, lambda x: np.maximum(x, 0), f32(5, 7)),
    "relu int32": (topi.nn.relu, lambda x: np.maximum(x, 0), of("int32", 5, 7)),
    "relu int8": (topi.nn.relu, lambda x: np.maximum(x, 0), of("int8", 5, 7)),
    "relu6": (topi.nn.relu6, lambda x: np.clip(x, 0, 6), f32(5, 7)),
    "leaky_relu": (lambda x: topi.nn.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x), f32(5, 7)),
    "gelu": (topi.nn.gelu, lambda x: x * 0.5 * (1 + erf(x * np.sqrt(0.5))), f32(5, 7)),
    "gelu tanh": (
        lambda x: topi.nn.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        f32(5, 7),
    ),
    "silu": (topi.nn.silu, lambda x: x * sigmoid(x), f32(5, 7)),
    "hard_sigmoid": (topi.nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), f32(5, 7)),
    "hard_swish": (topi.nn.hard_swish, lambda x: x * np.clip(x + 3, 0, 6) / 6, f32(5, 7)),
    "elu": (lambda x: topi.nn.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), f32(5, 7)),
    "softplus": (topi.nn.softplus, lambda x: np.logaddexp(x, 0), f32(5, 7)),
    "identity": (topi.identity, lambda x: x, f32(5, 7)),
    "negative": (topi.negative, np.negative, f32(5, 7)),
    "negative int32": (topi.negative, np.negative, of("int32", 5, 7)),
    "exp": (topi.exp, np.exp, f32(5, 7)),
    "exp float16": (topi.exp, lambda x: np.exp(x.astype(np.float64)), of("float16", 5, 7)),
    "exp2": (topi.exp2, np.exp2, f32(5, 7)),
    "log": (topi.log, np.log, positive(5, 7)),
    "log2": (topi.log2, np.log2, positive(5, 7)),
    "sqrt": (topi.sqrt, np.sqrt, positive(5, 7)),
    "rsqrt": (topi.rsqrt, lambda x: 1 / np.sqrt(x), positive(5, 7)),
    "sin": (topi.sin, np.sin, f32(5, 7)),
    "cos": (topi.cos, np.cos, f32(5, 7)),
    "tan": (topi.tan, np.tan, of("float64", 5, 7)),
    "tanh": (topi.tanh, np.tanh, f32(5, 7)),
    "sigmoid": (topi.sigmoid, sigmoid, f32(5, 7)),
    "erf": (topi.erf, erf, f32(5, 7)),
    "abs": (topi.abs, np.abs, f32(5, 7)),
    "abs int32": (topi.abs, np.abs, of("int32", 5, 7)),
    "floor": (topi.floor, np.floor, f32(5, 7)),
    "ceil": (topi.ceil, np.ceil, f32(5, 7)),
    "round": (topi.round, np.round, f32(5, 7)),
    "trunc": (topi.trunc, np.trunc, f32(5, 7)),
    "sign": (topi.sign, np.sign, f32(5, 7)),
    "sign int8": (topi.sign, np.sign, of("int8", 5, 7)),
    "square": (topi.square, np.square, f32(5, 7)),
    "reciprocal": (topi.reciprocal, np.reciprocal, positive(5, 7)),
    "clip": (lambda x: topi.clip(x, -0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), f32(5, 7)),
    "clip int32": (lambda x: topi.clip(x, -5, 7), lambda x: np.clip(x, -5, 7), of("int32", 5, 7)),
    "logical_not": (topi.logical_not, np.logical_not, of("bool", 5, 7)),
    "rank 0": (topi.exp, np.exp, f32()),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    operator, reference, data = ELEMENTWISE[name]
    check(operator, reference, data)


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "gelu tanh", "silu", "elu", "softplus"])
def test_functions_of_several_steps_are_rounded_once(name: str) -> None:
    operator, reference, _ = ELEMENTWISE[name]
    data = np.linspace(-6, 6, 500, dtype="float16")
    x = te.placeholder(data.shape, "float16")
    (found,) = run_te(te.create_module([x, operator(x)]), [data], accumulate="native")
    wanted = reference(data.astype(np.float64))
    assert found.dtype == np.float16
    assert (np.abs(found - wanted) <= np.spacing(np.abs(wanted).astype(np.float16)) * 0.51 + 1e-6).all()


@pytest.mark.parametrize("other", [True, False, np.bool_(True), "tensor"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_larger_and_smaller_of_conditions(name: str, other: Any) -> None:
    """Also as networks compile them: on the CPU, not by the interpreter alone."""
    ours, numpys = getattr(topi, name), getattr(np, name)
    if isinstance(other, str):
        check(ours, numpys, of("bool", 5, 7), of("bool", 7))
        return
    check(lambda x: ours(x, other), lambda x: numpys(x, other), of("bool", 5, 7))
    net = lw.Network("net")
    net.output(getattr(net, name)(net.input("x", (5,), "bool"), other))
    values = np.array([True, False, True, False, False])
    run = lw.compile(net, "llvm cores=1", processes=1).executor()
    run.set_input("x", values)
    run.run()
    np.testing.assert_array_equal(run.get_output(0), numpys(values, other))


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"])
def test_cast(source: str, target: str) -> None:
    check(lambda x: topi.cast(x, target), lambda x: x.astype(target), of(source, 5, 7))


def test_prelu_and_bias_add() -> None:
    check(topi.nn.prelu, lambda x, s: np.where(x > 0, x, x * s[:, None]), f32(2, 5, 7), f32(5))
    check(topi.nn.bias_add, lambda x, b: x + b[:, None], f32(2, 5, 7), f32(5))
    check(lambda x, b: topi.nn.bias_add(x, b, -1), lambda x, b: x + b, f32(2, 5, 7), f32(7))


def test_pad() -> None:
    check(
        lambda x: topi.nn.pad(x, (1, 0, 2), (0, 3, 1), -1.5),
        lambda x: np.pad(x, [(1, 0), (0, 3), (2, 1)], constant_values=-1.5),
        f32(3, 5, 7),
    )
    check(lambda x: topi.nn.pad(x, (2, 1)), lambda x: np.pad(x, [(2, 2), (1, 1)]), of("int8", 5, 7))


BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "add": (topi.add, np.add, "float32 int32 int8"),
    "subtract": (topi.subtract, np.subtract, "float32 int32"),
    "multiply": (topi.multiply, np.multiply, "float32 float16 int32"),
    "divide": (topi.divide, np.divide, "float32 float64"),
    "floor_divide": (topi.floor_divide, np.floor_divide, "float64 int32"),
    "mod": (topi.mod, np.mod, "float64 int32"),
    "maximum": (topi.maximum, np.maximum, "float32 int32 int8"),
    "minimum": (topi.minimum, np.minimum, "float32 int32"),
    "equal": (topi.equal, np.equal, "float32 int32"),
    "not_equal": (topi.not_equal, np.not_equal, "float32 int32"),
    "less": (topi.less, np.less, "float32 int32"),
    "less_equal": (topi.less_equal, np.less_equal, "float32 int32"),
    "greater": (topi.greater, np.greater, "float32 int32"),
    "greater_equal": (topi.greater_equal, np.greater_equal, "float32 int32"),
    "logical_and": (topi.logical_and, np.logical_and, "bool"),
    "logical_or": (topi.logical_or, np.logical_or, "bool"),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.few(8)
def test_broadcasting(name: str) -> None:
    operator, reference, dtypes = BINARY[name]
    for dtype in dtypes.split():
        for left, right in (((5, 7), (5, 7)), ((3, 1, 7), (5, 1)), ((7,), (2, 5, 7)), ((), (3,)), ((1, 1), (5, 7))):
            second = Input(right, dtype, 1, 9) if "div" in name or name == "mod" else of(dtype, *right)
            check(operator, lambda x, y: reference(x, y), of(dtype, *left), second)


def test_operators_of_tensors_and_numbers() -> None:
    check(lambda x: 2.0 - x * 3 + x / 4.0, lambda x: 2.0 - x * 3 + x / 4.0, f32(5, 7))
    check(lambda x: -x + 1, lambda x: -x + 1, of("int32", 5))
    check(lambda x, y: (x - y) * y, lambda x, y: (x - y) * y, f32(5, 1), f32(7))
    check(lambda x: 1.0 / x**2.0, lambda x: 1 / x.astype(np.float64) ** 2, positive(5, 7))
    check(lambda x, y: topi.power(x, y), lambda x, y: x**y, positive(5, 7), f32(7))
    check(lambda x: topi.maximum(0.25, x), lambda x: np.maximum(0.25, x), f32(5, 7))


def test_where() -> None:
    check(topi.where, np.where, of("bool", 5, 7), f32(7), f32(5, 1))
    check(lambda c, x: topi.where(c, x, 0.0), lambda c, x: np.where(c != 0, x, 0.0), of("int32", 5, 7), f32(5, 7))


# -- reductions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,)])
@pytest.mark.few(5)
def test_reductions(axis: Any, keepdims: bool) -> None:
    data = of("float64", 5, 7, 13)
    for operator, reference in (
        (topi.sum, np.sum), (topi.max, np.max), (topi.min, np.min), (topi.mean, np.mean), (topi.prod, np.prod)
    ):  # fmt: skip
        check(
            lambda x: operator(x, axis, keepdims),  # noqa: B023
            lambda x: reference(x, axis=axis, keepdims=keepdims),  # noqa: B023
            data,
        )
    check(
        lambda x: topi.max(x, axis, keepdims),
        lambda x: x.max(axis=axis, keepdims=keepdims),
        Input((5, 7, 13), "int8", -128, -3),
    )
    check(
        lambda x: topi.sum(x, axis, keepdims),
        lambda x: x.sum(axis=axis, keepdims=keepdims, dtype=np.int32),
        Input((5, 7, 13), "int8", -128, 128),
    )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.few(4)
def test_argmax_takes_the_first_of_equals(axis: int | None, keepdims: bool) -> None:
    for data in (of("float32", 5, 7, 13), Input((5, 7, 13), "int32", 0, 3), Input((5, 7, 13), "int8", -128, -126)):
        for operator, reference in ((topi.argmax, np.argmax), (topi.argmin, np.argmin)):
            check(
                lambda x: operator(x, axis, keepdims),  # noqa: B023
                lambda x: reference(x, axis=axis, keepdims=keepdims),  # noqa: B023
                data,
            )


def test_argmax_over_several_axes() -> None:
    check(
        lambda x: topi.argmax(x, (0, 2)),
        lambda x: x.transpose(1, 0, 2).reshape(7, -1).argmax(1),
        f32(5, 7, 13),
    )


# -- moving elements --------------------------------------------------------------------------------------------------

MOVES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Input]]] = {
    "transpose": (lambda x: topi.transpose(x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0), [f32(5, 7, 3)]),
    "transpose all": (topi.transpose, np.transpose, [of("int8", 5, 7, 3)]),
    "reshape": (lambda x: topi.reshape(x, (7, -1, 6)), lambda x: x.reshape(7, -1, 6), [f32(6, 7, 13)]),
    "reshape split": (lambda x: topi.reshape(x, (6, 2, 5, 7)), lambda x: x.reshape(6, 2, 5, 7), [f32(6, 70)]),
    "reshape merge": (lambda x: topi.reshape(x, (42, 13)), lambda x: x.reshape(42, 13), [f32(6, 7, 13)]),
    "reshape mixed": (lambda x: topi.reshape(x, (14, 3, 13)), lambda x: x.reshape(14, 3, 13), [f32(6, 7, 13)]),
    "reshape rank 0": (lambda x: topi.reshape(x, ()), lambda x: x.reshape(()), [f32(1, 1)]),
    "flatten": (topi.flatten, lambda x: x.reshape(3, -1), [f32(3, 5, 7)]),
    "squeeze": (topi.squeeze, np.squeeze, [f32(1, 5, 1, 7)]),
    "squeeze one": (lambda x: topi.squeeze(x, 2), lambda x: x.squeeze(2), [f32(1, 5, 1, 7)]),
    "expand_dims": (lambda x: topi.expand_dims(x, 1, 2), lambda x: x[:, None, None], [f32(5, 7)]),
    "expand_dims end": (lambda x: topi.expand_dims(x, -1), lambda x: x[..., None], [f32(5, 7)]),
    "broadcast_to": (lambda x: topi.broadcast_to(x, (3, 5, 7)), lambda x: np.broadcast_to(x, (3, 5, 7)), [f32(5, 1)]),
    "concatenate": (
        lambda x, y, z: topi.concatenate([x, y, z], 1),
        lambda x, y, z: np.concatenate([x, y, z], 1),
        [f32(5, 7), f32(5, 1), f32(5, 3)],
    ),
    "concatenate one": (lambda x: topi.concatenate([x]), lambda x: x, [f32(5, 7)]),
    "stack": (lambda x, y: topi.stack([x, y], -1), lambda x, y: np.stack([x, y], -1), [f32(5, 7), f32(5, 7)]),
    "stack rank 0": (lambda x, y: topi.stack([x, y]), lambda x, y: np.stack([x, y]), [f32(), f32()]),
    "split": (lambda x: topi.split(x, 3, 1), lambda x: np.split(x, 3, 1), [f32(5, 21)]),
    "split at": (lambda x: topi.split(x, [2, 5], -1), lambda x: np.split(x, [2, 5], -1), [f32(5, 7)]),
    "strided_slice": (
        lambda x: topi.strided_slice(x, (1, 0), (5, 100), (2, 3)), lambda x: x[1:5:2, 0:100:3], [f32(7, 11)]
    ),
    "strided_slice back": (
        lambda x: topi.strided_slice(x, (4, -1), (0, -9), (-2, -3)), lambda x: x[4:0:-2, -1:-9:-3], [f32(5, 11)]
    ),
    "strided_slice axes": (
        lambda x: topi.strided_slice(x, (-3,), (100,), axes=(1,)), lambda x: x[:, -3:], [f32(5, 11)]
    ),
    "flip": (lambda x: topi.flip(x, 1), lambda x: x[:, ::-1], [f32(5, 7)]),
    "tile": (lambda x: topi.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), [f32(5, 7)]),
    "repeat": (lambda x: topi.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1), [f32(5, 7)]),
    "take": (
        lambda x, i: topi.take(x, i, 1), lambda x, i: x.take(i, 1), [f32(5, 7, 3), Input((2, 2), "int32", 0, 7)]
    ),
    "full": (lambda x: [topi.full((3, 5), 2.5) + x], lambda x: np.full((3, 5), 2.5, np.float32) + x, [f32(5)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    operator, reference, inputs = MOVES[name]
    check(operator, lambda *a: _listed(reference(*a)), *inputs)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("mode", ["asymmetric", "half_pixel", "align_corners"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
@pytest.mark.parametrize("size", [(6, 22), (23, 5), (11, 13), (1, 1), (13, 29)])
@pytest.mark.few(12)
def test_resize(method: str, mode: str, size: Any) -> None:
    check(
        lambda x: topi.resize2d(x, size, method=method, coordinate_mode=mode),
        lambda x: ref.resize2d_python(x, size, method, mode),
        f32(1, 2, 11, 13),
    )
    check(
        lambda x: topi.resize2d(x, size, "NHWC", method, mode),
        lambda x: ref.resize2d_python(x.transpose(0, 3, 1, 2), size, method, mode).transpose(0, 2, 3, 1),
        f32(1, 11, 13, 2),
    )


def test_every_public_operator_is_tested() -> None:
    """A new operator needs a test here: every public name of topi and topi.nn is used in these files."""
    text = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_topi*.py")))
    for module in (topi, topi.nn):
        names = [n for n, value in vars(module).items() if inspect.isfunction(value)]
        assert len(names) > 30
        assert not [n for n in names if not re.search(rf"topi\.(nn\.)?{n}\b", text)]
