"""Expressions over columns as one straight-line program: a table of operations on slots of a memory."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .sizes import NUMBERS, Size, SizeGraph, SizeValue

_OF_ONE = ("log2", "absolute", "floor", "sqrt")
OPERANDS: Mapping[str, int] = {op: 1 if op in _OF_ONE else 2 for op in NUMBERS} | {"where": 3}
"""Operands of each operation; an operation's number is its place among them."""
_MOST_OPERANDS = max(OPERANDS.values())
_NUMBER = {op: number for number, op in enumerate(OPERANDS)}


class Program:
    """Computes outputs from columns; operations nobody needs are left out, and slots are used again.

    Slots hold a number for each row: the columns first, then what is computed, the constants behind all of them.
    """

    def __init__(self, graph: SizeGraph, outputs: Sequence[Size]) -> None:
        self.columns: dict[str, int] = {}
        """The slot of each column."""
        self.slots = 0
        """Slots of columns and of what is computed."""
        self.outputs = len(outputs)
        """Number of outputs."""
        self._constants: dict[float, int] = {}
        self._code = array("i")
        slot_of = self._allocate(graph, _last_uses(graph, outputs))
        self._results = [slot_of[o.index] if isinstance(o, SizeValue) else self._constant(o) for o in outputs]

    @property
    def operations(self) -> int:
        """Operations for each block of rows."""
        return len(self.code)

    @cached_property
    def code(self) -> npt.NDArray[np.int32]:
        """The operations in their order, `(n, 5)`: the operation's number, the slots of three operands and its own.

        Others stand for those that there are not.
        """
        return self._placed(np.array(self._code, dtype=np.int32).reshape(-1, 2 + _MOST_OPERANDS))

    @cached_property
    def results(self) -> npt.NDArray[np.int32]:
        """The slot of each output."""
        return self._placed(np.array(self._results, dtype=np.int32))

    @cached_property
    def constants(self) -> npt.NDArray[np.float64]:
        """The numbers of the slots behind the computed ones."""
        return np.array(list(self._constants), dtype=np.float64)

    def _placed(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The same with the slots of constants, which are below zero as long as more slots may come."""
        return np.where(numbers < 0, self.slots - 1 - numbers, numbers)

    def _allocate(self, graph: SizeGraph, last_use: list[int]) -> list[int]:
        """The slot of each value by its index; that of a value nobody needs any more is given to the next one.

        An operation reads its operands before it writes, so that its result may take the place of one.
        """
        needed = [node for node, last in zip(graph.nodes, last_use, strict=False) if last >= 0]
        columns = [node for node in needed if node.op == "column"]
        slot_of = [-1] * len(last_use)
        for slot, node in enumerate(columns):
            slot_of[node.index] = slot
            self.columns[str(node.args[0])] = slot
        slots, constants, code = len(columns), self._constants, list[int]()
        own, free = slots, list[int]()
        for node in needed:
            if node.op == "column":
                continue
            number = node.index
            args = node.args
            code.append(_NUMBER[node.op])
            for a in args:
                if type(a) is SizeValue:
                    index = a.index
                    place = slot_of[index]
                    if last_use[index] == number and place >= own:
                        free.append(place)
                        last_use[index] = -1  # an operand that is there twice is free once
                else:
                    place = -1 - constants.setdefault(a, len(constants))  # type: ignore[arg-type]
                code.append(place)
            if free:
                slot = free.pop()
            else:
                slot = slots
                slots += 1
            slot_of[number] = slot
            code += (*(place,) * (_MOST_OPERANDS - len(args)), slot)
        self.slots, self._code = slots, array("i", code)
        return slot_of

    def _constant(self, value: float) -> int:
        """The place of a constant, below zero."""
        return -1 - self._constants.setdefault(value, len(self._constants))


def _last_uses(graph: SizeGraph, outputs: Sequence[Size]) -> list[int]:
    """For each value, up to the last output, the index of the last one that uses it.

    It is behind all for outputs, -1 for what none needs.
    """
    nodes = graph.nodes
    own = [output.index for output in outputs if isinstance(output, SizeValue)]
    last = [-1] * (1 + max(own, default=-1))
    for index in own:
        last[index] = len(nodes)
    for index in range(len(last) - 1, -1, -1):  # operands are older than what is made of them
        if last[index] >= 0:
            for arg in nodes[index].args:
                if type(arg) is SizeValue and last[arg.index] < 0:
                    last[arg.index] = index
    return last
