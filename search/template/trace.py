"""One call of a template, kept so that it tells what the template does for all configs that answer it the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.passes import ModulePass

from ...passes.open_number import OpenNumber, OpenText
from .symbolic import Columns, Expr, Number, Tracer


@dataclass(frozen=True)
class Trace:
    """The steps of a schedule with numbers that follow from the knobs, and the conditions under which they hold."""

    conditions: tuple[tuple[Expr, bool], ...]
    steps: tuple[ModulePass, ...]
    parts: tuple[str | Expr, ...]

    @classmethod
    def of(cls, tracer: Tracer, schedule: Any) -> Trace:
        """The trace of a schedule that was made with the tracer's numbers."""
        conditions = tuple(tracer.conditions)  # before anything below looks at the numbers
        steps = tuple(schedule.asked)
        parts: list[str | Expr] = []
        for step in steps:
            parts += [",", *_parts(step)] if parts else _parts(step)
        return cls(conditions, steps, tuple(parts))

    def covers(self, columns: Columns, count: int) -> npt.NDArray[np.bool_]:
        """For which configs of a population `(count,)` the template does just this."""
        mask = np.ones(count, dtype=bool)
        known: dict[int, Any] = {}
        for condition, outcome in self.conditions:
            mask &= np.asarray(condition.evaluate(columns, known), dtype=bool) == outcome
        return mask

    def texts(self, columns: Columns, count: int) -> Iterator[str]:
        """The schedule text of each config of a population."""
        known: dict[int, Any] = {}
        filled = [
            part if isinstance(part, str) else np.broadcast_to(part.evaluate(columns, known), count)
            for part in self.parts
        ]
        for i in range(count):
            yield "".join(part if isinstance(part, str) else str(int(part[i])) for part in filled)


def _parts(step: ModulePass) -> list[str | Expr]:
    """A step as text with expressions in the place of numbers that follow from the knobs."""
    exprs: list[Expr] = []

    def marked(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(marked, value))
        if not isinstance(value, Number):
            return value
        exprs.append(value.expr)
        return OpenNumber(str(len(exprs) - 1))

    text = OpenText.of(str(replace(step, **{f.name: marked(getattr(step, f.name)) for f in fields(step)})))
    parts: list[str | Expr] = [text.literals[0]]
    for name, literal in zip(text.names, text.literals[1:], strict=True):
        parts += [exprs[int(name)], literal]
    return [part for part in parts if part != ""]
