"""Pooling, normalisation and reductions against plain NumPy, on odd and prime shapes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from checked_operators import Array, Input, check, f32, of, positive

from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.topi import testing as ref

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


@pytest.mark.parametrize("include", [False, True])
def test_a_window_larger_than_the_data_is_cut_where_windows_are_counted_up(include: bool) -> None:
    data = f32(2, 3, 2, 5)
    check(
        lambda x: topi.nn.max_pool(x, 3, 3, ceil_mode=True),
        lambda x: ref.pool_python(x, (3, 3), (3, 3), (0, 0), (0, 0), "max", ceil_mode=True),
        data,
    )
    check(
        lambda x: topi.nn.avg_pool(x, 3, 2, 0, True, include),
        lambda x: ref.pool_python(x, (3, 3), (2, 2), (0, 0), (0, 0), "avg", None, True, include),
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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_nan_is_beyond_every_number(name: str, dtype: str) -> None:
    rows = np.random.default_rng(5).integers(-3, 4, (9, 70)).astype(dtype)
    rows[0, [9, 40]], rows[1, [3, 50]], rows[2, [60, 68]] = np.nan, (np.inf, np.nan), (-np.nan, np.nan)
    rows[3], rows[4], rows[5], rows[6, :2] = np.nan, -np.inf, np.inf, (-0.0, 0.0)
    rows[6, 2:], rows[7] = (-1 if name == "argmax" else 1), (-0.0 if name == "argmax" else 0.0)
    rows[7, 33], rows[8] = -rows[7, 33], np.finfo(dtype).smallest_subnormal * rows[8]
    x = te.placeholder(rows.shape, dtype, "x")
    (found,) = run_te(te.create_module([x, getattr(topi, name)(x, 1)]), [rows])
    np.testing.assert_array_equal(found, getattr(np, name)(rows, 1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_truth_values(name: str) -> None:
    """The first that is true, or false, as in NumPy."""
    rows = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1], [1, 1, 1]], bool)
    x = te.placeholder(rows.shape, "bool", "x")
    (found,) = run_te(te.create_module([x, getattr(topi, name)(x, 1)]), [rows])
    np.testing.assert_array_equal(found, getattr(np, name)(rows, 1))


def test_argmax_over_several_axes() -> None:
    check(
        lambda x: topi.argmax(x, (0, 2)),
        lambda x: x.transpose(1, 0, 2).reshape(7, -1).argmax(1),
        f32(5, 7, 13),
    )
