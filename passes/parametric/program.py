"""Expressions over columns as one straight-line NumPy program, run block of rows by block of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from .sizes import Size, SizeGraph, SizeValue

Array = npt.NDArray[np.float64]

BLOCK_ROWS = 4096
"""Rows computed at once: with fewer, calls cost more than caches save; more only take memory."""


def _gcd(a: Array, b: Array, out: Array) -> None:
    out[...] = np.gcd(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))


def _where(condition: Array, yes: Array, no: Array, out: Array) -> None:
    out[...] = no
    np.copyto(out, yes, where=np.asarray(condition, dtype=bool))


def _floordiv(a: Array, b: Array, out: Array) -> None:
    """Exact for whole numbers below 2**52, and several times as fast as `floor_divide`."""
    np.divide(a, b, out=out)
    np.floor(out, out=out)


def _mod(a: Array, b: Array, out: Array) -> None:
    quotient = np.floor(np.divide(a, b))
    np.multiply(quotient, b, out=quotient)
    np.subtract(a, quotient, out=out)


def _minimum(a: Array, b: Array, out: Array) -> None:
    np.minimum(a, b, out=out)


def _maximum(a: Array, b: Array, out: Array) -> None:
    np.maximum(a, b, out=out)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": _floordiv,
    "mod": _mod,
    "minimum": _minimum,
    "maximum": _maximum,
    "gcd": _gcd,
    "less": np.less,
    "equal": np.equal,
    "where": _where,
    "log2": np.log2,
    "absolute": np.absolute,
}


class Program:
    """Computes outputs from columns; operations nobody needs are left out, and buffers are used again."""

    def __init__(self, graph: SizeGraph, outputs: Sequence[Size]) -> None:
        last_use = _last_uses(graph, outputs)
        self.nodes = [v for v in graph.nodes if v.index in last_use]
        """Expressions that the outputs depend on, operands first."""
        self.columns: dict[str, int] = {}
        self.steps: list[tuple[Callable[..., Any], Callable[[list[Any]], Any]]] = []
        """Function to call, with the places of its operands and of its result in the list of all values."""
        self._constants: dict[float, int] = {}
        self._slots = 0
        self.outputs = tuple(outputs)
        slot_of = self._allocate(self.nodes, last_use)
        self._results = [slot_of[o.index] if isinstance(o, SizeValue) else float(o) for o in outputs]

    @property
    def operations(self) -> int:
        """NumPy operations for each block of rows."""
        return len(self.steps)

    def _allocate(self, nodes: Sequence[SizeValue], last_use: Mapping[int, int]) -> dict[int, int]:
        """The slot of each value by its index; that of a value nobody needs any more is given to a later one."""
        slot_of: dict[int, int] = {}
        columns = [node for node in nodes if node.op == "column"]
        for slot, node in enumerate(columns):
            self.columns[str(node.args[0])] = slot_of[node.index] = slot
        self._slots = len(columns)
        free: list[int] = []
        for node in nodes:
            if node.op == "column":
                continue
            places: list[int] = []
            done: list[int] = []
            for a in node.args:
                if not isinstance(a, SizeValue):
                    places.append(self._constant(float(a)))
                    continue
                place = slot_of[a.index]
                places.append(place)
                if last_use[a.index] == node.index and a.op != "column" and place not in done:
                    done.append(place)
            if free:
                slot = free.pop()
            else:
                slot = self._slots
                self._slots += 1
            slot_of[node.index] = slot
            self.steps.append((_FUNCTIONS[node.op], itemgetter(*places, slot)))
            free += done
        return slot_of

    def _constant(self, value: float) -> int:
        """The place of a constant in the list of all values, counted from its end, as there are more slots to come."""
        return -1 - self._constants.setdefault(value, len(self._constants))

    def run(
        self,
        columns: Mapping[str, npt.NDArray[Any]],
        rows: int,
        out: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float32]:
        """The outputs `(outputs, rows)` for columns `(rows,)`, written to `out` where it is given."""
        result = np.empty((len(self._results), rows), dtype=np.float32) if out is None else out
        for column, value in enumerate(self._results):
            if isinstance(value, float):
                result[column] = value
        size = min(BLOCK_ROWS, rows)
        memory = np.empty((self._slots, size))
        for start in range(0, rows, BLOCK_ROWS):
            end = min(rows, start + BLOCK_ROWS)
            self._run_block(columns, start, end, memory[:, : end - start], result)
        return result

    def _run_block(
        self,
        columns: Mapping[str, npt.NDArray[Any]],
        start: int,
        end: int,
        memory: Array,
        result: npt.NDArray[np.float32],
    ) -> None:
        for name, slot in self.columns.items():
            memory[slot] = columns[name][start:end]
        values = [*memory, *reversed(self._constants)]
        with np.errstate(all="ignore"):
            for function, operands in self.steps:
                function(*operands(values))
        for column, value in enumerate(self._results):
            if not isinstance(value, float):
                result[column, start:end] = memory[value]


def _last_uses(graph: SizeGraph, outputs: Sequence[Size]) -> dict[int, int]:
    """For each value that the outputs depend on the index of the last one that uses it; outputs are used to the end."""
    end = len(graph.nodes)
    last = {o.index: end for o in outputs if isinstance(o, SizeValue)}
    for node in reversed(graph.nodes):  # operands are older than what is made of them
        if node.index in last:
            for arg in node.args:
                if isinstance(arg, SizeValue):
                    last.setdefault(arg.index, node.index)
    return last
