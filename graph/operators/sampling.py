"""Sampling between elements, at places which a tensor gives: which elements, their weights, and their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from ... import te
from ...dialects.numpy_types import FLOATS, working_type
from ...te import ShapeError, Tensor, compute
from ...te.errors import format_shape
from ...te.expr import Expr
from ..operator import Kind, Operator, anchor

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""Elements along an axis that a sample is made of."""
_PADDINGS = ("zeros", "border", "reflection")


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
