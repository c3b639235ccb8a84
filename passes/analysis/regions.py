"""The part of a buffer that the inner loops of a nest touch, as a function of the outer loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dialects.index import ZERO, IndexExpr, Mod, Ranges, Term, axis, constant, linear


@dataclass(frozen=True)
class Interval:
    """The indices `[low, low + extent)`; `low` is an expression over the outer loops."""

    low: IndexExpr
    extent: int


def interval_of(expr: IndexExpr, inner: Ranges) -> Interval:
    """An interval that holds the values of `expr` while the axes in `inner` vary over their (inclusive) ranges.

    Exact for expressions that are linear in the inner axes, and for `floordiv` and `mod` of tiles that do not straddle
    a multiple of the divisor; at most one element too long at each end of a `floordiv` otherwise.
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
        elif inner.keys().isdisjoint(atom.expr.axes()):
            low.append((atom, c))
            continue
        else:
            part = interval_of(atom.expr, inner)
            quotient, first, extent = _divide(part, atom.divisor)
            if isinstance(atom, Mod):
                fits = extent == 1 and quotient
                first, extent = (part.low % atom.divisor, part.extent) if fits else (ZERO, atom.divisor)
        if c < 0:
            first = first + (extent - 1)
        const += first.const * c
        low.extend((a, k * c) for a, k in first.terms)
        span += (extent - 1) * abs(c)
    return Interval(linear(low, const), span + 1)


def _divide(part: Interval, divisor: int) -> tuple[bool, IndexExpr, int]:
    """Whether the tile starts at a known place in its multiple of `divisor`, and its quotients as (first, extent)."""
    rest = part.low % divisor
    if rest.is_constant:
        return True, part.low // divisor, (rest.const + part.extent - 1) // divisor + 1
    step = _step(part.low, divisor)
    return False, part.low // divisor, (divisor - step + part.extent - 1) // divisor + 1


def _step(low: IndexExpr, divisor: int) -> int:
    """A divisor of `divisor` that every possible value of `low` shares."""
    from math import gcd

    return gcd(divisor, low.const, *(c for _, c in low.terms))


def union(a: Interval, b: Interval, outer: Ranges) -> Interval | None:
    """An interval that holds both, or None where their starts differ by more than a constant."""
    difference = (b.low - a.low).simplify(outer)
    if not difference.is_constant:
        return None
    d = difference.const
    low = a.low if d >= 0 else b.low
    end = max(a.extent, d + b.extent)
    return Interval(low, end - min(0, d))


def region_of(
    accesses: Sequence[Sequence[IndexExpr]], inner: Sequence[Ranges], outer: Ranges, shape: Sequence[int]
) -> list[Interval]:
    """The box that holds all `accesses` of a buffer of `shape`, each with the inner axes that vary around it.

    Where the accesses have no common start, or the box is as large as the buffer, the whole dimension is taken.
    """
    box: list[Interval] = []
    for dimension, extent in enumerate(shape):
        whole = Interval(ZERO, extent)
        merged: Interval | None = None
        for indices, ranges in zip(accesses, inner, strict=True):
            part = interval_of(indices[dimension], ranges)
            merged = part if merged is None else union(merged, part, outer)
            if merged is None:
                break
        box.append(whole if merged is None or merged.extent >= extent else merged)
    return box


def bind(expr: IndexExpr, bindings: Mapping[str, IndexExpr]) -> IndexExpr:
    """An expression over a block's iterators as one over the loops around it."""
    return expr.substitute(bindings)


def clip_conditions(low: IndexExpr, inner: str, extent: int, size: int, outer: Ranges) -> list[IndexExpr]:
    """The conditions that keep `low + inner`, with `inner` in `[0, extent)`, within `[0, size)`; none where it always is."""
    value = low + axis(inner)
    lowest, highest = value.bounds({**outer, inner: (0, extent - 1)})
    conditions = []
    if lowest < 0:
        conditions.append(value)
    if highest >= size:
        conditions.append(size - 1 - value)
    return conditions
