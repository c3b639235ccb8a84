"""Assembly formats of linalg on tensors: one for all named operations and `generic`, and those of its terminators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, TensorType, i32
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser, UnresolvedOperand

from ....dialects.graph import parse_types
from ._reading import Format, Make, integer, integers, make, types, value
from .tensor import packed

_BY_NAME = ("map", "reduce")
"""Operations whose region may be an operation's name, `{ arith.addf }`."""


def common(parser: Parser, name: str, kind: Make) -> Operation:
    """Read `{attributes} ins(%a : type) outs(%b : type) key = [..] (%arg: type) {..} -> type`."""
    short = name.partition(".")[2]
    properties: dict[str, Attribute] = {}
    applied = _applied_name(parser) if short in _BY_NAME else None
    _clauses(parser, properties, braces=True)
    inputs = _operands(parser, "ins")
    outputs = _operands(parser, "outs")
    _clauses(parser, properties)
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
        properties.update(parser.parse_optional_attr_dict())
    region = _region(parser)
    if applied is not None:
        region = _applied(parser, applied, inputs, outputs, first=short == "reduce")
    results = parse_types(parser) if parser.parse_optional_punctuation("->") else []
    if not results and short in ("transpose", "broadcast", "reduce", "map"):
        results = [t for _, t in outputs if isinstance(t, TensorType)]
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(inputs), len(outputs)])
    both = [*inputs, *outputs]
    regions = [region] if region is not None else []
    return make(parser, kind, [o for o, _ in both], [t for _, t in both], results, properties, regions)


def _applied_name(parser: Parser) -> str | None:
    """Read `{ arith.addf }`; the parser stays where it is before anything else."""
    start = parser._current_token.span.start
    if parser.parse_optional_punctuation("{") is None:
        return None
    word = parser.parse_optional_identifier()
    if word is None or "." not in word:
        parser._resume_from(start)
        return None
    parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    return word


def _clauses(parser: Parser, properties: dict[str, Attribute], braces: bool = False) -> None:
    """Read attributes in braces, `<{..}>`, `key = value` and `dimension(1)`."""
    while True:
        if parser._current_token.text == "<":
            properties.update(parser.parse_optional_properties_dict())
        elif parser._current_token.text == "{" and braces:
            properties.update(parser.parse_optional_attr_dict())
        elif parser._current_token.text in ("ins", "outs", "attrs") or not _is_key(parser):
            return
        else:
            key = parser.parse_identifier()
            if parser.parse_optional_punctuation("("):
                properties[key] = integer(parser.parse_integer())
                parser.parse_punctuation(")")
            else:
                parser.parse_punctuation("=")
                properties[key] = _attribute(value(parser))


def _is_key(parser: Parser) -> bool:
    text = parser._current_token.text
    return text[:1].isalpha() and "." not in text


def _attribute(given: Any) -> Attribute:
    if isinstance(given, Attribute):
        return given
    if isinstance(given, list) and all(isinstance(n, int) for n in given):
        return integers(given)
    return ArrayAttr([_attribute(g) for g in given]) if isinstance(given, list) else integer(given)


def _operands(parser: Parser, keyword: str) -> list[tuple[UnresolvedOperand, Attribute]]:
    if not parser.parse_optional_keyword(keyword):
        return []
    parser.parse_punctuation("(")
    found: list[UnresolvedOperand] = []
    if parser.parse_optional_punctuation(")"):
        return []
    found = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    kinds = types(parser)
    parser.parse_punctuation(")")
    return list(zip(found, kinds, strict=True))


def _region(parser: Parser) -> Region | None:
    if parser._current_token.text == "(":
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        return parser.parse_region(arguments)
    return parser.parse_optional_region()


def _applied(
    parser: Parser,
    operation: str,
    inputs: Sequence[tuple[UnresolvedOperand, Attribute]],
    outputs: Sequence[tuple[UnresolvedOperand, Attribute]],
    first: bool,
) -> Region:
    """Return the region of one operation, on elements of the inputs; with `first`, on what was reduced before them."""
    both: list[Any] = [kind for _, kind in (*inputs, *(outputs if first else ()))]
    block = Block(arg_types=[kind.get_element_type() for kind in both])
    arguments = list(block.args)[::-1] if first else list(block.args)
    element = outputs[0][1]
    assert isinstance(element, TensorType)
    made = parser.ctx.get_op(operation).create(operands=arguments, result_types=[element.get_element_type()])
    block.add_ops([made, parser.ctx.get_op("linalg.yield").create(operands=[made.results[0]])])
    return Region(block)


def index(parser: Parser, name: str, kind: Make) -> Operation:
    """`index 0 : index`."""
    place = parser.parse_integer()
    parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    parser.parse_type()
    return make(parser, kind, [], [], [IndexType()], {"dim": integer(place)})


def yield_(parser: Parser, name: str, kind: Make) -> Operation:
    """`yield %a, %b : types`."""
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return make(parser, kind, [], [], [])
    operands = [operand]
    while parser.parse_optional_punctuation(","):
        operands.append(parser.parse_unresolved_operand())
    parser.parse_punctuation(":")
    return make(parser, kind, operands, types(parser), [])


FORMATS: dict[str, Format] = {"index": index, "yield": yield_, "pack": packed, "unpack": packed}
