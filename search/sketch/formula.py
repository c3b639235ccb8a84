"""Estimates and limits as programs: their array functions are called once, with expressions in place of columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import and_
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...passes.collector import collector_paused
from ...passes.parametric.sizes import Size, SizeGraph
from ..features.native import Picked, run_program
from ..features.program import Program
from . import arrays
from .draws import KnownDraws
from .expression import BOOL, FLOAT, INT, Expression, Mapped, NoExpressionError, written
from .hole import Columns, Derived, Hole, KnownColumns, Limit

ColumnFunction = Callable[[Columns], npt.NDArray[Any]]


class CostEstimate(Protocol):
    """Estimates of the cost of one structure, as array expressions over a population."""

    def seconds(self, columns: Columns, /) -> npt.NDArray[np.float64]:
        """A rough time of each candidate `(n,)`, in seconds."""


class Picking(Protocol):
    """Rows of holes as columns."""

    def columns(self, rows: npt.NDArray[np.int64], /) -> dict[str, npt.NDArray[np.int64]]:
        """The columns of holes and derived numbers."""

    def picked(self, rows: npt.NDArray[np.int64], /) -> Picked:
        """Those of holes as programs pick them."""


def total_seconds(models: Sequence[CostEstimate], columns: Columns) -> npt.NDArray[np.float64]:
    """Seconds of candidates by the estimates of all models."""
    return arrays.asarray(arrays.sum([model.seconds(columns) for model in models], axis=0))


WORTH_ROWS = 256
"""Rows that a function is asked for until it becomes a program: that takes 1 to 3 ms, as two or three of NumPy's calls
do, of which a choice makes some fifteen of each function. With 512 choices of 33 workloads take 1.02 times as long for
an H200, 1.08 times for one core, with 128 as long (a Zen 5)."""


class Formula:
    """A function of columns as a program, which gives what NumPy gives, bit for bit.

    Where functions of arrays stay as they are (`expression.mapped`), there are programs of their operands before it.
    """

    def __init__(self, function: ColumnFunction, numbers: Iterable[Hole | Derived]) -> None:
        """Call the function with expressions; NoExpressionError where it asks for more than these can do."""
        graph = SizeGraph()
        columns = _Open(graph, numbers)
        with collector_paused(), written(graph) as writing:
            try:
                output = _size(function(columns))
            except Exception as error:  # of others' rules, too, which may ask for arrays in any way
                raise NoExpressionError(f"computed by NumPy: {error}") from error
            last = max((each.level for each in writing.mapped), default=0)
            levels = ([each for each in writing.mapped if each.level == level] for level in range(1, last + 1))
            self._before = [_Before.of(graph, level) for level in levels]
            self._program = Program(graph, [output])
            graph.forget()

    def __call__(self, columns: Columns | Picked, rows: int) -> npt.NDArray[np.float64]:
        """Return what the function gives for columns of so many rows, `(rows,)`."""
        found: dict[str, npt.NDArray[Any]] = {}
        for before in self._before:
            found |= before.computed(_named(before.program, found, columns), rows)
        (computed,) = run_program(self._program, _named(self._program, found, columns), rows, np.float64)
        return np.asarray(computed)

    @cached_property
    def text(self) -> Hashable:
        """A key of what it computes, the same for formulas of functions that are alike."""
        return _text(self._program), *((before.functions, _text(before.program)) for before in self._before)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns that it asks for."""
        asked = {
            name for program in (self._program, *(each.program for each in self._before)) for name in program.columns
        }
        return frozenset(asked - {name for each in self._before for name, _, _ in each.functions})


def _text(program: Program) -> Hashable:
    return tuple(program.columns), program.code.tobytes(), program.constants.tobytes(), program.results.tobytes()


_TYPES = {BOOL: np.bool_, INT: np.int64, FLOAT: np.float64}


@dataclass(frozen=True)
class _Before:
    """Functions of arrays whose operands are known at the same time, and the program of these.

    A function has the name of its column, and the kinds of its operands.
    """

    functions: tuple[tuple[str, Callable[..., npt.NDArray[Any]], tuple[int, ...]], ...]
    program: Program

    @classmethod
    def of(cls, graph: SizeGraph, functions: Sequence[Mapped]) -> _Before:
        """Those of expressions of a graph."""
        named = [(each.name, each.function, tuple(operand.kind for operand in each.operands)) for each in functions]
        return cls(tuple(named), Program(graph, [operand.size for each in functions for operand in each.operands]))

    def computed(self, columns: Mapping[str, npt.NDArray[Any]] | Picked, rows: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that they are, by name."""
        operands, found = iter(run_program(self.program, columns, rows, np.float64)), {}
        for name, function, kinds in self.functions:
            given = zip(kinds, operands, strict=False)
            found[name] = function(*(array.astype(_TYPES[kind]) for kind, array in given))
        return found


def _named(
    program: Program, found: Mapping[str, npt.NDArray[Any]], columns: Columns | Picked
) -> Mapping[str, npt.NDArray[Any]] | Picked:
    """The columns of a program."""
    if isinstance(columns, Picked):
        return replace(columns, others=found) if found else columns
    return {name: found[name] if name in found else columns[name] for name in program.columns}


class _Open(KnownColumns):
    """Expressions of the columns of holes, and of the numbers that are derived from them once these are asked for."""

    def __init__(self, graph: SizeGraph, numbers: Iterable[Hole | Derived]) -> None:
        super().__init__({})
        self._derived: dict[str, ColumnFunction] = {}
        for number in numbers:
            if isinstance(number, Hole):
                self[number.name] = Expression(graph.column(number.name), INT)  # type: ignore[assignment]
            else:
                self._derived[number.name] = number.function

    def __missing__(self, name: str) -> Any:
        self[name] = found = self._derived[name](self)
        return found


def _size(found: object) -> Size:
    if not isinstance(found, Expression):
        raise NoExpressionError(f"an expression makes an expression, got {type(found).__name__}")
    return found.size


@dataclass
class Formulas:
    """Formulas of functions, which are made when these have been asked for many rows, and rows drawn by them."""

    _known: dict[tuple[int, ...], _Known] = field(default_factory=dict)
    drawn: KnownDraws = field(default_factory=KnownDraws)

    def of_limits(self, limits: Sequence[Limit], numbers: Iterable[Hole | Derived], rows: int) -> Formula | None:
        """The formula of the mask of limits that are asked about so many rows; None where NumPy computes it better."""
        return self._of(tuple(limits), lambda c: reduce(and_, [limit(c) for limit in limits]), numbers, rows)

    def of_estimate(
        self, models: Sequence[CostEstimate], numbers: Iterable[Hole | Derived], rows: int
    ) -> Formula | None:
        """The same of the seconds that models estimate together."""
        return self._of(tuple(models), partial(total_seconds, models), numbers, rows)

    def _of(
        self, functions: tuple[object, ...], function: ColumnFunction, numbers: Iterable[Hole | Derived], rows: int
    ) -> Formula | None:
        key = tuple(map(id, functions))  # they are kept with it, so that none is another by then
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known(functions)
        return known.formula(function, numbers, rows)


@dataclass
class _Known:
    """Functions, the rows that they were asked for, and their formula once it is made."""

    functions: tuple[object, ...]
    rows: int = 0
    made: Formula | None = None

    def formula(self, function: ColumnFunction, numbers: Iterable[Hole | Derived], rows: int) -> Formula | None:
        is_due = self.rows < WORTH_ROWS <= self.rows + rows
        self.rows += rows
        if is_due:
            with suppress(NoExpressionError):
                self.made = Formula(function, numbers)
        return self.made


@dataclass(frozen=True)
class Estimate:
    """Seconds of candidates by the estimates of several models, from the columns of holes and derived numbers."""

    models: tuple[CostEstimate, ...]
    numbers: tuple[Hole | Derived, ...]
    formulas: Formulas

    def __call__(self, columns: Columns) -> npt.NDArray[np.float64]:
        rows = len(next(iter(columns.values()))) if columns else 0
        formula = self.formulas.of_estimate(self.models, self.numbers, rows)
        return total_seconds(self.models, columns) if formula is None else formula(columns, rows)

    def of_rows(self, population: Picking, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The same of rows `(n, d)` of a population with these holes."""
        formula = self.formulas.of_estimate(self.models, self.numbers, len(rows))
        if formula is None:
            return total_seconds(self.models, population.columns(rows))
        return formula(population.picked(rows), len(rows))
