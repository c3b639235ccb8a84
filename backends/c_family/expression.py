"""C expressions as text, with what parentheses and reordering need to know about them."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

ATOM, UNARY, MULTIPLY, ADD, SHIFT, RELATION, EQUALITY, AND, XOR, OR, BOTH, EITHER, TERNARY = range(16, 3, -1)
"""Binding strengths of C's operators, strongest first.

ATOM is of names, literals, calls and subscripts; BOTH and EITHER are of `&&` and `||`.
"""


class Place(NamedTuple):
    """An element of a buffer: element `base + constant`, where `base` is the text of a value that never changes."""

    buffer: SSAValue
    base: str
    constant: int

    def may_be(self, other: Place) -> bool:
        """True unless the two are known to be different elements."""
        return self.buffer is other.buffer and (self.base != other.base or self.constant == other.constant)


class Expr(NamedTuple):
    """An expression; `reads` are the elements it loads, `number` its value where it is an integer literal.

    Of integers, `negates` is an expression of the negative value, `plus` a sum's part without constant and its
    constant, `unsigned` an expression of the same value of an unsigned type, and `natural` says it is never negative.
    """

    text: str
    precedence: int = ATOM
    reads: tuple[Place, ...] = ()
    number: int | None = None
    negates: Expr | None = None
    plus: tuple[Expr, int] | None = None
    unsigned: Expr | None = None
    natural: bool = False

    def at_least(self, precedence: int) -> str:
        """Return the text, in parentheses where it binds weaker than asked."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def joined_reads(*expressions: Expr) -> tuple[Place, ...]:
    """Return what evaluating all of them loads."""
    return tuple(place for expression in expressions for place in expression.reads)


def infix(operator: str, precedence: int, a: Expr, b: Expr, associative: bool = False) -> Expr:
    """Return `a operator b`; `associative` lets `b` be of any operator as strong without parentheses.

    That is for sums of integers: in a product, `b` may be a quotient.
    """
    right = b.at_least(precedence if associative else precedence + 1)
    return Expr(f"{a.at_least(precedence)} {operator} {right}", precedence, joined_reads(a, b))


def call(name: str, *arguments: Expr) -> Expr:
    """Return `name(a, b, ...)`."""
    return Expr(f"{name}({', '.join(a.text for a in arguments)})", ATOM, joined_reads(*arguments))


def cast_to(type_name: str, a: Expr) -> Expr:
    """Return `(type)a`."""
    return Expr(f"({type_name}){a.at_least(UNARY)}", UNARY, a.reads)


def ternary(condition: Expr, a: Expr, b: Expr) -> Expr:
    """Return `condition ? a : b`."""
    text = f"{condition.at_least(TERNARY + 1)} ? {a.at_least(TERNARY + 1)} : {b.at_least(TERNARY + 1)}"
    return Expr(text, TERNARY, joined_reads(condition, a, b))


def negated(condition: Expr) -> Expr:
    """Return `!condition`."""
    return Expr(f"!{condition.at_least(UNARY)}", UNARY, condition.reads)
