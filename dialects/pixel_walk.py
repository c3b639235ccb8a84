"""Boxes of pixels in images, which the copy engine walks over as a window does: im2col mode (PTX ISA, tensors)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a network that runs has walks, and no xDSL
    from xdsl.parser import Parser
    from xdsl.printer import Printer

CORNER_BITS = {1: 16, 2: 8, 3: 5}
"""Bits of a corner, with a sign, and of a tap, without, by dimensions that are walked over (CUDA driver API,
cuTensorMapEncodeIm2col; PTX ISA)."""


@dataclass(frozen=True)
class Walk:
    """Positions of a window in images, one after the other: the innermost dimension first, then the next image.

    In each dimension between batch and channels they go from `first` to `last`, by `steps`; positions may lie outside
    of the image.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Positions along each dimension."""
        return tuple((b - a) // step + 1 for a, b, step in zip(self.first, self.last, self.steps, strict=True))

    def corners(self, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lower corner of the positions, from the image's, and the upper one from that of the image."""
        return self.first, tuple(b - (n - 1) for b, n in zip(self.last, shape[1:-1], strict=True))

    def most_tap(self) -> int:
        """The furthest element of a window from its first one, in a dimension."""
        return (1 << CORNER_BITS[len(self.first)]) - 1

    def print(self, printer: Printer) -> None:
        """Print ` walk [-1, -1] to [26, 26] by [1, 1]`."""
        printer.print_string(f" walk {list(self.first)} to {list(self.last)} by {list(self.steps)}")


def parse_optional_walk(parser: Parser) -> Walk | None:
    """Parse what `Walk.print` prints, if that comes next."""
    if parser.parse_optional_keyword("walk") is None:
        return None

    def numbers() -> tuple[int, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

    first = numbers()
    parser.parse_keyword("to")
    last = numbers()
    parser.parse_keyword("by")
    return Walk(first, last, numbers())
