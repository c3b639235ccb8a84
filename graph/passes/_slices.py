"""Slices of slices, also through views that only add or drop axes of one element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ..operator import Kind, is_view, kind_of
from ..types import shape_of
from ._rewrite import Before, option, producer


class Range(NamedTuple):
    """The elements `start + k * step` for k in `[0, taken)` of an axis."""

    start: int
    step: int
    taken: int

    @property
    def end(self) -> int:
        return self.start + (self.taken - 1) * self.step + 1

    def of(self, inner: Range) -> Range:
        """This range of the elements that `inner` takes."""
        return Range(inner.start + inner.step * self.start, inner.step * self.step, self.taken)


def joined_slices(op: ApplyOp) -> SSAValue | None:
    """`strided_slice(reshape(strided_slice(x)))` -> `reshape(strided_slice(x))`: each reads x itself.

    The slice in between, where nothing else reads it, is no tensor of its own, and what is behind shares a kernel with
    the other. Requires steps of at least 1, and a reshape, if any, of axes of one element only.
    """
    between = op.inputs[0]
    view = between.owner
    through = is_view(view)
    inner = producer(view.inputs[0] if through and isinstance(view, ApplyOp) else between, "strided_slice")
    if inner is None:
        return None
    own, theirs = ranges_of(op), ranges_of(inner)
    placed = own and _behind_view(own, shape_of(between), shape_of(inner.outputs[0]))
    if placed is None or theirs is None or not placed:
        return None
    joined = [late.of(early) for late, early in zip(placed, theirs, strict=True)]
    extents = shape_of(inner.inputs[0])
    axes = [d for d, (r, n) in enumerate(zip(joined, extents, strict=True)) if r != Range(0, 1, n)]
    before = Before(op)
    made = before.apply(
        "strided_slice",
        inner.inputs[0],
        begin=[joined[d].start for d in axes],
        end=[joined[d].end for d in axes],
        strides=[joined[d].step for d in axes],
        axes=axes,
    )
    return before.reshape(made, shape_of(op.outputs[0]))


def ranges_of(op: ApplyOp) -> list[Range] | None:
    """Return what a slice takes of each axis; None where it goes backwards."""
    shape, taken = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    begin, end = option(op, "begin"), option(op, "end")
    strides, axes = option(op, "strides") or [1] * len(begin), option(op, "axes")
    places = range(len(begin)) if axes is None else [int(a) % len(shape) for a in axes]
    found = [Range(0, 1, n) for n in shape]
    for d, first, last, step in zip(places, begin, end, strides, strict=True):
        if step < 1:
            return None
        start, _, _ = slice(first, last, step).indices(shape[d])
        found[d] = Range(start, step, taken[d])
    return found


def _behind_view(ranges: Sequence[Range], shape: Sequence[int], wanted: Sequence[int]) -> list[Range] | None:
    """Return ranges of the axes of `shape` as those of the axes of `wanted`, which differ by axes of one element."""
    moved = [r for r, n in zip(ranges, shape, strict=True) if n > 1]
    if [n for n in shape if n > 1] != [n for n in wanted if n > 1]:
        return None
    rest = iter(moved)
    return [next(rest) if n > 1 else Range(0, 1, 1) for n in wanted]


def drop_unit_views(op: ApplyOp) -> None:
    """`f(x, reshape(y))` -> `f(x, y)` for an elementwise f, where y has the shape of the result.

    The reshape dropped axes of one element in front, which f adds again; it would stand between operators that may
    share a kernel.
    """
    wanted = shape_of(op.outputs[0])
    for position, value in enumerate(op.inputs):
        view, shape = value.owner, shape_of(value)
        if not isinstance(view, ApplyOp) or kind_of(view) is not Kind.VIEW:
            continue
        if shape_of(view.inputs[0]) == wanted and wanted == (1,) * (len(wanted) - len(shape)) + shape:
            op.operands[position] = view.inputs[0]
