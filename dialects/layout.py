"""Buffer layouts: which part of a buffer is kept, and at which flat position each element of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .attributes import format_indices, parse_indices
from .index import IndexExpr, axis, flatten


class Swizzle(NamedTuple):
    """An order of chunks that is another one in each row: chunk c of a row r lies where chunk `c xor r` would.

    A chunk is so many elements, a row as well; c and r are modulo `chunks`, a power of two.
    """

    chunk: int
    row: int
    chunks: int


@dataclass(frozen=True)
class Layout:
    """The part of a buffer that is kept, and its strides, in elements: `[i * 16, 0] of [16, 64] strides [64, 1]`.

    `lows` are the indices of the first element kept, over the loops around the allocation, and over the threads where
    each has registers of its own. Every `steps`-th index is kept (all where there are none), `extents` of them. Of each
    of `periods` of these, the first `kept` are. There is one copy of it all for each of the virtual threads that
    `copies` names, with their number. A swizzled buffer has its chunks of 16 bytes in another order in each row.
    `spare` elements more lie behind the last one: what is read of them nobody uses.
    """

    lows: tuple[IndexExpr, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...] = ()
    copies: tuple[tuple[str, int], ...] = ()
    periods: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    swizzle: Swizzle | None = None
    spare: int = 0

    @property
    def one_size(self) -> int:
        """Elements from the first to the last of one copy."""
        return max(1, sum((n - 1) * s for n, s in zip(self.extents, self.strides, strict=True)) + 1)

    @property
    def size(self) -> int:
        """Elements from the first to the last, and what is to spare behind that."""
        return self.one_size * prod(n for _, n in self.copies) + self.spare

    def offset(self, indices: Sequence[IndexExpr]) -> IndexExpr:
        """The flat position of an element, whose indices are expressions over the loops."""
        places = [e - low for e, low in zip(indices, self.lows, strict=True)]
        if self.steps:
            places = [e // step for e, step in zip(places, self.steps, strict=True)]
        if self.periods:
            gaps = zip(places, self.periods, self.kept, strict=True)
            places = [e // period * kept + e % period for e, period, kept in gaps]
        offset = flatten(places, self.strides)
        step = self.one_size
        for name, count in reversed(self.copies):
            offset = offset + axis(name) * step
            step *= count
        return offset

    def __str__(self) -> str:
        text = f"{format_indices(self.lows)} of {list(self.extents)} strides {list(self.strides)}"
        if self.steps:
            text += f" steps {list(self.steps)}"
        if self.periods:
            text += f" periods {list(self.periods)} kept {list(self.kept)}"
        if self.swizzle is not None:
            text += f" swizzle {list(self.swizzle)}"
        if self.spare:
            text += f" spare [{self.spare}]"
        if self.copies:
            text += f" copies ({', '.join(f'{name} = {count}' for name, count in self.copies)})"
        return text


@irdl_attr_definition
class LayoutAttr(Data[Layout]):
    """A layout as an attribute: `#lw_loop.layout<[i * 16, 0] of [16, 64] strides [64, 1]>`."""

    name = "lw_loop.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            return parse_layout(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def parse_layout(parser: AttrParser) -> Layout:
    """Parse what a layout prints, whose lists are all of one length."""
    lows = parse_indices(parser)
    parser.parse_keyword("of")
    extents = _numbers(parser)
    parser.parse_keyword("strides")
    strides = _numbers(parser)
    steps = _numbers(parser) if parser.parse_optional_keyword("steps") else ()
    periods = _numbers(parser) if parser.parse_optional_keyword("periods") else ()
    if periods:
        parser.parse_keyword("kept")
    kept = _numbers(parser) if periods else ()
    swizzle = _parse_swizzle(parser) if parser.parse_optional_keyword("swizzle") else None
    (spare,) = _numbers(parser) if parser.parse_optional_keyword("spare") else (0,)
    if any(len(n) != len(lows) for n in (extents, strides, steps or lows, periods or lows, kept or periods or lows)):
        parser.raise_error("a layout has as many extents, strides and steps as indices")
    if min((*extents, *steps, *periods, *kept), default=1) < 1:
        parser.raise_error("a layout's extents, steps and periods are at least 1")
    copies: tuple[tuple[str, int], ...] = ()
    if parser.parse_optional_keyword("copies"):
        copies = tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _copies(parser)))
    return Layout(lows, extents, strides, steps, copies, periods, kept, swizzle, spare)


def _parse_swizzle(parser: AttrParser) -> Swizzle:
    numbers = _numbers(parser)
    if len(numbers) != 3 or min(numbers) < 1:
        parser.raise_error("a swizzle is three positive numbers: of a chunk, of a row, and how many chunks")
    return Swizzle(*numbers)


def _numbers(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _natural(parser)))


def _copies(parser: AttrParser) -> tuple[str, int]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return name, _natural(parser)


def _natural(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)
