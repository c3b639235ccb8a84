"""The pass that makes slices stretches of memory where their elements lie side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..operator import HEADS, Kind, is_view, kind_of
from ..runtime.plan import ALIGNMENT
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, option, replace, users
from ._slices import Range, ranges_of

_MOST_BEHIND = 8
"""Elementwise operators in a row that are looked at, to find the one whose kernel they join. A choice."""


@dataclass(frozen=True)
class PlaceSlices(ModulePass):
    """`strided_slice(x)` -> `part(x)`, or `strided_slice(part(x))` where only its outer axes lie side by side.

    A part is no kernel and no copy: what reads it reads the memory of x, from a byte on. Steps of a sequence that were
    told apart by what they read are equal behind it, and share a kernel. Requires that x is in memory, being an input
    of the network, the result of a kernel that no slice joins, or read by several; that the part starts on a multiple
    of ALIGNMENT bytes; and that no output of the network is one. A `split` is several slices.
    """

    name: ClassVar[str] = "lw-graph-place-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data == "strided_slice" and _is_held(found.inputs[0]):
                _place(found)
            elif found.operator.data == "split" and _is_held(found.inputs[0]):
                _place_split(found)


class _Stretch(NamedTuple):
    """Elements of a tensor from number `start` on, under a shape."""

    start: int
    shape: tuple[int, ...]


def _place(op: ApplyOp) -> None:
    source, ranges = op.inputs[0], ranges_of(op)
    if ranges is None or _is_returned(op.outputs[0]):
        return
    found = _outer_stretch(ranges, shape_of(source))
    if found is None or not _is_aligned(found[0], source):
        return
    before, (stretch, inner) = Before(op), found
    shape = stretch.shape
    is_whole = all(r == Range(0, 1, n) for r, n in zip(inner, shape, strict=True))
    if not is_whole and not all(map(is_view, users(op.outputs[0]))):
        ahead = len(ranges) - len(inner)  # of one element each: who reads the slice as it is reads the part so
        shape, inner = (1,) * ahead + shape, [Range(0, 1, 1)] * ahead + inner
    made = before.apply("part", source, start=stretch.start, shape=shape)
    axes = [d for d, (r, n) in enumerate(zip(inner, shape, strict=True)) if r != Range(0, 1, n)]
    if axes:
        taken: dict[str, Any] = {"begin": [inner[d].start for d in axes], "end": [inner[d].end for d in axes]}
        made = before.apply("strided_slice", made, **taken, strides=[inner[d].step for d in axes], axes=axes)
    replace(op, [before.reshape(made, shape_of(op.outputs[0]))])


def _outer_stretch(ranges: Sequence[Range], extents: Sequence[int]) -> tuple[_Stretch, list[Range]] | None:
    """Return the least stretch that holds a slice, and the slice's ranges in it; None where that is everything.

    Of axes ahead, one element of which is taken, the stretch has none.
    """
    position = 0
    while position < len(ranges) - 1 and ranges[position].taken == 1:
        position += 1
    own, rest = ranges[position], list(ranges[position + 1 :])
    outer, inner = (
        (own, Range(0, 1, own.taken)) if own.step == 1 or own.taken == 1 else (Range(0, 1, extents[position]), own)
    )
    shape = (outer.taken, *extents[position + 1 :])
    if prod(shape) == prod(extents):
        return None
    ahead = [*ranges[:position], outer]
    return _Stretch(sum(r.start * prod(extents[d + 1 :]) for d, r in enumerate(ahead)), shape), [inner, *rest]


def _place_split(op: ApplyOp) -> None:
    source, axis = op.inputs[0], int(option(op, "axis")) % len(shape_of(op.inputs[0]))
    if prod(shape_of(source)[:axis]) != 1 or any(map(_is_returned, op.outputs)):
        return
    starts = np.cumsum([0, *(prod(shape_of(value)) for value in op.outputs)]).tolist()
    stretches = [_Stretch(start, shape_of(value)) for start, value in zip(starts, op.outputs, strict=False)]
    if all(_is_aligned(each, source) for each in stretches):
        before = Before(op)
        replace(op, [before.apply("part", source, start=each.start, shape=each.shape) for each in stretches])


def _is_aligned(stretch: _Stretch, source: SSAValue) -> bool:
    return stretch.start * np.dtype(dtype_of(source)).itemsize % ALIGNMENT == 0


def _is_held(value: SSAValue, behind: int = 0) -> bool:
    """True where a value lies in memory whether it is sliced or not."""
    value = _below_views(value)
    owner = value.owner
    if isinstance(owner, Block):
        return True
    if not isinstance(owner, ApplyOp) or behind == _MOST_BEHIND:
        return False
    kind = kind_of(owner)
    if kind in (*HEADS, Kind.JOIN) or (not behind and len(set(_readers(value))) > 1):
        return True
    return kind is Kind.ELEMENTWISE and any(
        _is_held(given, behind + 1) for given in owner.inputs if isinstance(_below_views(given).owner, ApplyOp)
    )


def _below_views(value: SSAValue) -> SSAValue:
    while isinstance(owner := value.owner, ApplyOp) and kind_of(owner) in (Kind.VIEW, Kind.PART):
        value = owner.inputs[0]
    return value


def _readers(value: SSAValue) -> Iterator[object]:
    """Iterate over the operations that read a value, under whatever shape."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ApplyOp) and kind_of(op) in (Kind.VIEW, Kind.PART):
            yield from _readers(op.outputs[0])
        else:
            yield op


def _is_returned(value: SSAValue) -> bool:
    return any(isinstance(reader, ReturnOp) for reader in _readers(value))
