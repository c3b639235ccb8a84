"""Proofs that the iterations of a loop touch elements of their own only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from ...dialects.index import Atom, IndexExpr, Mod, Ranges, atom_axes, axis, quotients
from ...dialects.loop import BlockOp, ForOp
from .nest import made_up
from .regions import interval_of, union

Access: TypeAlias = tuple[BlockOp, tuple[IndexExpr, ...]]
"""A block, and the element it touches as expressions over its iterators."""

_Extents: TypeAlias = tuple[tuple[str, tuple[int, int]], ...]
"""Loops with their first and last values."""


def touched_apart(loop: ForOp, accesses: Sequence[Access]) -> bool:
    """True where two iterations of `loop` never touch one element through any two of the `accesses` below it.

    False where this cannot be shown; predicates are not looked at.
    """
    around: dict[str, tuple[int, int]] = {}
    parent: object = loop
    while isinstance(parent, ForOp):
        around[parent.loop_name] = (0, parent.size - 1)
        parent = parent.parent_op()
    inner = tuple(tuple(_inner_ranges(block, around).items()) for block, _ in accesses)
    plain = tuple(tuple(e.substitute(block.bound) for e in indices) for block, indices in accesses)
    return _apart(loop.loop_name, tuple(around.items()), plain, inner)


@lru_cache(maxsize=1 << 12)
def _apart(
    name: str, outside: _Extents, plain: tuple[tuple[IndexExpr, ...], ...], inside: tuple[_Extents, ...]
) -> bool:
    """The same of the loop `name` among those `outside` it, of elements as expressions over loops, and those around.

    Rules ask it of one block for each structure and each axis.
    """
    around, inner = dict(outside), [dict(ranges) for ranges in inside]
    everywhere: dict[str, tuple[int, int]] = dict(around)
    for ranges in inner:
        for axis_name, (low, high) in ranges.items():
            known = everywhere.get(axis_name, (low, high))
            everywhere[axis_name] = (min(low, known[0]), max(high, known[1]))
    varying = everywhere.keys() - around.keys()
    if len({*plain}) == len({*inside}) == 1 and determines(name, plain[0], varying, everywhere):
        return True  # most are of one element, and need no simplifying
    touched = [[e.simplify({**around, **ranges}) for e in exprs] for exprs, ranges in zip(plain, inner, strict=True)]
    if all(other == touched[0] for other in touched[1:]):
        # Simplifying may hide that two expressions divide one fused axis.
        return determines(name, touched[0], varying, everywhere) or determines(name, plain[0], varying, everywhere)
    box: list[IndexExpr] = []
    for dimension in range(len(touched[0])):
        parts = [interval_of(exprs[dimension], ranges) for exprs, ranges in zip(touched, inner, strict=True)]
        merged = parts[0]
        for part in parts[1:]:
            both = union(merged, part, around)
            if both is None:
                break
            merged = both
        else:
            made = made_up("box", dimension)
            everywhere[made] = (0, merged.extent - 1)
            box.append(merged.low + axis(made))
    return determines(name, box, {made_up("box", d) for d in range(len(touched[0]))}, everywhere)


def _inner_ranges(block: BlockOp, around: Ranges) -> dict[str, tuple[int, int]]:
    return {x.loop_name: (0, x.size - 1) for x in block.enclosing_loops if x.loop_name not in around}


def determines(name: str, exprs: Sequence[IndexExpr], varying: set[str], ranges: Ranges) -> bool:
    """True where the values of all `exprs` together fix the value of axis `name`.

    `varying` axes may differ between two points, all others but `name` are the same. An expression fixes one of its
    atoms where no other open term can make up for a change of it; `e floordiv c` and `e mod c` together give `e`.
    """
    known: list[IndexExpr] = list(dict.fromkeys(exprs))
    fixed: set[Atom] = set()

    def is_open(atom: Atom) -> bool:
        if atom in fixed:
            return False
        if isinstance(atom, str):
            return atom == name or atom in varying
        return any(is_open(axis_) for axis_ in atom_axes(atom))

    def is_settled(expr: IndexExpr) -> bool:
        return not any(is_open(atom) for atom, _ in expr.terms)

    progress = True
    while progress and name not in fixed:
        atoms = {a for expr in known for a, _ in expr.terms if is_open(a) and _fixes(a, expr, is_open, ranges)}
        fixed |= atoms
        remainders = [a for a in fixed if isinstance(a, Mod) and a.expr not in known]
        whole = {a.expr for a in remainders if any(map(is_settled, _quotients(a, ranges)))}
        known += whole
        progress = bool(atoms or whole)
    return name in fixed


def _quotients(remainder: Mod, ranges: Ranges) -> list[IndexExpr]:
    """The forms of `e floordiv c` for `e mod c`, as they are and simplified."""
    plain = quotients(remainder.expr, remainder.divisor)
    return [*plain, *(whole.simplify(ranges) for whole in plain)]


def _fixes(atom: Atom, expr: IndexExpr, is_open: Callable[[Atom], bool], ranges: Ranges) -> bool:
    """True where no other open terms of `expr` can make up for a change of `atom`."""
    own = next(abs(c) for a, c in expr.terms if a == atom)
    small, large = 0, 0
    for other, c in expr.terms:
        if other == atom or not is_open(other):
            continue
        low, high = _range_of(other, ranges)
        if abs(c) > own:
            large = gcd(large, abs(c))
        else:
            small += abs(c) * (high - low)
    low, high = _range_of(atom, ranges)
    return small < own and (large == 0 or large > own * (high - low) + small)


def _range_of(atom: Atom, ranges: Ranges) -> tuple[int, int]:
    return ranges[atom] if isinstance(atom, str) else IndexExpr(((atom, 1),), 0).bounds(ranges)
