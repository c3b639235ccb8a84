"""Operations lane by lane as C: operators, integers that wrap around, and those that are taken as unsigned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from xdsl.ir import Operation

from . import index_arithmetic as index
from .expression import AND, EQUALITY, SHIFT, UNARY, XOR, Expr, cast_to, infix, negated
from .printer import Handler, KernelPrinter
from .types import element_name

Template = Callable[[KernelPrinter, str, Sequence[Expr]], Expr]
"""From a printer, the kind of the first operand and one lane of each operand to one lane of the result."""


def lanewise(template: Template, repeats: bool = False) -> Handler:
    """Handle an operation lane by lane; `repeats` says that the template writes an operand more than once."""

    def handle(p: KernelPrinter, op: Operation) -> None:
        kind = element_name(op.operands[0].type)
        operands = [p.atoms(operand) if repeats else p.lanes(operand) for operand in op.operands]
        p.define(op.results[0], [template(p, kind, lanes) for lanes in zip(*operands, strict=True)])

    return handle


def arithmetic(operator: str, precedence: int, fold: Callable[[int, int], int] | None = None) -> Handler:
    """Handle `a operator b`; results of narrow integers wrap, integer literals fold."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if fold is not None and a.number is not None and b.number is not None and kind != "i1":
            return p.literal(fold(a.number, b.number), kind)
        joined = infix(operator, precedence, a, b)
        return cut(p, kind, joined)

    return lanewise(template)


def wrapping(operator: str, precedence: int, fold: Callable[[int, int], int] | None = None) -> Handler:
    """Handle an integer `a operator b` whose result may be beyond its type, and then is its low bits."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if kind == "index" and operator in _ON_INDICES:
            return _ON_INDICES[operator](a, b)
        if fold is not None and a.number is not None and b.number is not None and kind != "i1":
            return p.literal(fold(a.number, b.number), kind)
        return wrapped(p, operator, precedence, kind, a, b)

    return lanewise(template)


def wrapped(p: KernelPrinter, operator: str, precedence: int, kind: str, a: Expr, b: Expr) -> Expr:
    """Return `a operator b`, of unsigned numbers where C leaves open what follows when a signed one overflows.

    Compilers build on that: of `x * x` they take it that it is not negative, of `x * 2 >> 7` that it is `x >> 6`.
    Arithmetic of narrower integers is done in int, which holds all results.
    """
    if operator == "+" and b.number is not None and b.number < 0:
        return wrapped(p, "-", precedence, kind, a, p.literal(-b.number, kind))
    if kind not in ("i32", "i64") or operator in "&|^":
        joined = infix(operator, precedence, a, b, associative=operator == "+" and kind[0] == "i")
        return cut(p, kind, joined)
    numbers = as_unsigned(p, kind, a), as_unsigned(p, kind, b)
    result = infix(operator, precedence, *numbers, associative=operator == "+")
    return cast_to(p.type_of(kind), result)._replace(unsigned=result)


def cut(p: KernelPrinter, kind: str, value: Expr) -> Expr:
    """Return the low bits of a result of narrow integers, which C computes in int."""
    return cast_to(p.type_of(kind), value) if kind in ("i8", "i16") else value


_ON_INDICES: dict[str, Callable[[Expr, Expr], Expr]] = {"+": index.add, "-": index.subtract, "*": index.multiply}


def unsigned(operator: str, precedence: int) -> Handler:
    """Handle `a operator b` on the operands' bits taken as unsigned numbers."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        if kind == "index" and operator in "/%" and _is_power_of_two(lanes[1].number):
            return _by_bits(operator, lanes[0], lanes[1].number)
        a, b = (as_unsigned(p, kind, lane) for lane in lanes)
        result = infix(operator, precedence, a, b)
        return cast_to(p.type_of(kind), result)._replace(
            unsigned=result if kind not in ("i8", "i16") else None, natural=kind == "index"
        )

    return lanewise(template)


def _is_power_of_two(number: int | None) -> TypeGuard[int]:
    return number is not None and number > 0 and number & (number - 1) == 0


def _by_bits(operator: str, a: Expr, b: int) -> Expr:
    """Return the quotient or remainder of an index, which is not negative, by a power of two."""
    sign, precedence, bits = (">>", SHIFT, b.bit_length() - 1) if operator == "/" else ("&", AND, b - 1)
    return Expr(f"{a.at_least(UNARY)} {sign} {bits}", precedence, a.reads, natural=True)


def as_unsigned(p: KernelPrinter, kind: str, value: Expr) -> Expr:
    """Return a value's bits as an unsigned number."""
    if value.unsigned is not None:
        return value.unsigned
    if value.number is not None and value.number >= 0 and p.type_of(kind) == "int":
        return Expr(f"{value.number}u", number=value.number)
    return cast_to(unsigned_type(p, kind), value)


def unsigned_type(p: KernelPrinter, kind: str) -> str:
    """Return the unsigned integer type of a kind's width."""
    name = p.type_of(kind)
    return "unsigned" if name == "int" else f"unsigned {name.removeprefix('signed ')}"


def exclusive_or(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
    """Return `a ^ b`; of a truth value and true `!a`."""
    a, b = lanes
    if kind != "i1":
        joined = infix("^", XOR, a, b)
        return cut(p, kind, joined)
    return negated(a) if b.text == "true" else infix("!=", EQUALITY, a, b)


def logical(operator: str, precedence: int, on_truth: int) -> Handler:
    """Handle and, or: of truth values the short-circuit forms."""

    def template(p: KernelPrinter, kind: str, lanes: Sequence[Expr]) -> Expr:
        a, b = lanes
        if kind == "i1":
            return infix(operator * 2, on_truth, a, b, associative=True)
        joined = infix(operator, precedence, a, b, associative=True)
        return cut(p, kind, joined)

    return lanewise(template)
