"""Vector mathematics in LLVM text: polynomials for single precision, one function per name and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from .function_text import FunctionText
from .types import float_text, intrinsic_suffix, shape_text, splat_text

# Weighted minimax fits on the ranges named, to below 2^-27 relative unless said otherwise; highest power first.
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
_ERF_SMALL = (
    *(7.236068631755188e-05, -0.0007824739441275597, 0.005167731083929539, -0.026843518018722534),
    *(0.11283364146947861, -0.37612611055374146, 0.12837916612625122),
)
"""erf(x) / x - 1 in z = x^2 on |x| <= _ERF_SPLIT."""
_ERF_LARGE = (
    *(0.00993243046104908, -0.02163051813840866, 0.05808096006512642, 0.025499114766716957, 0.16595415771007538),
    *(0.36633795499801636, 0.7827082276344299, 1.19356369972229, 1.6997710466384888),
)
"""(1 - erf(x))^(-1/4) in x - _ERF_SPLIT on _ERF_SPLIT <= x <= 4, weighted by what its error does to erf (2^-24.8)."""
_ERF_SPLIT = 1.1
"""Between the two: below it the first needs fewer terms, beyond it the fourth power of the second loses less."""
_ERFC_ROOT = (
    *(3.485563865979202e-05, -0.00027855465305037796, 0.0011465591378509998, -0.002346096094697714),
    *(0.0039325072430074215, -0.0008382687228731811, 0.00961444340646267, 0.021147245541214943),
    *(0.07444103062152863, 0.1989336758852005, 0.2820951044559479, 1.0),
)
"""(1 - erf(x))^(-1/4) in x on 0 <= x <= 4, to 2^-26 of what it does to erf; beyond, its inverse fourth goes to zero."""

_SIN = (-0.00019515218446031213, 0.00833216030150652, -0.16666655242443085)
"""(sin(r) / r - 1) / z in z = r^2 on |r| <= pi / 4."""
_COS = (2.4433082217001356e-05, -0.0013887315290048718, 0.04166664555668831)
"""(cos(r) - 1 + z / 2) / z^2 in z = r^2 on |r| <= pi / 4, to 2^-33."""
_QUARTERS = 0.6366197723675814
"""Quarters of a turn in a radian."""
_QUARTER_HIGH = 1.5707963267341256
"""A quarter of a turn in 33 bits, so that its product with a number of quarters below 2^20 is exact."""
_QUARTER_LOW = 6.077100506506192e-11
"""The rest of a quarter of a turn: together 86 bits."""
_DOUBLE_ROUNDER = 6755399441055744.0
"""1.5 * 2^52: adding it rounds a double to an integer."""
_MOST_RADIANS = 1048576.0
"""Angles beyond 2^20, of which other numbers of quarters had to be known to more bits, are libm's."""

_LN2 = 0.6931471805599453
_LN2_HIGH = 0.693359375
"""ln(2) in so few bits that its product with an exponent is exact."""
_LN2_LOW = _LN2 - _LN2_HIGH
_LOG2_E = 1.4426950408889634
_ROUNDER = 12582912.0 + 254.0
"""1.5 * 2^23 + 2 * 127: adding it rounds a small float to an integer n, and n + 254 then stands in the low bits."""
_ROUNDED_ZERO = 0x4B400000 + 254
"""The bits of _ROUNDER."""
_MASKS = {4: "i8", 8: "i8", 16: "i16"}
"""Types of the masks of VSCALEFPS by its lanes."""
_AS_USUAL = ", i32 4"
"""Rounding as the processor is told elsewhere, which the widest one is told."""


class Writer(FunctionText):
    """Straight-line LLVM code on `lanes` single-precision values."""

    def __init__(self, lanes: int, has_avx512: bool = False) -> None:
        super().__init__()
        self.has_avx512 = has_avx512
        self.lanes = None if lanes == 1 else lanes
        self.real = shape_text(lanes, "float")
        self.integer = shape_text(lanes, "i32")
        self.truth = shape_text(lanes, "i1")
        self.needs: dict[str, str] = {}

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

    def neg(self, a: str) -> str:
        return self.put(f"fneg {self.real} {a}")

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

    def ldexp(self, a: str, n: str) -> str:
        symbol = f"@llvm.ldexp.{intrinsic_suffix(self.real)}.{intrinsic_suffix(self.integer)}"
        self.needs[symbol] = f"declare {self.real} {symbol}({self.real}, {self.integer})"
        return self.put(f"call {self.real} {symbol}({self.real} {a}, {self.integer} {n})")

    def join(self, parts: Sequence[str], lanes: int) -> str:
        """Return vectors of so many lanes each, a power of two of them, as one."""
        *several, last = parts
        if not several:
            return last
        kind, places = shape_text(lanes, "float"), ", ".join(f"i32 {n}" for n in range(2 * lanes))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        wider = [self.put(f"shufflevector {kind} {a}, {kind} {b}, <{2 * lanes} x i32> <{places}>") for a, b in pairs]
        return self.join(wider, 2 * lanes)

    def scalef(self, value: str, n: str) -> str | None:
        """Return value * 2^n for whole numbers n in floats, by AVX-512; None for lanes that fill no registers.

        LLVM's own takes integers, which the instruction turns back into these floats.
        """
        lanes = self.lanes or 1
        width = min(lanes, max(_MASKS))
        if width not in _MASKS or lanes & (lanes - 1):
            return None
        part, mask = shape_text(width, "float"), _MASKS[width]
        symbol = f"@llvm.x86.avx512.mask.scalef.ps.{32 * width}"
        rounded, kind = (_AS_USUAL, ", i32") if width == max(_MASKS) else ("", "")
        self.needs[symbol] = f"declare {part} {symbol}({part}, {part}, {part}, {mask}{kind})"
        found = []
        for start in range(0, lanes, width):
            given = ", ".join(f"{part} {self.part(each, start, width)}" for each in (value, n))
            found.append(self.put(f"call {part} {symbol}({given}, {part} undef, {mask} -1{rounded})"))
        return self.join(found, width)

    def part(self, value: str, start: int, lanes: int) -> str:
        """Return so many lanes of a vector, from one on."""
        if lanes == self.lanes:
            return value
        places = ", ".join(f"i32 {start + n}" for n in range(lanes))
        return self.put(f"shufflevector {self.real} {value}, {self.real} poison, <{lanes} x i32> <{places}>")

    def unless_large(self, x: str, limit: float, value: str, name: str) -> str:
        """Return a value, but the intrinsic `name` of x where |x| in one of the lanes is beyond a limit, or NaN."""
        flags = self.put(f"fcmp ugt {self.real} {self.intrinsic('fabs', x)}, {self.const(limit)}")
        if self.lanes is not None:
            bits = self.put(f"bitcast {self.truth} {flags} to i{self.lanes}")
            flags = self.put(f"icmp ne i{self.lanes} {bits}, 0")
        outside = f"@lw.{name}.large.{intrinsic_suffix(self.real)}"
        libm = f"@llvm.{name}.{intrinsic_suffix(self.real)}"
        self.needs[libm] = f"declare {self.real} {libm}({self.real})"
        self.needs[outside] = (
            f"define internal {self.real} {outside}({self.real} %x) noinline cold #0 {{\n"
            f"  %y = call {self.real} {libm}({self.real} %x)\n  ret {self.real} %y\n}}"
        )
        self.branch(flags, "large", "known")
        self.start_block("large")
        other = self.put(f"call {self.real} {outside}({self.real} {x})")
        self.do("br label %known")
        self.start_block("known")
        return self.put(f"phi {self.real} [ {value}, %entry ], [ {other}, %large ]")

    def horner(self, coefficients: Sequence[float], x: str) -> str:
        value = self.const(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.const(coefficient))
        return value


def _scale(w: Writer, value: str, rounded: str, n: str) -> str:
    """Return value * 2^n for n + _ROUNDER, -150 <= n <= 128; rounded once where the result is subnormal.

    Two factors of half the exponent each, whose bits come from those of `rounded` as they are: n + 254 is two biases.
    Processors with an instruction for it (AVX-512) take that.
    """
    bits = w.as_int(rounded)
    if w.has_avx512:
        return w.scalef(value, n) or w.ldexp(value, w.int_op("sub", bits, _ROUNDED_ZERO))
    half = w.int_op("lshr", bits, 1)
    rest = w.int_op("sub", bits, half)
    for biased in (half, rest):
        value = w.mul(value, w.as_real(w.int_op("shl", biased, 23)))
    return value


def _clamp(w: Writer, x: str, low: float, high: float) -> str:
    """Return x within bounds; NaN stays NaN."""
    x = w.where("ogt", x, w.const(high), w.const(high), x)
    return w.where("olt", x, w.const(low), w.const(low), x)


def _reduce(w: Writer, x: str) -> tuple[str, str, str]:
    """Return n + _ROUNDER, n and r such that x = n * ln(2) + r and |r| <= ln(2) / 2."""
    rounded = w.fma(x, w.const(_LOG2_E), w.const(_ROUNDER))
    n = w.sub(rounded, w.const(_ROUNDER))
    r = w.fma(n, w.const(-_LN2_HIGH), x)
    return rounded, n, w.fma(n, w.const(-_LN2_LOW), r)


def _exp(w: Writer, x: str) -> str:
    rounded, n, r = _reduce(w, _clamp(w, x, -104.0, 89.0))
    return _scale(w, w.horner((*_EXP, 1.0, 1.0), r), rounded, n)


def _exp2(w: Writer, x: str) -> str:
    x = _clamp(w, x, -151.0, 129.0)
    rounded = w.add(x, w.const(_ROUNDER))
    n = w.sub(rounded, w.const(_ROUNDER))
    r = w.sub(x, n)
    return _scale(w, w.fma(w.horner(_EXP2, r), r, w.const(1.0)), rounded, n)


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
    """Return (1 - t) / (1 + t) for t = e^(-2 |x|) = 2^n (1 + p), where 1 - 2^n and 1 + 2^n lose nothing of p."""
    doubled = w.mul(w.intrinsic("fabs", x), w.const(-2.0))
    doubled = w.where("olt", doubled, w.const(-19.0), w.const(-19.0), doubled)
    rounded, _, r = _reduce(w, doubled)
    p = w.fma(w.mul(r, r), w.horner(_EXP, r), r)
    power = w.as_real(w.int_op("shl", w.int_op("sub", w.as_int(rounded), 127), 23))
    above = w.fma(w.neg(power), p, w.sub(w.const(1.0), power))
    below = w.fma(power, p, w.add(w.const(1.0), power))
    return w.intrinsic("copysign", w.div(above, below), x)


def _erf(w: Writer, x: str) -> str:
    size = w.intrinsic("fabs", x)
    small = w.fma(x, w.horner(_ERF_SMALL, w.mul(x, x)), x)
    beyond = w.sub(w.where("ogt", size, w.const(4.0), w.const(4.0), size), w.const(_ERF_SPLIT))
    root = w.horner(_ERF_LARGE, beyond)
    square = w.mul(root, root)
    large = w.sub(w.const(1.0), w.div(w.const(1.0), w.mul(square, square)))
    return w.where("olt", size, w.const(_ERF_SPLIT), small, w.intrinsic("copysign", large, x))


def _one_plus_erf(w: Writer, x: str) -> str:
    """Return 1 + erf(x), whose only division and polynomial are those of the smaller one of 1 - erf(x) and this.

    Of a sum with erf both of its polynomials are computed, and below -1 few bits are left. Of each fifth float up to 12
    this one is 5e-7 off at most, near 1, and the sum 1.5e-7; gelu(x) by it is 4.1e-7 off (of negative x 0.8e-7), by the
    sum 5.1e-7 (1.4e-7).
    """
    root = w.horner(_ERFC_ROOT, w.intrinsic("fabs", x))
    square = w.mul(root, root)
    rest = w.div(w.const(1.0), w.mul(square, square))
    return w.where("olt", x, w.const(0.0), rest, w.sub(w.const(2.0), rest))


def _angle(w: Writer, x: str) -> tuple[str, str]:
    """Return n as integers and r such that x = n * pi / 2 + r and |r| <= pi / 4, reduced in double precision."""
    double = w.real.replace("float", "double")

    def const(value: float) -> str:
        return splat_text(float_text(value, "double"), "double", w.lanes)

    def fma(a: str, b: float, c: str) -> str:
        symbol = f"@llvm.fmuladd.{intrinsic_suffix(double)}"
        w.needs[symbol] = f"declare {double} {symbol}({double}, {double}, {double})"
        return w.put(f"call {double} {symbol}({double} {a}, {double} {const(b)}, {double} {c})")

    wide = w.put(f"fpext {w.real} {x} to {double}")
    rounded = fma(wide, _QUARTERS, const(_DOUBLE_ROUNDER))
    n = w.put(f"fsub {double} {rounded}, {const(_DOUBLE_ROUNDER)}")
    r = fma(n, -_QUARTER_LOW, fma(n, -_QUARTER_HIGH, wide))
    return w.put(f"fptosi {double} {n} to {w.integer}"), w.put(f"fptrunc {double} {r} to {w.real}")


def _of_angle(w: Writer, x: str, name: str, ahead: int) -> str:
    """Return the sine of an angle `ahead` quarters of a turn further; libm's `name` where one of the lanes is large.

    Source: Cody and Waite 1980, chapter 8, but that angles are reduced in double precision.
    """
    n, r = _angle(w, x)
    square = w.mul(r, r)
    sine = w.fma(w.mul(r, square), w.horner(_SIN, square), r)
    flat = w.fma(square, w.const(-0.5), w.const(1.0))
    cosine = w.fma(w.mul(square, square), w.horner(_COS, square), flat)
    quarter = w.int_op("add", n, ahead)
    is_odd = w.put(f"icmp ne {w.integer} {w.int_op('and', quarter, 1)}, {w.bits(0)}")
    value = w.put(f"select {w.truth} {is_odd}, {w.real} {cosine}, {w.real} {sine}")
    sign = w.int_op("shl", w.int_op("and", quarter, 2), 30)
    value = w.as_real(w.int_op("xor", w.as_int(value), sign))
    if not ahead:
        value = w.where("oeq", x, w.const(0.0), x, value)  # -0 stays what it is
    return w.unless_large(x, _MOST_RADIANS, value, name)


def _sin(w: Writer, x: str) -> str:
    return _of_angle(w, x, "sin", 0)


def _cos(w: Writer, x: str) -> str:
    return _of_angle(w, x, "cos", 1)


POLYNOMIALS: dict[str, Callable[[Writer, str], str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "tanh": _tanh,
    "erf": _erf,
    "one_plus_erf": _one_plus_erf,
    "sin": _sin,
    "cos": _cos,
}
"""Functions of one single-precision argument that are computed on whole vectors."""


@cache
def polynomial(name: str, lanes: int, has_avx512: bool = False) -> tuple[str, dict[str, str]]:
    """Return the symbol that computes `name` on `lanes` values, and the texts of it and of all that it needs.

    `has_avx512`: the processor multiplies vectors by powers of two in one instruction.
    """
    w = Writer(lanes, has_avx512)
    result = POLYNOMIALS[name](w, "%x")
    symbol = f"@lw.{name}.{intrinsic_suffix(w.real)}"
    head = f"define internal {w.real} {symbol}({w.real} %x) alwaysinline #0"
    w.do(f"ret {w.real} {result}")
    return symbol, {**w.needs, symbol: w.text(head)}
