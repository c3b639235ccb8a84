"""Arrivals of thread blocks: which of several is the last one, and sees what the others have written."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType, StringAttr, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..buffers import buffer_type

COUNTERS = "counters"
"""The scope of counters of arrivals: of a launch, zeros when it starts and when it ends."""


def counters_type(count: int) -> MemRefType[Attribute]:
    """Return the type of so many counters."""
    return buffer_type(i32, [count], COUNTERS)


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """An arrival of a block of threads: `%last = lw_kernel.arrive %c[%tile] of 8 : memref<64xi32, "counters">`.

    True in all threads of the block that comes last of 8 with the same counter, false in those of the others, which
    wait for nobody. What any thread of the 8 wrote to memory before, all threads of the last one see behind. The
    counter is zero again then. All threads of a block take part, with one counter; to them it is a barrier.
    """

    name = "lw_kernel.arrive"
    counters = operand_def(MemRefType)
    index = operand_def(IndexType)
    parts = prop_def(IntAttr)
    last = result_def(i1)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, counters: SSAValue, index: SSAValue, parts: int) -> None:
        super().__init__(operands=[counters, index], properties={"parts": IntAttr(parts)}, result_types=[i1])
        self.last.name_hint = "last"

    def verify_(self) -> None:
        kind = self.counters.type
        assert isinstance(kind, MemRefType)
        if kind.memory_space != StringAttr(COUNTERS) or kind.element_type != i32:
            raise VerifyException(f"blocks arrive at counters, in scope {COUNTERS} and of i32, got {kind}")
        if self.parts.data < 1:
            raise VerifyException(f"at least one block arrives at a counter, got {self.parts.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.counters)
        printer.print_string("[")
        printer.print_ssa_value(self.index)
        printer.print_string(f"] of {self.parts.data} : ")
        printer.print_attribute(self.counters.type)

    @classmethod
    def parse(cls, parser: Parser) -> ArriveOp:
        counters = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            index = parser.parse_unresolved_operand()
        parser.parse_keyword("of")
        parts = parser.parse_integer()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        return cls(parser.resolve_operand(counters, kind), parser.resolve_operand(index, IndexType()), parts)
