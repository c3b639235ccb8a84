"""One call of a template, kept so that it tells what the template does for all configs that answer it the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.passes import ModulePass

from ...passes.open_number import OpenNumber, OpenText
from ...passes.pipeline_text import schedule_text
from ...passes.primitive import with_numbers
from ...schedule import Schedule
from .symbolic import Columns, KnobExpr, Number, Tracer

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """The steps of a schedule with open numbers that follow from the knobs, and the conditions under which they hold.

    `numbers` says how each open number follows.
    """

    conditions: tuple[tuple[KnobExpr, bool], ...]
    steps: tuple[ModulePass, ...]
    numbers: dict[str, KnobExpr]
    text: OpenText

    @classmethod
    def of(cls, tracer: Tracer, schedule: Schedule) -> Trace:
        """The trace of a schedule that was made with the tracer's numbers."""
        conditions = tuple(tracer.conditions)  # before anything below looks at the numbers
        numbers: dict[str, KnobExpr] = {}
        steps = tuple(with_numbers(step, lambda number: _opened(number, numbers)) for step in schedule.asked)
        return cls(conditions, steps, numbers, OpenText.of(schedule_text(steps)))

    def covers(self, columns: Columns, count: int) -> npt.NDArray[np.bool_]:
        """The mask of those configs of a population, `(count,)`, for which the template does just this."""
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


def _opened(number: Number, numbers: dict[str, KnobExpr]) -> int:
    """A number that follows from the knobs as an open one, which `numbers` then has; one that does not as it is."""
    if number.expr.op == "const":
        return number.expr.value
    name = next((n for n, known in numbers.items() if known is number.expr), f"n{len(numbers)}")
    numbers[name] = number.expr
    return OpenNumber(name, number.expr.value)
