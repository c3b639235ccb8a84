"""Sampling between elements, at places which a tensor gives: which elements, their weights, and their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from ... import te
from ...dialects.numpy_types import FLOATS, working_type
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr
from ..operator import Kind, Operator, anchor

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""Elements along an axis that a sample is made of."""
_PADDINGS = ("zeros", "border", "reflection")
_JOINED: Mapping[str, Callable[..., Any]] = {"avg": te.sum, "max": te.max}
"""Reductions over the samples of a bin, by mode."""


def _sampling_places(
    grid: Tensor, *, extents: Sequence[int], method: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """grid (..., axes), from -1 to 1 across axes of `extents` elements -> int32 places (..., axes, taps) to read.

    -1 and 1 are the middles of the first and the last element where `align_corners`, else their outer edges. A place
    outside is the nearest one inside, or the mirrored one with `padding="reflection"`.
    """

    def place(x: Expr, tap: int, extent: int) -> Expr:
        return te.cast(
            _kept_inside(_inside(_base(x, method) + float(tap), extent, padding, align_corners), extent), "int32"
        )

    return _of_taps("sampling_places", grid, extents, method, padding, align_corners, place, "int32")


def _sampling_weights(
    grid: Tensor,
    *,
    extents: Sequence[int],
    method: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    cubic: float = -0.75,
) -> Tensor:
    """The weights of the elements at `sampling_places`, of the same shape; zero for one outside with `padding="zeros"`.

    `cubic` is the slope of the cubic weights.
    """

    def weight(x: Expr, tap: int, extent: int) -> Expr:
        base = _base(x, method)
        made, place = _weight(method, tap, x - base, cubic), base + float(tap)
        if padding != "zeros":
            return made
        return te.select(te.all(place >= 0.0, place < float(extent)), made, te.const(0, made.dtype))

    return _of_taps("sampling_weights", grid, extents, method, padding, align_corners, weight, grid.dtype)


def _of_taps(
    name: str,
    grid: Tensor,
    extents: Sequence[int],
    method: str,
    padding: str,
    align_corners: bool,
    value: Callable[[Expr, int, int], Expr],
    dtype: str,
) -> Tensor:
    """A value of each tap of each axis: of the place in elements, the tap counted from `_base`, and the extent."""
    if method not in _TAPS or padding not in _PADDINGS or grid.dtype not in FLOATS or grid.shape[-1] != len(extents):
        raise ShapeError(
            f"{name}: method is one of {', '.join(_TAPS)}, padding one of {', '.join(_PADDINGS)}, and the grid is of "
            f"floats, (..., {len(extents)}) for the extents {tuple(extents)}; got {method}, {padding}, "
            f"{format_shape(grid.shape)} of {grid.dtype}"
        )
    kind, taps = working_type(grid.dtype), _TAPS[method]

    def element(*i: Expr) -> Expr:
        g, axis, tap = grid[i[:-1]].astype(kind), i[-2], i[-1]

        def of(a: int, t: int) -> Expr:
            return value(_place(g, extents[a], align_corners), t - (method == "cubic"), extents[a]).astype(dtype)

        made = of(len(extents) - 1, taps - 1)
        for a, t in reversed(list(product(range(len(extents)), range(taps)))[:-1]):
            made = te.select(te.all(axis == a, tap == t), of(a, t), made)
        return made

    result: Tensor = compute((*grid.shape, taps), element, f"T_{name}")
    return result


def _sample(data: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """data (N, C, ...), places and weights (N, P, axes, taps) -> sums (N, C, P) of elements times weights.

    Places name the last axis of the data first, as grids of images do.
    """
    axes = data.ndim - 2
    if axes < 1 or places.shape != weights.shape or places.ndim != 4 or places.shape[2] != axes:
        raise ShapeError(
            f"sample: places {format_shape(places.shape)} and weights {format_shape(weights.shape)} are "
            f"(N, P, {axes}, taps) for data {format_shape(data.shape)}"
        )
    kind = working_type(data.dtype)

    def element(n: Expr, c: Expr, p: Expr) -> Expr:
        total: Expr = te.const(0, kind)
        for taps in product(range(places.shape[3]), repeat=axes):
            at = [places[n, p, axes - 1 - a, t] for a, t in enumerate(taps)]
            weight: Expr = te.const(1, kind)
            for a, t in enumerate(taps):
                weight = weight * weights[n, p, axes - 1 - a, t].astype(kind)
            total = total + weight * data[(n, c, *at)].astype(kind)
        return total.astype(data.dtype)

    result: Tensor = compute((*data.shape[:2], places.shape[1]), element, "T_sample")
    return result


def _roi_align(
    data: Tensor,
    rois: Tensor,
    images: Tensor,
    *,
    size: Sequence[int],
    samples: int,
    scale: float = 1.0,
    half_pixel: bool = True,
    mode: str = "avg",
) -> Tensor:
    """data (N, C, H, W), boxes (R, 4) as x1, y1, x2, y2, and the image (R,) of each -> (R, C, *size), pooled boxes.

    A box, times `scale`, is cut into `size` bins, which have `samples` places along each axis, and each place four
    elements around it: their weighted mean over a bin, or the largest weighted one with `mode="max"`. Without
    `half_pixel` a box has at least the size of an element, and places are not moved by half of one.
    Source: He et al. 2017 (Mask R-CNN); where a place counts as outside is that of ONNX's RoiAlign.
    """
    if data.ndim != 4 or rois.shape != (*images.shape, 4) or len(size) != 2 or samples < 1 or mode not in _JOINED:
        raise ShapeError(
            f"roi_align: data (N, C, H, W), boxes (R, 4), images (R,), two extents, at least 1 sample and a mode of "
            f"{', '.join(_JOINED)}; got {format_shape(data.shape)}, {format_shape(rois.shape)}, "
            f"{format_shape(images.shape)}, {tuple(size)}, {samples}, {mode}"
        )
    kind = working_type(data.dtype)
    count, (height, width) = images.shape[0], size

    def taps(name: str, axis: int, value: Callable[[Expr, Expr, int], Expr], dtype: str) -> Tensor:
        """A value of each tap (R, bins, 2 samples) of rows or columns: two elements a place, one after the other."""
        extent = data.shape[2 + axis]

        def element(r: Expr, bin: Expr, tap: Expr) -> Expr:
            begin, end = (rois[r, corner].astype(kind) * scale - 0.5 * half_pixel for corner in (1 - axis, 3 - axis))
            length = end - begin if half_pixel else te.maximum(end - begin, 1.0)
            part = te.cast(bin, kind) + (te.cast(tap // 2, kind) + 0.5) * (1.0 / samples)
            return value(begin + part * (length * (1.0 / size[axis])), tap % 2, extent).astype(dtype)

        found: Tensor = compute((count, size[axis], 2 * samples), element, name)
        return found

    def place(at: Expr, second: Expr, extent: int) -> Expr:
        return _kept_inside(te.floor(_kept_inside(at, extent)) + te.cast(second, kind), extent)

    def weight(at: Expr, second: Expr, extent: int) -> Expr:
        inside = _kept_inside(at, extent)
        past = inside - te.floor(inside)
        made = te.select(second == 1, past, 1.0 - past)
        return te.select(te.all(at >= -1.0, at <= float(extent)), made, te.const(0, kind))

    rows, columns = (taps(f"roi_{n}", a, place, "int32") for a, n in enumerate(("rows", "columns")))
    of_row, of_column = (taps(f"roi_{n}_weights", a, weight, kind) for a, n in enumerate(("row", "column")))
    down, across = reduce_axis((0, 2 * samples), "down"), reduce_axis((0, 2 * samples), "across")

    def pooled(r: Expr, c: Expr, i: Expr, j: Expr) -> Expr:
        found = data[images[r], c, rows[r, i, down], columns[r, j, across]].astype(kind)
        weighted = of_row[r, i, down] * of_column[r, j, across] * found
        joined: Expr = _JOINED[mode](weighted, axis=[down, across])
        return joined

    shape = (count, data.shape[1], height, width)
    joined = compute(shape, pooled, "roi_joined")
    share = 1.0 / samples**2 if mode == "avg" else 1.0
    result: Tensor = compute(shape, lambda *i: (joined[i] * share).astype(data.dtype), "T_roi_align")
    return result


def _place(g: Expr, extent: int, align_corners: bool) -> Expr:
    """The place in elements of one from -1 to 1."""
    return (g + 1.0) * (0.5 * (extent - 1)) if align_corners else ((g + 1.0) * float(extent) - 1.0) * 0.5


def _base(x: Expr, method: str) -> Expr:
    """The element from which taps are counted."""
    return te.round(x) if method == "nearest" else te.floor(x)


def _weight(method: str, tap: int, t: Expr, a: float) -> Expr:
    """The weight of a tap, counted from the element before a place; t is the way past it."""
    if method == "nearest":
        return te.const(1, t.dtype)
    if method == "linear":
        return t if tap else 1.0 - t
    d = (t + 1.0, t, 1.0 - t, 2.0 - t)[tap + 1]
    if tap in (0, 1):
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a


def _inside(place: Expr, extent: int, padding: str, align_corners: bool) -> Expr:
    """The element that is read for a whole-numbered place; one outside may stay there, but for mirrored ones."""
    if padding != "reflection":
        return place
    if align_corners:  # mirrored at the middles of the outer elements
        if extent == 1:
            return place * 0.0
        last = float(extent - 1)
        rest = _modulo(te.abs(place), 2.0 * last)
        return te.minimum(rest, 2.0 * last - rest)
    rest = _modulo(te.select(place < 0, -place - 1.0, place), 2.0 * extent)
    return te.minimum(rest, 2.0 * extent - 1.0 - rest)


def _kept_inside(place: Expr, extent: int) -> Expr:
    return te.maximum(te.minimum(place, float(extent - 1)), 0.0)


def _modulo(x: Expr, period: float) -> Expr:
    return x - te.floor(x / period) * period


sampling_places = Operator(_sampling_places, Kind.OPAQUE)
sampling_weights = Operator(_sampling_weights, Kind.OPAQUE)
sample = anchor(_sample)
roi_align = Operator(_roi_align, Kind.OPAQUE)
