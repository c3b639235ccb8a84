"""Index expressions whose coefficients and divisors are sizes, and the intervals they run through.

Unlike the index expressions of the IR they are not simplified, as what can be simplified differs from candidate to
candidate; they are evaluated instead. Features ask for nothing but values, so the form does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...dialects import index as ir
from .sizes import Size, SizeValue, absolute, equal, gcd, less, maximum, minimum, negated, where

Extents: TypeAlias = Mapping[str, Size]
"""The extent of each name; it runs from 0."""


@dataclass(frozen=True)
class Quotient:
    """`expr floordiv divisor`."""

    expr: Index
    divisor: Size


@dataclass(frozen=True)
class Remainder:
    """`expr mod divisor`."""

    expr: Index
    divisor: Size


@dataclass(frozen=True)
class Unknown:
    """An integer below `extent` that the program reads, which depends on `args`."""

    args: tuple[Index, ...]
    extent: int

    def stand_in(self, args: Sequence[Size]) -> Size:
        """A value that lies half of the extent away where an argument is one higher: neighbours share nothing."""
        value: Size = 0
        for arg in args:
            value = value + arg * (self.extent // 2)
        return value % self.extent


Atom: TypeAlias = "str | Quotient | Remainder | Unknown"


class Index:
    """`const + sum(coefficient * atom)` over names of loops or iterators; equal where built from equal parts."""

    __slots__ = ("_hash", "_names", "const", "terms")

    def __init__(self, terms: tuple[tuple[Atom, Size], ...], const: Size = 0) -> None:
        self.terms = terms
        self.const = const
        self._names: frozenset[str] | None = None
        self._hash: int | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names in it, which is asked of few expressions often."""
        if self._names is None:
            self._names = frozenset().union(*(_names(a) for a, _ in self.terms))
        return self._names

    @staticmethod
    def axis(name: str) -> Index:
        """The expression that is a name."""
        return Index(((name, 1),))

    @staticmethod
    def constant(value: Size) -> Index:
        """The expression that is `value` everywhere."""
        return Index((), value)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.terms, self.const))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.terms == other.terms and self.const == other.const

    def __add__(self, other: Index) -> Index:
        sums: dict[Atom, Size] = dict(self.terms)
        for atom, c in other.terms:
            sums[atom] = sums[atom] + c if atom in sums else c
        for low in [a for a in sums if isinstance(a, Remainder)]:
            high = Quotient(low.expr, low.divisor)
            if high in sums and _same(sums[high], sums[low] * low.divisor):
                del sums[high]
                factor = sums.pop(low)
                rest = Index(tuple(sums.items()), self.const + other.const)
                return rest + low.expr * factor
        return Index(tuple(sums.items()), self.const + other.const)

    def __mul__(self, factor: Size) -> Index:
        if not self.terms:
            return Index((), self.const * factor)
        return Index(tuple((a, c * factor) for a, c in self.terms), self.const * factor)

    def __sub__(self, other: Index) -> Index:
        return self + other * -1

    def __floordiv__(self, divisor: Size) -> Index:
        if isinstance(divisor, int | float) and divisor == 1:
            return self
        return Index(((Quotient(self, divisor), 1),)) if self.terms else Index((), self.const // divisor)

    def __mod__(self, divisor: Size) -> Index:
        return Index(((Remainder(self, divisor), 1),)) if self.terms else Index((), self.const % divisor)

    @property
    def as_name(self) -> str | None:
        """The name that the expression is, if it is just that."""
        if len(self.terms) != 1 or not _is_number(self.const, 0):
            return None
        atom, c = self.terms[0]
        return atom if isinstance(atom, str) and _is_number(c, 1) else None

    def substitute(self, values: Mapping[str, Index]) -> Index:
        """The expression with names replaced."""
        if self.names.isdisjoint(values):
            return self
        result = Index.constant(self.const)
        for atom, c in self.terms:
            if isinstance(atom, str):
                part = values[atom] if atom in values else Index.axis(atom)
            elif isinstance(atom, Unknown):
                part = Index(((Unknown(tuple(a.substitute(values) for a in atom.args), atom.extent), 1),))
            elif isinstance(atom, Quotient):
                part = atom.expr.substitute(values) // atom.divisor
            else:
                part = atom.expr.substitute(values) % atom.divisor
            result = result + part * c
        return result

    def at(self, values: Mapping[str, Size]) -> Size:
        """The value where names have these values, and others are 0."""
        result = self.const
        for atom, c in self.terms:
            if isinstance(atom, str):
                if atom in values:
                    result = result + c * values[atom]
                continue
            if isinstance(atom, Unknown):
                result = result + c * atom.stand_in([a.at(values) for a in atom.args])
                continue
            inside = atom.expr.at(values)
            result = result + c * (inside // atom.divisor if isinstance(atom, Quotient) else inside % atom.divisor)
        return result

    def times_where(self, condition: Size) -> Index:
        """The expression where the condition is 1, and 0 where it is 0."""
        return self * condition


def from_ir(expr: ir.IndexExpr) -> Index:
    """An index expression of the IR."""
    terms: list[tuple[Atom, Size]] = []
    for atom, c in expr.terms:
        if isinstance(atom, str):
            terms.append((atom, c))
        elif isinstance(atom, ir.Lookup):
            terms.append((Unknown(tuple(map(from_ir, atom.args)), atom.extent), c))
        elif isinstance(atom, ir.Div):
            terms.append((Quotient(from_ir(atom.expr), atom.divisor), c))
        else:
            terms.append((Remainder(from_ir(atom.expr), atom.divisor), c))
    return Index(tuple(terms), expr.const)


def _names(atom: Atom) -> frozenset[str]:
    if isinstance(atom, Unknown):
        return frozenset().union(*(a.names for a in atom.args))
    return frozenset((atom,)) if isinstance(atom, str) else atom.expr.names


def _is_unknown(atom: Atom) -> bool:
    """True where a part of an atom is read by the program."""
    if isinstance(atom, Unknown):
        return True
    return not isinstance(atom, str) and any(_is_unknown(a) for a, _ in atom.expr.terms)


def _same(a: Size, b: Size) -> bool:
    """True where two sizes surely are the same."""
    return a is b or (isinstance(a, int | float) and isinstance(b, int | float) and a == b)


def _is_number(size: Size, number: int) -> bool:
    return isinstance(size, int | float) and size == number


def highest(atom: Atom, extents: Extents) -> Size:
    """The largest value of an atom whose names run through their extents (with coefficients that are not negative)."""
    if isinstance(atom, str):
        return extents[atom] - 1
    if isinstance(atom, Unknown):
        return atom.extent - 1
    inside, step = atom.expr.const, atom.divisor
    for part, c in atom.expr.terms:
        most = maximum(c, 0) * highest(part, extents)
        inside = inside + most
        step = gcd(step, where(less(0, most), c, 0))
    if isinstance(atom, Quotient):
        return inside // atom.divisor
    return minimum(inside, atom.divisor - step + atom.expr.const % step)


def bounds(index: Index, extents: Extents) -> tuple[Size, Size]:
    """The lowest and the highest value, as far as the terms tell one by one."""
    low = high = index.const
    for atom, c in index.terms:
        most = highest(atom, extents)
        low = low + minimum(c, 0) * most
        high = high + maximum(c, 0) * most
    return low, high


@dataclass(frozen=True)
class Cap:
    """`expr <= most`, which a predicate says of the instances that run; `expr` has no constant."""

    expr: Index
    most: Size

    @staticmethod
    def of(expr: Index, most: Size) -> Cap:
        """The same with the constant of `expr` on the other side."""
        return Cap(Index(expr.terms), most - expr.const)

    def substitute(self, values: Mapping[str, Index]) -> Cap:
        """The cap with names replaced."""
        return Cap.of(self.expr.substitute(values), self.most)


@dataclass(frozen=True)
class SizedInterval:
    """The indices `[low, low + extent)`; `low` is an expression over outer names."""

    low: Index
    extent: Size


def interval_of(index: Index, inner: Extents, outer: Extents, caps: Sequence[Cap] = ()) -> SizedInterval:
    """Interval of an index expression for all candidates at once; `passes.analysis.regions.interval_of` for one."""
    low = Index.constant(index.const)
    span: Size = 0
    for atom, c in index.terms:
        if not _is_unknown(atom) and _names(atom).isdisjoint(inner):
            low = low + Index(((atom, c),))
            continue
        if isinstance(atom, str):
            first, extent = Index.constant(0), inner[atom]
        elif isinstance(atom, Unknown):
            first, extent = Index.constant(0), atom.extent
        else:
            first, extent = _divided(atom, inner, outer, caps)
        start = first if _is_positive(c) else first + Index.constant(less(c, 0) * (extent - 1))
        low = low + start * c
        span = span + (extent - 1) * absolute(c)
    return SizedInterval(low, span + 1)


def moves(index: Index, extents: Extents) -> Size:
    """1 where an expression changes while its names run through their extents, else 0."""
    return maximum(0, *(_varies(atom, c, extents) for atom, c in index.terms))


def _varies(atom: Atom, factor: Size, extents: Extents) -> Size:
    """1 where an atom times a factor changes while names run through their extents, else 0."""
    return less(0, highest(atom, extents) * absolute(factor))


def depends_on(index: Index, name: str) -> Size:
    """1 where an expression changes with a name, as far as its form tells, else 0."""
    return maximum(0, *(less(0, absolute(c)) * _contains(atom, name) for atom, c in index.terms))


def _contains(atom: Atom, name: str) -> Size:
    if isinstance(atom, str):
        return int(atom == name)
    if isinstance(atom, Unknown):
        return maximum(0, *(depends_on(a, name) for a in atom.args))
    if isinstance(atom, Quotient):
        return depends_on(atom.expr, name)
    rest = ((part, c % atom.divisor) for part, c in atom.expr.terms)
    return depends_on(Index(tuple(rest)), name)


def name_of(atom: Atom, extents: Extents) -> tuple[str, Size]:
    """The name that an atom is the same as, and 1 where it is; "" for one that never is."""
    if isinstance(atom, str):
        return atom, 1
    if isinstance(atom, Unknown) or len(atom.expr.terms) != 1:
        return "", 0
    ((inner, c),) = atom.expr.terms
    found, same = name_of(inner, extents)
    if not found or found not in extents:
        return "", 0
    same = same * equal(c, 1) * equal(atom.expr.const, 0)
    if isinstance(atom, Quotient):
        return found, same * equal(atom.divisor, 1)
    return found, same * less(highest(inner, extents), atom.divisor)


def _is_positive(size: Size) -> bool:
    """True where a coefficient surely is: those that depend on decisions are tile sizes, but for factors below 0."""
    if not isinstance(size, SizeValue):
        return size >= 0
    return size.op != "mul" or all(_is_positive(a) for a in size.args if not isinstance(a, str))


def _divided(atom: Quotient | Remainder, inner: Extents, outer: Extents, caps: Sequence[Cap]) -> tuple[Index, Size]:
    part = interval_of(atom.expr, inner, outer, caps)
    for cap in caps:
        if cap.expr == Index(atom.expr.terms):
            rest = maximum(1, minimum(part.extent, cap.most + atom.expr.const - part.low.const + 1))
            is_loose = maximum(moves(part.low, outer), _comes_apart(atom, {**outer, **inner}))
            part = SizedInterval(part.low, where(is_loose, part.extent, rest))
    divisor = atom.divisor
    step = divisor
    for other, c in part.low.terms:
        step = gcd(step, where(_varies(other, c, outer), absolute(c) * _stride(other, outer), 0))
    last_start = divisor - step + part.low.const % step
    quotients = (last_start + part.extent - 1) // divisor + 1
    if isinstance(atom, Quotient):
        return part.low // divisor, quotients
    single = less(quotients, 2)
    common = _common(atom, {**outer, **inner})
    start = Index.constant(negated(single) * (atom.expr.const % common))
    return (part.low % divisor).times_where(single) + start, where(single, part.extent, divisor - common + 1)


def _stride(atom: Atom, extents: Extents) -> Size:
    """The largest number that all values of an atom are multiples of, as far as its coefficients tell."""
    if not isinstance(atom, Remainder):
        return 1
    found = gcd(atom.divisor, atom.expr.const)
    for part, c in atom.expr.terms:
        found = gcd(found, where(_varies(part, c, extents), absolute(c) * _stride(part, extents), 0))
    return found


def _comes_apart(atom: Quotient | Remainder, extents: Extents) -> Size:
    """1 where an index expression of the IR would leave only a part of the dividend inside, or divide it first."""
    apart = less(1, _common(atom, extents))
    for part, c in atom.expr.terms:
        apart = maximum(apart, _varies(part, c, extents) * less(c % atom.divisor, 1))
    return apart


def _common(atom: Quotient | Remainder, extents: Extents) -> Size:
    """The greatest common divisor of an atom's divisor and of the coefficients in it that matter."""
    common: Size = atom.divisor
    for part, c in atom.expr.terms:
        common = gcd(common, where(_varies(part, c, extents), absolute(c), 0))
    return common


def union(a: SizedInterval, b: SizedInterval, outer: Extents) -> SizedInterval:
    """The smallest interval that holds both, as far as the outer names bound the distance of their starts."""
    nearest, farthest = (0, 0) if a.low == b.low else bounds(b.low - a.low, outer)
    if _is_number(nearest, 0) and _is_number(farthest, 0):
        return SizedInterval(a.low, maximum(a.extent, b.extent))
    down_a, down_b = minimum(0, nearest), minimum(0, -farthest)
    size_a = maximum(a.extent, farthest + b.extent) - down_a
    size_b = maximum(b.extent, a.extent - nearest) - down_b
    from_a = negated(less(size_b, size_a))
    low = (a.low + Index.constant(down_a)) * from_a + (b.low + Index.constant(down_b)) * negated(from_a)
    return SizedInterval(low, minimum(size_a, size_b))


def within(part: SizedInterval, extent: Size, outer: Extents) -> SizedInterval:
    """`part` without what is surely outside of `[0, extent)`; the whole where it is as large."""
    varies = moves(part.low, outer)
    fits = less(part.extent, extent)
    first = maximum(0, part.low.const)
    end = minimum(extent, part.low.const + part.extent)
    inside = less(first, end)
    fixed = where(inside, end - first, 1)
    size = where(varies, minimum(part.extent, extent), fixed)
    moving = varies * fits
    const = where(varies, where(fits, part.low.const, 0), where(inside, first, 0))
    low = Index(tuple((a, c * moving) for a, c in part.low.terms), const)
    return SizedInterval(low, size)
