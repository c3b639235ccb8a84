"""A kernel function made ready to be interpreted: its operations as steps on the values of slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .. import kernel
from ..element import dtype_name, is_float
from .kernel_functions import Array, dtype_of

Step = Callable[[list[Any]], None]
"""An operation that is ready to run on the values of all slots: types and attributes are read once, before."""

Handler = Callable[[Any, Any], Step | None]
"""Makes a step of an operation of a program; None where it does nothing."""


class Program:
    """The steps of a function, the slot that each SSA value lives in, and the values of the slots, constants first.

    `handlers` make steps of the operations that are no plain functions of their operands, by the type of the operation;
    a handler gets the program and the operation, and gives None where there is nothing to do. `others` makes steps of
    all others.
    """

    def __init__(self, handlers: Mapping[type[Operation], Handler], others: Handler) -> None:
        self.handlers, self.others = handlers, others
        self.values: list[Any] = []
        self.order = 0
        """The order of blocks that count each other is drawn from it."""
        self.states: dict[SSAValue, Array] = {}
        """The states of the elements of the function's buffers, where launches have kept count."""
        self._slots: dict[SSAValue, int] = {}

    def slot(self, value: SSAValue) -> int:
        """The place of an SSA value among the values."""
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = self.new_slot()
        return found

    def new_slot(self) -> int:
        """A place of its own among the values."""
        self.values.append(None)
        return len(self.values) - 1

    def slots(self, values: Sequence[SSAValue]) -> list[int]:
        return [self.slot(value) for value in values]

    def block(self, block: Block) -> list[Step]:
        steps = (self.step(op) for op in block.ops)
        return [step for step in steps if step is not None]

    def step(self, op: Operation) -> Step | None:
        """Make an operation ready; None where it does nothing."""
        return self.handlers.get(type(op), self.others)(self, op)


def nothing(program: Program, op: Operation) -> None:
    """Do nothing for a hint, or for the end of a region."""


def constant_value(op: arith.ConstantOp) -> Any:
    """The value of a constant: a number, or an array of the lanes `(n,)`."""
    dtype = dtype_of(op.result.type)
    if isinstance(op.value, IntegerAttr | FloatAttr):
        return dtype.type(op.value.value.data)
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    return np.resize(np.array(op.value.get_values()).astype(dtype), kernel.lanes_of(op.result.type))


def unwritten(size: int | tuple[int, ...], element: Attribute) -> Array:
    """Elements that nothing was written to: NaN, or the least integer."""
    dtype = np.dtype(dtype_name(element))
    if is_float(element):
        return np.full(size, np.nan, dtype)
    return np.full(size, False if dtype.kind == "b" else np.iinfo(dtype).min, dtype)
