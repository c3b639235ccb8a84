"""Distances between the lanes of a vector in memory."""

from __future__ import annotations

from ...dialects.index import IndexExpr


def lane_distances(position: IndexExpr, loop: str, first: IndexExpr, lanes: int) -> tuple[int, ...] | None:
    """Distances of positions at `first`, `first + 1`, ... of a loop from that at `first`; None where they change."""
    start = position.substitute({loop: first})
    distances = [position.substitute({loop: first + lane}) - start for lane in range(lanes)]
    return None if any(one.terms for one in distances) else tuple(one.const for one in distances)
