"""Asynchronous copies from global to shared memory: copy, commit a group of copies, wait for groups."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..element import element_bytes
from .address import parse_address, print_address
from .types import INDEX

ASYNC_BYTES = (4, 8, 16)
"""Bytes that one `cp.async` copies (PTX ISA, data movement instructions)."""
ARITHMETIC = "arith."
"""Prefix of operations without effects: of index arithmetic, that may be done where nobody asks for it."""


def copy_instruction(size_bytes: int) -> str:
    """Return the instruction of PTX that copies; past the first-level cache where the hardware can."""
    return f"cp.async.{'cg' if size_bytes == 16 else 'ca'}.shared.global"


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """`lw_kernel.async_copy 4 %a[%i] -> %a_shared[%j + 8] if %there : memref<64xf32> -> memref<32xf32, "shared">`

    Copies 4 elements while the thread goes on; where the condition does not hold it fills in zeros and reads nothing.
    Done when the thread has waited for the group that the next commit closes. Both places are multiples of the size.
    """

    name = "lw_kernel.async_copy"
    source = operand_def(MemRefType)
    source_index = operand_def(IndexType)
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType)
    condition = opt_operand_def(i1)
    source_offset = prop_def(IntAttr)
    target_offset = prop_def(IntAttr)
    lanes = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        source_index: SSAValue,
        source_offset: int,
        target: SSAValue,
        target_index: SSAValue,
        target_offset: int,
        lanes: int,
        condition: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[source, source_index, target, target_index, condition],
            properties={
                "source_offset": IntAttr(source_offset),
                "target_offset": IntAttr(target_offset),
                "lanes": IntAttr(lanes),
            },
        )

    @property
    def size_bytes(self) -> int:
        """Bytes that are copied."""
        assert isinstance(self.source.type, MemRefType)
        size: int = self.lanes.data * element_bytes(self.source.type.element_type)
        return size

    def verify_(self) -> None:
        assert isinstance(self.source.type, MemRefType) and isinstance(self.target.type, MemRefType)
        if self.source.type.element_type != self.target.type.element_type:
            raise VerifyException(f"a copy keeps its type, got {self.source.type} and {self.target.type}")
        if self.size_bytes not in ASYNC_BYTES:
            raise VerifyException(f"a device copies 4, 8 or 16 bytes by itself, got {self.size_bytes}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.lanes.data} ")
        print_address(printer, self.source, self.source_index, self.source_offset.data)
        printer.print_string(" -> ")
        print_address(printer, self.target, self.target_index, self.target_offset.data)
        if self.condition is not None:
            printer.print_string(" if ")
            printer.print_ssa_value(self.condition)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.target.type)

    @classmethod
    def parse(cls, parser: Parser) -> AsyncCopyOp:
        lanes = parser.parse_integer()
        source, source_index, source_offset = parse_address(parser)
        parser.parse_punctuation("->")
        target, target_index, target_offset = parse_address(parser)
        condition = parser.parse_operand(i1) if parser.parse_optional_keyword("if") else None
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_punctuation("->")
        return cls(
            parser.resolve_operand(source, source_type),
            parser.resolve_operand(source_index, INDEX),
            source_offset,
            parser.resolve_operand(target, parser.parse_type()),
            parser.resolve_operand(target_index, INDEX),
            target_offset,
            lanes,
            condition,
        )


def holds_copies_alone(op: scf.IfOp) -> bool:
    """True for an if around copies, which may be under another one each, and what is computed for them."""
    inside = [inner for inner in operations_inside(op) if not inner.name.startswith(ARITHMETIC)]
    if not inside or op.results or op.false_region.blocks:
        return False
    return all(
        isinstance(inner, AsyncCopyOp) or (isinstance(inner, scf.IfOp) and holds_copies_alone(inner))
        for inner in inside
    )


def operations_inside(op: scf.IfOp) -> Iterator[Operation]:
    """The operations that are done where a condition holds."""
    return (inner for inner in op.true_region.block.ops if not isinstance(inner, scf.YieldOp))


@irdl_op_definition
class CommitOp(IRDLOperation):
    """Commit the thread's copies since the last commit as a group, which may be empty: `lw_kernel.commit`."""

    name = "lw_kernel.commit"
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Wait until all of the thread's groups but the last so many are done: `lw_kernel.wait 2`."""

    name = "lw_kernel.wait"
    pending = prop_def(IntAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntAttr(pending)})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pending.data}")

    @classmethod
    def parse(cls, parser: Parser) -> WaitOp:
        return cls(parser.parse_integer())
