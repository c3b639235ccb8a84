"""Element types in the IR: NumPy's names of them, their sizes, their kinds."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    FixedBitwidthType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from .numpy_types import ELEMENT_TYPES, teach_numpy

_UNSIGNED = tuple(IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64))
_ATTRIBUTES: tuple[Attribute, ...] = (f16, bf16, f32, f64, i8, i16, i32, i64, *_UNSIGNED, i1)
DTYPES: dict[str, Attribute] = dict(zip(ELEMENT_TYPES, _ATTRIBUTES, strict=True))
"""Element types by their NumPy names. Signed integers are signless in the IR, unsigned ones are `ui8` and so on."""

_FRACTION_BITS: dict[type[Attribute], int] = {Float16Type: 10, BFloat16Type: 7, Float32Type: 23, Float64Type: 52}
FLOAT32_BYTES = 4
"""Bytes of a float32, which rules and estimates ask for that nobody has measured with other elements."""
_INDEX_BYTES = 8


def is_float(element: Attribute) -> bool:
    """True for f16, bf16, f32, f64."""
    return isinstance(element, AnyFloat)


def is_unsigned(element: Attribute) -> bool:
    """True for ui8, ui16, ui32, ui64."""
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED


def epsilon(element: Attribute) -> float:
    """Return the distance from 1 to the next number of a float type."""
    return 2.0 ** -_FRACTION_BITS[type(element)]


def dtype_name(element: Attribute) -> str:
    """The NumPy name of an element type, which NumPy then knows; ValueError for a type that has none here."""
    for name, candidate in DTYPES.items():
        if candidate == element:
            teach_numpy(name)
            return name
    raise ValueError(f"element type {element} is not one of {', '.join(DTYPES)}")


def element_type(given: object) -> str:
    """The name of an element type that is given by name, or as NumPy has it: `np.float32`, `np.dtype("int8")`.

    What is neither comes back as text, for whoever refuses it.
    """
    if isinstance(given, str):
        return given
    name = getattr(given, "name", None) or getattr(given, "__name__", None)
    module = type(given).__module__ if not isinstance(given, type) else given.__module__
    return str(name) if module.split(".")[0] in ("numpy", "ml_dtypes") and name else str(given)


def element_bytes(element: Attribute) -> int:
    """Size of one element in bytes: a truth value takes one, an index as much as an address."""
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else _INDEX_BYTES
