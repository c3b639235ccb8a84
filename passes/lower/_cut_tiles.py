"""The last tile along an axis, of which a part is beyond the edge: which tile that is, told before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...dialects.index import IndexExpr, Ranges, Term, atom_axes


@dataclass(frozen=True)
class Cut:
    """The one value of a sum of loops around a nest for which a condition holds for some of the nest, not for all.

    Of `96 - i0 * 96 - i1 * 12 - i2 >= 0`, with i2 of 12 in the nest, that is `- i0 * 8 - i1 == -8`: there the condition
    is `0 - i2 >= 0`, which each copy answers when it is written.
    """

    terms: tuple[Term, ...]
    value: int

    def told(self, expr: IndexExpr) -> IndexExpr:
        """The expression with the sum's value in its place, where it is in it."""
        factors = dict(expr.terms)
        times = {divmod(factors.get(atom, 0), c) for atom, c in self.terms}
        if len(times) != 1:
            return expr
        ((count, rest),) = times
        if rest or not count:
            return expr
        own = {atom for atom, _ in self.terms}
        return IndexExpr(tuple(t for t in expr.terms if t[0] not in own), expr.const + count * self.value)


def cut_of(condition: IndexExpr, inside: Ranges) -> Cut | None:
    """The cut that `condition >= 0` makes in a nest of loops; None where there are several, or none is known.

    The condition is settled for the loops around; `inside` are the values of those of the nest. Where it is on these
    alone, there is one nest, and no sum.
    """
    found = parted(condition, inside)
    if found is None:
        return None
    outer, (lowest, highest) = found
    if not outer:
        return Cut((), 0)
    step = gcd(*(c for _, c in outer))
    first, behind = -(highest // step), -(lowest // step)
    return Cut(tuple((atom, c // step) for atom, c in outer), first) if behind - first == 1 else None


def whole_steps(condition: IndexExpr, loop: str, inside: Ranges) -> tuple[int, bool] | None:
    """The first iterations of a loop for all of which `condition >= 0` holds, and whether for a part of one more.

    None where it is on loops around as well, or for a part of several; `inside` are the values of the loops within.
    """
    found = parted(condition, inside)
    if found is None or [atom for atom, _ in found[0]] != [loop]:
        return None
    (((_, step),), (lowest, highest)) = found
    if step > 0:
        return None
    whole, some = max(0, lowest // -step + 1), max(0, highest // -step + 1)
    return (whole, some > whole) if some - whole <= 1 else None


def parted(condition: IndexExpr, inside: Ranges) -> tuple[list[Term], tuple[int, int]] | None:
    """The terms of a condition on loops around a nest, and the bounds of the rest; None where an atom is of both."""
    outer: list[Term] = []
    inner: list[Term] = []
    for atom, c in condition.terms:
        if inside.keys().isdisjoint(atom_axes(atom)):
            outer.append((atom, c))
        elif isinstance(atom, str):
            inner.append((atom, c))
        else:
            return None
    return outer, IndexExpr(tuple(inner), condition.const).bounds(inside)
