"""Element types and literals in the words of the C family."""

from __future__ import annotations

import math
import struct

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType
from xdsl.ir import Attribute

from ...dialects.element import DTYPES, element_bytes
from ...dialects.element import is_float as is_float_element
from ..unsupported import UnsupportedError

_KINDS: dict[Attribute, str] = {
    **{element: str(element).removeprefix("u") for element in DTYPES.values()},
    IndexType(): "index",
}
"""Names of scalar types, as the IR prints them; unsigned integers are held in those without a sign."""
_SINGLE = {type(element): kind for element, kind in _KINDS.items() if type(element) is not IntegerType}
"""Those of classes with one type, which are asked for most and need no comparison of attributes."""
_ELEMENTS = {kind: element for element, kind in _KINDS.items()}

NARROW_FLOATS = ("f16", "bf16")
"""Floats whose mathematics is done in single precision."""


def element_name(value_type: Attribute) -> str:
    """Return the name of a scalar type, or of a vector's or buffer's element type: `f32`, `i8`, `index`."""
    if type(value_type) is VectorType or type(value_type) is MemRefType:  # `isinstance` of attributes is slow
        value_type = value_type.element_type
    kind = _SINGLE.get(type(value_type)) or _KINDS.get(value_type)
    if kind is None:
        raise UnsupportedError(f"GPU backends have no type for {value_type}")
    return kind


def is_float(kind: str) -> bool:
    """True for the name of a float type."""
    return is_float_element(_ELEMENTS[kind])


def bytes_of(kind: str) -> int:
    """Return the size in memory of an element."""
    return element_bytes(_ELEMENTS[kind])


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
