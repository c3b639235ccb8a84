"""Vector mathematics in LLVM text: polynomials for single precision, one function per name and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from .types import float_text, intrinsic_suffix, shape_text, splat_text

# Weighted minimax fits on the ranges named, to below 2^-27 relative; highest power first.
_EXP = (0.0013811684912070632, 0.00837013404816389, 0.04166852682828903, 0.16666509211063385, 0.4999999403953552)
"""(e^r - 1 - r) / r^2 on |r| <= ln(2) / 2."""
_EXP2 = (
    *(0.00015352320042438805, 0.0013400169555097818, 0.009618449956178665),
    *(0.05550329387187958, 0.24022647738456726, 0.6931471824645996),
)
"""(2^r - 1) / r on |r| <= 1/2."""
_LOG = (
    *(0.0674726665019989, -0.11675159633159637, 0.11887569725513458, -0.12405636415707721, 0.14219649136066437),
    *(-0.1666799634695053, 0.20002113282680511, -0.25000008940696716, 0.3333331346511841),
)
"""(log(1 + f) - f + f^2 / 2) / f^3 on sqrt(1/2) <= 1 + f <= sqrt(2)."""
_TANH = (-0.005603918340057135, 0.02055172435939312, -0.05371410772204399, 0.13331152498722076, -0.33333271741867065)
"""(tanh(x) - x) / x^3 in z = x^2 on |x| <= 0.64."""
_ERF_SMALL = (
    *(8.538106339983642e-05, -0.000818154716398567, 0.005204378627240658, -0.026860715821385384),
    *(0.11283718794584274, -0.37612634897232056, 0.12837916612625122),
)
"""erf(x) / x - 1 in z = x^2 on |x| <= 0.9."""
_ERF_LARGE = (
    *(2.082853279716801e-05, -0.0004313926328904927, 0.004156250506639481, -0.025080606341362),
    *(0.10822036862373352, 0.6334008574485779, 1.1294883489608765, -0.0001692039950285107),
)
"""-log(1 - erf(x)) on 0.9 <= x <= 4."""

_LN2 = 0.6931471805599453
_LN2_HIGH = 0.693359375
"""ln(2) in so few bits that its product with an exponent is exact."""
_LN2_LOW = _LN2 - _LN2_HIGH
_LOG2_E = 1.4426950408889634
_ROUNDER = 12582912.0
"""1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits."""


class Writer:
    """Straight-line LLVM code on `lanes` single-precision values."""

    def __init__(self, lanes: int) -> None:
        self.lanes = None if lanes == 1 else lanes
        self.real = shape_text(lanes, "float")
        self.integer = shape_text(lanes, "i32")
        self.truth = shape_text(lanes, "i1")
        self.lines: list[str] = []
        self.needs: dict[str, str] = {}

    def put(self, text: str) -> str:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def const(self, value: float) -> str:
        return splat_text(float_text(value, "float"), "float", self.lanes)

    def bits(self, value: int) -> str:
        return splat_text(str(value), "i32", self.lanes)

    def add(self, a: str, b: str) -> str:
        return self.put(f"fadd {self.real} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.put(f"fsub {self.real} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.put(f"fmul {self.real} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.put(f"fdiv {self.real} {a}, {b}")

    def int_op(self, op: str, a: str, b: int | str) -> str:
        return self.put(f"{op} {self.integer} {a}, {self.bits(b) if isinstance(b, int) else b}")

    def as_int(self, a: str) -> str:
        return self.put(f"bitcast {self.real} {a} to {self.integer}")

    def as_real(self, a: str) -> str:
        return self.put(f"bitcast {self.integer} {a} to {self.real}")

    def from_int(self, a: str) -> str:
        return self.put(f"sitofp {self.integer} {a} to {self.real}")

    def where(self, predicate: str, a: str, b: str, yes: str, no: str) -> str:
        """Return `yes` where `a <predicate> b` holds, else `no`."""
        condition = self.put(f"fcmp {predicate} {self.real} {a}, {b}")
        return self.put(f"select {self.truth} {condition}, {self.real} {yes}, {self.real} {no}")

    def intrinsic(self, name: str, *arguments: str) -> str:
        symbol = f"@llvm.{name}.{intrinsic_suffix(self.real)}"
        self.needs[symbol] = f"declare {self.real} {symbol}({', '.join([self.real] * len(arguments))})"
        return self.put(f"call {self.real} {symbol}({', '.join(f'{self.real} {a}' for a in arguments)})")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.intrinsic("fmuladd", a, b, c)

    def horner(self, coefficients: Sequence[float], x: str) -> str:
        value = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.const(coefficient))
        return value


def _scale(w: Writer, value: str, rounded: str) -> str:
    """Return value * 2^n, n in the low bits of `rounded`; in two steps, so that the result may be subnormal."""
    n = w.int_op("sub", w.as_int(rounded), 0x4B400000)
    half = w.int_op("ashr", n, 1)
    rest = w.int_op("sub", n, half)
    for exponent in (half, rest):
        value = w.mul(value, w.as_real(w.int_op("shl", w.int_op("add", exponent, 127), 23)))
    return value


def _clamp(w: Writer, x: str, low: float, high: float) -> str:
    """Return x within bounds; NaN stays NaN."""
    x = w.where("ogt", x, w.const(high), w.const(high), x)
    return w.where("olt", x, w.const(low), w.const(low), x)


def _exp(w: Writer, x: str) -> str:
    x = _clamp(w, x, -104.0, 89.0)
    rounded = w.fma(x, w.const(_LOG2_E), w.const(_ROUNDER))
    n = w.sub(rounded, w.const(_ROUNDER))
    r = w.fma(n, w.const(-_LN2_HIGH), x)
    r = w.fma(n, w.const(-_LN2_LOW), r)
    q = w.horner(_EXP, r)
    tail = w.fma(w.mul(r, r), q, r)
    return _scale(w, w.add(tail, w.const(1.0)), rounded)


def _exp2(w: Writer, x: str) -> str:
    x = _clamp(w, x, -151.0, 129.0)
    rounded = w.add(x, w.const(_ROUNDER))
    r = w.sub(x, w.sub(rounded, w.const(_ROUNDER)))
    return _scale(w, w.fma(w.horner(_EXP2, r), r, w.const(1.0)), rounded)


def _log(w: Writer, x: str) -> str:
    tiny = w.const(1.1754943508222875e-38)
    scaled = w.where("olt", x, tiny, w.mul(x, w.const(8388608.0)), x)
    shift = w.where("olt", x, tiny, w.const(23.0), w.const(0.0))
    bits = w.as_int(scaled)
    offset = w.int_op("sub", bits, 0x3F3504F3)  # sqrt(1/2): the mantissa lies in [sqrt(1/2), sqrt(2))
    exponent = w.int_op("ashr", offset, 23)
    mantissa = w.as_real(w.int_op("sub", bits, w.int_op("shl", exponent, 23)))
    e = w.sub(w.from_int(exponent), shift)
    f = w.sub(mantissa, w.const(1.0))
    square = w.mul(f, f)
    tail = w.mul(w.mul(w.horner(_LOG, f), f), square)
    tail = w.fma(e, w.const(_LN2_LOW), tail)
    tail = w.fma(square, w.const(-0.5), tail)
    value = w.fma(e, w.const(_LN2_HIGH), w.add(f, tail))
    value = w.where("oeq", x, w.const(float("inf")), x, value)
    value = w.where("ult", x, w.const(0.0), w.const(float("nan")), value)
    return w.where("oeq", x, w.const(0.0), w.const(float("-inf")), value)


def _tanh(w: Writer, x: str) -> str:
    size = w.intrinsic("fabs", x)
    z = w.mul(x, x)
    small = w.fma(w.mul(x, z), w.horner(_TANH, z), x)
    grown = _exp(w, w.mul(_clamp(w, size, 0.0, 10.0), w.const(2.0)))
    large = w.sub(w.const(1.0), w.div(w.const(2.0), w.add(grown, w.const(1.0))))
    return w.intrinsic("copysign", w.where("olt", size, w.const(0.625), small, large), x)


def _erf(w: Writer, x: str) -> str:
    size = w.intrinsic("fabs", x)
    small = w.fma(x, w.horner(_ERF_SMALL, w.mul(x, x)), x)
    q = w.horner(_ERF_LARGE, _clamp(w, size, 0.0, 4.0))
    large = w.sub(w.const(1.0), _exp(w, w.sub(w.const(-0.0), q)))
    return w.where("olt", size, w.const(0.9), small, w.intrinsic("copysign", large, x))


POLYNOMIALS: dict[str, Callable[[Writer, str], str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "tanh": _tanh,
    "erf": _erf,
}
"""Functions of one single-precision argument that are computed on whole vectors."""


@cache
def polynomial(name: str, lanes: int) -> tuple[str, dict[str, str]]:
    """Return the symbol that computes `name` on `lanes` values, and the texts of it and of all that it needs."""
    w = Writer(lanes)
    result = POLYNOMIALS[name](w, "%x")
    symbol = f"@lw.{name}.{intrinsic_suffix(w.real)}"
    head = f"define internal {w.real} {symbol}({w.real} %x) alwaysinline #0 {{"
    return symbol, {**w.needs, symbol: "\n".join([head, *w.lines, f"  ret {w.real} {result}", "}"])}
