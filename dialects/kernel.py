"""The kernel dialect: one operation per thing the backends print, on flat buffers with simplified addresses.

Plain control flow is `scf.for` and `scf.if`; scalar and vector arithmetic is `arith`, `math`, `vector.broadcast` and
`vector.reduction`; addresses are values of type `index`. This dialect adds what those lack: parallel loops, flat
buffers in a scope, loads and stores with a constant part, a lane stride and a mask, lane masks and prefetches, and
lane by lane the comparisons, conversions and choices that `arith` has for scalars only. Operations that kernels have
hundreds of start as plain operations, past the checks of declared ones, which cost more than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

INDEX = IndexType()
THREAD_AXES = tuple(f"{level}.{d}" for level in ("blockIdx", "threadIdx") for d in "xyz")
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


def lanes_of(value_type: Attribute) -> int:
    """Number of lanes of a vector type, 1 for a scalar."""
    return value_type.get_shape()[0] if isinstance(value_type, VectorType) else 1


def element_of(value_type: Attribute) -> Attribute:
    """The element type of a vector type, the type itself for a scalar."""
    return value_type.element_type if isinstance(value_type, VectorType) else value_type


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A flat buffer: `%b = lw_kernel.alloc "b" : memref<4096xf32, "local">`, of as many elements as the type says.

    Scope `local` is registers or stack, of one thread; no scope is memory: one buffer for all threads outside of
    `lw_kernel.parallel`, one for each thread inside. Its content is undefined until written; it starts on a cache line.
    """

    name = "lw_kernel.alloc"
    label = prop_def(StringAttr)
    buffer = result_def(MemRefType)
    assembly_format = "$label `:` type($buffer) attr-dict"

    def __init__(self, label: str, buffer_type: Attribute) -> None:
        super().__init__(properties={"label": StringAttr(label)}, result_types=[buffer_type])
        self.buffer.name_hint = label

    def verify_(self) -> None:
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
        _print_address(printer, self.buffer, self.index, self.offset.data)
        _print_lanes(printer, self.stride.data, self.mask, self.align)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer, index, offset = _parse_address(parser)
        stride, mask, align = _parse_lanes(parser)
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
        _print_address(printer, self.buffer, self.index, self.offset.data)
        _print_lanes(printer, self.stride.data, self.mask, self.align)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer, index, offset = _parse_address(parser)
        stride, mask, align = _parse_lanes(parser)
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

    `%i` is a vector of `index`.
    """

    name = "lw_kernel.gather"
    buffer = operand_def(MemRefType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$buffer `[` $indices `]` `mask` $mask attr-dict `:` type($buffer) `,` type($indices) `,` type($mask) "
        "`->` type($value)"
    )

    def __init__(self, buffer: SSAValue, indices: SSAValue, mask: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[buffer, indices, mask], result_types=[result_type])


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


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask for the cache line of an element: `lw_kernel.prefetch %b[%i + 64] : memref<4096xf32>`; it may lie outside."""

    name = "lw_kernel.prefetch"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, buffer: SSAValue, index: SSAValue, offset: int) -> None:
        super().__init__(operands=[buffer, index], properties={"offset": IntAttr(offset)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_address(printer, self.buffer, self.index, self.offset.data)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer, index, offset = _parse_address(parser)
        parser.parse_punctuation(":")
        return cls(
            parser.resolve_operand(buffer, parser.parse_type()),
            parser.resolve_operand(index, INDEX),
            offset,
        )


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """Iterations that may run at once, on the target's threads: `lw_kernel.parallel %i in 64 { ... }`."""

    name = "lw_kernel.parallel"
    extent = prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, extent: int, body: Region | None = None) -> None:
        super().__init__(properties={"extent": IntAttr(extent)}, regions=[body or Region(Block(arg_types=[INDEX]))])

    def verify_(self) -> None:
        if [a.type for a in self.body.block.args] != [INDEX]:
            raise VerifyException("lw_kernel.parallel has one block argument of type index")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        printer.print_string(f" in {self.extent.data} ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        argument = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_keyword("in")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        return cls(extent, parser.parse_region((argument,)))


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """A grid of thread blocks that all run the body: `lw_kernel.launch grid [8, 4, 1] block [128, 1, 1] { ... }`.

    Launches of a function run one after the other. Inside, allocations of scope `shared` belong to a block of threads,
    those of scope `local` to one thread; `lw_kernel.barrier` is reached by all threads of a block or by none.
    """

    name = "lw_kernel.launch"
    grid = prop_def(ArrayAttr[IntAttr])
    block = prop_def(ArrayAttr[IntAttr])
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, grid: Sequence[int], block: Sequence[int], body: Region) -> None:
        super().__init__(
            properties={
                "grid": ArrayAttr([IntAttr(n) for n in grid]),
                "block": ArrayAttr([IntAttr(n) for n in block]),
            },
            regions=[body],
        )

    @property
    def grid_size(self) -> tuple[int, int, int]:
        x, y, z = (n.data for n in self.grid)
        return x, y, z

    @property
    def block_size(self) -> tuple[int, int, int]:
        x, y, z = (n.data for n in self.block)
        return x, y, z

    def verify_(self) -> None:
        for sizes in (self.grid, self.block):
            if len(sizes) != 3 or any(n.data < 1 for n in sizes):
                raise VerifyException("lw_kernel.launch has three positive sizes for its grid and for its block")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" grid {list(self.grid_size)} block {list(self.block_size)} ")
        printer.print_region(self.body, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        parser.parse_keyword("grid")
        grid = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_keyword("block")
        block = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return cls(grid, block, parser.parse_region())


@irdl_op_definition
class ThreadOp(IRDLOperation):
    """Where this thread is in the launch: `%t = lw_kernel.thread "threadIdx.x" : index`."""

    name = "lw_kernel.thread"
    axis = prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis `:` type($result) attr-dict"

    def __init__(self, axis: str) -> None:
        super().__init__(properties={"axis": StringAttr(axis)}, result_types=[INDEX])

    def verify_(self) -> None:
        if self.axis.data not in THREAD_AXES:
            raise VerifyException(f"'{self.axis.data}' is none of {', '.join(THREAD_AXES)}")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of a block wait for each other, and see each other's writes to shared memory: `lw_kernel.barrier`."""

    name = "lw_kernel.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of the lane whose number differs in the bits of `distance`: `%b = lw_kernel.shuffle %a, 16 : f32`.

    All threads of a warp take part.
    """

    name = "lw_kernel.shuffle"
    value = operand_def()
    distance = prop_def(IntAttr)
    result = result_def()

    def __init__(self, value: SSAValue, distance: int) -> None:
        super().__init__(operands=[value], properties={"distance": IntAttr(distance)}, result_types=[value.type])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(f", {self.distance.data} : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        distance = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(operand, parser.parse_type()), distance)


def mask_type(lanes: int) -> Attribute:
    """The type of a mask for `lanes` lanes: `i1` for a scalar."""
    return vector_of(i1, lanes) if lanes > 1 else i1


@cache
def vector_of(element: Attribute, lanes: int) -> VectorType[Attribute]:
    """`vector<lanes x element>`; made once, as attributes are dear and vectors many."""
    return VectorType(element, [lanes])


@cache
def int_attr(value: int) -> IntAttr:
    """An integer attribute, made once."""
    return IntAttr(value)


def _converts(conversion: str, source: Attribute, result: Attribute) -> bool:
    """Whether `arith` has the conversion of one element type to another."""
    if conversion == "index_cast":
        pair = (type(source), type(result))
        return pair in ((IndexType, IntegerType), (IntegerType, IndexType))
    if isinstance(source, IntegerType) and isinstance(result, IntegerType):
        widens = result.bitwidth > source.bitwidth
        return conversion in (("extsi", "extui") if widens else ("trunci",)) and result.bitwidth != source.bitwidth
    if isinstance(source, IntegerType):
        return conversion in ("sitofp", "uitofp") and isinstance(result, AnyFloat)
    return conversion in ("fptosi", "fptoui") and isinstance(source, AnyFloat) and isinstance(result, IntegerType)


def _verify_access(buffer: SSAValue, value_type: Attribute, mask: SSAValue | None) -> None:
    assert isinstance(buffer.type, MemRefType)
    if buffer.type.element_type != element_of(value_type):
        raise VerifyException(f"a buffer of {buffer.type.element_type} holds no {value_type}")
    if mask is not None and mask.type != mask_type(lanes_of(value_type)):
        raise VerifyException(f"a mask for {value_type} has type {mask_type(lanes_of(value_type))}, got {mask.type}")


def _print_address(printer: Printer, buffer: SSAValue, index: SSAValue, offset: int) -> None:
    printer.print_ssa_value(buffer)
    printer.print_string("[")
    printer.print_ssa_value(index)
    printer.print_string(f" {'-' if offset < 0 else '+'} {abs(offset)}]" if offset else "]")


def _parse_address(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand, int]:
    buffer = parser.parse_unresolved_operand()
    parser.parse_punctuation("[")
    index = parser.parse_unresolved_operand()
    offset = 0
    if parser.parse_optional_punctuation("+"):
        offset = parser.parse_integer()
    elif parser.parse_optional_punctuation("-"):
        offset = -parser.parse_integer()
    parser.parse_punctuation("]")
    return buffer, index, offset


def _print_lanes(printer: Printer, stride: int, mask: SSAValue | None, align: IntAttr | None) -> None:
    if stride != 1:
        printer.print_string(f" stride {stride}")
    if mask is not None:
        printer.print_string(" mask ")
        printer.print_ssa_value(mask)
    if align is not None:
        printer.print_string(f" align {align.data}")


def _parse_lanes(parser: Parser) -> tuple[int, UnresolvedOperand | None, int]:
    stride = parser.parse_integer() if parser.parse_optional_keyword("stride") else 1
    mask = parser.parse_unresolved_operand() if parser.parse_optional_keyword("mask") else None
    align = parser.parse_integer() if parser.parse_optional_keyword("align") else 0
    return stride, mask, align


LwKernel = Dialect(
    "lw_kernel",
    [
        AllocOp,
        LoadOp,
        StoreOp,
        GatherOp,
        ScatterOp,
        LanesOp,
        MaskOp,
        CompareOp,
        ConvertOp,
        SelectOp,
        PrefetchOp,
        ParallelOp,
        LaunchOp,
        ThreadOp,
        BarrierOp,
        ShuffleOp,
    ],
    [],
)
