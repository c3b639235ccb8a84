"""Windows that slide over what a block reads: dimensions whose index adds up a place of the results and a tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.attributes import Axis
from ...dialects.index import IndexExpr


@dataclass(frozen=True)
class Slide:
    """A dimension that windows move along: `place * stride + tap * dilation + start`.

    A place is one along the results, or of one of the phases of a transposed convolution, along its kernel.
    """

    dimension: int
    place: Axis
    stride: int
    tap: Axis
    dilation: int
    start: int

    @property
    def is_of_phases(self) -> bool:
        """True where the places are the phases between two taps."""
        return self.dilation < 0 and 1 < self.place.extent <= -self.dilation

    def reached(self, places: int) -> int:
        """Positions that the windows of some neighbouring places reach, from the first to the last."""
        return (places - 1) * self.stride + (self.tap.extent - 1) * self.dilation + 1


def slides_of(indices: Sequence[IndexExpr], axes: Sequence[Axis]) -> tuple[Slide, ...]:
    """The dimensions along which a block with these axes slides windows of several taps, or has phases."""
    known = {a.name: a for a in axes}
    found = []
    for dimension, index in enumerate(indices):
        if len(index.terms) != 2 or not all(isinstance(atom, str) for atom, _ in index.terms):
            continue
        place, tap = sorted((known[str(atom)] for atom, _ in index.terms), key=lambda a: a.reduce)
        steps = index.coefficient(place.name), index.coefficient(tap.name)
        slide = Slide(dimension, place, steps[0], tap, steps[1], index.const)
        if tap.reduce > place.reduce and (tap.extent > 1 or slide.is_of_phases):
            found.append(slide)
    return tuple(found)
