"""Whether the iterations of a loop touch elements of their own only."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TypeAlias

from ...dialects.index import Atom, Div, IndexExpr, Mod, Ranges, axis
from ...dialects.loop import BlockOp, ForOp
from .regions import interval_of, union

Access: TypeAlias = tuple[BlockOp, tuple[IndexExpr, ...]]
"""A block, and the element it touches as expressions over its iterators."""


def touched_apart(loop: ForOp, accesses: Sequence[Access]) -> bool:
    """True where two iterations of `loop` never touch one element through any two of the `accesses` below it.

    False where this cannot be shown; predicates are not looked at.
    """
    around: dict[str, tuple[int, int]] = {}
    parent: object = loop
    while isinstance(parent, ForOp):
        around[parent.loop_name] = (0, parent.size - 1)
        parent = parent.parent_op()
    inner = [_inner_ranges(block, around) for block, _ in accesses]
    touched = [[e.substitute(block.bound) for e in indices] for block, indices in accesses]
    everywhere: dict[str, tuple[int, int]] = dict(around)
    for ranges in inner:
        for name, (low, high) in ranges.items():
            known = everywhere.get(name, (low, high))
            everywhere[name] = (min(low, known[0]), max(high, known[1]))
    varying = everywhere.keys() - around.keys()
    if all(other == touched[0] for other in touched[1:]):
        return determines(loop.loop_name, touched[0], varying, everywhere)
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
            name = f"_{dimension}"
            everywhere[name] = (0, merged.extent - 1)
            box.append(merged.low + axis(name))
    return determines(loop.loop_name, box, {f"_{d}" for d in range(len(touched[0]))}, everywhere)


def _inner_ranges(block: BlockOp, around: Ranges) -> dict[str, tuple[int, int]]:
    return {x.loop_name: (0, x.size - 1) for x in block.enclosing_loops if x.loop_name not in around}


def determines(name: str, exprs: Sequence[IndexExpr], varying: set[str], ranges: Ranges) -> bool:
    """True where the values of all `exprs` together fix the value of axis `name`.

    `varying` axes may differ between two points, all others but `name` are the same.
    """
    return any(_fixes(name, e, varying, ranges) for e in _recovered(exprs))


def _recovered(exprs: Sequence[IndexExpr]) -> list[IndexExpr]:
    """The expressions, and what they give together: `e` from `e floordiv c` and `e mod c`, as fused axes leave it."""
    known = list(exprs)
    waiting = list(exprs)
    while waiting:
        for atom, _ in waiting.pop().terms:
            if not isinstance(atom, Mod):
                continue
            whole = atom.expr
            mod = IndexExpr(((atom, 1),), 0)
            if mod in known and whole // atom.divisor in known and whole not in known:
                known.append(whole)
                waiting.append(whole)
                waiting.extend(e for e in exprs if any(isinstance(a, Mod) for a, _ in e.terms))
    return known


def _fixes(name: str, expr: IndexExpr, varying: set[str], ranges: Ranges) -> bool:
    """True where no other terms of `expr` can make up for a change of its term in `name`."""
    own = abs(expr.coefficient(name))
    if not own:
        return False
    small, large = 0, 0
    for atom, c in expr.terms:
        if atom == name or not _varies(atom, name, varying):
            continue
        low, high = ranges[atom] if isinstance(atom, str) else IndexExpr(((atom, 1),), 0).bounds(ranges)
        if abs(c) > own:
            large = gcd(large, abs(c))
        else:
            small += abs(c) * (high - low)
    low, high = ranges[name]
    return small < own and (large == 0 or large > own * (high - low) + small)


def _varies(atom: Atom, name: str, varying: set[str]) -> bool:
    if isinstance(atom, Div | Mod):
        axes = atom.expr.axes()
        return name in axes or not varying.isdisjoint(axes)
    return atom in varying
