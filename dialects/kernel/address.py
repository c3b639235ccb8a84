"""The text of what an access names: `%b[%i + 4] stride 1 mask %m align 16`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer


def print_address(printer: Printer, buffer: SSAValue, index: SSAValue, offset: int) -> None:
    printer.print_ssa_value(buffer)
    printer.print_string("[")
    printer.print_ssa_value(index)
    printer.print_string(f" {'-' if offset < 0 else '+'} {abs(offset)}]" if offset else "]")


def parse_address(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand, int]:
    buffer = parser.parse_unresolved_operand()
    place = parse_optional_place(parser)
    if place is None:
        parser.raise_error("expected the place of an element: [%index + 4]")
    return buffer, *place


def parse_optional_place(parser: Parser) -> tuple[UnresolvedOperand, int] | None:
    if not parser.parse_optional_punctuation("["):
        return None
    index = parser.parse_unresolved_operand()
    offset = 0
    if parser.parse_optional_punctuation("+"):
        offset = parser.parse_integer()
    elif parser.parse_optional_punctuation("-"):
        offset = -parser.parse_integer()
    parser.parse_punctuation("]")
    return index, offset


def print_lanes(printer: Printer, stride: int, mask: SSAValue | None, align: IntAttr | None) -> None:
    if stride != 1:
        printer.print_string(f" stride {stride}")
    if mask is not None:
        printer.print_string(" mask ")
        printer.print_ssa_value(mask)
    if align is not None:
        printer.print_string(f" align {align.data}")


def parse_lanes(parser: Parser) -> tuple[int, UnresolvedOperand | None, int]:
    stride = parser.parse_integer() if parser.parse_optional_keyword("stride") else 1
    mask = parser.parse_unresolved_operand() if parser.parse_optional_keyword("mask") else None
    align = parser.parse_integer() if parser.parse_optional_keyword("align") else 0
    return stride, mask, align
