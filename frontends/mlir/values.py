"""Attributes of MLIR as Python values, and its tensor types as shapes and NumPy's element types."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnregisteredAttr,
    UnregisteredOp,
    i1,
)
from xdsl.ir import Attribute, Operation

from ...dialects.element import dtype_name
from ...dialects.numpy_types import teach_numpy
from .errors import UnsupportedOperation
from .resources import Resources

Array = npt.NDArray[Any]


def element_dtype(element: Attribute) -> str:
    """Return NumPy's name of an element type; an index is an int64, a signed integer a signless one."""
    if isinstance(element, IndexType):
        return "int64"
    if isinstance(element, IntegerType) and element.signedness.data is Signedness.SIGNED:
        element = IntegerType(element.width.data)
    try:
        return dtype_name(element)
    except ValueError as error:
        raise UnsupportedOperation(str(error)) from None


def tensor_shape(kind: Attribute) -> tuple[int, ...]:
    """Return the shape of a type, () for a scalar; UnsupportedOperation where an extent is not known or 0."""
    if not isinstance(kind, TensorType):
        if isinstance(kind, AnyFloat | IntegerType | IndexType):
            return ()
        raise UnsupportedOperation(f"a value of type {kind} is no ranked tensor")
    shape = tuple(int(n) for n in kind.get_shape())
    if any(n < 0 for n in shape):
        raise UnsupportedOperation(f"{kind} has extents that are not known: lower the program for shapes that are")
    if 0 in shape:
        raise UnsupportedOperation(f"{kind} has no elements")
    return shape


def is_empty(kind: Attribute) -> bool:
    """True for the type of a tensor without elements."""
    return isinstance(kind, TensorType) and 0 in kind.get_shape()


def tensor_dtype(kind: Attribute) -> str:
    """Return the element type of a tensor or a scalar."""
    return element_dtype(kind.get_element_type() if isinstance(kind, TensorType) else kind)


def python(attribute: Attribute, resources: Resources) -> Any:
    """Return an attribute as a Python value: numbers, words, lists, arrays, dictionaries; text of dialects' own."""
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return bool(value) if attribute.type == i1 else value
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, SymbolRefAttr):
        return symbol(attribute)
    if isinstance(attribute, ArrayAttr):
        return [python(a, resources) for a in attribute.data]
    if isinstance(attribute, DictionaryAttr):
        return {key: python(a, resources) for key, a in attribute.data.items()}
    if isinstance(attribute, DenseArrayBase):
        return tuple(bool(v) if attribute.elt_type == i1 else v for v in attribute.iter_values())
    if isinstance(attribute, DenseIntOrFPElementsAttr | DenseResourceAttr):
        return dense(attribute, resources)
    if isinstance(attribute, AffineMapAttr):
        return attribute.data
    if isinstance(attribute, UnregisteredAttr):
        return attribute.value.data.strip()
    return None if isinstance(attribute, NoneAttr) else True if isinstance(attribute, UnitAttr) else attribute


def symbol(attribute: SymbolRefAttr) -> str:
    """Return the name of what a symbol refers to."""
    return ".".join([attribute.root_reference.data, *(part.data for part in attribute.nested_references.data)])


def attributes(op: Operation) -> dict[str, Attribute]:
    """Return attributes and properties of an operation by name."""
    found = {**op.attributes, **op.properties}
    if isinstance(op, UnregisteredOp):
        found.pop("op_name__", None)
    return found


def dense(attribute: DenseIntOrFPElementsAttr[Any] | DenseResourceAttr, resources: Resources) -> Array:
    """Return the values of a constant."""
    kind: Any = attribute.type
    element = kind.get_element_type()
    dtype = element_dtype(element)
    shape = tuple(int(n) for n in kind.get_shape())
    raw = _bytes(attribute, resources)
    if dtype == "bool":
        return _conditions(raw, shape)
    teach_numpy(dtype)
    array = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).astype(np.dtype(dtype), copy=False)
    if array.size == 1 and math.prod(shape) != 1:
        return np.broadcast_to(array.reshape(()), shape)
    if array.size != math.prod(shape):
        raise UnsupportedOperation(f"a constant of type {kind} has {array.size} values")
    shaped: Array = array.reshape(shape)
    return shaped


def _bytes(attribute: DenseIntOrFPElementsAttr[Any] | DenseResourceAttr, resources: Resources) -> bytes:
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        return attribute.data.data
    key = attribute.resource_handle.data
    if key not in resources:
        raise UnsupportedOperation(f"the values of dense_resource<{key}> are not in the text: print them with it")
    return resources[key]


def _conditions(raw: bytes, shape: tuple[int, ...]) -> Array:
    """A byte each as xDSL keeps them, a bit each in blobs of MLIR."""
    count = math.prod(shape)
    whole = np.frombuffer(raw, np.uint8)
    if whole.size != count:
        whole = np.unpackbits(whole, bitorder="little")[:count]
    found: Array = (whole != 0).reshape(shape)
    return found


def named_lists(text: str) -> dict[str, list[int]]:
    """Return `key = [1, 2], other = 3` as lists of numbers by key: dimension numbers of StableHLO."""
    found = re.findall(r"(\w+)\s*=\s*(\[[^\]]*\]|-?\d+)", text)
    return {key: [int(n) for n in re.findall(r"-?\d+", numbers)] for key, numbers in found}
