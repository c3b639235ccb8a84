"""Inverse and hyperbolic functions, log(1 + x), and tests of numbers, element by element."""

from __future__ import annotations

import math

from ... import te
from ...dialects.numpy_types import working_type
from ...te import Tensor
from ...te.expr import Expr
from ..operator import Compute, elementwise

_LARGE = 2.0**28
"""From here on 1 is lost beside the square of a number, in double precision too; squares of larger ones overflow."""


def _function(name: str, formula: object) -> Compute:
    def compute(data: Tensor) -> Tensor:
        kind = working_type(data.dtype)
        return te.elementwise(data, lambda x: formula(x.astype(kind)).astype(data.dtype), f"T_{name}")  # type: ignore[operator]

    return compute


def _odd(x: Expr, value: Expr) -> Expr:
    """The value of an odd function, given that of |x|: with the sign of x, which -0 has too."""
    return te.select(x == 0.0, x, te.select(x < 0.0, -value, value))


def _sinh(x: Expr) -> Expr:
    """(e^x - e^-x) / 2; near 0, where that cancels, three terms of the series."""
    square = x * x
    near = x * (1.0 + square * (1 / 6) * (1.0 + square * (1 / 20) * (1.0 + square * (1 / 42))))
    return te.select(te.abs(x) < 0.5, near, (te.exp(x) - te.exp(-x)) * 0.5)


def _cosh(x: Expr) -> Expr:
    return (te.exp(x) + te.exp(-x)) * 0.5


def _log1p(x: Expr) -> Expr:
    """log(1 + x) for x > -1: what 1 + x rounds away is made up for (Kahan's correction)."""
    one = x + 1.0
    return te.select(one == 1.0, x, te.log(one) * (x / te.select(one == 1.0, one, one - 1.0)))


def _asinh(x: Expr) -> Expr:
    a = te.abs(x)
    value = te.select(a > _LARGE, te.log(a) + math.log(2), _log1p(a + a * a / (1.0 + te.sqrt(a * a + 1.0))))
    return _odd(x, value)


def _acosh(x: Expr) -> Expr:
    t = x - 1.0
    return te.select(x > _LARGE, te.log(x) + math.log(2), _log1p(t + te.sqrt(t) * te.sqrt(x + 1.0)))


def _atanh(x: Expr) -> Expr:
    return _log1p_of_any(2.0 * x / (1.0 - x)) * 0.5


def _atan(x: Expr) -> Expr:
    """A series in |t| <= tan(pi/8), by atan(a) = pi/4 + atan((a - 1) / (a + 1)) and atan(a) = pi/2 - atan(1 / a)."""
    a = te.abs(x)
    large, middle = a > 1 + math.sqrt(2), a > math.sqrt(2) - 1
    t = te.select(large, -1.0 / te.select(large, a, 1.0), te.select(middle, (a - 1.0) / (a + 1.0), a))
    base = te.select(large, math.pi / 2, te.select(middle, math.pi / 4, 0.0))
    square = t * t
    terms = 12 if x.dtype == "float32" else 21
    series: Expr = te.const((-1.0) ** terms / (2 * terms + 1), x.dtype)
    for k in range(terms - 1, -1, -1):
        series = series * square + (-1.0) ** k / (2 * k + 1)
    value = base + t * series
    return _odd(x, value)


def _asin(x: Expr) -> Expr:
    """atan(x / sqrt(1 - x^2)), with 1 - x^2 as a product so that nothing cancels near 1."""
    rest = te.sqrt((1.0 - x) * (1.0 + x))
    edge = te.select(x < 0, -math.pi / 2, math.pi / 2)
    return te.select(rest == 0.0, edge, _atan(x / te.select(rest == 0.0, 1.0, rest)))


def _acos(x: Expr) -> Expr:
    """2 atan(sqrt((1 - x) / (1 + x)))."""
    return te.select(x == -1.0, math.pi, 2.0 * _atan(te.sqrt((1.0 - x) / te.select(x == -1.0, 1.0, 1.0 + x))))


def _log1p_of_any(x: Expr) -> Expr:
    return te.select(x == te.const(math.inf, x.dtype), x, _log1p(x))


def _celu(data: Tensor, *, alpha: float = 1.0) -> Tensor:
    def element(x: Expr) -> Expr:
        return te.maximum(x, 0) + te.minimum(alpha * (te.exp(x * (1.0 / alpha)) - 1.0), 0)

    return te.elementwise(data, element, "T_celu")


def _is_nan(data: Tensor) -> Tensor:
    return te.elementwise(data, lambda x: x != x, "T_is_nan")


def _is_inf(data: Tensor, *, negative: bool = True, positive: bool = True) -> Tensor:
    def element(x: Expr) -> Expr:
        low, high = x == te.const(-math.inf, x.dtype), x == te.const(math.inf, x.dtype)
        none = te.const(False, "bool")
        return te.any(low if negative else none, high if positive else none)

    return te.elementwise(data, element, "T_is_inf")


sinh = elementwise(_function("sinh", _sinh))
cosh = elementwise(_function("cosh", _cosh))
asinh = elementwise(_function("asinh", _asinh))
acosh = elementwise(_function("acosh", _acosh))
atanh = elementwise(_function("atanh", _atanh))
asin = elementwise(_function("asin", _asin))
acos = elementwise(_function("acos", _acos))
atan = elementwise(_function("atan", _atan))
log1p = elementwise(_function("log1p", _log1p_of_any))
celu = elementwise(_celu)
is_nan = elementwise(_is_nan)
is_inf = elementwise(_is_inf)
