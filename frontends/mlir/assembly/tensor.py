"""Assembly formats of the tensor dialect."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser, UnresolvedOperand

from ....dialects.graph import parse_types
from ._reading import Format, Make, integer, integers, make, types, value

DYNAMIC = -(2**63)
"""Stands for a number that is an operand, in `static_offsets` and the like."""


def common(parser: Parser, name: str, kind: Make) -> Operation:
    """Read `%a, %b {attributes} : types to type`, as casts and others have it."""
    operands = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        operands.append(operand)
        parser.parse_optional_punctuation(",")
    properties: dict[str, Attribute] = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    given = types(parser)
    if parser.parse_optional_keyword("to") or parser.parse_optional_keyword("into"):
        return make(parser, kind, operands, given, parse_types(parser), properties)
    return make(parser, kind, operands, given * len(operands), given, properties)


def _mixed(parser: Parser, operands: list[UnresolvedOperand]) -> list[int]:
    """Read `[0, %i, 2]`; operands are appended, and stand as DYNAMIC in what is returned."""

    def one() -> int:
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            return parser.parse_integer()
        operands.append(operand)
        return DYNAMIC

    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)


def empty(parser: Parser, name: str, kind: Make) -> Operation:
    """`empty() : type`, `empty(%n) : type`."""
    sizes = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    properties = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return make(parser, kind, sizes, [IndexType()] * len(sizes), [parser.parse_type()], properties)


def reassociated(parser: Parser, name: str, kind: Make) -> Operation:
    """`expand_shape %a [[0, 1]] output_shape [2, 3] : type into type`; `collapse_shape` has no output_shape."""
    operand = parser.parse_unresolved_operand()
    groups = ArrayAttr([ArrayAttr([IntegerAttr(n, i64) for n in g]) for g in value(parser)])
    properties: dict[str, Attribute] = {"reassociation": groups}
    sizes: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("output_shape"):
        properties["static_output_shape"] = integers(_mixed(parser, sizes))
    properties.update(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    source = parser.parse_type()
    parser.parse_keyword("into")
    kinds = [source, *[IndexType()] * len(sizes)]
    return make(parser, kind, [operand, *sizes], kinds, [parser.parse_type()], properties)


def _places(parser: Parser) -> tuple[list[UnresolvedOperand], list[int], dict[str, Attribute]]:
    """Read `[offsets] [sizes] [strides]`: operands, how many of each, and the numbers."""
    operands: list[UnresolvedOperand] = []
    counts: list[int] = []
    properties: dict[str, Attribute] = {}
    for key in ("static_offsets", "static_sizes", "static_strides"):
        before = len(operands)
        properties[key] = integers(_mixed(parser, operands))
        counts.append(len(operands) - before)
    return operands, counts, properties


def extract_slice(parser: Parser, name: str, kind: Make) -> Operation:
    """`extract_slice %a[0, 0] [2, 3] [1, 1] : type to type`."""
    source = parser.parse_unresolved_operand()
    operands, counts, properties = _places(parser)
    properties.update(parser.parse_optional_attr_dict())
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, *counts])
    parser.parse_punctuation(":")
    given = parser.parse_type()
    parser.parse_keyword("to")
    kinds = [given, *[IndexType()] * len(operands)]
    return make(parser, kind, [source, *operands], kinds, [parser.parse_type()], properties)


def insert_slice(parser: Parser, name: str, kind: Make) -> Operation:
    """`insert_slice %a into %b[0, 0] [2, 3] [1, 1] : type into type`."""
    source = parser.parse_unresolved_operand()
    parser.parse_keyword("into")
    target = parser.parse_unresolved_operand()
    operands, counts, properties = _places(parser)
    properties.update(parser.parse_optional_attr_dict())
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 1, *counts])
    parser.parse_punctuation(":")
    given = parser.parse_type()
    parser.parse_keyword("into")
    result = parser.parse_type()
    kinds = [given, result, *[IndexType()] * len(operands)]
    return make(parser, kind, [source, target, *operands], kinds, [result], properties)


def pad(parser: Parser, name: str, kind: Make) -> Operation:
    """`pad %a nofold low[0, 1] high[0, 1] {^bb0(..): ..} : type to type`."""
    source = parser.parse_unresolved_operand()
    properties: dict[str, Attribute] = {}
    parser.parse_optional_keyword("nofold")
    operands: list[UnresolvedOperand] = []
    counts = []
    for key in ("low", "high"):
        parser.parse_keyword(key)
        before = len(operands)
        properties[f"static_{key}"] = integers(_mixed(parser, operands))
        counts.append(len(operands) - before)
    region = parser.parse_region()
    properties.update(parser.parse_optional_attr_dict())
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, *counts])
    parser.parse_punctuation(":")
    given = parser.parse_type()
    parser.parse_keyword("to")
    kinds = [given, *[IndexType()] * len(operands)]
    return make(parser, kind, [source, *operands], kinds, [parser.parse_type()], properties, [region])


def concat(parser: Parser, name: str, kind: Make) -> Operation:
    """`concat dim(1) %a, %b : (types) -> type`."""
    parser.parse_keyword("dim")
    parser.parse_punctuation("(")
    axis = parser.parse_integer()
    parser.parse_punctuation(")")
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    properties = {**parser.parse_optional_attr_dict(), "dim": integer(axis)}
    parser.parse_punctuation(":")
    signature = parser.parse_function_type()
    return make(parser, kind, operands, signature.inputs.data, signature.outputs.data, properties)


def extract(parser: Parser, name: str, kind: Make) -> Operation:
    """`extract %a[%i, %j] : type`."""
    source = parser.parse_unresolved_operand()
    places = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    given: Any = parser.parse_type()
    kinds = [given, *[IndexType()] * len(places)]
    return make(parser, kind, [source, *places], kinds, [given.get_element_type()])


def gather(parser: Parser, name: str, kind: Make) -> Operation:
    """`gather %a[%places] gather_dims([0, 1]) unique : (type, type) -> type`."""
    source = parser.parse_unresolved_operand()
    (places,) = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    parser.parse_keyword("gather_dims")
    parser.parse_punctuation("(")
    properties: dict[str, Attribute] = {"gather_dims": integers(value(parser))}
    parser.parse_punctuation(")")
    if parser.parse_optional_keyword("unique"):
        properties["unique"] = UnitAttr()
    properties.update(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    signature = parser.parse_function_type()
    return make(parser, kind, [source, places], signature.inputs.data, signature.outputs.data, properties)


def insert(parser: Parser, name: str, kind: Make) -> Operation:
    """`insert %s into %a[%i, %j] : type`."""
    scalar = parser.parse_unresolved_operand()
    parser.parse_keyword("into")
    target = parser.parse_unresolved_operand()
    places = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    given: Any = parser.parse_type()
    kinds = [given.get_element_type(), given, *[IndexType()] * len(places)]
    return make(parser, kind, [scalar, target, *places], kinds, [given])


def packed(parser: Parser, name: str, kind: Make) -> Operation:
    """`pack %a padding_value(%c : f32) inner_dims_pos = [0] inner_tiles = [8] into %b : type -> type`, and `unpack`."""
    source = parser.parse_unresolved_operand()
    extra: list[tuple[UnresolvedOperand, Attribute]] = []
    if parser.parse_optional_keyword("padding_value"):
        parser.parse_punctuation("(")
        scalar = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        extra.append((scalar, parser.parse_type()))
        parser.parse_punctuation(")")
    properties: dict[str, Attribute] = {}
    names = {"inner_tiles": "static_inner_tiles"}
    while not parser.parse_optional_keyword("into"):
        key = parser.parse_identifier()
        parser.parse_punctuation("=")
        properties[names.get(key, key)] = integers(value(parser))
    target = parser.parse_unresolved_operand()
    properties.update(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    given = parser.parse_type()
    parser.parse_punctuation("->")
    result = parser.parse_type()
    operands, kinds = [source, target, *(o for o, _ in extra)], [given, result, *(t for _, t in extra)]
    return make(parser, kind, operands, kinds, [result], properties)


def from_elements(parser: Parser, name: str, kind: Make) -> Operation:
    """`from_elements %a, %b : type`, `splat %a : type`."""
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    properties = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    result: Any = parser.parse_type()
    return make(parser, kind, operands, [result.get_element_type()] * len(operands), [result], properties)


def reshape(parser: Parser, name: str, kind: Make) -> Operation:
    """`reshape %a(%shape) : (type, type) -> type`."""
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation("(")
    shape = parser.parse_unresolved_operand()
    parser.parse_punctuation(")")
    parser.parse_punctuation(":")
    signature = parser.parse_function_type()
    return make(parser, kind, [source, shape], signature.inputs.data, signature.outputs.data)


def generate(parser: Parser, name: str, kind: Make) -> Operation:
    """`generate %n {^bb0(%i: index): .. tensor.yield %a : f32} : type`."""
    sizes = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        sizes.append(operand)
        parser.parse_optional_punctuation(",")
    region = parser.parse_region()
    parser.parse_punctuation(":")
    return make(parser, kind, sizes, [IndexType()] * len(sizes), [parser.parse_type()], {}, [region])


def dim(parser: Parser, name: str, kind: Make) -> Operation:
    """`dim %a, %axis : type`."""
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    return make(parser, kind, operands, [parser.parse_type(), IndexType()], [IndexType()])


def yield_(parser: Parser, name: str, kind: Make) -> Operation:
    """`yield %a : type`."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return make(parser, kind, [operand], [parser.parse_type()], [])


FORMATS: dict[str, Format] = {
    "empty": empty,
    "expand_shape": reassociated,
    "collapse_shape": reassociated,
    "extract_slice": extract_slice,
    "insert_slice": insert_slice,
    "pad": pad,
    "concat": concat,
    "extract": extract,
    "gather": gather,
    "insert": insert,
    "pack": packed,
    "unpack": packed,
    "from_elements": from_elements,
    "splat": from_elements,
    "reshape": reshape,
    "generate": generate,
    "dim": dim,
    "yield": yield_,
}
