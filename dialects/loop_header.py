"""The header of a block as text: its iterators with what they are bound to, and the elements that it writes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from .attributes import Axis, format_indices, parse_index_expr, parse_indices
from .index import IndexExpr
from .loop_lanes import LanesAttr, format_lanes, parse_optional_lanes


def format_iterators(axes: Iterable[Axis], bindings: Iterable[IndexExpr]) -> str:
    """`(i in 8 = i0 * 4 + i1, reduce k in 32 = k)`."""
    items = (
        f"{'reduce ' if axis.reduce else ''}{axis.name} in {axis.extent} = {binding}"
        for axis, binding in zip(axes, bindings, strict=True)
    )
    return f"({', '.join(items)})"


def parse_iterators(parser: Parser) -> list[tuple[Axis, IndexExpr]]:
    """Parse iterators, each with what it is bound to, as `format_iterators` writes them."""
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_iterator(parser))


def _parse_iterator(parser: Parser) -> tuple[Axis, IndexExpr]:
    """`reduce` may be the name of an iterator, too."""
    name, reduce = parser.parse_identifier(), False
    if name != "reduce":
        parser.parse_keyword("in")
    elif parser.parse_optional_keyword("in") is None:
        name, reduce = parser.parse_identifier(), True
        parser.parse_keyword("in")
    extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation("=")
    return Axis(name, extent, reduce), parse_index_expr(parser)


def print_writes(
    printer: Printer,
    outputs: Iterable[SSAValue],
    indices: Iterable[tuple[IndexExpr, ...]],
    lanes: Iterable[LanesAttr | None],
) -> None:
    """`%c[i, j] as vector : memref<8x8xf32>` for each output, with commas between them."""
    for number, (output, write, along) in enumerate(zip(outputs, indices, lanes, strict=True)):
        printer.print_string(", " if number else "")
        printer.print_ssa_value(output)
        printer.print_string(format_indices(write) + format_lanes(along) + " : ")
        printer.print_attribute(output.type)


def parse_writes(parser: Parser) -> list[tuple[SSAValue, tuple[IndexExpr, ...], LanesAttr | None]]:
    """Parse outputs, the element that is written of each, and its lanes, as `print_writes` prints them."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_write(parser))


def _parse_write(parser: Parser) -> tuple[SSAValue, tuple[IndexExpr, ...], LanesAttr | None]:
    operand = parser.parse_unresolved_operand()
    indices = parse_indices(parser)
    lanes = parse_optional_lanes(parser)
    parser.parse_punctuation(":")
    return parser.resolve_operand(operand, parser.parse_type()), indices, lanes
