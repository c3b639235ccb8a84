"""LLVM's spelling of the kernel dialect's types and constants."""

from __future__ import annotations

import math
import struct
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

from ...dialects.element import DTYPES, element_bytes
from ..unsupported import UnsupportedError

_TEXTS: dict[type[Attribute], str] = {
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
    IndexType: "i64",
    BFloat16Type: "i16",
}


def element_text(element: Attribute) -> str:
    """Return LLVM's name of a scalar type: `index` is `i64`, bfloat16 is held in the bits of an `i16`."""
    text = _TEXTS.get(type(element))
    if text is None and isinstance(element, IntegerType):
        return f"i{element.width.data}"
    if text is None:
        raise UnsupportedError(f"the LLVM backend has no type for {element}")
    return text


_BYTES = {element_text(element): element_bytes(element) for element in DTYPES.values()}


def stored_bytes(element: str) -> int:
    """Return the size in memory of an element, by its LLVM name."""
    return _BYTES[element]


def shape_text(lanes: int, element: str) -> str:
    """Return the type of `lanes` values, a scalar for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def type_text(value_type: Attribute) -> str:
    """Return LLVM's name of a value's type; a buffer is a pointer."""
    if isinstance(value_type, VectorType):
        return f"<{_lanes(value_type)} x {element_text(value_type.element_type)}>"
    if isinstance(value_type, MemRefType):
        return "ptr"
    return element_text(value_type)


def lanes_of(value_type: Attribute) -> int | None:
    """Return the number of lanes of a vector, None for a scalar."""
    return _lanes(value_type) if isinstance(value_type, VectorType) else None


def _lanes(value_type: VectorType) -> int:
    shape = value_type.get_shape()
    if len(shape) != 1:
        raise UnsupportedError(f"the LLVM backend prints vectors of one dimension, got {value_type}")
    return int(shape[0])


def stored_text(element: str) -> str:
    """Return the type an element has in memory: a truth value takes a byte."""
    return "i8" if element == "i1" else element


def buffer_bytes(buffer_type: MemRefType[Attribute]) -> int:
    """Return the size in memory of a contiguous buffer."""
    return math.prod(buffer_type.get_shape()) * element_bytes(buffer_type.element_type)


@cache
def intrinsic_suffix(text: str) -> str:
    """Return the suffix that overloaded intrinsics carry for a type: `<16 x float>` is `v16f32`."""
    if text.startswith("<"):
        lanes, _, element = text[1:-1].partition(" x ")
        return f"v{lanes}{intrinsic_suffix(element)}"
    return {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(text, text)


def float_text(value: float, element: str) -> str:
    """Return the literal of a float that reads back to the same bits."""
    if element == "half":
        return f"0xH{struct.pack('>e', value).hex().upper()}"
    if element == "float":
        value = _single(value)
    return f"0x{struct.pack('>d', value).hex().upper()}"


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def brief_text(value: float) -> str:
    """Return the bits of a float rounded to bfloat16, to nearest even, as an integer."""
    (bits,) = struct.unpack("I", struct.pack("f", _single(value)))
    near = 0x7FC0 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return str(near - (near >> 15 << 16))


def scalar_text(value: float | int, element: str) -> str:
    """Return the literal of a scalar of the given LLVM type."""
    if element == "i1":
        return "true" if int(value) & 1 else "false"
    return str(int(value)) if element[0] == "i" else float_text(float(value), element)


def splat_text(literal: str, element: str, lanes: int | None) -> str:
    """Return the constant whose lanes all are `literal`; the literal itself for a scalar."""
    return literal if lanes is None else f"splat ({element} {literal})"


def vector_text(literals: list[str], element: str) -> str:
    """Return the constant with these lanes."""
    if all(literal == literals[0] for literal in literals):
        return splat_text(literals[0], element, len(literals))
    return f"<{', '.join(f'{element} {literal}' for literal in literals)}>"


def constant_text(value: Attribute, value_type: Attribute) -> str:
    """Return the literal of an `arith.constant`."""
    if isinstance(value, IntegerAttr):
        return scalar_text(value.value.data, element_text(value_type))
    if isinstance(value, FloatAttr):
        if isinstance(value_type, BFloat16Type):
            return brief_text(value.value.data)
        return float_text(value.value.data, element_text(value_type))
    if isinstance(value, DenseIntOrFPElementsAttr):
        assert isinstance(value_type, VectorType)
        element = element_text(value_type.element_type)
        is_brief = isinstance(value_type.element_type, BFloat16Type)
        literals = [brief_text(float(lane)) if is_brief else scalar_text(lane, element) for lane in value.get_values()]
        return vector_text(literals * (_lanes(value_type) // len(literals)), element)
    raise UnsupportedError(f"the LLVM backend prints no constant {value}")
