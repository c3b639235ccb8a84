"""Proofs that a read stays inside its tensor under the conditions that guard it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from .index import Div, IndexExpr, Lookup, Ranges
from .lookups import lookups_in

ENUMERATED_POINTS = 1 << 22
"""Largest number of points that are tried one by one where interval arithmetic does not decide."""


def outside(index: IndexExpr, extent: int, conditions: Sequence[IndexExpr], ranges: Ranges) -> tuple[int, int] | None:
    """None where `0 <= index < extent` wherever the conditions hold, else the range (inclusive) not excluded."""
    lowest, highest = index.bounds(ranges)
    if (lowest >= 0 or holds(index, conditions, ranges)) and (
        highest < extent or holds(extent - 1 - index, conditions, ranges)
    ):
        return None
    names, conditions = _related(index, conditions)
    if lookups_in(index) or prod(ranges[n][1] - ranges[n][0] + 1 for n in names) > ENUMERATED_POINTS:
        return lowest, highest
    return _enumerate(index, extent, conditions, names, ranges)


def holds(goal: IndexExpr, conditions: Sequence[IndexExpr], ranges: Ranges) -> bool:
    """True where `goal >= 0` follows from the ranges and one condition, floordiv being looked through."""
    if goal.bounds(ranges)[0] >= 0:
        return True
    if any((goal - condition).bounds(ranges)[0] >= 0 for condition in conditions):
        return True
    if len(goal.terms) != 1:
        return False
    atom, factor = goal.terms[0]
    if not isinstance(atom, Div) or abs(factor) != 1:
        return False
    if factor == 1:
        return holds(atom.expr + goal.const * atom.divisor, conditions, ranges)
    return holds((goal.const + 1) * atom.divisor - 1 - atom.expr, conditions, ranges)


def _related(index: IndexExpr, conditions: Sequence[IndexExpr]) -> tuple[list[str], list[IndexExpr]]:
    """Return the axes that say something about `index`, and the conditions over them."""
    names = index.axes()
    waiting, kept = list(conditions), []
    while linked := [c for c in waiting if c.axes() & names]:
        kept += linked
        waiting = [c for c in waiting if not c.axes() & names]
        names = names.union(*(c.axes() for c in linked))
    return sorted(names), kept


def _enumerate(
    index: IndexExpr, extent: int, conditions: Sequence[IndexExpr], names: list[str], ranges: Ranges
) -> tuple[int, int] | None:
    """Enumerate `index` over the points where every condition holds: its range, or None where it lies inside."""
    spans = [np.arange(ranges[n][0], ranges[n][1] + 1) for n in names]
    points = dict(zip(names, np.ix_(*spans), strict=True))
    shape = tuple(len(s) for s in spans)
    guarded = np.ones(shape, dtype=bool)
    for condition in conditions:
        guarded &= evaluate(condition, points) >= 0
    values = np.broadcast_to(evaluate(index, points), shape)[guarded]
    if values.size == 0 or (values.min() >= 0 and values.max() < extent):
        return None
    return int(values.min()), int(values.max())


def evaluate(
    expr: IndexExpr, points: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Evaluate the expression at every point of arrays that broadcast together."""
    total = np.asarray(expr.const, dtype=np.int64)
    for atom, factor in expr.terms:
        if isinstance(atom, str):
            value = points[atom]
        elif isinstance(atom, Lookup):
            raise ValueError(f"{atom} has a value only while a program runs")
        else:
            inner = evaluate(atom.expr, points)
            value = inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor
        total = total + factor * value
    return total
