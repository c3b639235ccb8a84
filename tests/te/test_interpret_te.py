"""The te interpreter against plain NumPy: fast paths and boxes agree with the definition."""

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret import te as interpreter
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.te import LwTe
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop

RNG = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(dtype)


def parse(text: str, verified: bool = True) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Arith, LwTe):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    if verified:
        module.verify()
    return module


def workloads() -> dict[str, tuple[ModuleOp, list[np.ndarray[Any, Any]]]]:
    x, k = te.placeholder((2, 6, 9, 11), name="x"), te.placeholder((4, 6, 3, 3), name="k")
    w = te.placeholder((6, 1, 3, 3), name="w")
    a, b = te.placeholder((37, 53), name="a"), te.placeholder((53, 41), name="b")
    c, d = te.placeholder((37, 53), "int8", "c"), te.placeholder((53, 41), "int8", "d")
    e, f = te.placeholder((37, 53), "int32", "e"), te.placeholder((53, 41), "int32", "f")
    u, v = te.reduce_axis((0, 53), "u"), te.reduce_axis((0, 5), "v")
    loose = te.compute((37, 41, 2), lambda i, j, z: te.sum(a[i, u] * b[u, j], axis=[u, v]), name="loose")
    wide = [np.iinfo(np.int32).max - np.arange(37 * 53).reshape(37, 53), np.arange(53 * 41).reshape(53, 41) - 7]
    return {
        "conv": (te.create_module([x, k, topi.nn.conv2d_nchw(x, k, 2, 1)]), [normal(2, 6, 9, 11), normal(4, 6, 3, 3)]),
        "matmul": (te.create_module([a, b, topi.matmul(a, b)]), [normal(37, 53), normal(53, 41)]),
        "int8": (
            te.create_module([c, d, topi.matmul(c, d)]),
            [RNG.integers(-128, 128, s).astype(np.int8) for s in ((37, 53), (53, 41))],
        ),
        "int32 wraps": (te.create_module([e, f, topi.matmul(e, f)]), [w.astype(np.int32) for w in wide]),
        "axes in no read": (te.create_module([a, b, loose]), [normal(37, 53), normal(53, 41)]),
        "softmax": (te.create_module([a, topi.nn.softmax(a, 0)]), [normal(37, 53)]),
        "argmax": (te.create_module([a, topi.argmax(a, 1)]), [normal(37, 53)]),
        "depthwise": (
            te.create_module([x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1)]),
            [normal(2, 6, 9, 11), normal(6, 1, 3, 3)],
        ),
        "average": (te.create_module([x, topi.nn.avg_pool(x, 3, 2, 1)]), [normal(2, 6, 9, 11)]),
    }


@pytest.mark.parametrize("name", workloads())
@pytest.mark.few(3)
def test_boxes_and_products_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same result with every point in one box, in small boxes, and through matrix products."""
    module, arrays = workloads()[name]
    monkeypatch.setattr(interpreter, "CONTRACT_POINTS", 1)
    quick = run_te(module, arrays)
    monkeypatch.setattr(interpreter, "CONTRACT_POINTS", 1 << 60)
    whole = run_te(module, arrays)
    monkeypatch.setattr(interpreter, "BOX_POINTS", 97)
    boxed = run_te(module, arrays)
    for a, b, c in zip(quick, whole, boxed, strict=True):
        assert a.dtype == b.dtype == c.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(c, b, rtol=1e-6, atol=1e-6)


def test_native_rounds_every_step() -> None:
    x = te.placeholder((1, 4096), "float16", "x")
    k = te.reduce_axis((0, 4096), "k")
    total = te.compute((1,), lambda i: te.sum(x[i, k], axis=k))
    module = te.create_module([x, total])
    ones = np.full((1, 4096), 1.001, np.float16)
    (wide,) = run_te(module, [ones])
    (native,) = run_te(module, [ones], accumulate="native")
    exact = ones.astype(np.float64).sum()
    assert wide[0] == np.float16(exact)
    assert native.dtype == np.float16
    assert abs(float(native[0]) - exact) < 0.05 * exact


@pytest.mark.parametrize("points", [1 << 20, 97])
def test_one_product_and_moves_round_as_in_double_precision(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those are computed in the tensors' own type; limits of float32 are where that could differ."""
    monkeypatch.setattr(interpreter, "BOX_POINTS", points)
    limits = np.array([0.0, -0.0, np.inf, np.nan, 1e-45, 1e-38, 3e38, 1 + 2**-23], np.float32)
    data = np.concatenate([limits, normal(56) * np.float32(1e-25)]).reshape(8, 8)
    other = np.concatenate([normal(56) * np.float32(1e-18), limits]).reshape(8, 8)
    x, y = te.placeholder((8, 8), name="x"), te.placeholder((8, 8), name="y")
    turned = te.compute((8, 8), lambda i, j: x[j, i], name="turned")
    product = te.compute((8, 8), lambda i, j: turned[i, j] * y[i, j], name="product")
    found = run_te(te.create_module([x, y, turned, product]), [data, other])
    with np.errstate(all="ignore"):
        exact = (data.T.astype(np.float64) * other).astype(np.float32)
    np.testing.assert_array_equal(found[0], data.T)
    np.testing.assert_array_equal(found[1], exact)
    assert all(each.flags.c_contiguous and not np.shares_memory(each, data) for each in found)


def test_results_without_axes_have_none() -> None:
    x, y = te.placeholder((), name="x"), te.placeholder((), name="y")
    product = te.compute((), lambda: x[()] * y[()], name="product")
    total = te.compute((), lambda: product[()] + y[()], name="total")
    found = run_te(te.create_module([x, y, product, total]), [np.array(3, np.float32), np.array(4, np.float32)])
    assert [(each.shape, each.dtype, each.item()) for each in found] == [((), "float32", 12), ((), "float32", 16)]


def test_conversions_in_the_body_round_in_wide_mode_too() -> None:
    x = te.placeholder((64,), name="x")
    out = te.compute((64,), lambda i: x[i].astype("float16").astype("float32"))
    data = normal(64)
    (result,) = run_te(te.create_module([x, out]), [data])
    np.testing.assert_array_equal(result, data.astype(np.float16).astype(np.float32))


def test_constants_between_computes() -> None:
    module = parse("""
    func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %s = arith.constant dense<0.5> : tensor<2x2xf32>
      %c = lw_te.compute "c" [i = 2, j = 2] -> tensor<2x2xf32> {
        %0 = lw_te.read %x[i, j] : tensor<2x2xf32>
        %1 = lw_te.read %w[j, i] : tensor<2x2xf32>
        %2 = lw_te.read %s[i, j] : tensor<2x2xf32>
        %3 = arith.mulf %0, %1 : f32
        %4 = arith.mulf %3, %2 : f32
        lw_te.yield %4 : f32
      }
      func.return %c : tensor<2x2xf32>
    }""")
    x = normal(2, 2)
    (result,) = run_te(module, [x])
    np.testing.assert_allclose(result, x * np.array([[1, 3], [2, 4]]) * 0.5, rtol=1e-6)


@pytest.mark.parametrize("where", ["", " where (i >= 0)"])
def test_a_read_outside_is_an_error(where: str) -> None:
    module = parse(
        f"""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %c = lw_te.compute "c" [i = 4] -> tensor<4xf32> {{
        %0 = lw_te.read %x[i + 1]{where} : tensor<4xf32>
        lw_te.yield %0 : f32
      }}
      func.return %c : tensor<4xf32>
    }}""",
        verified=False,
    )
    with pytest.raises(VerifyException, match="'x' is read out of bounds on axis 0"):
        module.verify()
    with pytest.raises(IndexError, match=r"compute 'c': index i \+ 1"):
        run_te(module, [normal(4)])


def test_inputs_are_checked() -> None:
    x = te.placeholder((2, 3), name="x")
    module = te.create_module([x, topi.exp(x)])
    with pytest.raises(ValueError, match=r"input 'x' must be float32 of shape \(2, 3\), got float64 of shape \(2, 3\)"):
        run_te(module, [np.zeros((2, 3))])
    with pytest.raises(ValueError, match="takes 1 inputs, got 0"):
        run_te(module, [])
    with pytest.raises(ValueError, match="accumulate is 'wide' or 'native'"):
        run_te(module, [normal(2, 3)], accumulate="narrow")


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("result", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_floats_beyond_an_integer_type_are_its_limits_and_nan_is_zero(source: str, result: str) -> None:
    """In every interpreter as on CPUs."""
    values = [np.nan, -np.nan, np.inf, -np.inf, 3.0, -1.5, 300.7, 3e9, -3e9, 1e30, -1e30, 0.9, -0.0, 127.9, -128.9]
    x, limits = te.placeholder((len(values),), source, "x"), np.iinfo(result)
    tensors, data = [x, te.compute(x.shape, lambda i: x[i].astype(result), name="y")], np.array(values, source)
    wanted = [0 if v != v else int(min(max(float(v), limits.min), limits.max)) for v in data]
    module = te.create_module(tensors)
    loops = module.clone()
    lower_te_to_loop(loops)
    kernel = lw.build(tensors, target="llvm")
    for (found,) in (
        run_te(module, [data]),
        run_te(module, [data], "native"),
        run_loops(loops, [data]),
        [kernel(data)],
    ):
        assert [int(v) for v in found] == wanted
