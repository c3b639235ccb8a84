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

_LONGEST_ROW = 128
"""Elements of a row that are each compared with all others of it; longer ones are taken in blocks first.

One core of a loaded Xeon (Emerald Rapids) takes 2,640 us for 12 of 4,096 elements without blocks and 70 with, 120,000
and 2,200 for 50 of two rows of 20,000, where PyTorch takes 25 and 130. For 12 of 100 rows of 256 it is 1,320, and 550
where rows from 128 on are in blocks, 1,035 from 512 on.
"""
_BLOCKS = 4
"""A block is so many times as long as what is taken of it: each level leaves a quarter of the row, for 6 k steps an
element. A choice."""
_LEAST_BLOCK = 32
"""Elements of a block at least, where few are taken. A choice."""


def _top_k(data: Tensor, *, k: int, axis: int = -1, largest: bool = True) -> list[Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their int32 places; of equal ones the first.

    NaN is larger than all else, as PyTorch and NumPy sort it. Each element is compared with all others of its row,
    since what is read where must not depend on values; of long rows, the first ones of each block are then the row.
    """
    place = one_axis("top_k", axis, data.ndim)
    extent = data.shape[place]
    if not 1 <= k <= extent:
        raise ShapeError(f"top_k: axis {axis} of data {format_shape(data.shape)} has no {k} elements to choose")
    block = max(_LEAST_BLOCK, _BLOCKS * k)
    if extent <= max(_LONGEST_ROW, 2 * block):
        return _ranked(data, k, place, largest)
    values, places = _ranked(_in_blocks(data, block, place, largest), k, place + 1, largest)
    count = values.shape[place] * k
    shape = (*data.shape[:place], count, *data.shape[place + 1 :])

    def flat(source: Tensor, *i: Expr) -> Expr:
        return source[(*i[:place], i[place] // k, i[place] % k, *i[place + 1 :])]

    row: Tensor = compute(shape, lambda *i: flat(values, *i), "T_top_of_blocks")
    within: Tensor = compute(
        shape, lambda *i: flat(places, *i) + te.cast(i[place] // k * block, "int32"), "T_top_of_blocks_places"
    )
    chosen, at = _top_k(row, k=k, axis=place, largest=largest)
    shape = tuple(chosen.shape)
    return [chosen, compute(shape, lambda *i: within[(*i[:place], at[i], *i[place + 1 :])], "T_top_of_all_places")]


def _in_blocks(data: Tensor, block: int, place: int, largest: bool) -> Tensor:
    """Split an axis into blocks; what the last one is short of comes after all else."""
    extent = data.shape[place]
    shape = (*data.shape[:place], -(-extent // block), block, *data.shape[place + 1 :])
    if largest:
        last = te.min_value(data.dtype)
    else:
        last = te.const(float("nan"), data.dtype) if data.dtype in FLOATS else te.max_value(data.dtype)

    def element(*i: Expr) -> Any:
        at = i[place] * block + i[place + 1]
        read = data[(*i[:place], at, *i[place + 2 :])]
        return read if extent % block == 0 else te.select(at < extent, read, last)

    made: Tensor = compute(shape, element, "T_top_blocks")
    return made


def _ranked(data: Tensor, k: int, place: int, largest: bool) -> list[Tensor]:
    extent = data.shape[place]
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
