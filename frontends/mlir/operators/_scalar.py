"""Elementwise operations on tensors of a network, shared by dialects: what each word means for floats and integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....dialects.numpy_types import FLOATS, UNSIGNED
from ....graph.network import Value
from ... import signs
from ..discovery import Converter
from ..errors import UnsupportedOperation
from ..node import Builder

Apply = Callable[..., Value]


def same(operator: str) -> Converter:
    """Return the converter of an operation that an operator of the graph is."""
    return Converter(lambda node: node.build.elementwise(operator, *node.operands))


def by(function: Callable[..., Value]) -> Converter:
    """Return the converter of an operation that a function of the builder and the operands computes."""
    return Converter(lambda node: function(node.build, *node.operands))


def compare(build: Builder, direction: str, x: Value, y: Value) -> Value:
    """Compare by one of EQ, NE, LT, LE, GT, GE; conditions as numbers."""
    names = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}
    if direction not in names:
        raise UnsupportedOperation(f"comparison direction {direction} is not known")
    if x.dtype == "bool" and direction not in ("EQ", "NE"):
        x, y = build.cast(x, "int8"), build.cast(y, "int8")
    return build.elementwise(names[direction], x, y)


def in_total_order(build: Builder, direction: str, x: Value, y: Value) -> Value:
    """Compare floats as sorting does: NaN is larger than all else, and equal to itself; zeros are equal."""
    if direction in ("GT", "LE"):
        x, y = y, x
    of_x = build.elementwise("not_equal" if direction in ("EQ", "NE") else "equal", x, x)
    last = build.elementwise("logical_and", of_x, build.elementwise("not_equal", y, y))
    plain = compare(build, "EQ" if direction in ("EQ", "NE") else "LT", x, y)
    found = build.elementwise("logical_or", plain, last)
    return found if direction in ("EQ", "LT", "GT") else build.elementwise("logical_not", found)


def add(build: Builder, x: Value, y: Value) -> Value:
    """Add; of conditions, one of them holds."""
    return build.elementwise("logical_or" if x.dtype == "bool" else "add", x, y)


def multiply(build: Builder, x: Value, y: Value) -> Value:
    """Multiply; of conditions, both hold."""
    return build.elementwise("logical_and" if x.dtype == "bool" else "multiply", x, y)


def divide(build: Builder, x: Value, y: Value) -> Value:
    """Divide; integers towards zero."""
    if x.dtype in FLOATS:
        return build.elementwise("divide", x, y)
    return build.elementwise("floor_divide" if x.dtype in UNSIGNED else "truncate_divide", x, y)


def remainder(build: Builder, x: Value, y: Value) -> Value:
    """Return the remainder with the sign of the dividend."""
    return build.elementwise("mod" if x.dtype in UNSIGNED else "fmod", x, y)


def power(build: Builder, x: Value, y: Value) -> Value:
    """Raise to a power; integers to small constant ones."""
    if x.dtype in FLOATS:
        return _float_power(build, x, y)
    exponent = y.constant
    if exponent is None and (thin := build.thin(y)).constant is not None:
        exponent = thin.constant
    if exponent is None or exponent.size != 1 or not 0 <= int(exponent.reshape(())) <= 64:
        raise UnsupportedOperation("integers are raised to one constant power from 0 to 64")
    count = int(exponent.reshape(()))
    result = build.broadcast(build.like(1, x), x.shape)
    for _ in range(count):
        result = build.elementwise("multiply", result, x)
    return result


def _float_power(build: Builder, x: Value, y: Value) -> Value:
    known = build.thin(y).constant
    if known is not None and known.size == 1 and float(known.reshape(())) == 2:
        return build.elementwise("square", x)
    return build.elementwise("power", x, y)


def negate(build: Builder, x: Value) -> Value:
    """Return -x, of integers modulo their range."""
    return build.elementwise("negative", x) if x.dtype in FLOATS else build.elementwise("subtract", build.like(0, x), x)


def both(logical: str, bits: str) -> Converter:
    """Return the converter of an operation on conditions, or on the bits of integers."""
    return Converter(lambda n: n.build.elementwise(logical if n.value().dtype == "bool" else bits, *n.operands))


def logical_shift(build: Builder, x: Value, y: Value) -> Value:
    """Shift right, zeros moving in."""
    if x.dtype in UNSIGNED:
        return build.elementwise("shift_right", x, y)
    wide = f"u{x.dtype}"
    moved = build.elementwise(
        "shift_right", build.elementwise("bitcast", x, dtype=wide), build.elementwise("bitcast", y, dtype=wide)
    )
    return build.elementwise("bitcast", moved, dtype=x.dtype)


def log1p(build: Builder, x: Value) -> Value:
    """log(1 + x): what 1 + x rounds away is made up for (Kahan's correction)."""
    kind = x.dtype
    x = wide(build, x)
    one = build.like(1, x)
    sum_ = build.elementwise("add", x, one)
    plain = build.elementwise("equal", sum_, one)
    infinite = build.elementwise("equal", sum_, build.like(math.inf, x))
    below = build.elementwise("subtract", build.elementwise("where", plain, build.like(2, x), sum_), one)
    ratio = build.elementwise("divide", x, below)
    found = build.elementwise("multiply", build.elementwise("log", sum_), ratio)
    found = build.elementwise("where", build.elementwise("logical_or", plain, infinite), x, found)
    return build.cast(found, kind)


def expm1(build: Builder, x: Value) -> Value:
    """e^x - 1: by tanh(x / 2) near 0, where the difference cancels."""
    kind = x.dtype
    x = wide(build, x)
    t = build.elementwise("tanh", build.elementwise("multiply", x, build.like(0.5, x)))
    near = build.elementwise(
        "divide",
        build.elementwise("multiply", t, build.like(2, x)),
        build.elementwise("subtract", build.like(1, x), t),
    )
    far = build.elementwise("subtract", build.elementwise("exp", x), build.like(1, x))
    small = build.elementwise("less", build.elementwise("abs", x), build.like(0.5, x))
    return build.cast(build.elementwise("where", small, near, far), kind)


def cbrt(build: Builder, x: Value) -> Value:
    """Return the cube root, with the sign of x."""
    kind = x.dtype
    x = wide(build, x)
    root = build.elementwise("power", build.elementwise("abs", x), build.like(1 / 3, x))
    return build.cast(build.elementwise("multiply", build.elementwise("sign", x), root), kind)


def atan2(build: Builder, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), from -pi to pi."""
    kind = x.dtype
    x, y = wide(build, x), wide(build, y)
    return build.cast(signs.atan2(build.elementwise, lambda number: build.like(number, x), y, x), kind)


def round_away(build: Builder, x: Value) -> Value:
    """Round to the nearest whole number, halves away from zero."""
    whole = build.elementwise("trunc", x)
    rest = build.elementwise("abs", build.elementwise("subtract", x, whole))
    further = build.elementwise("add", whole, build.elementwise("sign", x))
    return build.elementwise("where", build.elementwise("less", rest, build.like(0.5, x)), whole, further)


def is_finite(build: Builder, x: Value) -> Value:
    """True but for infinities and NaN."""
    return build.elementwise("less", build.elementwise("abs", x), build.like(math.inf, x))


def erfc(build: Builder, x: Value) -> Value:
    """1 - erf(x)."""
    return build.elementwise("subtract", build.like(1, x), build.elementwise("erf", x))


def clamp(build: Builder, low: Value, x: Value, high: Value) -> Value:
    """Return x, or the bound that it is beyond."""
    return build.elementwise("minimum", build.elementwise("maximum", x, low), high)


def sign(build: Builder, x: Value) -> Value:
    """Return 1, 0 or -1, NaN of NaN."""
    if x.dtype in FLOATS:
        return build.elementwise("sign", x)
    above = build.cast(build.elementwise("greater", x, build.like(0, x)), x.dtype)
    return (
        above
        if x.dtype in UNSIGNED
        else build.elementwise("subtract", above, build.cast(build.elementwise("less", x, build.like(0, x)), x.dtype))
    )


def count_bits(build: Builder, x: Value) -> Value:
    """Count the bits that are 1."""
    width = np.dtype(x.dtype).itemsize * 8
    one = build.like(1, x)
    result = build.broadcast(build.like(0, x), x.shape)
    for k in range(width):
        bit = build.elementwise("bitwise_and", logical_shift(build, x, build.like(k, x)), one)
        result = build.elementwise("add", result, bit)
    return result


def wide(build: Builder, x: Value) -> Value:
    """Return a tensor in the type that functions of it are computed in."""
    return build.cast(x, "float32") if x.dtype in ("float16", "bfloat16") else x


def leading_zeros(build: Builder, x: Value) -> Value:
    """Count the bits before the first that is 1."""
    width, shift = np.dtype(x.dtype).itemsize * 8, 1
    while shift < width:  # all bits behind the first one become 1
        x = build.elementwise("bitwise_or", x, logical_shift(build, x, build.like(shift, x)))
        shift *= 2
    return build.elementwise("subtract", build.like(width, x), count_bits(build, x))
