"""Operators at the ends of their ranges, in the interpreter and in kernels for CPUs, beside NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw

_INFINITY = np.inf
DIVIDED = np.asarray([0.5, 1.5, -0.5, 6e4, -3.7, 2, -2, 2, -_INFINITY, 1, 0], "float32")
DIVISORS = np.asarray([0.1, 0.3, 0.1, 0.3, 1.5, _INFINITY, _INFINITY, -_INFINITY, 2, 0, 3], "float32")
WIDE = np.asarray([-3e38, -1e10, -2, -1e-3, 0, 1, 1.5, 1e10, 3e38, _INFINITY], "float32")
DIVISIONS: dict[str, Callable[..., Any]] = {"mod": np.mod, "floor_divide": np.floor_divide, "fmod": np.fmod}
INVERSES: dict[str, Callable[..., Any]] = {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}


def require_same(operator: str, function: Callable[..., Any], *operands: np.ndarray) -> None:
    net = lw.Network()
    inputs = [net.input(f"x{k}", x.shape, str(x.dtype)) for k, x in enumerate(operands)]
    net.output(net.apply(operator, *inputs))
    given = {f"x{k}": x for k, x in enumerate(operands)}
    with np.errstate(all="ignore"):
        wanted = function(*operands)
        found = [net.evaluate(**given)[0], lw.compile(net, "llvm")(**given)]
    for each in found:
        np.testing.assert_allclose(each, wanted, rtol=1e-5)


@pytest.mark.parametrize("operator", DIVISIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_divisions_with_a_remainder(operator: str, dtype: str) -> None:
    require_same(operator, DIVISIONS[operator], DIVIDED.astype(dtype), DIVISORS.astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_quotients_of_the_least_and_largest_integers(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.asarray([ends.min, ends.max, 7, ends.min, 5, 100], dtype)
    y = np.asarray([3, ends.max, ends.max, ends.max, 2, ends.min or 1], dtype)
    require_same("truncate_divide", lambda a, b: (a.astype("int64") / b).astype(dtype), x, y)
    require_same("fmod", np.fmod, x, y)


@pytest.mark.parametrize("operator", INVERSES)
def test_inverse_hyperbolic_functions(operator: str) -> None:
    require_same(operator, INVERSES[operator], WIDE)


@pytest.mark.parametrize(("operator", "function"), [("asin", np.arcsin), ("asinh", np.arcsinh), ("atan", np.arctan)])
def test_odd_functions_keep_the_sign_of_zero(operator: str, function: Callable[..., Any]) -> None:
    x = np.asarray([-0.0, 0.0, -0.25, 0.25], "float32")
    net: Any = lw.Network()
    net.output(net.apply(operator, net.input("x", x.shape)))
    for found in (net.evaluate(x=x)[0], lw.compile(net, "llvm")(x=x)):
        assert np.array_equal(np.signbit(found), np.signbit(function(x)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_of_one_exponent_are_those_of_many(dtype: str) -> None:
    """NumPy takes the square root for a half that is all exponents: NaN of -infinity, and -0 of -0."""
    x = np.asarray([-_INFINITY, _INFINITY, -0.0, 0.0, -4.0, 4.0], dtype)
    net: Any = lw.Network()
    net.output(net.power(net.input("x", x.shape, dtype), net.constant(np.asarray(0.5, dtype), "half")))
    with np.errstate(all="ignore"):
        wanted = np.power(x, np.full_like(x, 0.5))
        found = [net.evaluate(x=x)[0], lw.compile(net, "llvm")(x=x)]
    for each in found:
        np.testing.assert_array_equal(each, wanted)
        assert np.array_equal(np.signbit(each[:4]), np.signbit(wanted[:4]))
