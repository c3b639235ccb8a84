"""Padding that an anchor reads: where it is, and the part of a sum's steps that tiles have which read anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...dialects.buffers import buffer_shape
from ...dialects.index import IndexExpr
from ...passes.analysis.nest import find_block
from ..sketch.expression import FLOAT, mapped
from .anchor import Anchor, Operand

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TileSteps:
    """Of the steps of a tile along a window the parts that read anything but padding, and no padding, and of products
    those whose pixel is none; `cuts` are the ways in which tiles read both, each of which may have code of its own.
    """

    some: float
    read: float
    whole: float
    cuts: int


@dataclass(frozen=True)
class PaddedWindow:
    """A dimension that windows move along: `spatial * stride + tap * dilation + start`, of `low` to `high` not padding.

    Both axes have extents; `low` and `high` are inclusive. `pad` is the block that pads.
    """

    spatial: str
    extent: int
    stride: int
    tap: str
    taps: int
    dilation: int
    start: int
    low: int
    high: int
    pad: str = ""

    @property
    def moves_back(self) -> bool:
        """True for a kernel of a transposed convolution, padded where strides do not divide it: later taps come before.

        `spatial` are its phases then.
        """
        return self.dilation < 0

    def part(self, tile: int, taps: int) -> float:
        """The part of steps in which a tile of neighbours, with so many taps at a time, has something but padding.

        Of all places and taps in one tile each is written out by itself, and left out where it is padding.
        """
        return self.steps(tile, taps).some

    def steps(self, tile: int, taps: int) -> TileSteps:
        """The steps of a tile of neighbours, with so many taps at a time."""
        return _steps(self, tile, taps)

    def _counted(self, tile: int, taps: int) -> TileSteps:
        if tile >= self.extent and taps >= self.taps:
            part = self.steps(1, 1).read
            return TileSteps(part, part, part, 0)
        first, whole_tiles = self._edges(tile, -(-self.taps // taps) * taps)
        one, last = np.arange(0, self.taps, taps), np.minimum(first + tile, self.extent) - 1
        behind = np.minimum(one + taps, self.taps) - 1
        near, far = (one, behind) if self.dilation > 0 else (behind, one)
        along = self.start + self.dilation * np.arange(self.taps)
        begin, at = self.stride * first[:, None] + along, self.stride * last[:, None] + along
        some = (at[:, far] >= self.low) & (begin[:, near] <= self.high)
        copies = (last - first + 1)[:, None] * (behind - one + 1)
        # the first and the last place of a tile whose pixel is none of the padding, for each tap
        least, most = -((begin - self.low) // self.stride), (self.high - begin) // self.stride
        pixels = np.maximum(0, np.minimum((last - first)[:, None], most) - np.maximum(0, least) + 1)
        read = np.add.reduceat(pixels, one, axis=1)
        ends = self.stride * (tile - 1) + abs(self.dilation) * (taps - 1)  # also where the last tile is cut off
        reach = begin[:, one] + min(0, self.dilation) * (taps - 1)
        cut = (reach + ends >= self.low) & (reach <= self.high) & ((reach < self.low) | (reach + ends > self.high))
        beside, steps = whole_tiles * one.size, (whole_tiles + first.size) * one.size
        return TileSteps(
            some=float(some.sum() + beside) / steps,
            read=float((read / copies).sum() + beside) / steps,
            whole=float((read == copies).sum() + beside) / steps,
            cuts=np.unique(begin[:, one][cut]).size,
        )

    def _edges(self, tile: int, taps: int) -> tuple[Integers, int]:
        """The first places of tiles that may read padding, and the number of the others: most, of long signals.

        As if the last of them, and `taps`, went on behind their ends.
        """
        count, step = -(-self.extent // tile), self.stride * tile
        reach = self.dilation * (taps - 1)
        begin = max(0, -((self.start + min(0, reach) - self.low) // step))
        end = min(count, (self.high - self.start - max(0, reach) - self.stride * (tile - 1)) // step + 1)
        inside = max(0, end - begin)
        edges = np.concatenate([np.arange(begin), np.arange(end, count)]) if inside else np.arange(count)
        return edges * tile, inside

    def parts(self, tile: Integers, taps: Integers) -> Array:
        """`part` for a population."""
        return self._each("some", tile, taps)

    def read(self, tile: Integers, taps: Integers) -> Array:
        """The part of products of these steps whose pixel is no padding, for a population."""
        return self._each("read", tile, taps)

    def whole(self, tile: Integers, taps: Integers) -> Array:
        """The part of steps that read no padding, for a population."""
        return self._each("whole", tile, taps)

    def cuts(self, tile: Integers, taps: Integers) -> Array:
        """The ways in which tiles are cut, for a population."""
        return self._each("cuts", tile, taps)

    def _each(self, of: str, tile: Integers, taps: Integers) -> Array:
        return mapped(_OfSteps(self, of), FLOAT)(tile, taps)


@dataclass(frozen=True)
class _OfSteps:
    """A number of the steps of a window, for arrays of tiles and taps; alike where window and number are."""

    window: PaddedWindow
    number: str

    def __call__(self, tile: Integers, taps: Integers) -> Array:
        base = int(np.max(taps, initial=0)) + 1
        pairs, places = np.unique(tile * base + taps, return_inverse=True)
        found = [getattr(self.window.steps(*divmod(pair, base)), self.number) for pair in pairs.tolist()]
        return np.asarray(found, dtype=np.float64)[places]


@lru_cache(maxsize=4096)
def _steps(window: PaddedWindow, tile: int, taps: int) -> TileSteps:
    return window._counted(tile, taps)


def padded_windows(module: ModuleOp, anchor: Anchor) -> tuple[PaddedWindow, ...]:
    """Return the dimensions of an anchor's padded operands that windows move along."""
    found: list[PaddedWindow] = []
    for pad in anchor.pads:
        block = find_block(None, module, pad)
        names = [e.as_axis() for e in block.write_indices[0]]
        conditions = [c for load in block.loads for c in load.conditions]
        for operand in anchor.operands:
            if operand.buffer is block.outputs[0]:
                found += _windows(anchor, operand, pad, names, conditions)
    return tuple(found)


def part_read(windows: Iterable[PaddedWindow]) -> float:
    """The part of all products whose pixel is no padding."""
    return float(np.prod([window.part(1, 1) for window in windows]))


def _windows(
    anchor: Anchor, operand: Operand, pad: str, names: list[str | None], conditions: list[IndexExpr]
) -> Iterator[PaddedWindow]:
    for slide in operand.slides:
        name = names[slide.dimension]
        if name is None or slide.place not in anchor.spatial or slide.tap not in anchor.reduce or slide.stride < 0:
            continue
        low, high = _bounds(name, buffer_shape(operand.buffer)[slide.dimension], conditions)
        place, tap = slide.place, slide.tap
        yield PaddedWindow(
            *(place.name, place.extent, slide.stride),
            *(tap.name, tap.extent, slide.dilation),
            *(slide.start, low, high),
            pad,
        )


def _bounds(name: str, size: int, conditions: list[IndexExpr]) -> tuple[int, int]:
    """The first and the last place along an axis for which no condition on it alone fails."""
    low, high = 0, size - 1
    for condition in conditions:
        if condition.axes() != {name} or not condition.is_linear_in(name):
            continue
        step = condition.coefficient(name)
        if step > 0:
            low = max(low, -(condition.const // step))
        else:
            high = min(high, condition.const // -step)
    return low, high
