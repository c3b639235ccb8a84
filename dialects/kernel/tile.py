"""Matrix instructions of a CPU's thread: parts of matrices loaded from memory, and products added to others there."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType, StringAttr, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..intrinsics import Intrinsic, find_intrinsic
from .address import parse_address, print_address
from .types import INDEX, vector_of

FACTORS = ("a", "b")


@irdl_op_definition
class TileLoadOp(IRDLOperation):
    """`%t = lw_kernel.tile_load "amx.m16n16k32.bf16" a %x[%i + 8] rows 16 step 1024 : memref<65536xbf16>`

    Loads a factor of an intrinsic as it is held: so many rows of neighbours, whose starts are `step` elements apart.
    """

    name = "lw_kernel.tile_load"
    intrinsic = prop_def(StringAttr)
    operand = prop_def(StringAttr)
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    rows = prop_def(IntAttr)
    step = prop_def(IntAttr)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self, intrinsic: str, operand: str, buffer: SSAValue, index: SSAValue, offset: int, rows: int, step: int
    ) -> None:
        found = _named(intrinsic)
        if operand not in FACTORS:
            raise VerifyException(f"a tile is loaded of a or b, got '{operand}'")
        super().__init__(
            operands=[buffer, index],
            properties={"operand": StringAttr(operand), **_properties(intrinsic, offset, rows, step)},
            result_types=[vector_of(found.fragment(operand).type, found.elements(operand))],
        )

    def meaning(self) -> Intrinsic:
        """The intrinsic; VerifyException where none has the name."""
        return _named(self.intrinsic.data)

    def verify_(self) -> None:
        meaning, operand = self.meaning(), self.operand.data
        _require_rows(self.rows.data, meaning.elements(operand))
        _require_element(self.buffer, meaning.fragment(operand).type, meaning.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.intrinsic)
        printer.print_string(f" {self.operand.data} ")
        _print_place(printer, self.buffer, self)

    @classmethod
    def parse(cls, parser: Parser) -> TileLoadOp:
        intrinsic = _parse_name(parser)
        operand = parser.parse_identifier()
        return cls(intrinsic, operand, *_parse_place(parser))


@irdl_op_definition
class TileStartOp(IRDLOperation):
    """`lw_kernel.tile_start "amx.m16n16k32.bf16" %c[%i] rows 16 step 32 : memref<1024xf32, "local">`

    Writes zeros to sums in memory, where products of an intrinsic are to be added.
    """

    name = "lw_kernel.tile_start"
    intrinsic = prop_def(StringAttr)
    sums = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    rows = prop_def(IntAttr)
    step = prop_def(IntAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, intrinsic: str, sums: SSAValue, index: SSAValue, offset: int, rows: int, step: int) -> None:
        super().__init__(
            operands=[sums, index],
            properties=_properties(intrinsic, offset, rows, step),
        )

    def meaning(self) -> Intrinsic:
        """The intrinsic; VerifyException where none has the name."""
        return _named(self.intrinsic.data)

    def verify_(self) -> None:
        meaning = self.meaning()
        _require_rows(self.rows.data, meaning.elements("c"))
        _require_element(self.sums, meaning.c.type, meaning.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.intrinsic)
        printer.print_string(" ")
        _print_place(printer, self.sums, self)

    @classmethod
    def parse(cls, parser: Parser) -> TileStartOp:
        return cls(_parse_name(parser), *_parse_place(parser))


@irdl_op_definition
class TileProductOp(IRDLOperation):
    """`lw_kernel.tile_product "amx.m16n16k32.bf16" %a, %b, %c[%i] rows 16 step 32 : memref<1024xf32, "local">`

    Adds the product of two loaded factors to sums in memory, whose rows start `step` elements apart.
    """

    name = "lw_kernel.tile_product"
    intrinsic = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    sums = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    rows = prop_def(IntAttr)
    step = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        intrinsic: str,
        a: SSAValue,
        b: SSAValue,
        sums: SSAValue,
        index: SSAValue,
        offset: int,
        rows: int,
        step: int,
    ) -> None:
        super().__init__(
            operands=[a, b, sums, index],
            properties=_properties(intrinsic, offset, rows, step),
        )

    def meaning(self) -> Intrinsic:
        """The intrinsic; VerifyException where none has the name."""
        return _named(self.intrinsic.data)

    def verify_(self) -> None:
        meaning = self.meaning()
        for operand, value in zip(FACTORS, (self.a, self.b), strict=True):
            wanted = vector_of(meaning.fragment(operand).type, meaning.elements(operand))
            if value.type != wanted:
                raise VerifyException(f"{operand} of '{meaning.name}' is {wanted}, got {value.type}")
        _require_rows(self.rows.data, meaning.elements("c"))
        _require_element(self.sums, meaning.c.type, meaning.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.intrinsic)
        printer.print_string(" ")
        printer.print_list((self.a, self.b), printer.print_ssa_value)
        printer.print_string(", ")
        _print_place(printer, self.sums, self)

    @classmethod
    def parse(cls, parser: Parser) -> TileProductOp:
        name = _parse_name(parser)
        found = _named(name)
        a = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        b = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        types = [vector_of(found.fragment(operand).type, found.elements(operand)) for operand in FACTORS]
        left, right = parser.resolve_operand(a, types[0]), parser.resolve_operand(b, types[1])
        return cls(name, left, right, *_parse_place(parser))


def _named(name: str) -> Intrinsic:
    found = find_intrinsic(name)
    if found is None:
        raise VerifyException(f"no intrinsic is called '{name}'")
    return found


def _require_rows(rows: int, elements: int) -> None:
    if rows < 1 or elements % rows:
        raise VerifyException(f"{elements} elements are no {rows} rows")


def _require_element(buffer: SSAValue, element: Attribute, intrinsic: str) -> None:
    if cast(MemRefType[Attribute], buffer.type).element_type != element:
        raise VerifyException(f"'{intrinsic}' takes elements of {element} here, got {buffer.type}")


def _properties(intrinsic: str, offset: int, rows: int, step: int) -> dict[str, Attribute]:
    return {
        "intrinsic": StringAttr(intrinsic),
        "offset": IntAttr(offset),
        "rows": IntAttr(rows),
        "step": IntAttr(step),
    }


def _print_place(printer: Printer, buffer: SSAValue, op: TileLoadOp | TileStartOp | TileProductOp) -> None:
    """Print where rows lie, `%x[%i + 8] rows 16 step 1024 : memref<...>`, without the rows where there is one."""
    print_address(printer, buffer, op.index, op.offset.data)
    if op.rows.data > 1:
        printer.print_string(f" rows {op.rows.data} step {op.step.data}")
    printer.print_string(" : ")
    printer.print_attribute(buffer.type)


def _parse_place(parser: Parser) -> tuple[SSAValue, SSAValue, int, int, int]:
    """Parse what `_print_place` prints: buffer, index, offset, rows and step."""
    buffer, index, offset = parse_address(parser)
    rows, step = 1, 0
    if parser.parse_optional_keyword("rows"):
        rows = parser.parse_integer()
        parser.parse_keyword("step")
        step = parser.parse_integer()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    return parser.resolve_operand(buffer, kind), parser.resolve_operand(index, INDEX), offset, rows, step


def _parse_name(parser: Parser) -> str:
    name = parser.parse_str_literal()
    if find_intrinsic(name) is None:
        parser.raise_error(f"no intrinsic is called '{name}'")
    return name
