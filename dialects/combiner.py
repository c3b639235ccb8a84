"""Reduction combiners that have a name: their identity and the scalar operation that joins two values."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from .element import is_float, is_unsigned

NAMED = ("add", "mul", "max", "min")
"""Combiners with a name; `custom` has a region, `none` is no reduction."""

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
