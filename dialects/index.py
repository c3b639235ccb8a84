"""Index expressions: integer expressions over named axes, canonical at construction.

An expression is `const + sum(coefficient * atom)`; an atom is an axis name, `expr floordiv c`, `expr mod c`, or an
integer below a bound that the program reads (`Lookup`). Loops and block iterators are found by name, so expressions
hold names, not SSA values. Two expressions built in different orders compare equal; the order of construction is kept
for printing. Building, substituting and bounding cost about a microsecond a term, which is what lets thousands of
schedules be applied a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import TypeAlias

Ranges: TypeAlias = Mapping[str, tuple[int, int]]
"""Inclusive (lowest, highest) value of each axis."""


class Div:
    """`expr floordiv divisor`, rounding towards minus infinity; `divisor` is at least 2."""

    __slots__ = ("_hash", "divisor", "expr")

    def __init__(self, expr: IndexExpr, divisor: int) -> None:
        self.expr = expr
        self.divisor = divisor
        self._hash = hash(("div", expr, divisor))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is Div and self.divisor == other.divisor and self.expr == other.expr

    def __str__(self) -> str:
        return f"{_operand(self.expr)} floordiv {self.divisor}"


class Mod:
    """`expr mod divisor`, in `[0, divisor)`; `divisor` is at least 2."""

    __slots__ = ("_hash", "divisor", "expr")

    def __init__(self, expr: IndexExpr, divisor: int) -> None:
        self.expr = expr
        self.divisor = divisor
        self._hash = hash(("mod", expr, divisor))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is Mod and self.divisor == other.divisor and self.expr == other.expr

    def __str__(self) -> str:
        return f"{_operand(self.expr)} mod {self.divisor}"


class Lookup:
    """An integer in `[0, extent)` that the program reads: operand `number` of the operation, clamped into that range.

    All that is known of it is that range, and that it is the same wherever the values of `args` are: an uninterpreted
    function of them. `?0(i, j) of 30522` in print.
    """

    __slots__ = ("_hash", "args", "extent", "number")

    def __init__(self, number: int, args: tuple[IndexExpr, ...], extent: int) -> None:
        self.number = number
        self.args = args
        self.extent = extent
        self._hash = hash(("lookup", number, args, extent))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not Lookup or self._hash != other._hash:
            return False
        return (self.number, self.args, self.extent) == (other.number, other.args, other.extent)

    def __str__(self) -> str:
        return f"?{self.number}({', '.join(map(str, self.args))}) of {self.extent}"

    def map(self, change: Callable[[IndexExpr], IndexExpr]) -> Lookup:
        """The same with `change` done to each of what it depends on; itself where none of them differs."""
        args = tuple(change(a) for a in self.args)
        same = all(new is old for new, old in zip(args, self.args, strict=True))
        return self if same else Lookup(self.number, args, self.extent)


Atom: TypeAlias = "str | Div | Mod | Lookup"
Term: TypeAlias = "tuple[Atom, int]"


class IndexExpr:
    """An immutable integer expression over named axes; supports `+ - * // %` with the usual meaning for integers."""

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, terms: tuple[Term, ...], const: int) -> None:
        if terms and terms[0][1] < 0:
            terms = _positive_first(terms)
        self.terms = terms
        self.const = const
        self._hash: int | None = None

    # -- identity -----------------------------------------------------------------------------------------------------

    def __hash__(self) -> int:
        if self._hash is None:  # few are asked
            self._hash = hash((frozenset(self.terms), self.const))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not IndexExpr or self.const != other.const or len(self.terms) != len(other.terms):
            return False
        return self.terms == other.terms or (hash(self) == hash(other) and dict(self.terms) == dict(other.terms))

    def __repr__(self) -> str:
        return f"index({str(self)!r})"

    def __str__(self) -> str:
        signed = [(c, str(atom) if abs(c) == 1 else f"{atom} * {abs(c)}") for atom, c in self.terms]
        if self.const or not signed:
            signed.append((self.const, str(abs(self.const))))
        if signed[0][0] < 0:  # no term is positive: a constant that is, else a zero, stands first
            signed.insert(0, signed.pop() if self.const > 0 else (0, "0"))
        return signed[0][1] + "".join(f" {'-' if c < 0 else '+'} {text}" for c, text in signed[1:])

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __add__(self, other: IndexExpr | int) -> IndexExpr:
        if isinstance(other, int):
            return self if other == 0 else IndexExpr(self.terms, self.const + other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        return linear((*self.terms, *other.terms), self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> IndexExpr:
        return self * -1

    def __sub__(self, other: IndexExpr | int) -> IndexExpr:
        return self + (-other)

    def __rsub__(self, other: int) -> IndexExpr:
        return -self + other

    def __mul__(self, factor: int) -> IndexExpr:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return IndexExpr(tuple((atom, c * factor) for atom, c in self.terms), self.const * factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> IndexExpr:
        if divisor == 1:
            return self
        quotient = tuple((atom, c // divisor) for atom, c in self.terms if c % divisor == 0)
        rest = tuple(t for t in self.terms if t[1] % divisor)
        whole = IndexExpr(quotient, self.const // divisor)
        if not rest:
            return whole
        left = self.const % divisor
        return whole + _divided(rest, left, divisor)

    def __mod__(self, divisor: int) -> IndexExpr:
        if divisor == 1:
            return ZERO
        rest = tuple(t for t in self.terms if t[1] % divisor)
        left = self.const % divisor
        if not rest:
            return constant(left)
        shared = gcd(divisor, *(c for _, c in rest))
        if shared > 1:
            reduced = IndexExpr(tuple((a, c // shared) for a, c in rest), left // shared)
            return reduced % (divisor // shared) * shared + left % shared
        atom, c = rest[0]
        if len(rest) == 1 and c == 1 and isinstance(atom, Mod):
            if atom.divisor + left <= divisor:
                return IndexExpr(rest, left)
            if left == 0 and atom.divisor % divisor == 0:
                return atom.expr % divisor
        return IndexExpr(((Mod(IndexExpr(rest, left), divisor), 1),), 0)

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def as_axis(self) -> str | None:
        """Return the axis name where the expression is exactly one axis, else None."""
        if self.const == 0 and len(self.terms) == 1 and self.terms[0][1] == 1 and isinstance(self.terms[0][0], str):
            return self.terms[0][0]
        return None

    def coefficient(self, axis: str) -> int:
        """Return the factor of `axis` among the plain terms; what stands inside a floordiv or mod does not count."""
        for atom, c in self.terms:
            if atom == axis:
                return c
        return 0

    def axes(self) -> set[str]:
        """Every axis name that occurs, also inside floordiv and mod."""
        found: set[str] = set()
        for atom, _ in self.terms:
            if isinstance(atom, str):
                found.add(atom)
            else:
                found |= _axes_inside(atom)
        return found

    def is_linear_in(self, axis: str) -> bool:
        """True where `axis` occurs in no floordiv or mod."""
        return not any(not isinstance(a, str) and axis in atom_axes(a) for a, _ in self.terms)

    def bounds(self, ranges: Ranges) -> tuple[int, int]:
        """Inclusive bounds of the value over `ranges` (interval arithmetic); KeyError where an axis has no range."""
        lowest = highest = self.const
        for atom, c in self.terms:
            lo, hi = ranges[atom] if isinstance(atom, str) else _atom_bounds(atom, ranges)
            if c > 0:
                lowest += c * lo
                highest += c * hi
            else:
                lowest += c * hi
                highest += c * lo
        return lowest, highest

    # -- rewriting ----------------------------------------------------------------------------------------------------

    def substitute(self, values: Mapping[str, IndexExpr]) -> IndexExpr:
        """Replace axes by expressions; axes without a value stay."""
        result: list[Term] = []
        const = self.const
        changed = False
        for atom, c in self.terms:
            if isinstance(atom, str):
                value = values.get(atom)
                if value is None:
                    result.append((atom, c))
                    continue
            elif isinstance(atom, Lookup):
                moved = atom.map(lambda a: a.substitute(values))
                changed |= moved is not atom
                result.append((moved, c))
                continue
            else:
                inner = atom.expr.substitute(values)
                if inner is atom.expr:
                    result.append((atom, c))
                    continue
                value = inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor
            changed = True
            const += value.const * c
            result.extend((a, k * c) for a, k in value.terms)
        return linear(result, const) if changed else self

    def simplify(self, ranges: Ranges) -> IndexExpr:
        """Drop what `ranges` makes needless: `x floordiv c` and `x mod c` where x stays within one multiple of c."""
        if all(isinstance(a, str) and ranges.get(a) != (0, 0) for a, _ in self.terms):
            return self
        result: list[Term] = []
        const = self.const
        for atom, c in self.terms:
            if isinstance(atom, str):
                lo, hi = ranges.get(atom, (0, 1))
                if lo == hi:
                    const += c * lo
                else:
                    result.append((atom, c))
                continue
            value = _simplify_atom(atom, ranges)
            const += value.const * c
            result.extend((a, k * c) for a, k in value.terms)
        return linear(result, const)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Evaluate the expression at one point; it must have nothing that the program reads."""
        total = self.const
        for atom, c in self.terms:
            if isinstance(atom, str):
                total += c * values[atom]
            elif isinstance(atom, Lookup):
                raise ValueError(f"{atom} has a value only while a program runs")
            elif isinstance(atom, Div):
                total += c * (atom.expr.evaluate(values) // atom.divisor)
            else:
                total += c * (atom.expr.evaluate(values) % atom.divisor)
        return total


def _positive_first(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Order terms as they are printed and parsed again: a positive one first, where there is one."""
    first = next((k for k, (_, c) in enumerate(terms) if c > 0), 0)
    return (terms[first], *terms[:first], *terms[first + 1 :])


def _divided(rest: tuple[Term, ...], left: int, divisor: int) -> IndexExpr:
    """Divide a sum by a divisor that divides none of its factors, its constant being below the divisor."""
    shared = gcd(divisor, *(c for _, c in rest))
    if shared > 1:
        return IndexExpr(tuple((a, c // shared) for a, c in rest), left // shared) // (divisor // shared)
    quotients = [(a, c) for a, c in rest if isinstance(a, Div)]
    if len(quotients) == 1 and quotients[0][1] == 1:
        # (r + e floordiv d) floordiv c = (r * d + e) floordiv (d * c), r being whole.
        inner = quotients[0][0]
        others = IndexExpr(tuple(t for t in rest if t[0] is not inner), left)
        return (others * inner.divisor + inner.expr) // (inner.divisor * divisor)
    atom, c = rest[0]
    if len(rest) == 1 and c == 1 and isinstance(atom, Mod):
        if atom.divisor + left <= divisor:
            return ZERO
        if left == 0 and atom.divisor % divisor == 0:
            return atom.expr // divisor % (atom.divisor // divisor)
    return IndexExpr(((Div(IndexExpr(rest, left), divisor), 1),), 0)


def atom_axes(atom: Atom) -> frozenset[str]:
    """Every axis name in an atom."""
    return frozenset((atom,)) if isinstance(atom, str) else _axes_inside(atom)


@lru_cache(maxsize=1 << 14)
def _axes_inside(atom: Div | Mod | Lookup) -> frozenset[str]:
    return frozenset().union(*(expr.axes() for expr in _parts(atom)))


def _parts(atom: Div | Mod | Lookup) -> tuple[IndexExpr, ...]:
    return atom.args if isinstance(atom, Lookup) else (atom.expr,)


def _operand(expr: IndexExpr) -> str:
    return str(expr) if expr.const == 0 and len(expr.terms) == 1 and expr.as_axis() is not None else f"({expr})"


def _atom_bounds(atom: Div | Mod | Lookup, ranges: Ranges) -> tuple[int, int]:
    if isinstance(atom, Lookup):
        return 0, atom.extent - 1
    lo, hi = atom.expr.bounds(ranges)
    first, last = lo // atom.divisor, hi // atom.divisor
    if isinstance(atom, Div):
        return first, last
    return (lo % atom.divisor, hi % atom.divisor) if first == last else (0, atom.divisor - 1)


def _simplify_atom(atom: Div | Mod | Lookup, ranges: Ranges) -> IndexExpr:
    if isinstance(atom, Lookup):
        if atom.extent == 1:
            return ZERO
        return IndexExpr(((atom.map(lambda a: a.simplify(ranges)), 1),), 0)
    inner = atom.expr.simplify(ranges)
    value = inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor
    rest = [a for a, _ in value.terms if not isinstance(a, str)]
    if not rest or not all(name in ranges for name in value.axes()):
        return value
    const = value.const
    terms: list[Term] = []
    for part, c in value.terms:
        if isinstance(part, str | Lookup):
            terms.append((part, c))
            continue
        lo, hi = part.expr.bounds(ranges)
        base = lo // part.divisor
        if base != hi // part.divisor:
            peeled = _peel(part, ranges)
            const += peeled.const * c
            terms.extend((a, k * c) for a, k in peeled.terms)
        elif isinstance(part, Div):
            const += base * c
        else:
            reduced = part.expr - base * part.divisor
            const += reduced.const * c
            terms.extend((a, k * c) for a, k in reduced.terms)
    return linear(terms, const)


def _peel(atom: Div | Mod, ranges: Ranges) -> IndexExpr:
    """(g*a + r) floordiv c -> a floordiv (c/g) where g divides c and 0 <= r < g: what fused-then-split axes leave."""
    divisor = g = atom.divisor
    for factor in sorted({abs(c) for _, c in atom.expr.terms}, reverse=True):
        g = gcd(g, factor)
        if g == 1:
            break
        low = IndexExpr(tuple(t for t in atom.expr.terms if t[1] % g), atom.expr.const % g)
        lo, hi = low.bounds(ranges)
        if lo < 0 or hi >= g:
            continue
        high = IndexExpr(tuple((a, c // g) for a, c in atom.expr.terms if c % g == 0), atom.expr.const // g)
        if isinstance(atom, Div):
            return high // (divisor // g)
        return high % (divisor // g) * g + low
    return IndexExpr(((atom, 1),), 0)


def linear(terms: Iterable[Term], const: int) -> IndexExpr:
    """The canonical sum: equal atoms merged, zeros dropped, `(e floordiv c) * c + e mod c` folded back into `e`, and
    `(e floordiv a mod b) * a + e mod a` into `e mod (a * b)`.
    """
    sums: dict[Atom, int] = {}
    for atom, c in terms:
        sums[atom] = sums.get(atom, 0) + c
    mods = [a for a in sums if type(a) is Mod]
    for mod in mods:
        c = sums[mod]
        if not c:
            continue
        whole = _floor_of(mod.expr.terms, mod.expr.const, mod.divisor)
        if not whole.terms:
            del sums[mod]
            rest = mod.expr - whole.const * mod.divisor
            return linear((*sums.items(), *((a, k * c) for a, k in rest.terms)), const + rest.const * c)
        if c * mod.divisor not in sums.values():
            continue
        for form in quotients(mod.expr, mod.divisor):
            quotient, times = form.terms[0]
            if sums.get(quotient) == c * mod.divisor and times == 1 and len(form.terms) == 1 and not form.const:
                del sums[mod], sums[quotient]
                return linear((*sums.items(), *((a, k * c) for a, k in mod.expr.terms)), const + mod.expr.const * c)
    if len(mods) > 1 and (joined := _join_digits(mods, sums)) is not None:
        return linear((*sums.items(), *joined.terms), const + joined.const)
    return IndexExpr(tuple((a, c) for a, c in sums.items() if c), const)


@lru_cache(maxsize=1 << 14)
def _floor_of(terms: tuple[Term, ...], const: int, divisor: int) -> IndexExpr:
    """A sum divided, by its terms in their order, which equal sums need not have in common."""
    return IndexExpr(terms, const) // divisor


def quotients(expr: IndexExpr, divisor: int) -> tuple[IndexExpr, ...]:
    """The forms that `expr floordiv divisor` may have, which is canonical where one term of it alone is divided.

    `(a + x floordiv q) floordiv c` is `(a * q + x) floordiv (q * c)` for each such term.
    """
    return _quotients(expr.terms, expr.const, divisor)


@lru_cache(maxsize=1 << 14)
def _quotients(terms: tuple[Term, ...], const: int, divisor: int) -> tuple[IndexExpr, ...]:
    """The same of a sum, by its terms in their order."""
    expr = IndexExpr(terms, const)
    forms = [expr // divisor]
    for atom, c in terms:
        if isinstance(atom, Div) and c == 1:
            rest = expr - IndexExpr(((atom, 1),), 0)
            forms.append((rest * atom.divisor + atom.expr) // (atom.divisor * divisor))
    return tuple(form for form in forms if form.terms)


def _join_digits(mods: list[Mod], sums: dict[Atom, int]) -> IndexExpr | None:
    """Take `(e floordiv a mod b) * a + e mod a` out of `sums` as `e mod (a * b)`; None where there is no such pair."""
    for low in mods:
        for high in mods:
            c = sums.get(low, 0)
            if not c or high is low or sums.get(high) != c * low.divisor:
                continue
            whole = high.expr * low.divisor + IndexExpr(((low, 1),), 0)
            if all(atom != low for atom, _ in whole.terms):
                del sums[low], sums[high]
                return whole % (low.divisor * high.divisor) * c
    return None


def constant(value: int) -> IndexExpr:
    """Return the expression that is `value` everywhere."""
    return ZERO if value == 0 else IndexExpr((), value)


def axis(name: str) -> IndexExpr:
    """Return the expression that is the axis `name`."""
    return IndexExpr(((name, 1),), 0)


def flatten(indices: Sequence[IndexExpr], strides: Sequence[int]) -> IndexExpr:
    """Return the offset of `indices` in a buffer with `strides`, both in elements."""
    terms: list[Term] = []
    const = 0
    for expr, stride in zip(indices, strides, strict=True):
        const += expr.const * stride
        terms.extend((a, c * stride) for a, c in expr.terms)
    return linear(terms, const)


ZERO = IndexExpr((), 0)
