"""Weights of sampling between elements, at places which a tensor gives."""

from __future__ import annotations

from ... import te
from ...dialects.numpy_types import FLOATS, working_type
from ...te import ShapeError, Tensor, compute
from ...te.expr import Expr
from ..operator import Kind, Operator

_METHODS = ("nearest", "linear", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


def _sampling_weights(
    places: Tensor,
    *,
    extent: int,
    method: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
    cubic: float = -0.75,
) -> Tensor:
    """places (...), from -1 to 1 across an axis of `extent` elements -> weights of these elements (..., extent).

    -1 and 1 are the middles of the first and the last element where `align_corners`, else their outer edges. Elements
    outside are zeros, the nearest ones inside (border), or mirrored ones. `cubic` is the slope of the cubic weights.
    """
    if method not in _METHODS or padding not in _PADDINGS or places.dtype not in FLOATS:
        raise ShapeError(
            f"sampling_weights: method is one of {', '.join(_METHODS)}, padding one of {', '.join(_PADDINGS)}, and "
            f"places are floats; got {method}, {padding}, {places.dtype}"
        )
    kind = working_type(places.dtype)

    def element(*i: Expr) -> Expr:
        g, own = places[i[:-1]].astype(kind), te.cast(i[-1], kind)
        x = (g + 1.0) * (0.5 * (extent - 1)) if align_corners else ((g + 1.0) * float(extent) - 1.0) * 0.5
        base = te.round(x) if method == "nearest" else te.floor(x)
        total: Expr = te.const(0, kind)
        for tap, weight in _taps(method, x - base, cubic):
            place = _inside(base + float(tap), extent, padding, align_corners)
            total = total + te.select(place == own, weight, te.const(0, kind))
        return total.astype(places.dtype)

    result: Tensor = compute((*places.shape, extent), element, "T_sampling_weights")
    return result


def _taps(method: str, t: Expr, a: float) -> list[tuple[int, Expr]]:
    """Return the elements around a place, counted from the one before it, and their weights; t is the way past it."""
    if method == "nearest":
        return [(0, te.const(1, t.dtype))]
    if method == "linear":
        return [(0, 1.0 - t), (1, t)]

    def near(d: Expr) -> Expr:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0

    def far(d: Expr) -> Expr:
        return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a

    return [(-1, far(t + 1.0)), (0, near(t)), (1, near(1.0 - t)), (2, far(2.0 - t))]


def _inside(place: Expr, extent: int, padding: str, align_corners: bool) -> Expr:
    """The element that is read for a whole-numbered place; one outside stays there with zeros, and is none."""
    if padding == "zeros":
        return place
    last = float(extent - 1)
    if padding == "border":
        return te.maximum(te.minimum(place, last), 0.0)
    if align_corners:  # mirrored at the middles of the outer elements
        if extent == 1:
            return place * 0.0
        rest = _modulo(te.abs(place), 2.0 * last)
        return te.minimum(rest, 2.0 * last - rest)
    rest = _modulo(te.select(place < 0, -place - 1.0, place), 2.0 * extent)
    return te.minimum(rest, 2.0 * extent - 1.0 - rest)


def _modulo(x: Expr, period: float) -> Expr:
    return x - te.floor(x / period) * period


sampling_weights = Operator(_sampling_weights, Kind.OPAQUE)
