"""Reads at positions that a program reads itself: the operands that give them, and what is checked of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .attributes import IndicesAttr
from .index import Atom, Div, IndexExpr, Lookup, Term, axis, linear

POSITION_TYPES = (i32, i64)


def highest_of(position: Attribute) -> int:
    """Return the largest number of a position's type."""
    assert isinstance(position, IntegerType)
    return int((1 << position.width.data - 1) - 1)


def lookups_in(expr: IndexExpr) -> tuple[Lookup, ...]:
    """The numbers of an expression that the program reads."""
    found: list[Lookup] = []
    for atom, _ in expr.terms:
        if isinstance(atom, Lookup):
            found.append(atom)
        elif not isinstance(atom, str):
            found.extend(lookups_in(atom.expr))
    return tuple(found)


def looked_up(expr: IndexExpr, values: Mapping[int, IndexExpr]) -> IndexExpr:
    """Replace what the program reads, operand by operand."""
    terms: list[Term] = []
    const = expr.const
    for atom, c in expr.terms:
        part = _looked_up(atom, values)
        const += part.const * c
        terms.extend((a, k * c) for a, k in part.terms)
    return linear(terms, const)


def _looked_up(atom: Atom, values: Mapping[int, IndexExpr]) -> IndexExpr:
    if isinstance(atom, str):
        return IndexExpr(((atom, 1),), 0)
    if isinstance(atom, Lookup):
        return values[atom.number]
    inner = looked_up(atom.expr, values)
    return inner // atom.divisor if isinstance(atom, Div) else inner % atom.divisor


def lookups_of(indices: Sequence[IndexExpr]) -> dict[int, Lookup]:
    """Numbers of the indices that a program reads, by the number of the operand; of one number, all are the same."""
    return {found.number: found for e in indices for found in lookups_in(e)}


def depending_on(expr: IndexExpr, axes: set[str]) -> IndexExpr:
    """The same expression, of which what the program reads depends on further axes."""
    values: dict[int, IndexExpr] = {}
    for number, found in lookups_of([expr]).items():
        more = sorted(axes.difference(*(a.axes() for a in found.args)))
        values[number] = IndexExpr(((Lookup(number, (*found.args, *map(axis, more)), found.extent), 1),), 0)
    return looked_up(expr, values) if values else expr


def print_positions(printer: Printer, positions: Sequence[SSAValue]) -> None:
    """Print ` at (%0 : i64, %1 : i32)`, or nothing."""
    if not positions:
        return
    printer.print_string(" at (")
    printer.print_list(positions, lambda v: _print_position(printer, v))
    printer.print_string(")")


def _print_position(printer: Printer, value: SSAValue) -> None:
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def parse_positions(parser: Parser) -> list[SSAValue]:
    """Parse what `print_positions` prints."""
    if parser.parse_optional_keyword("at") is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_position(parser))


def _parse_position(parser: Parser) -> SSAValue:
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(operand, parser.parse_type())


def verify_positions(indices: Sequence[IndexExpr], where: Sequence[IndexExpr], positions: Sequence[SSAValue]) -> None:
    """Refuse indices that name other operands than there are, and operands that are no i32 or i64."""
    if any(map(lookups_in, where)):
        raise VerifyException("a condition depends on a position that is read: guard the read by a select")
    every = [found for e in indices for found in lookups_in(e)]
    found = lookups_of(indices)
    if any(found[one.number] != one for one in every):
        raise VerifyException("one operand gives two positions of different bounds or axes")
    if found and max(found) >= len(positions):
        raise VerifyException(f"indices name position ?{max(found)}, {len(positions)} operands give positions")
    for value in positions:
        if value.type not in POSITION_TYPES:
            raise VerifyException(f"a position is an i32 or i64, got {value.type}")


def verify_dependences(what: str, body: Block, moving: Set[str]) -> None:
    """Refuse a read in a body that does not name all of the `moving` axes that its positions depend on.

    On loops that is not asked: where a buffer has places for the stages of a pipeline, the place says nothing of the
    value.
    """
    axes: dict[SSAValue, frozenset[str]] = {}
    for op in body.ops:
        own = axes_named(op).union(*(axes.get(v, frozenset()) for v in op.operands))
        axes.update(dict.fromkeys(op.results, own))
        positions = getattr(op, "positions", ())
        indices = op.properties.get("indices")
        if not positions or not isinstance(indices, IndicesAttr):
            continue
        for number, found in lookups_of(indices.data).items():
            named = frozenset().union(*(a.axes() for a in found.args))
            if missing := axes.get(positions[number], frozenset()) & moving - named:
                raise VerifyException(f"{what}: position {found} depends on '{min(missing)}' as well")


def axes_behind(value: SSAValue) -> frozenset[str]:
    """Every axis in the index expressions of the operations that a value of a body is made of."""
    found: set[str] = set()
    seen: set[Operation] = set()
    waiting = [value.owner]
    while waiting:
        op = waiting.pop()
        if isinstance(op, Operation) and op not in seen and not op.regions:
            seen.add(op)
            found |= axes_named(op)
            waiting.extend(v.owner for v in op.operands)
    return frozenset(found)


def axes_named(op: Operation) -> frozenset[str]:
    """The axes in an operation's own index expressions."""
    found: set[str] = set()
    for name in ("indices", "where", "expr"):
        exprs = op.properties.get(name)
        for expr in exprs.data if isinstance(exprs, IndicesAttr) else ():
            found |= expr.axes()
    return frozenset(found)
