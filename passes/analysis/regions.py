"""The part of a buffer that the inner loops of a nest touch, as a function of the outer loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from ...dialects.index import ZERO, Div, IndexExpr, Lookup, Mod, Ranges, Term, axis, constant, linear
from ...dialects.lookups import lookups_in


@dataclass(frozen=True)
class Interval:
    """The indices `[low, low + extent)`; `low` is an expression over the outer loops."""

    low: IndexExpr
    extent: int


def interval_of(expr: IndexExpr, inner: Ranges, caps: Mapping[IndexExpr, int] | None = None) -> Interval:
    """Return an interval that holds the values of `expr` while the axes in `inner` vary over their (inclusive) ranges.

    `caps` are expressions, without a constant, and the most they are where it matters: what a tail predicate says.

    Tight for expressions that are linear in the inner axes, and for `floordiv` and `mod` of tiles that never straddle
    a multiple of the divisor, as far as the coefficients of the outer axes tell; at most one element too long at each
    end of a `floordiv` otherwise. A position that the program reads is known nowhere else: it may be any below its
    bound.
    """
    low: list[Term] = []
    const = expr.const
    span = 0
    for atom, c in expr.terms:
        if isinstance(atom, str):
            bounds = inner.get(atom)
            if bounds is None:
                low.append((atom, c))
                continue
            first, extent = constant(bounds[0]), bounds[1] - bounds[0] + 1
        elif isinstance(atom, Lookup):
            first, extent = ZERO, atom.extent
        elif not lookups_in(atom.expr) and inner.keys().isdisjoint(atom.expr.axes()):
            low.append((atom, c))
            continue
        else:
            first, extent = _divided(atom, inner, caps or {})
        if c < 0:
            first = first + (extent - 1)
        const += first.const * c
        low.extend((a, k * c) for a, k in first.terms)
        span += (extent - 1) * abs(c)
    return Interval(linear(low, const), span + 1)


def _divided(atom: Div | Mod, inner: Ranges, caps: Mapping[IndexExpr, int]) -> tuple[IndexExpr, int]:
    """Return the lowest value and the extent of a `floordiv` or `mod` over `inner`."""
    part = interval_of(atom.expr, inner, caps)
    cap = caps.get(IndexExpr(atom.expr.terms, 0))
    if cap is not None and part.low.is_constant:
        most = cap + atom.expr.const
        part = Interval(part.low, max(1, min(part.extent, most - part.low.const + 1)))
    divisor = atom.divisor
    # The tile starts at `offset`, `offset + step`, ... above a multiple of the divisor.
    step = gcd(divisor, *(c for _, c in part.low.terms))
    last_start = divisor - step + part.low.const % step
    quotients = (last_start + part.extent - 1) // divisor + 1
    if isinstance(atom, Div):
        return part.low // divisor, quotients
    return (part.low % divisor, part.extent) if quotients == 1 else (ZERO, divisor)


def union(a: Interval, b: Interval, outer: Ranges) -> Interval | None:
    """The smallest known interval that holds both; None where `outer` does not bound the distance of their starts."""
    distance = (b.low - a.low).simplify(outer)
    if not distance.axes() <= outer.keys():
        return None
    nearest, farthest = distance.bounds(outer)
    from_a = Interval(a.low + min(0, nearest), max(a.extent, farthest + b.extent) - min(0, nearest))
    from_b = Interval(b.low + min(0, -farthest), max(b.extent, a.extent - nearest) - min(0, -farthest))
    return from_a if from_a.extent <= from_b.extent else from_b


def region_of(
    accesses: Sequence[Sequence[IndexExpr]], inner: Sequence[Ranges], outer: Ranges, shape: Sequence[int]
) -> list[Interval]:
    """Return the box that holds all `accesses` of a buffer of `shape`, each with the inner axes that vary around it.

    The box may stick out of the buffer, on either side, where the outer axes decide by how much. Where the accesses
    have no common start, or the box is as large as the buffer, the whole dimension is taken.
    """
    box: list[Interval] = []
    for dimension, extent in enumerate(shape):
        merged: Interval | None = None
        for indices, ranges in zip(accesses, inner, strict=True):
            part = interval_of(indices[dimension].simplify({**outer, **ranges}), ranges)
            merged = part if merged is None else union(merged, part, outer)
            if merged is None:
                break
        box.append(_within(merged, extent, outer))
    return box


def _within(part: Interval | None, extent: int, outer: Ranges) -> Interval:
    """Clip an interval to `[0, extent)`, as far as that is known."""
    whole = Interval(ZERO, extent)
    if part is None:
        return whole
    low = part.low.simplify(outer)
    if low.is_constant:
        first, end = max(0, low.const), min(extent, low.const + part.extent)
        return Interval(constant(first), end - first) if end > first else Interval(ZERO, 1)
    return whole if part.extent >= extent else Interval(low, part.extent)


def covers(outside: Interval, inside: Interval, extent: int, outer: Ranges) -> bool:
    """True where `outside` surely holds what `inside` has within `[0, extent)`, for every value of the outer axes."""
    lowest, highest = outside.low.bounds(outer)
    distance = (inside.low - outside.low).simplify(outer)
    nearest, farthest = distance.bounds(outer)
    starts = highest <= 0 or nearest >= 0
    ends = lowest + outside.extent >= extent or farthest + inside.extent <= outside.extent
    return starts and ends


def bind(expr: IndexExpr, bindings: Mapping[str, IndexExpr]) -> IndexExpr:
    """Rewrite an expression over a block's iterators as one over the loops around it."""
    return expr.substitute(bindings)


def clip_conditions(low: IndexExpr, inner: str, extent: int, size: int, outer: Ranges) -> list[IndexExpr]:
    """The conditions that keep `low + inner`, with `inner` of `extent`, in `[0, size)`; none where it always is."""
    value = low + axis(inner)
    lowest, highest = value.bounds({**outer, inner: (0, extent - 1)})
    conditions = []
    if lowest < 0:
        conditions.append(value)
    if highest >= size:
        conditions.append(size - 1 - value)
    return conditions
