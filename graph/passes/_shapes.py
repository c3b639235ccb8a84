"""Two shapes of the same elements: which axes of one are which of the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def grouped_axes(first: Sequence[int], second: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """Return the least groups of adjacent axes of both that hold the same extent; None for shapes of other sizes.

    (2, 12, 64) and (24, 8, 8) have the groups ([0, 1], [0]) and ([2], [1, 2]). Axes of extent 1 join a group beside
    them.
    """
    if prod(first) != prod(second) or not prod(first):
        return None
    groups: list[tuple[list[int], list[int]]] = []
    own: list[int] = []
    other: list[int] = []
    i = j = 0
    while i < len(first) or j < len(second):
        mine, theirs = prod(first[k] for k in own), prod(second[k] for k in other)
        if j == len(second) or (i < len(first) and mine <= theirs and not (own and mine == theirs)):
            own.append(i)
            i += 1
        else:
            other.append(j)
            j += 1
        if own and other and prod(first[k] for k in own) == prod(second[k] for k in other):
            if prod(first[i:]) == 1 or prod(second[j:]) == 1:
                own += range(i, len(first))
                other += range(j, len(second))
                i, j = len(first), len(second)
            groups.append((own, other))
            own, other = [], []
    return groups
