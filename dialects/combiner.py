"""Reduction combiners that have a name: their identity and the scalar operation that joins two values."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
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
from xdsl.ir import Attribute, Operation

from .numpy_types import teach_numpy

NAMED = ("add", "mul", "max", "min")
"""Combiners with a name; `custom` has a region, `none` is no reduction."""

DTYPES: dict[str, Attribute] = {
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    **{f"uint{bits}": IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)},
    "bool": i1,
}
"""Element types by their NumPy names. Signed integers are signless in the IR, unsigned ones are `ui8` and so on."""

_FRACTION_BITS: dict[type[Attribute], int] = {Float16Type: 10, BFloat16Type: 7, Float32Type: 23, Float64Type: 52}
_FLOAT_OPS: dict[str, type[Operation]] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_INTEGER_OPS: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
}
_UNSIGNED_OPS: dict[str, type[Operation]] = {**_INTEGER_OPS, "max": arith.MaxUIOp, "min": arith.MinUIOp}


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


def element_bytes(element: Attribute) -> int:
    """Size of one element in bytes."""
    if isinstance(element, IntegerType):
        return max(1, int(element.width.data) // 8)
    if isinstance(element, Float16Type | BFloat16Type):
        return 2
    return 4 if isinstance(element, Float32Type) else 8


def identity(combiner: str, element: Attribute) -> float | int:
    """Return the value `e` with `combine(e, x) == x` for every x of the element type."""
    if combiner == "add":
        return 0.0 if is_float(element) else 0
    if combiner == "mul":
        return 1.0 if is_float(element) else 1
    sign = -1 if combiner == "max" else 1
    if is_float(element):
        return sign * float("inf")
    assert isinstance(element, IntegerType)
    if is_unsigned(element):
        return 0 if combiner == "max" else (1 << element.width.data) - 1
    half: int = 1 << (element.width.data - 1)
    return -half if combiner == "max" else half - 1


def combine_op(combiner: str, element: Attribute) -> type[Operation]:
    """Return the arith operation that joins two values of the element type."""
    if is_float(element):
        return _FLOAT_OPS[combiner]
    return (_UNSIGNED_OPS if is_unsigned(element) else _INTEGER_OPS)[combiner]
