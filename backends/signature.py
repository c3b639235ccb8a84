"""Signatures of kernels: names, element types and shapes of the arrays that they take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..dialects.numpy_types import ELEMENT_TYPES, teach_numpy
from ..passes.analysis.layout import parse_layout
from ..passes.analysis.packing import CONSTANT, Packing, argument_attributes, packing_of
from ..storage.typed_json import shown

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute


@dataclass(frozen=True)
class Argument:
    """One array of a kernel as callers see it; `dtype` is NumPy's name.

    A constant has the same values in all calls. With `packing`, the kernel wants it in a layout of its own.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool
    constant: bool = False
    packing: Packing | None = None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def check(self) -> None:
        """ValueError where an argument that was read from somewhere is none."""
        if self.dtype not in ELEMENT_TYPES:
            raise ValueError(f"argument {shown(self.name)} has elements of an unknown type {shown(self.dtype)}")
        if any(n < 0 for n in self.shape) or (self.packing is not None and self.packing.original_shape != self.shape):
            raise ValueError(f"argument {shown(self.name)} has the shape {shown(self.shape)}")
        teach_numpy(self.dtype)
        if self.packing is not None:
            parse_layout(self.packing.layout, self.packing.extents)


def signature_of(function: FuncOp) -> tuple[Argument, ...]:
    """Read a kernel function's arguments: inputs, then those marked `lw.output`; ValueError if they are not so."""
    from xdsl.dialects.builtin import MemRefType, StringAttr

    from ..dialects.combiner import dtype_name

    arguments = []
    for position, argument in enumerate(function.body.block.args):
        if not isinstance(argument.type, MemRefType):
            raise ValueError(f"argument {position} of kernel '{function.sym_name.data}' is no buffer: {argument.type}")
        buffer_type = cast("MemRefType[Attribute]", argument.type)
        marks = argument_attributes(function, position)
        name = marks.get("lw.name")
        packing = packing_of(function, position)
        arguments.append(
            Argument(
                name.data if isinstance(name, StringAttr) else argument.name_hint or f"argument {position}",
                dtype_name(buffer_type.element_type),
                buffer_type.get_shape() if packing is None else packing.original_shape,
                "lw.output" in marks,
                CONSTANT in marks,
                packing,
            )
        )
    outputs = [argument.is_output for argument in arguments]
    if not any(outputs) or outputs != sorted(outputs):
        raise ValueError(f"kernel '{function.sym_name.data}': arguments are inputs, then at least one `lw.output`")
    return tuple(arguments)
