"""Pieces that assembly formats are read from: operands, clauses `key = value`, types, and the operation they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from ....dialects.graph import parse_types

Make: TypeAlias = type[Operation]
Format: TypeAlias = Callable[[Parser, str, Make], Operation]
"""Reads what stands behind an operation's name."""


@dataclass
class Clauses:
    """The parts between an operation's name and its types, in order: operands, words, and values by key."""

    operands: list[UnresolvedOperand]
    words: list[str]
    values: dict[str, Any]


def clauses(parser: Parser) -> Clauses:
    """Read `%a, WORD, key = value, ...`, where a value is a number, a word, a list, or two lists joined by `x`."""
    found = Clauses([], [], {})
    while True:
        operand = parser.parse_optional_unresolved_operand()
        if operand is not None:
            found.operands.append(operand)
        elif (word := parser.parse_optional_identifier()) is not None:
            if parser.parse_optional_punctuation("="):
                found.values[word] = value(parser)
            else:
                found.words.append(word)
        if parser.parse_optional_punctuation(",") is None:
            return found


_ATTRIBUTES = ("affine_map", "array", "dense")
"""Words that attributes begin with."""


def value(parser: Parser) -> Any:
    """Read a number, a word, or a list; `[..] x [..]` is a pair of lists, `<a = 1, ..>` a list of words."""
    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.ANGLE, lambda: _pair(parser))
    if pairs is not None:
        return pairs
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: value(parser))
    if several is not None:
        return (several, value(parser)) if parser.parse_optional_keyword("x") else several
    if parser.parse_optional_keyword("true"):
        return True
    if parser.parse_optional_keyword("false"):
        return False
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return number
    word = None if parser._current_token.text in _ATTRIBUTES else parser.parse_optional_identifier()
    return parser.parse_attribute() if word is None else word


def _pair(parser: Parser) -> str:
    key = parser.parse_identifier()
    parser.parse_punctuation("=")
    return f"{key} = {value(parser)}"


def integers(numbers: Sequence[int]) -> DenseArrayBase[Any]:
    """Return numbers as `array<i64: ...>`."""
    return DenseArrayBase.from_list(i64, list(numbers))


def integer(number: int) -> IntegerAttr[Any]:
    """Return a number as `n : i64`."""
    return IntegerAttr(number, i64)


def word(text: str) -> StringAttr:
    """Return a word as a string."""
    return StringAttr(text)


def parsed(parser: Parser, text: str) -> Attribute:
    """Return an attribute from its text."""
    return Parser(parser.ctx, text).parse_attribute()


def types(parser: Parser) -> list[Attribute]:
    """Read types that commas join."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def signature(parser: Parser, count: int) -> tuple[list[Attribute], list[Attribute]]:
    """Read types behind the colon, of operands and of results.

    `(A, B) -> C` and `A, B -> C` say both; one type alone is that of all, several are those of operands and results.
    """
    parser.parse_punctuation(":")
    known = parser.parse_optional_function_type()
    if isinstance(known, FunctionType):
        return list(known.inputs.data), list(known.outputs.data)
    given = types(parser)
    if parser.parse_optional_punctuation("->"):
        return given, parse_types(parser)
    return (given * count if len(given) == 1 else given), given


def make(
    parser: Parser,
    kind: Make,
    operands: Sequence[UnresolvedOperand],
    operand_types: Sequence[Attribute],
    results: Sequence[Attribute],
    properties: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
) -> Operation:
    """Return the operation that was read."""
    values: Sequence[SSAValue] = parser.resolve_operands(operands, operand_types, parser.pos)
    return kind.create(operands=values, result_types=results, properties=properties or {}, regions=regions)
