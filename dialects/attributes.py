"""Attributes shared by the dialects: index expressions and named axes, printed the way people write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .index import IndexExpr
from .index_text import IndexSyntax
from .names import check_name


class Axis(NamedTuple):
    """A named iteration axis over `[0, extent)`."""

    name: str
    extent: int
    reduce: bool = False


@irdl_attr_definition
class IndicesAttr(Data[tuple[IndexExpr, ...]]):
    """A list of index expressions: `#lw.indices<i * 4 + 1, j>`."""

    name = "lw.indices"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[IndexExpr, ...]:
        items = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_index_expr(parser))
        return tuple(items)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(map(str, self.data)) + ">")


@irdl_attr_definition
class AxesAttr(Data[tuple[Axis, ...]]):
    """A list of named axes: `#lw.axes<i = 64, reduce k = 128>`."""

    name = "lw.axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Axis, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_axis(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join(format_axis(a) for a in self.data) + ">")


def format_axis(axis: Axis) -> str:
    """`i = 64`, or `reduce k = 128`."""
    return f"{'reduce ' if axis.reduce else ''}{axis.name} = {axis.extent}"


def parse_axis(parser: AttrParser) -> Axis:
    """Parse what `format_axis` prints."""
    name = parser.parse_identifier()
    reduce = False
    if name == "reduce":
        following = parser.parse_optional_identifier()
        if following is not None:
            name, reduce = following, True
    parser.parse_punctuation("=")
    return Axis(name, parser.parse_integer(allow_boolean=False, allow_negative=False), reduce)


def parse_label(parser: AttrParser, what: str) -> str:
    """Parse the quoted name of a tensor, a buffer or the like; a ParseError where it is none."""
    label = parser.parse_str_literal()
    try:
        check_name(what, label)
    except VerifyException as error:
        parser.raise_error(str(error))
    return label


def parse_index_expr(parser: AttrParser) -> IndexExpr:
    """Parse one index expression from the parser's tokens."""

    def symbol(wanted: str) -> bool:
        if wanted in ("floordiv", "mod", "of"):
            return parser.parse_optional_keyword(wanted) is not None
        return wanted in "-+*(),?" and parser.parse_optional_punctuation(wanted) is not None  # type: ignore[arg-type]

    def integer() -> int | None:
        return parser.parse_optional_integer(allow_boolean=False, allow_negative=False)

    return IndexSyntax(symbol, integer, parser.parse_optional_identifier).parse(parser.raise_error)


def parse_indices(parser: AttrParser) -> tuple[IndexExpr, ...]:
    """Parse `[i, j * 2 + 1]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_index_expr(parser)))


def parse_conditions(parser: AttrParser) -> tuple[IndexExpr, ...]:
    """Parse `(e >= 0, f >= 0)` into `(e, f)`."""

    def one() -> IndexExpr:
        expr = parse_index_expr(parser)
        parser.parse_punctuation(">")
        parser.parse_punctuation("=")
        if parser.parse_integer() != 0:
            parser.raise_error("conditions have the form 'expression >= 0'")
        return expr

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, one))


def parse_optional_where(parser: AttrParser) -> IndicesAttr | None:
    """Parse ` where (e >= 0, ...)` if it stands there."""
    if parser.parse_optional_keyword("where") is None:
        return None
    return IndicesAttr(parse_conditions(parser))


def format_indices(indices: Sequence[IndexExpr]) -> str:
    """`[i, j * 2 + 1]`."""
    return "[" + ", ".join(map(str, indices)) + "]"


def format_conditions(conditions: Sequence[IndexExpr]) -> str:
    """`(e >= 0, f >= 0)`."""
    return f"({', '.join(f'{e} >= 0' for e in conditions)})"


def format_where(conditions: Sequence[IndexExpr]) -> str:
    """` where (e >= 0, f >= 0)`, or nothing."""
    return f" where {format_conditions(conditions)}" if conditions else ""


def across_attribute(axes: Sequence[str]) -> ArrayAttr[StringAttr] | None:
    """The property of an operation for blocks of a cluster along these axes; None where there are none."""
    return ArrayAttr(map(StringAttr, axes)) if axes else None


def axes_across(found: ArrayAttr[StringAttr] | None) -> tuple[str, ...]:
    """The axes that such a property says."""
    return tuple(axis.data for axis in found) if found is not None else ()


def format_across(axes: Sequence[str]) -> str:
    """` across [blockIdx.y]`, or nothing."""
    return f" across [{', '.join(axes)}]" if axes else ""


def parse_optional_across(parser: AttrParser) -> Sequence[str]:
    """The axes of `across [blockIdx.y]`, if that comes next."""
    if parser.parse_optional_keyword("across") is None:
        return ()
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
