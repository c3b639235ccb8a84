"""Expressions in the lanes of a loop: how far apart lanes are, and what is the same for all of them."""

from __future__ import annotations

from math import gcd

from ...dialects.index import IndexExpr
from ...dialects.layout import Swizzle


def lane_step(expr: IndexExpr, lane: str) -> int | None:
    """By how much a settled expression grows from one lane to the next one; None where they do not step evenly."""
    return expr.coefficient(lane) if expr.is_linear_in(lane) else None


def step_in_memory(expr: IndexExpr, lane: str, lanes: int, swizzle: Swizzle | None) -> int | None:
    """By how much a settled flat position grows from lane to lane in a buffer, whose swizzle keeps chunks together."""
    step = lane_step(expr, lane)
    if swizzle is None or step == 0 or step is None:
        return step
    starts = gcd(expr.const, *(c for a, c in expr.terms if a != lane))
    return step if step == 1 and swizzle.chunk % lanes == 0 == starts % lanes else None


def same_for_lanes(expr: IndexExpr, lane: str, lanes: int) -> IndexExpr:
    """A test `expr >= 0` without the lane, where all else moves in steps of as many as there are lanes.

    `12 - 4 * i - lane + 3 >= 0`, say, holds for all four lanes or for none.
    """
    step = lane_step(expr, lane)
    if step not in (1, -1):
        return expr
    rest = expr - IndexExpr(((lane, step),), 0)
    whole = all(c % lanes == 0 for _, c in rest.terms)
    return rest if whole and rest.const % lanes == (0 if step > 0 else lanes - 1) else expr
