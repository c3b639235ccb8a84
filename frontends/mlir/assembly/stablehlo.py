"""Assembly formats of StableHLO (and CHLO, whose operations share the common one)."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    StringAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser

from ._reading import Format, Make, clauses, integer, integers, make, parsed, signature, types, value, word

_LISTS = {
    ("broadcast_in_dim", "dims"): "broadcast_dimensions",
    ("dynamic_broadcast_in_dim", "dims"): "broadcast_dimensions",
    ("transpose", "dims"): "permutation",
    ("reverse", "dims"): "dimensions",
    ("dynamic_slice", "sizes"): "slice_sizes",
    ("pad", "low"): "edge_padding_low",
    ("pad", "high"): "edge_padding_high",
    ("pad", "interior"): "interior_padding",
    ("fft", "length"): "fft_length",
}
_NUMBERS = {
    ("concatenate", "dim"): "dimension",
    ("iota", "dim"): "iota_dimension",
    ("dynamic_iota", "dim"): "iota_dimension",
    ("get_dimension_size", "dim"): "dimension",
    ("set_dimension_size", "dim"): "dimension",
}


def common(parser: Parser, name: str, kind: Make) -> Operation:
    """Read `%a, %b, key = value {attributes} : types`; attributes are named as the generic form has them."""
    short = name.partition(".")[2]
    enclosed = parser.parse_optional_punctuation("(") is not None
    found = clauses(parser)
    if enclosed:
        parser.parse_punctuation(")")
    properties = dict(parser.parse_optional_attr_dict())
    for key, given in found.values.items():
        properties.update(_property(parser, short, key, given))
    if short == "compare":
        properties["comparison_direction"] = _direction(parser, name, found.words[0])
        if len(found.words) > 1:
            properties["compare_type"] = parsed(parser, f"#stablehlo<comparison_type {found.words[1]}>")
    count = len(found.operands)
    if not count and not _has_types(parser):
        return make(parser, kind, [], [], [], properties)
    given_types, results = signature(parser, count)
    if short == "return":
        results = []
    elif short == "select" and len(given_types) == 2:
        given_types, results = [given_types[0], given_types[1], given_types[1]], [given_types[1]]
    elif short == "complex" and isinstance(results[0], TensorType) and isinstance(results[0].element_type, ComplexType):
        parts = TensorType(results[0].element_type.element_type, results[0].get_shape())
        given_types, results = [parts, parts], results[:1]
    elif len(given_types) == count and len(results) == count > 1 and short != "optimization_barrier":
        results = results[:1]
    return make(parser, kind, found.operands, given_types, results, properties)


def _has_types(parser: Parser) -> bool:
    return parser._current_token.text == ":"


def _direction(parser: Parser, name: str, direction: str) -> Attribute:
    return parsed(parser, f"#{name.partition('.')[0]}<comparison_direction {direction}>")


def _property(parser: Parser, short: str, key: str, given: Any) -> dict[str, Attribute]:
    if (short, key) in _LISTS:
        return {_LISTS[short, key]: integers(given)}
    if (short, key) in _NUMBERS:
        return {_NUMBERS[short, key]: integer(given)}
    if key in ("contracting_dims", "batching_dims"):
        what = key.replace("dims", "dimensions")
        return {f"{side}_{what}": integers(dims) for side, dims in zip(("lhs", "rhs"), given, strict=True)}
    if isinstance(given, Attribute):
        return {key: given}
    if isinstance(given, list):
        plain = all(isinstance(n, int) for n in given)
        return {key: integers(given) if plain else ArrayAttr([StringAttr(str(n)) for n in given])}
    return {key: integer(given) if isinstance(given, int) else word(str(given))}


def constant(parser: Parser, name: str, kind: Make) -> Operation:
    """`constant dense<..> : type`."""
    properties = dict(parser.parse_optional_attr_dict())
    values: Any = parser.parse_attribute()
    return make(parser, kind, [], [], [values.type], {**properties, "value": values})


def slice(parser: Parser, name: str, kind: Make) -> Operation:
    """`slice %a [0:8, 0:4:2] : (type) -> type`."""
    operand = parser.parse_unresolved_operand()
    ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _range(parser))
    properties: dict[str, Attribute] = dict(parser.parse_optional_attr_dict())
    for k, key in enumerate(("start_indices", "limit_indices", "strides")):
        properties[key] = integers([r[k] for r in ranges])
    given, results = signature(parser, 1)
    return make(parser, kind, [operand], given, results, properties)


def _range(parser: Parser) -> tuple[int, int, int]:
    begin = parser.parse_integer()
    parser.parse_punctuation(":")
    end = parser.parse_integer()
    return begin, end, parser.parse_integer() if parser.parse_optional_punctuation(":") else 1


def reduce(parser: Parser, name: str, kind: Make) -> Operation:
    """`reduce(%a init: %c), (..) applies stablehlo.add across dimensions = [1] : ..`, or with `reducer(..) {..}`."""
    pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _reduced(parser))
    applied = None
    if parser.parse_optional_keyword("applies"):
        applied = parser.parse_identifier()
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    dimensions = integers(value(parser))
    properties = {**parser.parse_optional_attr_dict(), "dimensions": dimensions}
    given, results = signature(parser, 2 * len(pairs))
    operands = [a for a, _ in pairs] + [c for _, c in pairs]
    scalars = given[len(pairs) :]
    if applied is not None:
        region = _applied(parser, applied, scalars[0])
    else:
        parser.parse_keyword("reducer")
        both: list[Any] = []
        while parser.parse_optional_punctuation("("):
            both.append((parser.parse_argument(), parser.parse_punctuation(","), parser.parse_argument()))
            parser.parse_punctuation(")")
        region = parser.parse_region([*(a for a, _, _ in both), *(b for _, _, b in both)])
    return make(parser, kind, operands, given, results, properties, [region])


def _reduced(parser: Parser) -> tuple[Any, Any]:
    parser.parse_punctuation("(")
    operand = parser.parse_unresolved_operand()
    parser.parse_keyword("init")
    parser.parse_punctuation(":")
    start = parser.parse_unresolved_operand()
    parser.parse_punctuation(")")
    return operand, start


def _applied(parser: Parser, operation: str, element: Attribute) -> Region:
    block = Block(arg_types=[element, element])
    joined = parser.ctx.get_op(operation).create(operands=list(block.args), result_types=[element])
    block.add_ops([joined, parser.ctx.get_op("stablehlo.return").create(operands=[joined.results[0]])])
    return Region(block)


def convolution(parser: Parser, name: str, kind: Make) -> Operation:
    """`convolution(%a, %b) dim_numbers = [..]x[..]->[..], window = {..} {..} : (..) -> type`."""
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    numbers, output = [value(parser)], []
    pair = numbers[0]
    lhs, rhs = pair if isinstance(pair, tuple) else (pair, [])
    parser.parse_punctuation("->")
    output = value(parser)
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")
    window = dict(
        parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _clause(parser)),
    )
    properties: dict[str, Attribute] = dict(parser.parse_optional_attr_dict())
    shown = ["[" + ", ".join(map(str, dims)) + "]" for dims in (lhs, rhs, output)]
    properties["dimension_numbers"] = parsed(parser, f"#stablehlo.conv<{shown[0]}x{shown[1]}->{shown[2]}>")
    names = {"stride": "window_strides", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation"}
    for key, given in window.items():
        if key == "pad":
            flat = [n for ends in given for n in ends]
            shape = TensorType(i64, [len(given), 2])
            properties["padding"] = DenseIntOrFPElementsAttr.from_list(shape, flat)
        elif key == "reverse":
            turned = [int(bool(n)) for n in given]
            properties["window_reversal"] = DenseArrayBase.from_list(i1, turned)
        else:
            properties[names[key]] = integers(given)
    given_types, results = signature(parser, 2)
    return make(parser, kind, operands, given_types, results, properties)


def _clause(parser: Parser) -> tuple[str, Any]:
    key = parser.parse_identifier()
    parser.parse_punctuation("=")
    return key, value(parser)


def custom_call(parser: Parser, name: str, kind: Make) -> Operation:
    """`custom_call @target(%a) {..} : (..) -> type`."""
    target = parser.parse_symbol_name()
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    properties = {**parser.parse_optional_attr_dict(), "call_target_name": target}
    given, results = signature(parser, len(operands))
    return make(parser, kind, operands, given, results, properties)


def composite(parser: Parser, name: str, kind: Make) -> Operation:
    """`composite "name" %a {..} : (..) -> type`."""
    label = parser.parse_str_literal()
    found = clauses(parser)
    properties = {**parser.parse_optional_attr_dict(), "name": word(label)}
    given, results = signature(parser, len(found.operands))
    return make(parser, kind, found.operands, given, results, properties)


def while_(parser: Parser, name: str, kind: Make) -> Operation:
    """`while(%i = %a, ..) : types cond {..} do {..}`."""
    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _carried(parser))
    parser.parse_punctuation(":")
    given = types(parser)
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("attributes"):
        properties.update(parser.parse_optional_attr_dict())
    regions = []
    for keyword in ("cond", "do"):
        parser.parse_keyword(keyword)
        names = [argument.resolve(kind_) for (argument, _), kind_ in zip(pairs, given, strict=True)]
        regions.append(parser.parse_region(names))
    return make(parser, kind, [operand for _, operand in pairs], given, given, properties, regions)


def _carried(parser: Parser) -> tuple[Any, Any]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


FORMATS: dict[str, Format] = {
    "constant": constant,
    "slice": slice,
    "reduce": reduce,
    "convolution": convolution,
    "custom_call": custom_call,
    "composite": composite,
    "while": while_,
}
