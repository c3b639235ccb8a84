"""Buffers of the loop dialect: allocations, and what the type of one says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntAttr, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .attributes import parse_label
from .labels import LabelledApartInFunction
from .layout import Layout, LayoutAttr, parse_layout
from .names import check_name

SCOPES = ("global", "shared", "local")

SHAPE = "lw.shape"
"""The attribute of an argument that has other dimensions than those in which callers give it."""

SWIZZLES = (128, 64, 32)
"""Bytes within which chunks of 16 bytes change places: the 32 banks of shared memory, and parts of them (PTX ISA)."""

CHUNK_BYTES = 16
"""Bytes that a swizzle keeps together: the widest access of a thread, and a row of a matrix that a warp loads."""


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer of the function: `%b = lw_loop.alloc "b" : memref<64x64xf32, "local">`; no scope means global.

    `align` is (axis, factor, offset) of `storage_align`: the stride of `axis` becomes offset modulo factor (elements).
    `swizzle` is the most bytes of a row within which `lw-swizzle` puts chunks of 16 in another order in each row.
    Where `lw-place-buffers` has placed it, it stands in the loop of which each iteration has its own, with its layout:
    `%b = lw_loop.alloc "b" placed [i * 16, 0] of [16, 64] strides [64, 1] : memref<64x64xf32, "local">`.
    """

    name = "lw_loop.alloc"
    label = prop_def(StringAttr)
    align = opt_prop_def(ArrayAttr[IntAttr])
    swizzle = opt_prop_def(IntAttr)
    place = opt_prop_def(LayoutAttr)
    buffer = result_def(MemRefType)
    traits = traits_def(LabelledApartInFunction())

    def __init__(
        self,
        label: str,
        buffer_type: MemRefType[Attribute],
        align: tuple[int, int, int] | None = None,
        layout: Layout | None = None,
        swizzle: int = 0,
    ) -> None:
        super().__init__(
            properties={
                "label": StringAttr(label),
                "align": ArrayAttr([IntAttr(a) for a in align]) if align else None,
                "swizzle": IntAttr(swizzle) if swizzle else None,
                "place": LayoutAttr(layout) if layout is not None else None,
            },
            result_types=[buffer_type],
        )
        self.buffer.name_hint = label

    @property
    def scope(self) -> str:
        return scope_of(self.buffer)

    @property
    def alignment(self) -> tuple[int, int, int] | None:
        if self.align is None:
            return None
        axis, factor, offset = (a.data for a in self.align)
        return axis, factor, offset

    @property
    def swizzle_bytes(self) -> int:
        """The most bytes of a row that are swizzled; 0 where none are."""
        return self.swizzle.data if self.swizzle is not None else 0

    @property
    def layout(self) -> Layout | None:
        return self.place.data if self.place is not None else None

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.alignment is not None:
            printer.print_string(" align [{}, {}, {}]".format(*self.alignment))
        if self.swizzle is not None:
            printer.print_string(f" swizzle {self.swizzle_bytes}")
        if self.layout is not None:
            printer.print_string(f" placed {self.layout}")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        label = parse_label(parser, "a buffer")
        align: tuple[int, int, int] | None = None
        if parser.parse_optional_keyword("align"):
            numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            if len(numbers) != 3:
                parser.raise_error("align is an axis, a factor and an offset")
            align = (numbers[0], numbers[1], numbers[2])
        swizzle = parser.parse_integer() if parser.parse_optional_keyword("swizzle") else 0
        layout = parse_layout(parser) if parser.parse_optional_keyword("placed") else None
        parser.parse_punctuation(":")
        buffer_type = parser.parse_type()
        if not isinstance(buffer_type, MemRefType):
            parser.raise_error("expected a memref type")
        return cls(label, buffer_type, align, layout, swizzle)

    def verify_(self) -> None:
        check_name("a buffer", self.label.data)
        if self.align is not None and len(self.align) != 3:
            raise VerifyException(f"buffer '{self.label.data}': align is an axis, a factor and an offset")
        if self.swizzle_bytes not in (0, *SWIZZLES):
            raise VerifyException(f"buffer '{self.label.data}': a swizzle is of 32, 64 or 128 bytes")
        if self.layout is not None and len(self.layout.lows) != self.buffer.type.get_num_dims():
            raise VerifyException(f"buffer '{self.label.data}' is placed by another number of indices than it has")


def scope_of(buffer: SSAValue) -> str:
    """`global`, `shared` or `local`, as the buffer's type says."""
    assert isinstance(buffer.type, MemRefType)
    space = buffer.type.memory_space
    return space.data if isinstance(space, StringAttr) else "global"


def element_of_buffer(buffer: SSAValue) -> Attribute:
    """Return the type of a buffer's elements."""
    assert isinstance(buffer.type, MemRefType)
    element: Attribute = buffer.type.element_type
    return element


def buffer_type(element: Attribute, shape: Sequence[int], scope: str = "global") -> MemRefType[Attribute]:
    """Return the type of a buffer in a scope."""
    return _buffer_type(element, tuple(map(int, shape)), scope)


@lru_cache(maxsize=4096)
def _buffer_type(element: Attribute, shape: tuple[int, ...], scope: str) -> MemRefType[Attribute]:
    """The same, made once."""
    return (
        MemRefType(element, shape, memory_space=StringAttr(scope)) if scope != "global" else MemRefType(element, shape)
    )


def buffer_shape(buffer: SSAValue) -> tuple[int, ...]:
    """Return the extents of a buffer."""
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.get_shape()


def callers_shape(argument: BlockArgument) -> tuple[int, ...]:
    """Return the extents of what callers of a function give as an argument."""
    func = argument.owner.parent_op()
    marks = func.arg_attrs if isinstance(func, FuncOp) else None
    shape = marks.data[argument.index].data.get(SHAPE) if marks is not None else None
    return tuple(map(int, shape.get_values())) if isinstance(shape, DenseArrayBase) else buffer_shape(argument)
