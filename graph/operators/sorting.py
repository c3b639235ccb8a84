"""The largest or smallest elements along an axis, in order, and their places."""

from __future__ import annotations

from typing import Any

from ... import te
from ...dialects.numpy_types import FLOATS
from ...te import ShapeError, Tensor, compute, reduce_axis
from ...te.errors import format_shape
from ...te.expr import Expr
from ...topi.arguments import one_axis
from ..operator import Kind, Operator


def _top_k(data: Tensor, *, k: int, axis: int = -1, largest: bool = True) -> list[Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their int32 places; of equal ones the first.

    NaN is larger than all else, as PyTorch and NumPy sort it. Each element is compared with all others of its row,
    since what is read where must not depend on values: fit for rows of some thousands.
    """
    place = one_axis("top_k", axis, data.ndim)
    extent = data.shape[place]
    if not 1 <= k <= extent:
        raise ShapeError(f"top_k: axis {axis} of data {format_shape(data.shape)} has no {k} elements to choose")
    other = reduce_axis((0, extent), "other")

    def rank(*i: Expr) -> Any:
        own, there = data[i], data[(*i[:place], other, *i[place + 1 :])]
        ahead, behind = _before(there, own, largest), _before(own, there, largest)
        first = te.any(ahead, te.all(te.logical_not(behind), other < i[place]))
        return te.sum(te.select(first, te.const(1, "int32"), te.const(0, "int32")), axis=other)

    ranks: Tensor = compute(data.shape, rank, "top_rank")
    shape = (*data.shape[:place], k, *data.shape[place + 1 :])
    source = reduce_axis((0, extent), "source")

    def chosen(value: Any, lowest: Expr) -> Any:
        def element(*i: Expr) -> Any:
            at = (*i[:place], source, *i[place + 1 :])
            return te.max(te.select(ranks[at] == te.cast(i[place], "int32"), value(at), lowest), axis=source)

        return element

    values: Tensor = compute(shape, chosen(lambda at: data[at], te.min_value(data.dtype)), "T_top_values")
    places: Tensor = compute(shape, chosen(lambda at: te.cast(source, "int32"), te.const(0, "int32")), "T_top_places")
    return [values, places]


def _before(a: Expr, b: Expr, largest: bool) -> Expr:
    """True where `a` comes before `b`, other than by its place."""
    above = a > b if largest else a < b
    if a.dtype not in FLOATS:
        return above
    none, other = (a != a, b != b) if largest else (b != b, a != a)
    return te.any(above, te.all(none, te.logical_not(other)))


top_k = Operator(_top_k, Kind.OPAQUE)
