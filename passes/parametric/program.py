"""Expressions over columns as one straight-line program: a table of operations on slots of a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .sizes import NUMBERS, Size, SizeGraph, SizeValue

_OF_ONE = ("log2", "absolute", "floor", "sqrt")
OPERANDS: Mapping[str, int] = {op: 1 if op in _OF_ONE else 2 for op in NUMBERS} | {"where": 3}
"""Operands of each operation; an operation's number is its place among them."""
_NUMBER = {op: number for number, op in enumerate(OPERANDS)}


class Program:
    """Computes outputs from columns; operations nobody needs are left out, and slots are used again.

    Slots hold a number for each row: the columns first, then what is computed, the constants behind all of them.
    """

    def __init__(self, graph: SizeGraph, outputs: Sequence[Size]) -> None:
        last_use = _last_uses(graph, outputs)
        self.nodes = [v for v in graph.nodes if v.index in last_use]
        """Expressions that the outputs depend on, operands first."""
        self.columns: dict[str, int] = {}
        """The slot of each column."""
        self.slots = 0
        """Slots of columns and of what is computed."""
        self.outputs = tuple(outputs)
        self._constants: dict[float, int] = {}
        self._code: list[tuple[int, ...]] = []
        slot_of = self._allocate(last_use)
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
        return self._placed(np.array(self._code, dtype=np.int32).reshape(-1, 2 + max(OPERANDS.values())))

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

    def _allocate(self, last_use: Mapping[int, int]) -> dict[int, int]:
        """The slot of each value by its index; that of a value nobody needs any more is given to a later one."""
        columns = [node for node in self.nodes if node.op == "column"]
        slot_of = {node.index: slot for slot, node in enumerate(columns)}
        self.columns = {str(node.args[0]): slot for slot, node in enumerate(columns)}
        slots, code, constants = len(columns), self._code, self._constants
        free: list[int] = []
        for node in self.nodes:
            if node.op == "column":
                continue
            number = node.index
            places: list[int] = []
            done: list[int] = []
            for a in node.args:
                if type(a) is SizeValue:
                    place = slot_of[a.index]
                    if last_use[a.index] == number and place not in done and a.op != "column":
                        done.append(place)
                else:
                    place = -1 - constants.setdefault(a, len(constants))  # type: ignore[arg-type]
                places.append(place)
            if free:
                slot = free.pop()
            else:
                slot = slots
                slots += 1
            slot_of[number] = slot
            code.append((_NUMBER[node.op], places[0], places[len(places) > 1], places[-1], slot))
            free += done
        self.slots = slots
        return slot_of

    def _constant(self, value: float) -> int:
        """The place of a constant, below zero."""
        return -1 - self._constants.setdefault(value, len(self._constants))


def _last_uses(graph: SizeGraph, outputs: Sequence[Size]) -> dict[int, int]:
    """For each value that the outputs depend on the index of the last one that uses it; outputs are used to the end."""
    end = len(graph.nodes)
    last = {o.index: end for o in outputs if isinstance(o, SizeValue)}
    for node in reversed(graph.nodes):  # operands are older than what is made of them
        if node.index in last:
            for arg in node.args:
                if type(arg) is SizeValue and arg.index not in last:
                    last[arg.index] = node.index
    return last
