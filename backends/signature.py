"""What a compiled kernel takes and gives: names, element types and shapes of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..dialects.combiner import dtype_name


@dataclass(frozen=True)
class Argument:
    """One array of a kernel; `dtype` is NumPy's name."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def to_json(self) -> list[Any]:
        return [self.name, self.dtype, list(self.shape), self.is_output]

    @staticmethod
    def from_json(values: Sequence[Any]) -> Argument:
        name, dtype, shape, is_output = values
        return Argument(name, dtype, tuple(shape), is_output)


def signature_of(function: FuncOp) -> tuple[Argument, ...]:
    """Read a kernel function's arguments: inputs, then those marked `lw.output`; ValueError if they are not so."""
    attributes = function.arg_attrs.data if isinstance(function.arg_attrs, ArrayAttr) else ()
    arguments = []
    for number, argument in enumerate(function.body.block.args):
        if not isinstance(argument.type, MemRefType):
            raise ValueError(f"argument {number} of kernel '{function.sym_name.data}' is no buffer: {argument.type}")
        marks = _marks(attributes[number]) if attributes else {}
        arguments.append(_argument(number, cast(MemRefType[Attribute], argument.type), marks))
    outputs = [argument.is_output for argument in arguments]
    if not any(outputs) or outputs != sorted(outputs):
        raise ValueError(f"kernel '{function.sym_name.data}': arguments are inputs, then at least one `lw.output`")
    return tuple(arguments)


def _marks(attribute: Attribute) -> Mapping[str, Attribute]:
    return attribute.data if isinstance(attribute, DictionaryAttr) else {}


def _argument(number: int, buffer_type: MemRefType[Attribute], marks: Mapping[str, Attribute]) -> Argument:
    name = marks.get("lw.name")
    text = name.data if isinstance(name, StringAttr) else f"argument {number}"
    return Argument(text, dtype_name(buffer_type.element_type), buffer_type.get_shape(), "lw.output" in marks)
