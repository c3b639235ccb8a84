"""Bulk copies of boxes from global to shared memory by the copy engine, and the barriers that count their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..attributes import across_attribute, axes_across, format_across, parse_optional_across
from ..buffers import CHUNK_BYTES, SWIZZLES, scope_of
from ..element import element_bytes
from ..pixel_walk import CORNER_BITS, Walk, parse_optional_walk
from .address import parse_address, print_address
from .types import INDEX

MOST_DIMENSIONS = 5
"""Dimensions of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""
MOST_PIXELS, MOST_CHANNELS, MOST_STEP = 1024, 256, 8
"""Pixels and channels of a box, and pixels from one to the next (CUDA driver API, cuTensorMapEncodeIm2col)."""
MOST_BOX = 256
"""Elements of a box along a dimension (the same)."""
BLOCK_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
"""Axes of blocks that may be a cluster."""
BULK_COPIES_SINCE = 90
"""The first compute capability that has them (PTX ISA, cp.async.bulk.tensor)."""


def array_problem(shape: Sequence[int], size: int) -> str | None:
    """Say why the copy engine copies no boxes of a dense array of elements of `size` bytes; None where it does."""
    if len(shape) > MOST_DIMENSIONS:
        return f"it has {len(shape)} dimensions, of at most {MOST_DIMENSIONS}"
    if len(shape) > 1 and shape[-1] * size % CHUNK_BYTES:
        return f"its rows of {shape[-1] * size} bytes are no multiple of {CHUNK_BYTES}"
    return None


def box_problem(shape: Sequence[int], box: Sequence[int], size: int, span: int) -> str | None:
    """Say why the copy engine does not copy boxes of a dense array; None where it does."""
    why = array_problem(shape, size)
    if why is not None:
        return why
    if max(box) > MOST_BOX:
        return f"a box of {list(box)} has more than {MOST_BOX} elements along a dimension"
    if box[-1] * size % CHUNK_BYTES or (span and box[-1] * size != span):
        wanted = f"{span} as its swizzle" if span else f"a multiple of {CHUNK_BYTES}"
        return f"the rows of a box are {box[-1] * size} bytes, and must be {wanted}"
    return None


def walk_problem(walk: Walk, shape: Sequence[int], box: Sequence[int], size: int, span: int) -> str | None:
    """Say why the copy engine does not copy pixels of a dense array in a walk; None where it does."""
    if len(shape) - 2 not in CORNER_BITS or not len(walk.first) == len(walk.last) == len(walk.steps):
        return f"images of {len(shape)} dimensions are not walked over"
    if len(walk.first) != len(shape) - 2 or len(box) != 2 or min(walk.steps) < 1 or min(walk.counts) < 1:
        return f"a walk over {list(shape)} has positions in each dimension, and pixels and channels of a box"
    most = 1 << (CORNER_BITS[len(walk.first)] - 1)
    if any(not -most <= n < most for corner in walk.corners(shape) for n in corner):
        return f"positions from {list(walk.first)} to {list(walk.last)} are further than {most} from the image's"
    if box[0] > MOST_PIXELS or box[1] > MOST_CHANNELS or max(walk.steps) > MOST_STEP:
        return f"a box of {list(box)} in steps of {list(walk.steps)} is too large"
    if shape[-1] * size % CHUNK_BYTES or box[1] * size % CHUNK_BYTES or (span and box[1] * size != span):
        return f"channels of a box are {box[1] * size} bytes, and must be {span or f'a multiple of {CHUNK_BYTES}'}"
    return None


@irdl_op_definition
class BulkCopyOp(IRDLOperation):
    """`lw_kernel.bulk_copy %a[%x, %y] of [64, 256] box [8, 64] swizzle 128 -> %s[%i + 512], %full[%k]
    : memref<16384xf16> -> memref<4096xf16, "shared">`

    Copies a box of an array of the given shape to shared memory, row by row, from `%s[%i + 512]` on, zeros for what is
    outside of the array; with its chunks swizzled within rows of so many bytes, 0 for none. One thread begins it; who
    waits for the phase of the barrier `%full[%k]` in which it ends sees it. `swizzle 128 tf32` rounds to TF32 what it
    copies, ties to even; with `once` behind it the second-level cache lets go of what it copies first, as nobody asks
    for it again. With `across [blockIdx.y]` before the types, the box comes to the same place in all blocks of
    the cluster along these axes, and is counted by the barrier of each.

    `%a[%n, %y, %x, %c] of [16, 28, 28, 128] box [64, 64] walk [-1, -1] to [26, 26] by [1, 1] taps [%i, %j] swizzle 128`
    copies a row of 64 channels for each of 64 positions of a window: those of the walk from `%y, %x` of image `%n` on,
    each moved by the taps, which are not negative.
    """

    name = "lw_kernel.bulk_copy"
    source = operand_def(MemRefType)
    place = var_operand_def(IndexType)
    taps = var_operand_def(IndexType)
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType)
    barrier = operand_def(MemRefType)
    barrier_index = operand_def(IndexType)
    shape = prop_def(DenseArrayBase)
    box = prop_def(DenseArrayBase)
    swizzle = prop_def(IntAttr)
    target_offset = prop_def(IntAttr)
    rounds = opt_prop_def(UnitAttr)
    across = opt_prop_def(ArrayAttr[StringAttr])
    walked = opt_prop_def(DenseArrayBase)
    once = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        place: Sequence[SSAValue],
        shape: Sequence[int],
        box: Sequence[int],
        swizzle: int,
        target: tuple[SSAValue, SSAValue, int],
        barrier: tuple[SSAValue, SSAValue],
        rounds: bool = False,
        across: Sequence[str] = (),
        walk: Walk | None = None,
        taps: Sequence[SSAValue] = (),
        once: bool = False,
    ) -> None:
        super().__init__(
            operands=[source, list(place), list(taps), target[0], target[1], *barrier],
            properties={
                "shape": DenseArrayBase.from_list(i64, list(shape)),
                "box": DenseArrayBase.from_list(i64, list(box)),
                "swizzle": IntAttr(swizzle),
                "target_offset": IntAttr(target[2]),
                "rounds": UnitAttr() if rounds else None,
                "across": across_attribute(across),
                "walked": _walked(walk),
                "once": UnitAttr() if once else None,
            },
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of blocks of the cluster along which all get the box; none where one block does."""
        return axes_across(self.across)

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(int(n) for n in self.shape.get_values())

    @property
    def box_extents(self) -> tuple[int, ...]:
        """The shape of the box."""
        return tuple(int(n) for n in self.box.get_values())

    @property
    def pixel_walk(self) -> Walk | None:
        """The positions that the pixels of a box are taken from; None for a box of neighbours."""
        if self.walked is None:
            return None
        numbers = [int(n) for n in self.walked.get_values()]
        count = len(numbers) // 3
        return Walk(*(tuple(numbers[n * count : (n + 1) * count]) for n in range(3)))

    @property
    def map_key(self) -> tuple[SSAValue, tuple[int, ...], tuple[int, ...], int, bool, Walk | None]:
        """The array, its shape, the box, the swizzle, the rounding, and the walk, of which its tensor map is made."""
        return self.source, self.extents, self.box_extents, self.swizzle.data, self.rounds is not None, self.pixel_walk

    @property
    def size_bytes(self) -> int:
        """Bytes that are copied."""
        assert isinstance(self.source.type, MemRefType)
        return prod(self.box_extents) * element_bytes(self.source.type.element_type)

    def verify_(self) -> None:
        assert isinstance(self.source.type, MemRefType) and isinstance(self.target.type, MemRefType)
        if self.source.type.element_type != self.target.type.element_type:
            raise VerifyException(f"a copy keeps its type, got {self.source.type} and {self.target.type}")
        if scope_of(self.source) != "global" or scope_of(self.target) != "shared" or scope_of(self.barrier) != "shared":
            raise VerifyException("a bulk copy is from global to shared memory, where its barrier is")
        walk, ranks = self.pixel_walk, (len(self.extents), len(self.box_extents))
        if len(self.place) != ranks[0] or (walk is None and ranks[0] != ranks[1]):
            raise VerifyException("a bulk copy has a place, an extent and one of its box for each dimension")
        if self.swizzle.data not in (0, *SWIZZLES):
            raise VerifyException(f"a swizzle is of 32, 64 or 128 bytes, got {self.swizzle.data}")
        if self.rounds is not None and self.source.type.element_type != f32:
            raise VerifyException(f"what is rounded to TF32 is of f32, got {self.source.type}")
        if not set(self.axes) <= set(BLOCK_AXES):
            raise VerifyException(f"a box comes to blocks along {', '.join(BLOCK_AXES)}, got {', '.join(self.axes)}")
        size = element_bytes(self.source.type.element_type)
        if len(self.taps) != (len(walk.first) if walk is not None else 0):
            raise VerifyException("a walk has a tap for each dimension that it goes over")
        found = (self.extents, self.box_extents, size, self.swizzle.data)
        why = walk_problem(walk, *found) if walk is not None else box_problem(*found)
        if why is not None:
            raise VerifyException(f"no bulk copy of {self.source.type}: {why}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string("[")
        printer.print_list(self.place, printer.print_ssa_value)
        printer.print_string(f"] of {list(self.extents)} box {list(self.box_extents)}")
        if self.pixel_walk is not None:
            self.pixel_walk.print(printer)
            printer.print_string(" taps [")
            printer.print_list(self.taps, printer.print_ssa_value)
            printer.print_string("]")
        printer.print_string(f" swizzle {self.swizzle.data}")
        printer.print_string(
            f"{' tf32' if self.rounds is not None else ''}{' once' if self.once is not None else ''} -> "
        )
        print_address(printer, self.target, self.target_index, self.target_offset.data)
        printer.print_string(", ")
        print_address(printer, self.barrier, self.barrier_index, 0)
        printer.print_string(f"{format_across(self.axes)} : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.target.type)
        printer.print_string(", ")
        printer.print_attribute(self.barrier.type)

    @classmethod
    def parse(cls, parser: Parser) -> BulkCopyOp:
        square = parser.Delimiter.SQUARE
        source = parser.parse_unresolved_operand()
        place = parser.parse_comma_separated_list(square, parser.parse_unresolved_operand)
        parser.parse_keyword("of")
        shape = parser.parse_comma_separated_list(square, parser.parse_integer)
        parser.parse_keyword("box")
        box = parser.parse_comma_separated_list(square, parser.parse_integer)
        walk, taps = parse_optional_walk(parser), []
        if walk is not None:
            parser.parse_keyword("taps")
            taps = parser.parse_comma_separated_list(square, parser.parse_unresolved_operand)
        parser.parse_keyword("swizzle")
        swizzle = parser.parse_integer()
        rounds = parser.parse_optional_keyword("tf32") is not None
        once = parser.parse_optional_keyword("once") is not None
        parser.parse_punctuation("->")
        target, target_index, offset = parse_address(parser)
        parser.parse_punctuation(",")
        barrier, barrier_index, _ = parse_address(parser)
        across = parse_optional_across(parser)
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_punctuation("->")
        target_type = parser.parse_type()
        parser.parse_punctuation(",")
        barrier_type = parser.parse_type()
        return cls(
            parser.resolve_operand(source, source_type),
            [parser.resolve_operand(each, INDEX) for each in place],
            shape,
            box,
            swizzle,
            (parser.resolve_operand(target, target_type), parser.resolve_operand(target_index, INDEX), offset),
            (parser.resolve_operand(barrier, barrier_type), parser.resolve_operand(barrier_index, INDEX)),
            rounds,
            across,
            walk,
            [parser.resolve_operand(each, INDEX) for each in taps],
            once,
        )


def _walked(walk: Walk | None) -> DenseArrayBase | None:
    return DenseArrayBase.from_list(i64, [*walk.first, *walk.last, *walk.steps]) if walk is not None else None


class _OnBarrier(IRDLOperation):
    """The base of what is done to one barrier of several: `%full[%i]`, and a number."""

    barrier = operand_def(MemRefType)
    index = operand_def(IndexType)
    number = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, barrier: SSAValue, index: SSAValue, number: int) -> None:
        super().__init__(operands=[barrier, index], properties={"number": IntAttr(number)})

    def verify_(self) -> None:
        assert isinstance(self.barrier.type, MemRefType)
        if scope_of(self.barrier) != "shared" or self.barrier.type.element_type != i64:
            raise VerifyException(f"barriers are 64 bits in shared memory, got {self.barrier.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_address(printer, self.barrier, self.index, 0)
        printer.print_string(f", {self.number.data} : ")
        printer.print_attribute(self.barrier.type)

    @classmethod
    def parse(cls, parser: Parser) -> _OnBarrier:
        barrier, index, _ = parse_address(parser)
        parser.parse_punctuation(",")
        number = parser.parse_integer()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        return cls(parser.resolve_operand(barrier, kind), parser.resolve_operand(index, INDEX), number)


@irdl_op_definition
class BarrierInitOp(_OnBarrier):
    """Start a barrier whose phases end with so many arrivals: `lw_kernel.mbarrier_init %full[%i], 1 : ...`.

    One thread does, and all others wait at a `lw_kernel.barrier` before they use it.
    """

    name = "lw_kernel.mbarrier_init"


@irdl_op_definition
class BarrierExpectOp(_OnBarrier):
    """Arrive at a barrier, and expect so many bytes more in its phase: `lw_kernel.mbarrier_expect %full[%i], 4096`."""

    name = "lw_kernel.mbarrier_expect"


@irdl_op_definition
class BarrierAwaitOp(IRDLOperation):
    """Wait until the phase of a parity has ended: `lw_kernel.mbarrier_await %full[%i], %parity : memref<4xi64>`."""

    name = "lw_kernel.mbarrier_await"
    barrier = operand_def(MemRefType)
    index = operand_def(IndexType)
    parity = operand_def(IndexType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, barrier: SSAValue, index: SSAValue, parity: SSAValue) -> None:
        super().__init__(operands=[barrier, index, parity])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_address(printer, self.barrier, self.index, 0)
        printer.print_string(", ")
        printer.print_ssa_value(self.parity)
        printer.print_string(" : ")
        printer.print_attribute(self.barrier.type)

    @classmethod
    def parse(cls, parser: Parser) -> BarrierAwaitOp:
        barrier, index, _ = parse_address(parser)
        parser.parse_punctuation(",")
        parity = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        return cls(
            parser.resolve_operand(barrier, kind),
            parser.resolve_operand(index, INDEX),
            parser.resolve_operand(parity, INDEX),
        )
