"""Element types as MLIR's dialects have them: integers carry no sign, and a truth value in memory takes a byte."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    VectorType,
    i1,
    i8,
)
from xdsl.ir import Attribute

from ...dialects.element import is_unsigned


def signless(value_type: Attribute) -> Attribute:
    """Return a type with signless integers for unsigned ones: the operations on them say what the bits mean."""
    if isinstance(value_type, VectorType):
        return VectorType(signless(value_type.element_type), value_type.get_shape())
    if isinstance(value_type, TensorType):
        return TensorType(signless(value_type.element_type), value_type.get_shape())
    return IntegerType(cast(IntegerType, value_type).width.data) if is_unsigned(value_type) else value_type


def stored(element: Attribute) -> Attribute:
    """Return the element type that a buffer holds: vectors of `i1` would be packed into bits there."""
    return i8 if element == i1 else signless(element)


def number(value: float, value_type: Attribute) -> Attribute:
    """Return the attribute of a constant, all lanes of which are `value`."""
    if isinstance(value_type, VectorType):
        element = value_type.element_type
        scalar = float(value) if isinstance(element, AnyFloat) else int(value)
        return DenseIntOrFPElementsAttr.from_list(value_type, [scalar])
    if isinstance(value_type, AnyFloat):
        return FloatAttr(float(value), value_type)
    assert isinstance(value_type, IntegerType | IndexType)
    return IntegerAttr(int(value), value_type)
