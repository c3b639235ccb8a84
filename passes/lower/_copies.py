"""Copies of unrolled loops that something holds for, as conditions on the loops."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.index import IndexExpr, axis
from ...dialects.loop import ForOp


def holding_for(loops: Sequence[ForOp], copies: set[tuple[int, ...]]) -> list[list[IndexExpr]]:
    """Lists of conditions, one of which holds in each of the `copies` of unrolled `loops`, and none in the others."""
    if not loops or not copies:
        return [[]] if copies else []
    first, *rest = loops
    inner = [{tuple(others) for number, *others in copies if number == value} for value in range(first.size)]
    found: list[list[IndexExpr]] = []
    start = 0
    for stop in range(1, first.size + 1):
        if stop < first.size and inner[stop] == inner[start]:
            continue
        bounds: list[IndexExpr] = []
        if start > 0:
            bounds.append(axis(first.loop_name) - start)
        if stop < first.size:
            bounds.append(stop - 1 - axis(first.loop_name))
        found += [[*bounds, *more] for more in holding_for(rest, inner[start])]
        start = stop
    return found
