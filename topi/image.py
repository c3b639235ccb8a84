"""Resizing of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..dialects.numpy_types import FLOATS
from ..te import ShapeError, Tensor, compute
from ..te.expr import Expr
from .arguments import require_rank

MODES = ("asymmetric", "half_pixel", "align_corners")


@dataclass(frozen=True)
class _Line:
    """Source coordinates along one axis: output pixel o looks at `(factor * o + offset) / divisor`."""

    extent: int
    output: int
    factor: int
    offset: int
    divisor: int

    def numerator(self, index: Expr) -> Expr:
        return index * self.factor + self.offset

    def taps(self) -> tuple[int, int]:
        """The lowest and the highest source position that linear interpolation looks at."""
        last = (self.output - 1) * self.factor + self.offset
        return self.offset // self.divisor, last // self.divisor + (1 if self.fractional else 0)

    @property
    def fractional(self) -> bool:
        return bool(self.factor % self.divisor or self.offset % self.divisor)


def resize2d(
    data: Tensor,
    size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_mode: str = "half_pixel",
) -> Tensor:
    """data (N, C, H, W) -> (N, C, *size), or (N, H, W, C) -> (N, *size, C).

    `method` is nearest or bilinear. With H source and O output pixels, output pixel o looks at o * H / O (asymmetric),
    (o + 1/2) * H / O - 1/2 (half_pixel) or o * (H - 1) / (O - 1) (align_corners); borders repeat. Nearest takes the
    pixel that holds the point: the floor, in half_pixel of (o + 1/2) * H / O, in align_corners the rounded point.
    """
    require_rank("resize2d", 4, data=data)
    if layout not in ("NCHW", "NHWC") or coordinate_mode not in MODES or method not in ("nearest", "bilinear"):
        raise ShapeError(
            f"resize2d: layout is NCHW or NHWC, method nearest or bilinear, coordinate_mode one of {', '.join(MODES)}; "
            f"got {layout}, {method}, {coordinate_mode}"
        )
    if len(size) != 2 or min(size) < 1:
        raise ShapeError(f"resize2d: size takes two extents of at least 1, got {tuple(size)}")
    first = layout.index("H")
    extents = data.shape[first : first + 2]
    if method == "nearest":
        return _nearest(data, first, [_nearest_line(e, o, coordinate_mode) for e, o in zip(extents, size, strict=True)])
    if data.dtype not in FLOATS:
        raise ShapeError(f"resize2d: bilinear needs floats, got {data.dtype}: cast the data first")
    return _bilinear(data, first, [_linear_line(e, o, coordinate_mode) for e, o in zip(extents, size, strict=True)])


def _linear_line(extent: int, output: int, mode: str) -> _Line:
    if mode == "asymmetric" or (mode == "align_corners" and output == 1):
        return _Line(extent, output, extent, 0, output)
    if mode == "align_corners":
        return _Line(extent, output, extent - 1, 0, output - 1)
    return _Line(extent, output, 2 * extent, extent - output, 2 * output)


def _nearest_line(extent: int, output: int, mode: str) -> _Line:
    if mode == "half_pixel":
        return _Line(extent, output, 2 * extent, extent, 2 * output)
    if mode == "asymmetric" or output == 1:
        return _Line(extent, output, extent, 0, output)
    return _Line(extent, output, 2 * (extent - 1), output - 1, 2 * (output - 1))


def _nearest(data: Tensor, first: int, lines: Sequence[_Line]) -> Tensor:
    shape = _resized(data, first, lines)

    def element(*i: Expr) -> Expr:
        at = [line.numerator(i[first + k]) // line.divisor for k, line in enumerate(lines)]
        return data[(*i[:first], *at, *i[first + 2 :])]

    result: Tensor = compute(shape, element, "resize")
    return result


def _bilinear(data: Tensor, first: int, lines: Sequence[_Line]) -> Tensor:
    shifts = []
    for k, line in enumerate(lines):
        low, high = line.taps()
        before, after = max(0, -low), max(0, high - line.extent + 1)
        data = _repeat_edge(data, first + k, before, after)
        shifts.append(before)

    def element(*i: Expr) -> Expr:
        low = [line.numerator(i[first + k]) // line.divisor + shifts[k] for k, line in enumerate(lines)]
        weights = [
            (line.numerator(i[first + k]) % line.divisor).astype(data.dtype) * (1.0 / line.divisor)
            for k, line in enumerate(lines)
        ]

        def row(y: Expr) -> Expr:
            left = data[(*i[:first], y, low[1], *i[first + 2 :])]
            if not lines[1].fractional:
                return left
            return left + (data[(*i[:first], y, low[1] + 1, *i[first + 2 :])] - left) * weights[1]

        top = row(low[0])
        return top + (row(low[0] + 1) - top) * weights[0] if lines[0].fractional else top

    result: Tensor = compute(_resized(data, first, lines), element, "resize")
    return result


def _resized(data: Tensor, first: int, lines: Sequence[_Line]) -> tuple[int, ...]:
    return (*data.shape[:first], *(line.output for line in lines), *data.shape[first + 2 :])


def _repeat_edge(data: Tensor, axis: int, before: int, after: int) -> Tensor:
    """`data` with its first and last slice along an axis repeated."""
    if not before and not after:
        return data
    extent = data.shape[axis]

    def element(*i: Expr) -> Expr:
        def at(position: Expr | int) -> Expr:
            return data[(*i[:axis], position, *i[axis + 1 :])]

        inner = at(i[axis] - before) if before else at(i[axis])
        if after:
            inner = te.select(i[axis] < extent + before, inner, at(extent - 1))
        return te.select(i[axis] < before, at(0), inner) if before else inner

    shape = (*data.shape[:axis], extent + before + after, *data.shape[axis + 1 :])
    result: Tensor = compute(shape, element, "edge_pad")
    return result
