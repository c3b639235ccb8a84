"""Conditions on a block's iterators that follow from its predicate, whatever loops they are bound to."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import TypeAlias

from ...dialects.index import Atom, IndexExpr, Mod, axis, constant
from ...dialects.loop import BlockOp

Unknown: TypeAlias = "Atom | tuple[str, ...]"
"""An atom of the loops, an iterator as `(name,)`, or `()` for 1."""

Row: TypeAlias = "dict[Unknown, Fraction]"
"""A linear combination of unknowns."""


def conditions_on_iterators(block: BlockOp) -> list[IndexExpr] | None:
    """The predicate of `block` over its iterators, without what their domains imply; None where it has no such form.

    A predicate that only cuts off the tails of split loops comes out empty.
    """
    if not block.conditions:
        return []
    ranges = {a.name: (0, a.extent - 1) for a in block.axes}
    needed: list[IndexExpr] = []
    for condition in block.conditions:
        translated = _combination(condition, block.bindings.data, [a.name for a in block.axes])
        if translated is None:
            return None
        if translated.bounds(ranges)[0] < 0 and translated not in needed:
            needed.append(translated)
    return needed


def _combination(expr: IndexExpr, bindings: Sequence[IndexExpr], names: Sequence[str]) -> IndexExpr | None:
    """Return a positive multiple of `expr` as a combination of the named `bindings` and a constant, where there is one.

    Gaussian elimination with the atoms of the bindings as unknowns; an iterator is the unknown `(name,)`.
    """
    pivots: list[tuple[Atom, Row]] = []
    for name, binding in zip(names, bindings, strict=True):
        row = _row(binding)
        row[(name,)] = Fraction(-1)
        _eliminate(row, pivots)
        atom = next((a for a in row if not isinstance(a, tuple)), None)
        if atom is not None:
            pivots.append((atom, row))
    rest = _row(expr)
    _eliminate(rest, pivots)
    if not all(isinstance(a, tuple) for a in rest):
        return None
    scale = lcm(*(c.denominator for c in rest.values()))
    result = constant(0)
    for unknown, c in rest.items():
        term = axis(unknown[0]) if unknown else constant(1)  # type: ignore[index]
        result = result + term * int(c * scale)
    return result


def _eliminate(row: Row, pivots: Sequence[tuple[Atom, Row]]) -> None:
    """Remove the pivots' atoms from `row`, in place."""
    for atom, pivot in pivots:
        if atom not in row:
            continue
        factor = row[atom] / pivot[atom]
        for other, c in pivot.items():
            value = row.get(other, Fraction(0)) - factor * c
            if value:
                row[other] = value
            else:
                row.pop(other, None)


def _row(expr: IndexExpr) -> Row:
    """Return the terms of `expr`, with `e mod c` as `e - c * (e floordiv c)`."""
    row: Row = {}
    if expr.const:
        row[()] = Fraction(expr.const)
    for atom, c in expr.terms:
        parts: Row = {atom: Fraction(1)}
        if isinstance(atom, Mod):
            parts = _row(atom.expr)
            for part, k in _row(atom.expr // atom.divisor).items():
                parts[part] = parts.get(part, Fraction(0)) - k * atom.divisor
        for part, k in parts.items():
            row[part] = row.get(part, Fraction(0)) + k * c
    return {atom: c for atom, c in row.items() if c}
