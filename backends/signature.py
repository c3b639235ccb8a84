"""What a compiled kernel takes and gives: names, element types and shapes of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy.typing as npt
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..dialects.combiner import dtype_name
from ..passes.analysis.packing import Packing, argument_attributes, packing_of
from .arrays import aligned_copy


@dataclass(frozen=True)
class Argument:
    """One array of a kernel as callers see it; `dtype` is NumPy's name.

    With `packing`, a constant that the kernel wants in a layout of its own: it is packed when it is first seen.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_output: bool
    packing: Packing | None = None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def to_json(self) -> list[Any]:
        packing = None if self.packing is None else [list(self.packing.layout), dict(self.packing.extents)]
        return [self.name, self.dtype, list(self.shape), self.is_output, packing]

    @staticmethod
    def from_json(values: Sequence[Any]) -> Argument:
        name, dtype, shape, is_output, packing = values
        layout = None if packing is None else Packing(tuple(packing[0]), dict(packing[1]))
        return Argument(name, dtype, tuple(shape), is_output, layout)


def signature_of(function: FuncOp) -> tuple[Argument, ...]:
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
                buffer_type.get_shape() if packing is None else packing.original_shape,
                "lw.output" in marks,
                packing,
            )
        )
    outputs = [argument.is_output for argument in arguments]
    if not any(outputs) or outputs != sorted(outputs):
        raise ValueError(f"kernel '{function.sym_name.data}': arguments are inputs, then at least one `lw.output`")
    return tuple(arguments)


class PackedConstants:
    """Constants in the layouts that a kernel wants, each packed once for as long as the same array is passed.

    Changing such an array in place is not noticed: it was declared constant.
    """

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._packings = [(n, a.packing) for n, a in enumerate(arguments) if a.packing is not None]
        self._known: dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def apply(self, arrays: Sequence[npt.NDArray[Any]]) -> Sequence[npt.NDArray[Any]]:
        """Return the arrays with the constants among them packed."""
        if not self._packings:
            return arrays
        result = list(arrays)
        for position, packing in self._packings:
            known = self._known.get(position)
            if known is None or known[0] is not arrays[position]:
                known = self._known[position] = (arrays[position], aligned_copy(packing.pack(arrays[position])))
            result[position] = known[1]
        return result
