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
        needed = _needed(outputs)
        self.columns: dict[str, int] = {}
        self.steps: list[tuple[Callable[..., Any], Callable[[list[Any]], Any]]] = []
        """Function to call, with the places of its operands and of its result in the list of all values."""
        self._constants: dict[float, int] = {}
        self._slots = 0
        self.outputs = tuple(outputs)
        slot_of = self._allocate([v for v in graph.nodes if v.index in needed], _last_uses(graph, needed, outputs))
        self._results = [slot_of[o.index] if isinstance(o, SizeValue) else float(o) for o in outputs]

    @property
    def operations(self) -> int:
        """NumPy operations for each block of rows."""
        return len(self.steps)

    def _allocate(self, nodes: Sequence[SizeValue], last_use: Mapping[int, int]) -> dict[int, int]:
        slot_of: dict[int, int] = {}
        free: list[int] = []
        for node in nodes:
            if node.op == "column":
                self.columns[str(node.args[0])] = slot_of[node.index] = self._slots
                self._slots += 1
        for node in nodes:
            if node.op == "column":
                continue
            operands = [a for a in node.args if isinstance(a, SizeValue)]
            args = [slot_of[a.index] if isinstance(a, SizeValue) else self._constant(float(a)) for a in node.args]
            if free:
                slot = free.pop()
            else:
                slot = self._slots
                self._slots += 1
            slot_of[node.index] = slot
            self.steps.append((_FUNCTIONS[node.op], itemgetter(*args, slot)))
            for index in {a.index for a in operands if a.op != "column" and last_use[a.index] == node.index}:
                free.append(slot_of[index])
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


def _needed(outputs: Sequence[Size]) -> set[int]:
    """The indices of all values that the outputs depend on."""
    waiting = [o for o in outputs if isinstance(o, SizeValue)]
    found = {v.index for v in waiting}
    while waiting:
        for arg in waiting.pop().args:
            if isinstance(arg, SizeValue) and arg.index not in found:
                found.add(arg.index)
                waiting.append(arg)
    return found


def _last_uses(graph: SizeGraph, needed: set[int], outputs: Sequence[Size]) -> dict[int, int]:
    """For each value the index of the last one that uses it; outputs are used to the end."""
    last: dict[int, int] = {}
    for node in graph.nodes:
        if node.index in needed:
            for arg in node.args:
                if isinstance(arg, SizeValue):
                    last[arg.index] = node.index
    end = len(graph.nodes)
    last.update({o.index: end for o in outputs if isinstance(o, SizeValue)})
    return last
