"""Matrix instructions of a warp group: products of matrices in shared memory that go on beside their threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..buffers import SWIZZLES, scope_of
from ..element import element_bytes
from ..intrinsics import Intrinsic, find_intrinsic
from .address import parse_address, parse_optional_place, print_address
from .types import INDEX, vector_of

ATOM_ROWS = 8
"""Rows of `span` bytes after which a swizzle is the same again: 1024 bytes for a span of 128 (PTX ISA, wgmma)."""


class SharedMatrix(NamedTuple):
    """A matrix in shared memory, swizzled within rows of `span` bytes, all of which are used.

    Its k lies along the rows, a row of the matrix in each; or where `turned`, its rows lie along them, k by k, and
    after `span` bytes of them the next ones are `panel` bytes further on.
    """

    span: int
    panel: int = 0
    turned: bool = False

    def place(self, row: int, k: int, size: int) -> int:
        """Elements of `size` bytes from the first one to an element, before chunks change places."""
        per = self.span // size
        return row // per * (self.panel // size) + k * per + row % per if self.turned else row * per + k

    def __str__(self) -> str:
        panel = f" panel {self.panel}" if self.panel else ""
        return f"rows {self.span}{panel}{' turned' if self.turned else ''}"


SharedFactor = tuple[SSAValue, SSAValue, int, SharedMatrix]
"""A factor in shared memory: its buffer, the index of its first element, a constant part of that, and how it lies."""


def _parse_matrix(parser: Parser) -> SharedMatrix:
    parser.parse_keyword("rows")
    span = parser.parse_integer()
    panel = parser.parse_integer() if parser.parse_optional_keyword("panel") else 0
    return SharedMatrix(span, panel, parser.parse_optional_keyword("turned") is not None)


@irdl_op_definition
class WarpGroupProductOp(IRDLOperation):
    """`lw_kernel.wgmma "wgmma.m64n64k16.f16" %a[%i + 16] rows 128, %b[%j] rows 128 turned, %c[%k] at [0, 1, ...]
    : memref<8192xf16, "shared">, memref<8192xf16, "shared">, memref<32xf32, "local">`

    Begins to add the product of two matrices in shared memory to the one whose fragments the threads of a warp group
    hold in `%c`: at `%k + 0`, `%k + 1`, ... for the elements in the order of the intrinsic. Until the group that the
    next `wgmma_commit` closes has been waited for, nobody may touch the sums, nor write to the matrices. The first one
    may be what threads hold, `%a : vector<4xi32>`, packed before the last `wgmma_fence`. With `start` before its name
    it writes the product, whatever was in the registers.
    """

    name = "lw_kernel.wgmma"
    intrinsic = prop_def(StringAttr)
    a = operand_def(MemRefType | VectorType)
    a_index = opt_operand_def(IndexType)
    b = operand_def(MemRefType)
    b_index = operand_def(IndexType)
    sums = operand_def(MemRefType)
    index = operand_def(IndexType)
    offsets = prop_def(DenseArrayBase)
    matrices = prop_def(DenseArrayBase)
    places = prop_def(DenseArrayBase)
    start = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        intrinsic: str,
        a: SharedFactor | SSAValue,
        b: SharedFactor,
        sums: SSAValue,
        index: SSAValue,
        places: Sequence[int],
        start: bool = False,
    ) -> None:
        shared = [b] if isinstance(a, SSAValue) else [a, b]
        first = [a, None] if isinstance(a, SSAValue) else [a[0], a[1]]
        super().__init__(
            operands=[*first, b[0], b[1], sums, index],
            properties={
                "intrinsic": StringAttr(intrinsic),
                "offsets": DenseArrayBase.from_list(i64, [offset for _, _, offset, _ in shared]),
                "matrices": DenseArrayBase.from_list(i64, [int(n) for *_, matrix in shared for n in matrix]),
                "places": DenseArrayBase.from_list(i64, list(places)),
                "start": UnitAttr() if start else None,
            },
        )

    def factors(self) -> list[tuple[str, SSAValue, SSAValue, int, SharedMatrix]]:
        """Name, buffer, index, constant part of that, and place of the matrix of each factor in shared memory."""
        numbers = [int(n) for n in self.matrices.get_values()]
        parts = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
        found = [SharedMatrix(span, panel, bool(turned)) for span, panel, turned in parts]
        offsets = [int(n) for n in self.offsets.get_values()]
        places = [("b", self.b, self.b_index)]
        if self.a_index is not None:
            places.insert(0, ("a", self.a, self.a_index))
        return [(*place, offset, matrix) for place, offset, matrix in zip(places, offsets, found, strict=True)]

    @property
    def held(self) -> SSAValue | None:
        """The fragment of `a` where threads hold it."""
        return self.a if self.a_index is None else None

    @property
    def sum_places(self) -> tuple[int, ...]:
        """The place of each of a thread's sums, from the index on."""
        return tuple(int(n) for n in self.places.get_values())

    def meaning(self) -> Intrinsic:
        """The intrinsic; VerifyException where none of a warp group has the name."""
        found = find_intrinsic(self.intrinsic.data)
        if found is None or not found.reads_shared:
            raise VerifyException(f"no intrinsic of a warp group is called '{self.intrinsic.data}'")
        return found

    def verify_(self) -> None:
        meaning = self.meaning()
        if self.start is not None and not meaning.may_start:
            raise VerifyException(f"'{meaning.name}' adds to sums, and does not start them")
        if self.held is not None:
            wanted = vector_of(i32, meaning.registers("a"))
            if not meaning.held_code or self.a.type != wanted:
                took = f"is {wanted}" if meaning.held_code else "is in shared memory"
                raise VerifyException(f"a of '{meaning.name}' {took}, got {self.a.type}")
        for name, buffer, _, _, matrix in self.factors():
            _verify_factor(meaning, name, buffer, matrix)
        assert isinstance(self.sums.type, MemRefType)
        if self.sums.type.element_type != meaning.c.type or scope_of(self.sums) != "local":
            raise VerifyException(f"'{meaning.name}' adds to registers of {meaning.c.type}, got {self.sums.type}")
        count = meaning.elements("c") // meaning.threads
        if len(self.sum_places) != count:
            raise VerifyException(f"a thread holds {count} sums of '{meaning.name}', got {len(self.sum_places)} places")

    def print(self, printer: Printer) -> None:
        printer.print_string(" start " if self.start is not None else " ")
        printer.print_attribute(self.intrinsic)
        printer.print_string(" ")
        if self.held is not None:
            printer.print_ssa_value(self.held)
            printer.print_string(", ")
        for _, buffer, index, offset, matrix in self.factors():
            print_address(printer, buffer, index, offset)
            printer.print_string(f" {matrix}, ")
        print_address(printer, self.sums, self.index, 0)
        printer.print_string(f" at {list(self.sum_places)} : ")
        printer.print_list((self.a.type, self.b.type, self.sums.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> WarpGroupProductOp:
        start = parser.parse_optional_keyword("start") is not None
        name = parser.parse_str_literal()
        given: list[tuple[UnresolvedOperand, UnresolvedOperand | None, int, SharedMatrix]] = []
        for _ in "ab":
            given.append(_parse_factor(parser))
            parser.parse_punctuation(",")
        sums, index, _ = parse_address(parser)
        parser.parse_keyword("at")
        places = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(types) != 3:
            parser.raise_error("a product has three buffers")
        a, b = (_resolved(parser, factor, kind) for factor, kind in zip(given, types[:2], strict=True))
        if isinstance(b, SSAValue):
            parser.raise_error("the second factor of a product is in shared memory")
        into = parser.resolve_operand(sums, types[2]), parser.resolve_operand(index, INDEX)
        return cls(name, a, b, *into, places, start)


def _parse_factor(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand | None, int, SharedMatrix]:
    """A factor in shared memory, or one that threads hold, without an index."""
    buffer = parser.parse_unresolved_operand()
    place = parse_optional_place(parser)
    if place is None:
        return buffer, None, 0, SharedMatrix(0)
    return buffer, *place, _parse_matrix(parser)


def _resolved(
    parser: Parser,
    factor: tuple[UnresolvedOperand, UnresolvedOperand | None, int, SharedMatrix],
    kind: Attribute,
) -> SharedFactor | SSAValue:
    buffer, at, offset, matrix = factor
    value = parser.resolve_operand(buffer, kind)
    return value if at is None else (value, parser.resolve_operand(at, INDEX), offset, matrix)


def _verify_factor(meaning: Intrinsic, name: str, buffer: SSAValue, matrix: SharedMatrix) -> None:
    assert isinstance(buffer.type, MemRefType)
    if buffer.type.element_type != meaning.fragment(name).type or scope_of(buffer) != "shared":
        raise VerifyException(f"{name} of '{meaning.name}' is in shared memory, got {buffer.type}")
    if matrix.span not in SWIZZLES:
        raise VerifyException(f"rows of {name} are of 32, 64 or 128 bytes, got {matrix.span}")
    if matrix.turned and element_bytes(buffer.type.element_type) != TURNED_BYTES:
        raise VerifyException(f"{name} is turned, which only elements of {TURNED_BYTES} bytes are")


TURNED_BYTES = 2
"""Bytes of the elements whose rows may be neighbours in memory (PTX ISA, wgmma: transposed factors)."""


@irdl_op_definition
class WarpGroupFenceOp(IRDLOperation):
    """Let products see what threads wrote to their sums: `lw_kernel.wgmma_fence`, before the first product on them."""

    name = "lw_kernel.wgmma_fence"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WarpGroupCommitOp(IRDLOperation):
    """Commit the warp group's products since the last commit as a group: `lw_kernel.wgmma_commit`."""

    name = "lw_kernel.wgmma_commit"
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WarpGroupWaitOp(IRDLOperation):
    """Wait until all of the warp group's products but the last so many groups are done: `lw_kernel.wgmma_wait 1`."""

    name = "lw_kernel.wgmma_wait"
    pending = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntAttr(pending)})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.pending.data}")

    @classmethod
    def parse(cls, parser: Parser) -> WarpGroupWaitOp:
        return cls(parser.parse_integer())


@irdl_op_definition
class ProxyFenceOp(IRDLOperation):
    """Let asynchronous readers of shared memory see what this thread stored or copied there: `lw_kernel.proxy_fence`.

    Products of warp groups and bulk copies go by the asynchronous proxy, all else by the generic one; the threads that
    wrote fence, then all meet at a barrier (PTX ISA, proxies).
    """

    name = "lw_kernel.proxy_fence"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"
