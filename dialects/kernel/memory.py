"""Flat buffers in a scope, and what reads and writes them: loads and stores, gathers and scatters, prefetches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd, prod
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntAttr, MemRefType, StringAttr, VectorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..attributes import parse_label
from ..element import element_bytes
from ..names import check_name
from ..target import WIDEST_ACCESS_BYTES
from .address import parse_address, parse_lanes, print_address, print_lanes
from .types import INDEX, element_of, lanes_of, mask_type

SHARED_ALIGNMENT = 16
"""Bytes that each shared buffer starts at a multiple of."""


def shared_offsets(allocations: Iterable[AllocOp]) -> tuple[dict[AllocOp, int], int]:
    """Places in bytes of a block's shared buffers, the most aligned ones first, and the end of all."""
    offsets, end = dict[AllocOp, int](), 0
    for alloc in sorted(allocations, key=lambda alloc: -alloc.align_bytes):
        kind = alloc.buffer.type
        assert isinstance(kind, MemRefType)
        offsets[alloc] = -(-end // alloc.align_bytes) * alloc.align_bytes
        size = prod(kind.get_shape()) * element_bytes(kind.element_type)
        end = -(-(offsets[alloc] + size) // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
    return offsets, end


class Chunk(NamedTuple):
    """Lanes `first` to `first + lanes` of a vector, moved by one access."""

    first: int
    lanes: int


def chunks(lanes: int, size: int, align: int, widths: Sequence[int]) -> Iterator[Chunk]:
    """Cut a vector of elements of `size` bytes, whose first is aligned to `align` bytes, into what one access moves.

    `widths` are the numbers of elements that one can move, widest first.
    """
    first = 0
    widths = [width for width in widths if width * size <= WIDEST_ACCESS_BYTES]
    while first < lanes:
        known = gcd(align, first * size) if align else size
        width = next((w for w in widths if first + w <= lanes and known % (w * size) == 0), 1)
        yield Chunk(first, width)
        first += width


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A flat buffer: `%b = lw_kernel.alloc "b" : memref<4096xf32, "local">`, of as many elements as the type says.

    Scope `local` is registers or stack, of one thread; no scope is memory: one buffer for all threads outside of
    `lw_kernel.parallel`, one for each thread inside. Its content is undefined until written; it starts on a cache line,
    in scope `shared` at a multiple of 16 bytes, or of as many as `align 1024` behind its name says.
    """

    name = "lw_kernel.alloc"
    label = prop_def(StringAttr)
    align = opt_prop_def(IntAttr)
    buffer = result_def(MemRefType)

    def __init__(self, label: str, buffer_type: Attribute, align: int = 0) -> None:
        super().__init__(
            properties={"label": StringAttr(label), "align": IntAttr(align) if align else None},
            result_types=[buffer_type],
        )
        self.buffer.name_hint = label

    @property
    def align_bytes(self) -> int:
        """Bytes that it starts at a multiple of, in scope shared."""
        return self.align.data if self.align is not None else SHARED_ALIGNMENT

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.align is not None:
            printer.print_string(f" align {self.align_bytes}")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        label = parse_label(parser, "a buffer")
        align = parser.parse_integer() if parser.parse_optional_keyword("align") else 0
        parser.parse_punctuation(":")
        return cls(label, parser.parse_type(), align)

    def verify_(self) -> None:
        check_name("a buffer", self.label.data)
        if self.align_bytes < SHARED_ALIGNMENT or self.align_bytes & (self.align_bytes - 1):
            rule = f"a multiple of {SHARED_ALIGNMENT} bytes that is a power of two"
            raise VerifyException(f"buffer '{self.label.data}' starts at {rule}, got {self.align_bytes}")
        assert isinstance(self.buffer.type, MemRefType)
        if self.buffer.type.get_num_dims() != 1:
            raise VerifyException(f"buffer '{self.label.data}' is {self.buffer.type}, kernel buffers are flat")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """`%v = lw_kernel.load %b[%i + 4] stride 1 mask %m : memref<64xf32> -> vector<16xf32>`

    Lane l reads element `%i + 4 + l * stride`; lanes whose mask bit is off read zero and touch no memory. `align 16`
    says that the address of lane 0 is known to be a multiple of so many bytes, if the buffer starts at one.
    """

    name = "lw_kernel.load"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    mask = opt_operand_def()
    offset = prop_def(IntAttr)
    stride = prop_def(IntAttr)
    align = opt_prop_def(IntAttr)
    value = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue,
        offset: int,
        result_type: Attribute,
        stride: int = 1,
        mask: SSAValue | None = None,
        align: int = 0,
    ) -> None:
        super().__init__(
            operands=[buffer, index, mask],
            properties={
                "offset": IntAttr(offset),
                "stride": IntAttr(stride),
                "align": IntAttr(align) if align else None,
            },
            result_types=[result_type],
        )

    def verify_(self) -> None:
        _verify_access(self.buffer, self.value.type, self.mask)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_address(printer, self.buffer, self.index, self.offset.data)
        print_lanes(printer, self.stride.data, self.mask, self.align)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer, index, offset = parse_address(parser)
        stride, mask, align = parse_lanes(parser)
        parser.parse_punctuation(":")
        buffer_type = parser.parse_type()
        parser.parse_punctuation("->")
        value_type = parser.parse_type()
        return cls(
            parser.resolve_operand(buffer, buffer_type),
            parser.resolve_operand(index, INDEX),
            offset,
            value_type,
            stride,
            parser.resolve_operand(mask, mask_type(lanes_of(value_type))) if mask is not None else None,
            align,
        )


BACKWARDS = "lw.backwards"
"""Attribute of a store to registers whose lanes are to be computed from the last one on."""


@irdl_op_definition
class StoreOp(IRDLOperation):
    """`lw_kernel.store %v, %b[%i + 4] stride 1 mask %m : vector<16xf32>, memref<64xf32>`

    Lane l writes element `%i + 4 + l * stride`; lanes whose mask bit is off touch no memory.
    """

    name = "lw_kernel.store"
    value = operand_def()
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    mask = opt_operand_def()
    offset = prop_def(IntAttr)
    stride = prop_def(IntAttr)
    align = opt_prop_def(IntAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: SSAValue,
        offset: int,
        stride: int = 1,
        mask: SSAValue | None = None,
        align: int = 0,
    ) -> None:
        super().__init__(
            operands=[value, buffer, index, mask],
            properties={
                "offset": IntAttr(offset),
                "stride": IntAttr(stride),
                "align": IntAttr(align) if align else None,
            },
        )

    def verify_(self) -> None:
        _verify_access(self.buffer, self.value.type, self.mask)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        print_address(printer, self.buffer, self.index, self.offset.data)
        print_lanes(printer, self.stride.data, self.mask, self.align)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer, index, offset = parse_address(parser)
        stride, mask, align = parse_lanes(parser)
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        buffer_type = parser.parse_type()
        return cls(
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(buffer, buffer_type),
            parser.resolve_operand(index, INDEX),
            offset,
            stride,
            parser.resolve_operand(mask, mask_type(lanes_of(value_type))) if mask is not None else None,
            align,
        )


@irdl_op_definition
class GatherOp(IRDLOperation):
    """`%v = lw_kernel.gather %b[%i] mask %m`: lane l reads element `%i[l]`, or gives zero where its mask bit is off.

    `%i` is a vector of `index`. With `{near = array<i64: 0, 0, 1, 1>}` it is known that `%i[l]` is `%i[0] + near[l]`.
    """

    name = "lw_kernel.gather"
    buffer = operand_def(MemRefType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType)
    near = opt_prop_def(DenseArrayBase)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$buffer `[` $indices `]` `mask` $mask attr-dict `:` type($buffer) `,` type($indices) `,` type($mask) "
        "`->` type($value)"
    )

    def __init__(
        self,
        buffer: SSAValue,
        indices: SSAValue,
        mask: SSAValue,
        result_type: Attribute,
        near: Sequence[int] | None = None,
    ) -> None:
        known = {} if near is None else {"near": DenseArrayBase.from_list(i64, near)}
        super().__init__(operands=[buffer, indices, mask], properties=known, result_types=[result_type])

    def verify_(self) -> None:
        if self.near is not None and len(self.near) != lanes_of(self.value.type):
            raise VerifyException(
                f"near says where {lanes_of(self.value.type)} lanes are, got {len(self.near)} numbers"
            )


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """`lw_kernel.scatter %v, %b[%i] mask %m`: lane l writes element `%i[l]` where its mask bit is on.

    `%i` is a vector of `index`; no two lanes with their bit on may name one element.
    """

    name = "lw_kernel.scatter"
    value = operand_def(VectorType)
    buffer = operand_def(MemRefType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $buffer `[` $indices `]` `mask` $mask attr-dict `:` type($value) `,` type($buffer) `,` "
        "type($indices) `,` type($mask)"
    )

    def __init__(self, value: SSAValue, buffer: SSAValue, indices: SSAValue, mask: SSAValue) -> None:
        super().__init__(operands=[value, buffer, indices, mask])


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Prefetch an element's cache line: `lw_kernel.prefetch %b[%i + 64] : memref<4096xf32>`; it may lie outside.

    It comes into the first-level cache, or with `level 2` behind the place into the second-level one alone.
    """

    name = "lw_kernel.prefetch"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    level = opt_prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, buffer: SSAValue, index: SSAValue, offset: int, level: int = 1) -> None:
        properties = {"offset": IntAttr(offset)} | ({"level": IntAttr(level)} if level > 1 else {})
        super().__init__(operands=[buffer, index], properties=properties)

    def verify_(self) -> None:
        if self.level is not None and self.level.data != 2:
            raise VerifyException(f"a line is prefetched into the cache of level 1 or 2, got {self.level.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_address(printer, self.buffer, self.index, self.offset.data)
        if self.level is not None:
            printer.print_string(f" level {self.level.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer, index, offset = parse_address(parser)
        level = parser.parse_integer() if parser.parse_optional_keyword("level") is not None else 1
        parser.parse_punctuation(":")
        return cls(
            parser.resolve_operand(buffer, parser.parse_type()),
            parser.resolve_operand(index, INDEX),
            offset,
            level,
        )


def _verify_access(buffer: SSAValue, value_type: Attribute, mask: SSAValue | None) -> None:
    assert isinstance(buffer.type, MemRefType)
    if buffer.type.element_type != element_of(value_type):
        raise VerifyException(f"a buffer of {buffer.type.element_type} holds no {value_type}")
    if mask is not None and mask.type != mask_type(lanes_of(value_type)):
        raise VerifyException(f"a mask for {value_type} has type {mask_type(lanes_of(value_type))}, got {mask.type}")
