"""Reads of a block: one element of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from .attributes import IndicesAttr, format_indices, format_where, parse_indices, parse_optional_where
from .index import IndexExpr
from .lookups import parse_positions, print_positions, verify_positions
from .loop_lanes import JOINED, SINGLE, LanesAttr, format_lanes, parse_optional_lanes, verify_lanes


@irdl_op_definition
class LoadOp(IRDLOperation):
    """One element of a buffer; zero where a condition fails, in which case the indices may lie outside.

    Positions behind `at` are as those of an `lw_te.read`: `lw_loop.load %table[?0(i) of 100, j] at (%3 : i64) : ...`.

    In a loop whose iterations are lanes, lowering says which elements these read: `lw_loop.load %b[k, j] as vector`.
    """

    name = "lw_loop.load"
    buffer = operand_def(MemRefType)
    positions = var_operand_def()
    indices = prop_def(IndicesAttr)
    where = opt_prop_def(IndicesAttr)
    lanes = opt_prop_def(LanesAttr)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        buffer: SSAValue,
        indices: Sequence[IndexExpr],
        where: Sequence[IndexExpr] = (),
        lanes: LanesAttr | None = None,
        positions: Sequence[SSAValue] = (),
    ) -> None:
        assert isinstance(buffer.type, MemRefType)
        super().__init__(
            operands=[buffer, positions],
            properties={
                "indices": IndicesAttr(tuple(indices)),
                "where": IndicesAttr(tuple(where)) if where else None,
                "lanes": lanes,
            },
            result_types=[buffer.type.element_type],
        )

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data if self.where is not None else ()

    def verify_(self) -> None:
        assert isinstance(self.buffer.type, MemRefType)
        rank = self.buffer.type.get_num_dims()
        if len(self.indices.data) != rank:
            raise VerifyException(f"{len(self.indices.data)} indices for a buffer of rank {rank}")
        verify_positions(self.indices.data, self.conditions, self.positions)
        if self.lanes is not None:
            verify_lanes(self, f"'{self.buffer.name_hint}'", self.lanes)
            if self.lanes.data.usual in (JOINED, SINGLE):
                raise VerifyException(f"lanes write elements {self.lanes.data}, none is read so")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_string(format_indices(self.indices.data))
        print_positions(printer, self.positions)
        printer.print_string(format_where(self.conditions) + format_lanes(self.lanes) + " : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        operand = parser.parse_unresolved_operand()
        indices = parse_indices(parser)
        positions = parse_positions(parser)
        where = parse_optional_where(parser)
        lanes = parse_optional_lanes(parser)
        parser.parse_punctuation(":")
        buffer_type = parser.parse_type()
        if not isinstance(buffer_type, MemRefType):
            parser.raise_error("expected a memref type")
        buffer = parser.resolve_operand(operand, buffer_type)
        return cls(buffer, indices, where.data if where is not None else (), lanes, positions)
