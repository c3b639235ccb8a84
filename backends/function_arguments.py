"""The arguments of a kernel, as callers see them, read from its function."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..dialects.buffers import callers_shape
from ..dialects.element import dtype_name
from ..passes.analysis.argument_marks import CONSTANT, argument_attributes, packing_of
from .signature import Argument


def arguments_of(function: FuncOp) -> tuple[Argument, ...]:
    """Read a kernel function's arguments: inputs, then those marked `lw.output`; ValueError if they are not so."""
    arguments = []
    for position, argument in enumerate(function.body.block.args):
        if not isinstance(argument.type, MemRefType):
            raise ValueError(f"argument {position} of kernel '{function.sym_name.data}' is no buffer: {argument.type}")
        buffer_type = cast(MemRefType[Attribute], argument.type)
        marks = argument_attributes(function, position)
        name = marks.get("lw.name")
        packing = packing_of(function, position)
        arguments.append(
            Argument(
                name.data if isinstance(name, StringAttr) else argument.name_hint or f"argument {position}",
                dtype_name(buffer_type.element_type),
                callers_shape(argument) if packing is None else packing.original_shape,
                "lw.output" in marks,
                CONSTANT in marks,
                packing,
            )
        )
    outputs = [argument.is_output for argument in arguments]
    if not any(outputs) or outputs != sorted(outputs):
        raise ValueError(f"kernel '{function.sym_name.data}': arguments are inputs, then at least one `lw.output`")
    return tuple(arguments)
