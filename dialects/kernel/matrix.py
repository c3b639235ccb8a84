"""Matrix instructions of a warp: loads of 8 x 8 matrices to registers, and products of what the lanes hold."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..buffers import scope_of
from ..element import element_bytes
from ..intrinsics import Intrinsic, find_intrinsic
from ..intrinsics_cuda import REGISTER_BYTES
from .address import parse_address, print_address
from .types import INDEX, vector_of

MATRICES = (1, 2, 4)
"""Matrices that one `ldmatrix` loads (PTX ISA)."""


@irdl_op_definition
class FragmentLoadOp(IRDLOperation):
    """`%f = lw_kernel.fragment_load 4 %s[%i + 8] : memref<8192xf16, "shared">`, by all lanes of a warp together.

    Loads so many matrices of 8 rows of 16 bytes. Lane `8 * m + r` names the first element of row r of matrix m. Lane l
    gets, as register m of a `vector<4xi32>`, the bytes `4 * (l mod 4)` and on of row `l floordiv 4` of matrix m;
    with `turned`, of matrix m of 2-byte elements with rows and columns exchanged.
    """

    name = "lw_kernel.fragment_load"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    offset = prop_def(IntAttr)
    turned = opt_prop_def(UnitAttr)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())

    def __init__(self, buffer: SSAValue, index: SSAValue, offset: int, matrices: int, turned: bool = False) -> None:
        super().__init__(
            operands=[buffer, index],
            properties={"offset": IntAttr(offset), "turned": UnitAttr() if turned else None},
            result_types=[vector_of(i32, matrices)],
        )

    @property
    def matrices(self) -> int:
        """Matrices that are loaded, a register of each lane for each."""
        assert isinstance(self.value.type, VectorType)
        return self.value.type.get_shape()[0]

    def verify_(self) -> None:
        if self.matrices not in MATRICES or self.value.type != vector_of(i32, self.matrices):
            raise VerifyException(f"a warp loads 1, 2 or 4 matrices to registers of i32, got {self.value.type}")
        if scope_of(self.buffer) != "shared":
            raise VerifyException(f"a warp loads matrices from shared memory, not from {self.buffer.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.matrices} ")
        print_address(printer, self.buffer, self.index, self.offset.data)
        if self.turned is not None:
            printer.print_string(" turned")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> FragmentLoadOp:
        matrices = parser.parse_integer(allow_boolean=False, allow_negative=False)
        buffer, index, offset = parse_address(parser)
        turned = parser.parse_optional_keyword("turned") is not None
        parser.parse_punctuation(":")
        return cls(
            parser.resolve_operand(buffer, parser.parse_type()),
            parser.resolve_operand(index, INDEX),
            offset,
            matrices,
            turned,
        )


@irdl_op_definition
class FragmentPackOp(IRDLOperation):
    """`%f = lw_kernel.fragment_pack %c[%i] at [0, 1, 8, 9] : memref<64xf16, "local">`

    A fragment of what each lane holds: the elements at `%i + 0`, `%i + 1`, ... as registers of a `vector<2xi32>`, the
    first element of a register in its low bits.
    """

    name = "lw_kernel.fragment_pack"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    places = prop_def(DenseArrayBase)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())

    def __init__(self, buffer: SSAValue, index: SSAValue, places: Sequence[int]) -> None:
        assert isinstance(buffer.type, MemRefType)
        registers = len(places) * element_bytes(buffer.type.element_type) // REGISTER_BYTES
        super().__init__(
            operands=[buffer, index],
            properties={"places": DenseArrayBase.from_list(i64, list(places))},
            result_types=[vector_of(i32, max(1, registers))],
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """The place of each element, from the index on."""
        return tuple(int(n) for n in self.places.get_values())

    def verify_(self) -> None:
        assert isinstance(self.buffer.type, MemRefType) and isinstance(self.value.type, VectorType)
        size = element_bytes(self.buffer.type.element_type)
        if scope_of(self.buffer) != "local" or size != REGISTER_BYTES // 2:
            raise VerifyException(f"fragments are packed of 16-bit elements in registers, not of {self.buffer.type}")
        if self.value.type.get_shape() != (len(self.offsets) // 2,) or len(self.offsets) % 2:
            raise VerifyException(f"{len(self.offsets)} elements of 16 bits do not fill {self.value.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_address(printer, self.buffer, self.index, 0)
        printer.print_string(f" at {list(self.offsets)} : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> FragmentPackOp:
        buffer, index, _ = parse_address(parser)
        parser.parse_keyword("at")
        places = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(buffer, parser.parse_type()), parser.resolve_operand(index, INDEX), places)


@irdl_op_definition
class MatrixProductOp(IRDLOperation):
    """`lw_kernel.mma "mma.m16n8k16.f16" %a, %b, %c[%i] at [0, 1, 8, 9] : memref<128xf32, "local">`

    All lanes of a warp add the product of the matrices whose fragments are `%a` and `%b` to the one whose fragment they
    hold in `%c`: at `%i + 0`, `%i + 1`, ... for the elements in the order of the intrinsic. Factors are registers of 32
    bits, the first element of one in its low bits.
    """

    name = "lw_kernel.mma"
    intrinsic = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    sums = operand_def(MemRefType)
    index = operand_def(IndexType)
    places = prop_def(DenseArrayBase)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self, intrinsic: str, a: SSAValue, b: SSAValue, sums: SSAValue, index: SSAValue, places: Sequence[int]
    ) -> None:
        super().__init__(
            operands=[a, b, sums, index],
            properties={
                "intrinsic": StringAttr(intrinsic),
                "places": DenseArrayBase.from_list(i64, list(places)),
            },
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """The place of each of a lane's sums, from the index on."""
        return tuple(int(n) for n in self.places.get_values())

    def meaning(self) -> Intrinsic:
        """The intrinsic; VerifyException where none has the name."""
        found = find_intrinsic(self.intrinsic.data)
        if found is None:
            raise VerifyException(f"no intrinsic is called '{self.intrinsic.data}'")
        return found

    def verify_(self) -> None:
        meaning = self.meaning()
        for operand, value in (("a", self.a), ("b", self.b)):
            wanted = vector_of(i32, meaning.registers(operand))
            if value.type != wanted:
                raise VerifyException(f"{operand} of '{meaning.name}' is {wanted}, got {value.type}")
        assert isinstance(self.sums.type, MemRefType)
        if self.sums.type.element_type != meaning.c.type or scope_of(self.sums) != "local":
            raise VerifyException(f"'{meaning.name}' adds to registers of {meaning.c.type}, got {self.sums.type}")
        if len(self.offsets) != meaning.elements("c") // meaning.threads:
            count = meaning.elements("c") // meaning.threads
            raise VerifyException(f"a lane holds {count} sums of '{meaning.name}', got {len(self.offsets)} places")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.intrinsic)
        printer.print_string(" ")
        printer.print_list((self.a, self.b), printer.print_ssa_value)
        printer.print_string(", ")
        print_address(printer, self.sums, self.index, 0)
        printer.print_string(f" at {list(self.offsets)} : ")
        printer.print_attribute(self.sums.type)

    @classmethod
    def parse(cls, parser: Parser) -> MatrixProductOp:
        name = parser.parse_str_literal()
        a = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        b = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        sums, index, _ = parse_address(parser)
        parser.parse_keyword("at")
        places = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        found = find_intrinsic(name)
        if found is None:
            parser.raise_error(f"no intrinsic is called '{name}'")
        sums_type = parser.parse_type()
        return cls(
            name,
            parser.resolve_operand(a, vector_of(i32, found.registers("a"))),
            parser.resolve_operand(b, vector_of(i32, found.registers("b"))),
            parser.resolve_operand(sums, sums_type),
            parser.resolve_operand(index, INDEX),
            places,
        )
