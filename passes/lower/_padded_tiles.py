"""Tiles of a sum that read padding in part: which these are, told before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from ...dialects.index import Atom, IndexExpr, Ranges, Term
from ._cut_tiles import Cut, parted

MOST_VERSIONS = 8
"""Versions of a nest for its padded tiles, at most. A choice: each has the code of a tile, less what it leaves out."""
_MOST_VALUES = 4096
"""Iterations of the loops around that are looked at."""


@dataclass(frozen=True)
class PaddedTiles:
    """The values of a sum of loops around a nest for which conditions hold for a part of the nest: `cuts`.

    For its other values `conditions` hold in all of the nest, or one of them nowhere in it.
    """

    conditions: tuple[IndexExpr, ...]
    cuts: tuple[Cut, ...]


def padded_tiles(conditions: dict[IndexExpr, IndexExpr], inside: Ranges, around: Ranges) -> list[PaddedTiles] | None:
    """The padded tiles of a nest, by the sums that its conditions ask for; None where they are many, or not told.

    `conditions` have what is settled of each for the loops `around`; `inside` are the values of those of the nest.
    """
    sums: dict[tuple[Term, ...], list[tuple[IndexExpr, int, tuple[int, int]]]] = {}
    for condition, fixed in conditions.items():
        found = parted(fixed, inside)
        if found is None:
            return None
        if not found[0]:  # each copy answers it
            continue
        terms, factor = _lowest_terms(found[0])
        sums.setdefault(terms, []).append((condition, factor, found[1]))
    tiles = []
    for terms, asked in sums.items():
        values = _values(terms, around)
        if values is None:
            return None
        cuts = [Cut(terms, v) for v in values if _in_part([(f * v + low, f * v + high) for _, f, (low, high) in asked])]
        tiles.append(PaddedTiles(tuple(c for c, _, _ in asked), tuple(cuts)))
    return tiles if prod(len(each.cuts) + 1 for each in tiles) - 1 <= MOST_VERSIONS else None


def _in_part(bounds: Sequence[tuple[int, int]]) -> bool:
    """True where conditions between such bounds hold somewhere, as far as each can tell, and not everywhere."""
    return any(low < 0 for low, _ in bounds) and all(high >= 0 for _, high in bounds)


def _lowest_terms(terms: list[Term]) -> tuple[tuple[Term, ...], int]:
    """A sum without a common factor, which is the same for its negative, and the factor."""
    ordered = sorted(terms, key=lambda term: str(term[0]))
    factor = gcd(*(c for _, c in ordered)) * (1 if ordered[0][1] > 0 else -1)
    return tuple((atom, c // factor) for atom, c in ordered), factor


def _values(terms: tuple[Term, ...], around: Ranges) -> list[int] | None:
    """The values that a sum may have; None where these are many."""
    ranges = [_range(atom, around) for atom, _ in terms]
    if prod(high - low + 1 for low, high in ranges) > _MOST_VALUES:
        return None
    places = product(*(range(low, high + 1) for low, high in ranges))
    return sorted({sum(c * at for (_, c), at in zip(terms, place, strict=True)) for place in places})


def _range(atom: Atom, around: Ranges) -> tuple[int, int]:
    return IndexExpr(((atom, 1),), 0).bounds(around)
