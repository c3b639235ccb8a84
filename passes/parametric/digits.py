"""Indices of registers that are touched at all, for all candidates at once: what lies in between is other threads'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .index import Atom, Index, Quotient, Unknown
from .sizes import Size, ceil_div, gcd, less, maximum, minimum, negated, where

Terms = list[tuple[Size, Size]]
"""Coefficients of an index, each with the extent of what it multiplies."""


def kept_indices(extent: Size, places: Sequence[tuple[Index, Mapping[str, Size]]]) -> Size:
    """Count the indices of a dimension that are kept, of `extent` from the first touched to the last.

    `places` are indices with the loops that run meanwhile; `passes.analysis.placement` has it for one candidate.
    """
    uses = [_terms(index, inner) for index, inner in places]
    known = [terms for terms in uses if terms is not None]
    if len(known) < len(uses) or not known or any(i.const != places[0][0].const for i, _ in places):
        return extent
    step = _step(known)
    every = where(less(0, step), (extent - 1) // maximum(1, step) + 1, 1)
    found = every
    for terms in known:
        for c, _ in terms:
            period = maximum(1, c // maximum(1, step))
            kept = maximum(*(_kept(other, period, step) for other in known))
            size = ceil_div(every, period) * kept
            found = where(less(1, period) * less(kept, period) * less(size, found), size, found)
    return found


def _terms(index: Index, inner: Mapping[str, Size]) -> Terms | None:
    """The terms over inner loops; None where one is no plain loop, and no digit of one."""
    found: Terms = []
    for atom, c in index.terms:
        names = {atom} if isinstance(atom, str) else Index(((atom, 1),)).names
        if names.isdisjoint(inner):
            continue
        extent = _extent(atom, inner)
        if extent is None or (isinstance(c, int | float) and c <= 0):
            return None
        found.append((c, extent))
    return found


def _extent(atom: Atom, inner: Mapping[str, Size]) -> Size | None:
    """The extent of an inner loop, or of a digit of one, such as a loop has that was several; None for others."""
    if isinstance(atom, str):
        return inner[atom]
    name = None if isinstance(atom, Unknown) else atom.expr.as_name
    if isinstance(atom, Unknown) or name is None or name not in inner:
        return None
    if isinstance(atom, Quotient):
        return ceil_div(inner[name], atom.divisor)
    return minimum(inner[name], atom.divisor)


def _step(uses: Sequence[Terms]) -> Size:
    """The largest number that all coefficients that matter are multiples of; 0 where none does."""
    step: Size = 0
    for terms in uses:
        for c, extent in terms:
            step = gcd(step, where(less(1, extent), c, 0))
    return step


def _kept(terms: Terms, period: Size, step: Size) -> Size:
    """Number of the first indices of each period that are touched."""
    most: Size = 0
    for c, extent in terms:
        every = c // maximum(1, step)
        most = most + where(negated(less(0, every % period)), 0, every * (extent - 1))
    return minimum(most + 1, period)
