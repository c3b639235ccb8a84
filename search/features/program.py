"""Expressions over columns as one straight-line program: a table of operations on slots of a memory."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...backends.llvm.jit import kept_function
from ...dialects.target import Target
from ...passes.collector import collector_paused
from ...passes.parametric.nest import Nest
from ...passes.parametric.replay import ScheduledNests
from ...passes.parametric.sizes import NUMBERS, Number, Size, SizeGraph, SizeValue
from . import slots

_OF_ONE = ("log2", "absolute", "floor", "sqrt")
OPERANDS: Mapping[str, int] = {op: 1 if op in _OF_ONE else 2 for op in NUMBERS} | {"where": 3}
"""Operands of each operation; an operation's number is its place among them."""
_WIDTHS = np.array([*OPERANDS.values(), 1], dtype=np.int32)
"""The same by number, and the name of a column."""


class Program:
    """Computes outputs from columns; operations nobody needs are left out, and slots are used again.

    Slots hold a number for each row: the columns first, then what is computed, the constants behind all of them.
    """

    def __init__(self, graph: SizeGraph, outputs: Sequence[Size]) -> None:
        own = array("i", [output.index for output in outputs if isinstance(output, SizeValue)])
        table = _Table(graph, own)
        self.columns = {name: slot for slot, name in enumerate(table.columns)}
        """The slot of each column."""
        self.slots = table.slots
        """Slots of columns and of what is computed."""
        self.outputs = len(outputs)
        """Number of outputs."""
        self.code = table.code
        """The operations in their order, `(n, 5)`: the operation's number, the slots of three operands and its own.

        Others stand for those that there are not.
        """
        known: dict[Number, int] = {number: place for place, number in enumerate(table.constants)}
        places = [
            table.slot_of[o.index] if isinstance(o, SizeValue) else self.slots + known.setdefault(o, len(known))
            for o in outputs
        ]
        self.results = np.array(places, dtype=np.int32)
        """The slot of each output."""
        self.constants = np.array(list(known), dtype=np.float64)
        """The numbers of the slots behind the computed ones."""
        self.places = self.code.ctypes.data, self.results.ctypes.data
        """The places in memory of the operations, and of the slots of outputs."""

    @property
    def operations(self) -> int:
        """Operations for each block of rows."""
        return len(self.code)


class _Table:
    """The slots of the values of a graph that some of its nodes need, and the operations with these."""

    def __init__(self, graph: SizeGraph, outputs: array[int]) -> None:
        known = 1 + max(outputs, default=-1)
        values, numbers = _values(graph, known), list(graph.constants)
        # the slots, columns, operations and constants that are found, then what is only written meanwhile
        lengths = (known, known, 5 * known, len(numbers), known, known, len(numbers))
        memory = np.full(sum(lengths), -1, dtype=np.int32)
        starts = [0, *accumulate(lengths)]
        self.slot_of, columns, code, order = (memory[start:] for start in starts[:4])
        counts = (ctypes.c_int64 * slots.COUNTS)()
        first = memory.ctypes.data
        places = [first + memory.itemsize * start for start in starts[:-1]]
        _function()(values.ctypes.data, outputs.buffer_info()[0], *places, counts, known, len(outputs))
        self.slots = counts[2]
        self.columns = [str(numbers[-1 - values[index, 1]]) for index in columns[: counts[0]].tolist()]
        self.constants = [numbers[place] for place in order[: counts[3]].tolist()]
        self.code = code[: 5 * counts[1]].reshape(-1, 5).copy()


def _values(graph: SizeGraph, count: int) -> npt.NDArray[np.int32]:
    """Numbers of the first values of a graph, `(count, 4)`: the operation's, and three operands as `slots` has them."""
    operations, operands = (np.frombuffer(each, dtype=np.int32) for each in graph.table())
    widths = _WIDTHS[operations[:count]]
    ends = widths.cumsum()
    found = np.empty((count, slots.ENTRY), dtype=np.int32)
    found[:, 0] = operations[:count]
    for place in range(1, slots.ENTRY):
        found[:, place] = operands[ends - np.maximum(widths - (place - 1), 1)]
    return found


def program_of_schedule(
    module: ModuleOp, target: Target, schedule: str | Sequence[ModulePass], asked: Callable[[Nest], Sequence[Size]]
) -> Program:
    """Compile the quantities that `asked` reads from the nest of a schedule, over its open numbers as columns.

    UnknownStepError as for a nest.
    """
    with collector_paused():
        graph = SizeGraph()
        nest = ScheduledNests(module, target).nest(schedule, graph)
        program = Program(graph, asked(nest))
        nest.forget()
        graph.forget()
        return program


@cache
def _function() -> Callable[..., None]:
    place, whole = ctypes.c_void_p, ctypes.c_int64
    return kept_function(slots.source(), slots.SYMBOL, ctypes.CFUNCTYPE(None, *[place] * 10, whole, whole))
