"""Boxes of pixels in images, which the copy engine walks over as a window does: im2col mode (PTX ISA, tensors)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.parser import Parser
from xdsl.printer import Printer

from ..buffers import CHUNK_BYTES

MOST_PIXELS, MOST_CHANNELS, MOST_STEP = 1024, 256, 8
"""Pixels and channels of a box, and pixels from one to the next (CUDA driver API, cuTensorMapEncodeIm2col)."""
CORNER_BITS = {1: 16, 2: 8, 3: 5}
"""Bits of a corner, with a sign, and of a tap, without, by dimensions that are walked over (the same; PTX ISA)."""


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

    def problem(self, shape: Sequence[int], box: Sequence[int], size: int, span: int) -> str | None:
        """Say why the copy engine does not copy pixels of a dense array so; None where it does."""
        if len(shape) - 2 not in CORNER_BITS or not len(self.first) == len(self.last) == len(self.steps):
            return f"images of {len(shape)} dimensions are not walked over"
        if len(self.first) != len(shape) - 2 or len(box) != 2 or min(self.steps) < 1 or min(self.counts) < 1:
            return f"a walk over {list(shape)} has positions in each dimension, and pixels and channels of a box"
        most = 1 << (CORNER_BITS[len(self.first)] - 1)
        if any(not -most <= n < most for corner in self.corners(shape) for n in corner):
            return f"positions from {list(self.first)} to {list(self.last)} are further than {most} from the image's"
        if box[0] > MOST_PIXELS or box[1] > MOST_CHANNELS or max(self.steps) > MOST_STEP:
            return f"a box of {list(box)} in steps of {list(self.steps)} is too large"
        if shape[-1] * size % CHUNK_BYTES or box[1] * size % CHUNK_BYTES or (span and box[1] * size != span):
            return f"channels of a box are {box[1] * size} bytes, and must be {span or f'a multiple of {CHUNK_BYTES}'}"
        return None

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
