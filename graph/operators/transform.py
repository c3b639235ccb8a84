"""Operators that move elements, or give them another shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ... import topi
from ...te import Tensor
from ...topi.arguments import Ints
from ..operator import Kind, Operator, axis_moves, injective, view


def _transpose(data: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    return topi.transpose(data, axes)


def _reshape(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    return topi.reshape(data, shape)


def _squeeze(data: Tensor, *, axis: Ints | None = None) -> Tensor:
    return topi.squeeze(data, axis)


def _expand_dims(data: Tensor, *, axis: int, count: int = 1) -> Tensor:
    return topi.expand_dims(data, axis, count)


def _broadcast_to(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    return topi.broadcast_to(data, shape)


def _concatenate(*tensors: Tensor, axis: int = 0) -> Tensor:
    return topi.concatenate(tensors, axis)


def _stack(*tensors: Tensor, axis: int = 0) -> Tensor:
    return topi.stack(tensors, axis)


def _split(data: Tensor, *, sections: Ints, axis: int = 0) -> list[Tensor]:
    return topi.split(data, sections, axis)


def _strided_slice(
    data: Tensor,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    return topi.strided_slice(data, begin, end, strides, axes)


def _part(data: Tensor, *, start: int, shape: Sequence[int]) -> Tensor:
    """Take the elements of a tensor from number `start` on, in the order of memory, as many as the shape has."""
    flat = topi.reshape(data, (prod(data.shape),))
    return topi.reshape(topi.strided_slice(flat, (start,), (start + prod(shape),)), shape)


def _joined(*parts: Tensor, shape: Sequence[int]) -> Tensor:
    """Put the elements of tensors side by side, in the order of memory, under a shape."""
    return topi.reshape(topi.concatenate([topi.reshape(each, (prod(each.shape),)) for each in parts]), shape)


def _flip(data: Tensor, *, axis: int = 0) -> Tensor:
    return topi.flip(data, axis)


def _tile(data: Tensor, *, repeats: Sequence[int]) -> Tensor:
    return topi.tile(data, repeats)


def _repeat(data: Tensor, *, repeats: int, axis: int = 0) -> Tensor:
    return topi.repeat(data, repeats, axis)


def _take(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return topi.take(data, indices, axis)


def _pad(data: Tensor, *, before: Sequence[int], after: Sequence[int] | None = None, value: float = 0.0) -> Tensor:
    return topi.nn.pad(data, before, after, value)


def _pad_moves(options: dict[str, Any], permutation: tuple[int, ...]) -> dict[str, Any]:
    moved = {k: tuple(options[k][p] for p in permutation) for k in ("before", "after") if options[k] is not None}
    return {**options, **moved}


def _resize2d(
    data: Tensor,
    *,
    size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_mode: str = "half_pixel",
) -> Tensor:
    return topi.resize2d(data, size, layout, method, coordinate_mode)


transpose = injective(_transpose)
reshape = view(_reshape)
flatten = view(topi.flatten)
squeeze = view(_squeeze)
expand_dims = view(_expand_dims)
broadcast_to = injective(_broadcast_to)
concatenate = injective(_concatenate, axis_moves)
stack = injective(_stack)
split = injective(_split, axis_moves)
strided_slice = injective(_strided_slice)
part = Operator(_part, Kind.PART)
joined = Operator(_joined, Kind.JOIN)
flip = injective(_flip, axis_moves)
tile = injective(_tile)
repeat = injective(_repeat, axis_moves)
take = injective(_take)
pad = injective(_pad, _pad_moves)
resize2d = injective(_resize2d)
