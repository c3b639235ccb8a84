"""Buffer layouts: which part of a buffer is kept, and at which flat position each element of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .attributes import format_indices, parse_indices
from .index import IndexExpr, axis, flatten


@dataclass(frozen=True)
class Layout:
    """The part of a buffer that is kept, and its strides, in elements: `[i * 16, 0] of [16, 64] strides [64, 1]`.

    `lows` are the indices of the first element kept, over the loops around the allocation, and over the threads where
    each has registers of its own. Every `steps`-th index is kept (all where there are none), `extents` of them. There
    is one copy of it all for each of the virtual threads that `copies` names, with their number.
    """

    lows: tuple[IndexExpr, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...] = ()
    copies: tuple[tuple[str, int], ...] = ()

    @property
    def one_size(self) -> int:
        """Elements from the first to the last of one copy."""
        return max(1, sum((n - 1) * s for n, s in zip(self.extents, self.strides, strict=True)) + 1)

    @property
    def size(self) -> int:
        """Elements from the first to the last."""
        return self.one_size * prod(n for _, n in self.copies)

    def offset(self, indices: Sequence[IndexExpr]) -> IndexExpr:
        """The flat position of an element, whose indices are expressions over the loops."""
        places = [e - low for e, low in zip(indices, self.lows, strict=True)]
        if self.steps:
            places = [e // step for e, step in zip(places, self.steps, strict=True)]
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
    if any(len(numbers) != len(lows) for numbers in (extents, strides, steps or extents)):
        parser.raise_error("a layout has as many extents, strides and steps as indices")
    if min((*extents, *steps), default=1) < 1:
        parser.raise_error("a layout's extents and steps are at least 1")
    copies: tuple[tuple[str, int], ...] = ()
    if parser.parse_optional_keyword("copies"):
        copies = tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _copies(parser)))
    return Layout(lows, extents, strides, steps, copies)


def _numbers(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _natural(parser)))


def _copies(parser: AttrParser) -> tuple[str, int]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return name, _natural(parser)


def _natural(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)
