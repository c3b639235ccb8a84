"""Element types and literals in the words of the C family."""

from __future__ import annotations

import math
import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

KINDS = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")
"""Names of scalar types, as the IR prints them."""

NARROW_FLOATS = ("f16", "bf16")
"""Floats whose mathematics is done in single precision."""

_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "f16",
    BFloat16Type: "bf16",
    Float32Type: "f32",
    Float64Type: "f64",
}


class UnsupportedError(Exception):
    """An operation or a type that a backend cannot print."""


def kind_of(value_type: Attribute) -> str:
    """Return the name of a scalar type, or of a vector's or buffer's element type: `f32`, `i8`, `index`."""
    if isinstance(value_type, VectorType | MemRefType):
        value_type = value_type.element_type
    if isinstance(value_type, IndexType):
        return "index"
    kind = f"i{value_type.width.data}" if isinstance(value_type, IntegerType) else _FLOATS.get(type(value_type))
    if kind not in KINDS:
        raise UnsupportedError(f"GPU backends have no type for {value_type}")
    return str(kind)


def is_float(kind: str) -> bool:
    """True for the name of a float type."""
    return kind in _FLOATS.values()


def bytes_of(kind: str) -> int:
    """Return the size in memory of an element."""
    return _BYTES[kind]


def float_digits(value: float, kind: str) -> str:
    """Return the shortest decimal that reads back to the same float: `0.1`, `1e-05`; finite values only."""
    if kind == "f64":
        text = repr(value)
    else:
        exact = rounded(value, kind)
        text = next(t for digits in range(1, 10) if rounded(float(t := f"{exact:.{digits}g}"), kind) == exact)
    return text if any(c in text for c in ".en") else f"{text}.0"


def rounded(value: float, kind: str) -> float:
    """Return the value rounded to a float type; infinite where it is out of range."""
    if kind == "f64":
        return value
    code = "e" if kind == "f16" else "f"
    try:
        near = float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
    return _brief(value, near) if kind == "bf16" and math.isfinite(value) else near


def _brief(value: float, near: float) -> float:
    """Round to bfloat16, to nearest even; `near` is the value rounded to single precision.

    The single-precision number is made odd where it is not the value, so that a second rounding cannot go astray.
    """
    (bits,) = struct.unpack("I", struct.pack("f", near))
    if near != value:
        bits = (bits - (abs(near) > abs(value))) | 1
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(struct.unpack("f", struct.pack("I", bits))[0])
