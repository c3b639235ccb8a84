"""Addresses as people write them: constants last, differences instead of sums with negative terms.

Index arithmetic does not overflow, so its terms may change places.
"""

from __future__ import annotations

from .expression import ADD, ATOM, EQUALITY, MULTIPLY, UNARY, Expr, infix

_MIRRORED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "==", "!=": "!="}


def literal(value: int) -> Expr:
    """Return an integer literal."""
    return Expr(str(value), UNARY if value < 0 else ATOM, number=value)


def terms(a: Expr) -> tuple[Expr | None, int]:
    """Return an expression as a part without constant and a constant."""
    if a.number is not None:
        return None, a.number
    return a.plus or (a, 0)


def plus(base: Expr | None, constant: int) -> Expr:
    """Return `base + constant`."""
    if base is None:
        return literal(constant)
    if not constant:
        return base
    if base.negates is not None and constant > 0:
        text = infix("-", ADD, literal(constant), base.negates)
    else:
        text = infix("-" if constant < 0 else "+", ADD, base, literal(abs(constant)))
    return text._replace(plus=(base, constant))


def add(a: Expr, b: Expr) -> Expr:
    """Return `a + b`."""
    (x, m), (y, n) = terms(a), terms(b)
    if x is None or y is None:
        return plus(x or y, m + n)
    return plus(_sum(x, y), m + n)


def _sum(a: Expr, b: Expr) -> Expr:
    if b.negates is not None:
        difference = infix("-", ADD, a, b.negates)
        return difference._replace(negates=_sum(a.negates, b.negates)) if a.negates is not None else difference
    if a.negates is not None:
        return infix("-", ADD, b, a.negates)
    return infix("+", ADD, a, b, associative=True)


def negative(a: Expr) -> Expr:
    """Return `-a`."""
    if a.number is not None:
        return literal(-a.number)
    if a.negates is not None:
        return a.negates
    return Expr(f"-{a.at_least(UNARY + 1)}", UNARY, a.reads, negates=a)


def subtract(a: Expr, b: Expr) -> Expr:
    """Return `a - b`."""
    (x, m), (y, n) = terms(a), terms(b)
    if y is None:
        return plus(x, m - n)
    if x is None:
        return plus(negative(y), m - n)
    return plus(_sum(x, y.negates) if y.negates is not None else infix("-", ADD, x, y), m - n)


def multiply(a: Expr, b: Expr) -> Expr:
    """Return `a * b`."""
    if a.number is not None:
        a, b = b, a
    if a.number is not None and b.number is not None:
        return literal(a.number * b.number)
    if b.number == 1:
        return a
    if b.number == -1:
        return negative(a)
    if b.number is not None and b.number < 0:
        return infix("*", MULTIPLY, a, b)._replace(negates=infix("*", MULTIPLY, a, literal(-b.number)))
    return infix("*", MULTIPLY, a, b)


def compare(sign: str, precedence: int, a: Expr, b: Expr) -> Expr:
    """Return `a sign b` with the constants on the right."""
    (x, m), (y, n) = terms(a), terms(b)
    if x is None or y is not None:
        return infix(sign, precedence, a, b)
    bound = n - m
    if x.negates is not None:
        x, bound, sign = x.negates, -bound, _MIRRORED[sign]
    if x.natural and sign == "<=" and bound == 0:
        return infix("==", EQUALITY, x, literal(0))
    return infix(sign, precedence, x, literal(bound))
