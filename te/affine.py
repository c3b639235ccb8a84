"""Affine analysis of expressions: which are index expressions, and conditions as conjunctions of `expression >= 0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..dialects.index import IndexExpr, Ranges, constant
from ..dialects.numpy_types import FLOATS
from .expr import Binary, Cast, Compare, Const, Expr, IterVar, Logic, Not

AxisNames: TypeAlias = Mapping[IterVar, IndexExpr]
"""Index of each axis of a compute, its lower bound added."""

_TURNED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def to_index(expr: Expr, names: AxisNames) -> IndexExpr | None:
    """The expression over axis names, or None where it is not affine with floordiv and mod by positive constants."""
    if expr.dtype not in ("int32", "int64"):
        return None
    if isinstance(expr, Const):
        return constant(int(expr.value))
    if isinstance(expr, IterVar):
        return names.get(expr)
    if isinstance(expr, Cast):
        return to_index(expr.operand, names)
    if not isinstance(expr, Binary):
        return None
    left, right = to_index(expr.left, names), to_index(expr.right, names)
    if left is None or right is None:
        return None
    if expr.op == "add":
        return left + right
    if expr.op == "sub":
        return left - right
    if expr.op == "mul" and (left.is_constant or right.is_constant):
        return left * right.const if right.is_constant else right * left.const
    if expr.op in ("floordiv", "mod") and right.is_constant and right.const > 0:
        return left // right.const if expr.op == "floordiv" else left % right.const
    return None


def normalise(condition: Expr) -> Expr:
    """The same condition with `not` pushed down to reads and float comparisons (NaN: not a < b is not a >= b)."""
    if isinstance(condition, Logic):
        return Logic(condition.op, normalise(condition.left), normalise(condition.right))
    return negate(condition.operand) if isinstance(condition, Not) else condition


def negate(condition: Expr) -> Expr:
    """Negate a condition; the result is normalised."""
    if isinstance(condition, Not):
        return normalise(condition.operand)
    if isinstance(condition, Logic):
        other = "or" if condition.op == "and" else "and"
        return Logic(other, negate(condition.left), negate(condition.right))
    if isinstance(condition, Compare) and condition.left.dtype not in FLOATS:
        return Compare(_TURNED[condition.op], condition.left, condition.right)
    return Not(condition)


def inequalities(condition: Expr, names: AxisNames) -> tuple[IndexExpr, ...] | None:
    """Return the index expressions that must be at least 0 for a comparison of two index expressions, or None."""
    if not isinstance(condition, Compare) or condition.op == "ne":
        return None
    left, right = to_index(condition.left, names), to_index(condition.right, names)
    if left is None or right is None:
        return None
    above, below = left - right, right - left
    return {"ge": (above,), "gt": (above - 1,), "le": (below,), "lt": (below - 1,), "eq": (above, below)}[condition.op]


def split(condition: Expr, names: AxisNames) -> tuple[tuple[IndexExpr, ...], tuple[Expr, ...]]:
    """Split a normalised condition into a conjunction: its index inequalities, and what is none."""
    if isinstance(condition, Logic) and condition.op == "and":
        left, right = split(condition.left, names), split(condition.right, names)
        return left[0] + right[0], left[1] + right[1]
    found = inequalities(condition, names)
    return ((), (condition,)) if found is None else (found, ())


def prune(conditions: Sequence[IndexExpr], ranges: Ranges) -> tuple[IndexExpr, ...] | None:
    """Drop the conditions that always hold, and repeats; None where one never holds."""
    kept: list[IndexExpr] = []
    for condition in conditions:
        simple = tidy(condition, ranges)
        lowest, highest = simple.bounds(ranges)
        if highest < 0:
            return None
        if lowest < 0 and simple not in kept:
            kept.append(simple)
    return tuple(kept)


def tidy(expr: IndexExpr, ranges: Ranges) -> IndexExpr:
    """The expression with needless floordiv and mod dropped; plain sums stay as written, axes of extent 1 too."""
    return expr if all(isinstance(atom, str) for atom, _ in expr.terms) else expr.simplify(ranges)
