"""Lane by lane: lane numbers and masks, and the comparisons, conversions and choices `arith` has for scalars only."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntAttr, IntegerType, StringAttr, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .types import INDEX, element_of, lanes_of, mask_type, vector_of

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
"""The predicates of `arith.cmpi` and `arith.cmpf`, by their numbers."""
CONVERSIONS = {
    op.name.removeprefix("arith."): op
    for op in (
        *(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.SIToFPOp, arith.UIToFPOp),
        *(arith.FPToSIOp, arith.FPToUIOp, arith.IndexCastOp),
    )
}
"""The conversions of `arith` that take scalars only, by name."""


@irdl_op_definition
class LanesOp(IRDLOperation):
    """The lane numbers 0, 1, 2, ... : `%l = lw_kernel.lanes : vector<16xindex>`."""

    name = "lw_kernel.lanes"
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "`:` type($result) attr-dict"

    def __init__(self, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type])


@irdl_op_definition
class MaskOp(IRDLOperation):
    """`%m = lw_kernel.mask %start step -1 : vector<16xi1>`: lane l is on where `%start + l * step >= 0`."""

    name = "lw_kernel.mask"
    start = operand_def(IndexType)
    step = prop_def(IntAttr)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, start: SSAValue, step: int, lanes: int) -> None:
        super().__init__(operands=[start], properties={"step": IntAttr(step)}, result_types=[mask_type(lanes)])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.start)
        printer.print_string(f" step {self.step.data} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> MaskOp:
        start = parser.parse_operand(INDEX)
        parser.parse_keyword("step")
        step = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(start, step, lanes_of(parser.parse_type()))


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Lane by lane: `%m = lw_kernel.compare "sge" %a, %b : vector<16xindex>`, for vectors, which `arith` cannot print.

    Predicates are those of `arith.cmpi` on integers and of `arith.cmpf` on floats, by name.
    """

    name = "lw_kernel.compare"
    predicate = prop_def(StringAttr)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> None:
        Operation.__init__(
            self,
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[vector_of(i1, lanes_of(lhs.type))],
        )

    def verify_(self) -> None:
        known = FLOAT_PREDICATES if isinstance(element_of(self.lhs.type), AnyFloat) else INTEGER_PREDICATES
        if self.lhs.type != self.rhs.type or self.predicate.data not in known:
            raise VerifyException(f"'{self.predicate.data}' does not compare {self.lhs.type} with {self.rhs.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.predicate.data)
        printer.print_string(" ")
        printer.print_ssa_value(self.lhs)
        printer.print_string(", ")
        printer.print_ssa_value(self.rhs)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> CompareOp:
        predicate = parser.parse_str_literal()
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        operand_type = parser.parse_type()
        return cls(predicate, parser.resolve_operand(lhs, operand_type), parser.resolve_operand(rhs, operand_type))


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """Lane by lane: `%w = lw_kernel.convert "extsi" %v : vector<16xi8> -> vector<16xi32>`, by one of `CONVERSIONS`."""

    name = "lw_kernel.convert"
    conversion = prop_def(StringAttr)
    source = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$conversion $source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, conversion: str, source: SSAValue, result_type: Attribute) -> None:
        Operation.__init__(
            self, operands=[source], properties={"conversion": StringAttr(conversion)}, result_types=[result_type]
        )

    def verify_(self) -> None:
        conversion, source, result = self.conversion.data, self.source.type, self.result.type
        if conversion not in CONVERSIONS:
            raise VerifyException(f"'{conversion}' is none of {', '.join(CONVERSIONS)}")
        if lanes_of(source) != lanes_of(result):
            raise VerifyException(f"{source} and {result} differ in their lanes")
        if not _converts(conversion, element_of(source), element_of(result)):
            raise VerifyException(f"'{conversion}' does not convert {source} to {result}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Lane by lane: `%v = lw_kernel.select %m, %a, %b : vector<16xf32>` is `%a` where the mask is on, else `%b`."""

    name = "lw_kernel.select"
    mask = operand_def(VectorType)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, mask: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        Operation.__init__(self, operands=[mask, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        wanted = (vector_of(i1, lanes_of(self.lhs.type)), self.lhs.type, self.lhs.type)
        if (self.mask.type, self.rhs.type, self.result.type) != wanted:
            raise VerifyException(
                f"{self.mask.type} does not select between {self.lhs.type} and {self.rhs.type} as {self.result.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        mask = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        return cls(
            parser.resolve_operand(mask, vector_of(i1, lanes_of(value_type))),
            parser.resolve_operand(lhs, value_type),
            parser.resolve_operand(rhs, value_type),
        )


def _converts(conversion: str, source: Attribute, result: Attribute) -> bool:
    """True where `arith` has the conversion of one element type to another."""
    if conversion == "index_cast":
        pair = (type(source), type(result))
        return pair in ((IndexType, IntegerType), (IntegerType, IndexType))
    if isinstance(source, IntegerType) and isinstance(result, IntegerType):
        widens = result.bitwidth > source.bitwidth
        return conversion in (("extsi", "extui") if widens else ("trunci",)) and result.bitwidth != source.bitwidth
    if isinstance(source, IntegerType):
        return conversion in ("sitofp", "uitofp") and isinstance(result, AnyFloat)
    return conversion in ("fptosi", "fptoui") and isinstance(source, AnyFloat) and isinstance(result, IntegerType)
