"""Types of lanes: vectors, their elements and masks, and attributes that kernels have hundreds of, made once."""

from __future__ import annotations

from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation

INDEX = IndexType()


def lanes_of(value_type: Attribute) -> int:
    """Number of lanes of a vector type, 1 for a scalar."""
    return value_type.get_shape()[0] if type(value_type) is VectorType else 1


def element_of(value_type: Attribute) -> Attribute:
    """Return the element type of a vector type, the type itself for a scalar."""
    return value_type.element_type if type(value_type) is VectorType else value_type


def mask_type(lanes: int) -> Attribute:
    """Return the type of a mask for `lanes` lanes: `i1` for a scalar."""
    return vector_of(i1, lanes) if lanes > 1 else i1


@cache
def vector_of(element: Attribute, lanes: int) -> VectorType[Attribute]:
    """`vector<lanes x element>`; made once, as attributes are dear and vectors many."""
    return VectorType(element, [lanes])


def numbers_of(op: Operation, name: str) -> tuple[int, ...]:
    """Return the numbers of an array property, as of the lanes that a shuffle picks."""
    return cast("DenseArrayBase[IntegerType]", op.properties[name]).get_values()


def constant_lanes(value: Attribute, lanes: int) -> list[int | float] | None:
    """Return the numbers of a constant, one for each lane; None for an attribute that is no constant of a kernel."""
    if isinstance(value, IntegerAttr | FloatAttr):
        return [value.value.data] * lanes
    if isinstance(value, DenseIntOrFPElementsAttr):
        numbers = list(value.get_values())
        return [cast(float, number) for number in numbers * (lanes // len(numbers))]
    return None


@cache
def int_attr(value: int) -> IntAttr:
    """Return an integer attribute, made once."""
    return IntAttr(value)
