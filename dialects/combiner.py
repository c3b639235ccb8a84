"""Reduction combiners that have a name: their identity and the scalar operation that joins two values."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float16Type, Float32Type, IntegerType, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute, Operation

NAMED = ("add", "mul", "max", "min")
"""Combiners with a name; `custom` has a region, `none` is no reduction."""

DTYPES: dict[str, Attribute] = {
    "float16": f16,
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "int32": i32,
    "int64": i64,
    "bool": i1,
}
"""Element types by their NumPy names."""

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


def is_float(element: Attribute) -> bool:
    """True for f16, f32, f64."""
    return isinstance(element, AnyFloat)


def dtype_name(element: Attribute) -> str:
    """The NumPy name of an element type; ValueError for a type that has none here."""
    for name, candidate in DTYPES.items():
        if candidate == element:
            return name
    raise ValueError(f"element type {element} is not one of {', '.join(DTYPES)}")


def element_bytes(element: Attribute) -> int:
    """Size of one element in bytes."""
    if isinstance(element, IntegerType):
        return max(1, int(element.width.data) // 8)
    if isinstance(element, Float16Type):
        return 2
    return 4 if isinstance(element, Float32Type) else 8


def identity(combiner: str, element: Attribute) -> float | int:
    """The value `e` with `combine(e, x) == x` for every x of the element type."""
    if combiner == "add":
        return 0.0 if is_float(element) else 0
    if combiner == "mul":
        return 1.0 if is_float(element) else 1
    sign = -1 if combiner == "max" else 1
    if is_float(element):
        return sign * float("inf")
    assert isinstance(element, IntegerType)
    half: int = 1 << (element.width.data - 1)
    return -half if combiner == "max" else half - 1


def combine_op(combiner: str, element: Attribute) -> type[Operation]:
    """The arith operation that joins two values of the element type."""
    return (_FLOAT_OPS if is_float(element) else _INTEGER_OPS)[combiner]
