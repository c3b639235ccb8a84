"""Operators that move elements: transpose, reshape, concatenate, slices, and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from .. import te
from ..te import ShapeError, Tensor, broadcast_shape, compute, select
from ..te.broadcast import broadcast_indices
from ..te.errors import format_shape
from ..te.expr import Expr
from .arguments import Ints, one_axis, several_axes


def transpose(data: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Axis k of the result is axis `axes[k]` of the data; all axes reversed for None."""
    order = list(range(data.ndim))[::-1] if axes is None else [one_axis("transpose", a, data.ndim) for a in axes]
    if sorted(order) != list(range(data.ndim)):
        raise ShapeError(f"transpose: axes {tuple(axes or ())} do not permute data {format_shape(data.shape)}")
    inverse = [order.index(d) for d in range(data.ndim)]
    return _moved(tuple(data.shape[d] for d in order), lambda *i: data[tuple(i[k] for k in inverse)], "T_transpose")


def reshape(data: Tensor, shape: Sequence[int]) -> Tensor:
    """Give the elements another shape, in row-major order; one extent may be -1."""
    total = prod(data.shape)
    wanted = list(shape)
    if wanted.count(-1) == 1:
        rest = -prod(wanted)
        wanted[wanted.index(-1)] = total // rest if rest > 0 else 0
    if any(n < 1 for n in wanted) or prod(wanted) != total:
        raise ShapeError(
            f"reshape: data {format_shape(data.shape)} has {total} elements, shape {tuple(shape)} does not"
        )
    return _moved(tuple(wanted), lambda *i: data[_unravel(_ravel(i, wanted), data.shape)], "T_reshape")


def flatten(data: Tensor) -> Tensor:
    """(N, ...) -> (N, product of the rest)."""
    return reshape(data, (data.shape[0], prod(data.shape[1:])))


def squeeze(data: Tensor, axis: Ints | None = None) -> Tensor:
    """Remove the axes `axis` of extent 1 (all such axes for None)."""
    unit = [d for d, n in enumerate(data.shape) if n == 1]
    dropped = unit if axis is None else list(several_axes("squeeze", axis, data.ndim))
    if not set(dropped) <= set(unit):
        raise ShapeError(f"squeeze: axis {axis} of data {format_shape(data.shape)} has an extent other than 1")
    kept = [d for d in range(data.ndim) if d not in dropped]

    def element(*i: Expr) -> Expr:
        return data[tuple(i[kept.index(d)] if d in kept else 0 for d in range(data.ndim))]

    return _moved(tuple(data.shape[d] for d in kept), element, "T_squeeze")


def expand_dims(data: Tensor, axis: int, count: int = 1) -> Tensor:
    """Insert `count` axes of extent 1 before axis `axis`."""
    place = one_axis("expand_dims", axis, data.ndim + 1)
    shape = (*data.shape[:place], *(1,) * count, *data.shape[place:])
    return _moved(shape, lambda *i: data[(*i[:place], *i[place + count :])], "T_expand_dims")


def broadcast_to(data: Tensor, shape: Sequence[int]) -> Tensor:
    """Broadcast to `shape` by NumPy's rules."""
    if broadcast_shape("broadcast_to", data.shape, shape) != tuple(shape):
        raise ShapeError(f"broadcast_to: data {format_shape(data.shape)} does not stretch to {tuple(shape)}")
    return _moved(tuple(shape), lambda *i: data[broadcast_indices(data, i)], "T_broadcast_to")


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Concatenate along an axis; the other extents agree."""
    place = _common_axis("concatenate", tensors, axis, skip=True)
    starts = [0]
    for t in tensors:
        starts.append(starts[-1] + t.shape[place])

    def element(*i: Expr) -> Expr:
        parts = [t[(*i[:place], i[place] - s, *i[place + 1 :])] for t, s in zip(tensors, starts, strict=False)]
        return _by_range(i[place], starts[1:], parts)

    first = tensors[0].shape
    return _moved((*first[:place], starts[-1], *first[place + 1 :]), element, "T_concat")


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Stack along a new axis; the shapes agree."""
    _common_axis("stack", tensors, 0, skip=False)
    place = one_axis("stack", axis, tensors[0].ndim + 1)

    def element(*i: Expr) -> Expr:
        rest = (*i[:place], *i[place + 1 :])
        return _by_range(i[place], list(range(1, len(tensors) + 1)), [t[rest] for t in tensors])

    shape = tensors[0].shape
    return _moved((*shape[:place], len(tensors), *shape[place:]), element, "T_stack")


def split(data: Tensor, indices_or_sections: Ints, axis: int = 0) -> list[Tensor]:
    """Split into equal sections (one integer), or before each of the given positions."""
    place = one_axis("split", axis, data.ndim)
    extent = data.shape[place]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1 or extent % count:
            raise ShapeError(f"split: axis {axis} of data {format_shape(data.shape)} does not split into {count}")
        cuts = [k * extent // count for k in range(1, count)]
    else:
        cuts = list(indices_or_sections)
    bounds = [0, *cuts, extent]
    if any(b <= a for a, b in pairwise(bounds)):
        raise ShapeError(f"split: positions {cuts} do not rise within axis {axis} of data {format_shape(data.shape)}")
    return [_slice(data, place, a, b) for a, b in pairwise(bounds)]


def strided_slice(
    data: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """Take elements begin, begin + stride, ... before end, by Python's rules for negative and too large positions."""
    places = list(range(len(begin))) if axes is None else [one_axis("strided_slice", a, data.ndim) for a in axes]
    steps = [1] * len(places) if strides is None else list(strides)
    if not len(places) == len(begin) == len(end) == len(steps) <= data.ndim or 0 in steps:
        raise ShapeError(
            f"strided_slice: begin {tuple(begin)}, end {tuple(end)} and strides {tuple(steps)} do not fit "
            f"data {format_shape(data.shape)}"
        )
    chosen = {d: range(data.shape[d])[b:e:s] for d, b, e, s in zip(places, begin, end, steps, strict=True)}
    if any(len(r) == 0 for r in chosen.values()):
        raise ShapeError(f"strided_slice: nothing is left of data {format_shape(data.shape)}")
    shape = tuple(len(chosen[d]) if d in chosen else n for d, n in enumerate(data.shape))

    def element(*i: Expr) -> Expr:
        return data[tuple(i[d] * chosen[d].step + chosen[d].start if d in chosen else i[d] for d in range(data.ndim))]

    return _moved(shape, element, "T_strided_slice")


def flip(data: Tensor, axis: int = 0) -> Tensor:
    """Reverse along an axis."""
    place = one_axis("flip", axis, data.ndim)
    last = data.shape[place] - 1
    return _moved(data.shape, lambda *i: data[(*i[:place], last - i[place], *i[place + 1 :])], "T_flip")


def tile(data: Tensor, repeats: Sequence[int]) -> Tensor:
    """Repeat the whole tensor `repeats[k]` times along axis k."""
    if len(repeats) != data.ndim or min(repeats) < 1:
        raise ShapeError(f"tile: repeats {tuple(repeats)} do not fit data {format_shape(data.shape)}")
    shape = tuple(n * r for n, r in zip(data.shape, repeats, strict=True))
    return _moved(shape, lambda *i: data[tuple(x % n for x, n in zip(i, data.shape, strict=True))], "T_tile")


def repeat(data: Tensor, repeats: int, axis: int = 0) -> Tensor:
    """Repeat every element `repeats` times in a row along an axis."""
    place = one_axis("repeat", axis, data.ndim)
    if repeats < 1:
        raise ShapeError(f"repeat: repeats must be at least 1, got {repeats}")
    shape = (*data.shape[:place], data.shape[place] * repeats, *data.shape[place + 1 :])
    return _moved(shape, lambda *i: data[(*i[:place], i[place] // repeats, *i[place + 1 :])], "T_repeat")


def take(data: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """The slices of `data` at `indices` (int32 or int64) along an axis; an index out of range is moved to the edge."""
    place = one_axis("take", axis, data.ndim)
    if indices.dtype not in ("int32", "int64"):
        raise ShapeError(f"take: indices must be integers, got {indices.dtype}")
    width = indices.ndim

    def element(*i: Expr) -> Expr:
        return data[(*i[:place], indices[i[place : place + width]], *i[place + width :])]

    return _moved((*data.shape[:place], *indices.shape, *data.shape[place + 1 :]), element, "T_take")


def full(shape: Sequence[int], value: float, dtype: str = "float32") -> Tensor:
    """Fill a tensor with `value`."""
    return _moved(tuple(shape), lambda *i: te.const(value, dtype), "T_full")


def _moved(shape: tuple[int, ...], element: Any, name: str) -> Tensor:
    result: Tensor = compute(shape, element, name, [f"ax{k}" for k in range(len(shape))])
    return result


def _ravel(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    position: Expr = te.const(0, "int32")
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def _unravel(position: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    indices: list[Expr] = []
    stride = prod(shape)
    for d, extent in enumerate(shape):
        stride //= extent
        index = position // stride
        indices.append(index % extent if d else index)
    return tuple(indices)


def _slice(data: Tensor, place: int, start: int, stop: int) -> Tensor:
    shape = (*data.shape[:place], stop - start, *data.shape[place + 1 :])
    return _moved(shape, lambda *i: data[(*i[:place], i[place] + start, *i[place + 1 :])], "T_split")


def _by_range(index: Expr, stops: Sequence[int], values: Sequence[Expr]) -> Expr:
    """`values[k]` for the first k with `index < stops[k]`, found by halves."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return select(
        index < stops[half - 1],
        _by_range(index, stops[:half], values[:half]),
        _by_range(index, stops[half:], values[half:]),
    )


def _common_axis(operator: str, tensors: Sequence[Tensor], axis: int, skip: bool) -> int:
    if not tensors:
        raise ShapeError(f"{operator}: at least one tensor is needed")
    first = tensors[0]
    place = one_axis(operator, axis, first.ndim) if first.ndim else 0
    for t in tensors[1:]:
        same = t.ndim == first.ndim and all(
            a == b or (skip and d == place) for d, (a, b) in enumerate(zip(t.shape, first.shape, strict=False))
        )
        if not same or t.dtype != first.dtype:
            listed = ", ".join(f"{format_shape(x.shape)} {x.dtype}" for x in tensors)
            raise ShapeError(f"{operator}: tensors {listed} do not fit along axis {axis}")
    return place
