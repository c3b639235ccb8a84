"""One call of a template, kept so that it tells what the template does for all configs that answer it the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.passes import ModulePass

from ...passes.open_number import OpenNumber, OpenText
from ...passes.pipeline_text import schedule_text
from ...schedule import Schedule
from .symbolic import Columns, Expr, Number, Tracer

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """The steps of a schedule with open numbers that follow from the knobs, and the conditions under which they hold.

    `numbers` says how each open number follows.
    """

    conditions: tuple[tuple[Expr, bool], ...]
    steps: tuple[ModulePass, ...]
    numbers: dict[str, Expr]
    text: OpenText

    @classmethod
    def of(cls, tracer: Tracer, schedule: Schedule) -> Trace:
        """The trace of a schedule that was made with the tracer's numbers."""
        conditions = tuple(tracer.conditions)  # before anything below looks at the numbers
        numbers: dict[str, Expr] = {}
        steps = tuple(_opened(step, numbers) for step in schedule.asked)
        return cls(conditions, steps, numbers, OpenText.of(schedule_text(steps)))

    def covers(self, columns: Columns, count: int) -> npt.NDArray[np.bool_]:
        """For which configs of a population `(count,)` the template does just this."""
        mask = np.ones(count, dtype=bool)
        known: dict[int, Any] = {}
        for condition, outcome in self.conditions:
            mask &= np.asarray(condition.evaluate(columns, known), dtype=bool) == outcome
        return mask

    def values(self, columns: Columns, count: int) -> dict[str, Ints]:
        """The open numbers of each config of a population, each `(count,)`."""
        known: dict[int, Any] = {}
        return {name: np.broadcast_to(e.evaluate(columns, known), count) for name, e in self.numbers.items()}

    def texts(self, columns: Columns, count: int) -> Iterator[str]:
        """The schedule text of each config of a population."""
        values = self.values(columns, count)
        for i in range(count):
            yield self.text.filled({name: int(column[i]) for name, column in values.items()})


def _opened(step: ModulePass, numbers: dict[str, Expr]) -> ModulePass:
    """A step with open numbers in the place of those that follow from the knobs, which `numbers` then has."""
    found = {f.name: value for f in fields(step) if _has_number(value := getattr(step, f.name))}
    return replace(step, **{name: _open(value, numbers) for name, value in found.items()}) if found else step


def _has_number(value: Any) -> bool:
    return any(map(_has_number, value)) if isinstance(value, tuple) else isinstance(value, Number)


def _open(value: Any, numbers: dict[str, Expr]) -> Any:
    if isinstance(value, tuple):
        return tuple(_open(part, numbers) for part in value)
    if not isinstance(value, Number):
        return value
    if value.expr.op == "const":
        return value.expr.value
    name = next((n for n, known in numbers.items() if known is value.expr), f"n{len(numbers)}")
    numbers[name] = value.expr
    return OpenNumber(name, value.expr.value)
