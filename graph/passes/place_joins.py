"""The pass that has tensors written side by side where a concatenation along outer axes would copy them to."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..operator import HEADS, Kind, is_view, kind_of
from ..runtime.plan import ALIGNMENT
from ..types import dtype_of, shape_of
from ._rewrite import Before, applied, below_views, option, replace, users

_JOINING = ("concatenate", "stack")
_WRITTEN = (*HEADS, Kind.ELEMENTWISE, Kind.JOIN)
"""Kinds of operators whose kernels may write anywhere: no copies, which read from elsewhere as a concatenation does."""


@dataclass(frozen=True)
class PlaceJoins(ModulePass):
    """`concatenate(x, y)`, `stack(x, y)` -> `joined(x, y)`, where each one's elements lie side by side in the result.

    What is joined is no kernel and no copy: the kernels of x and y write to where it lies. So are the states of all
    steps of a recurrent layer, each of which the next step reads. What is an input, a constant or an output of the
    network, is read from elsewhere, or is joined twice, is copied there. Requires that this is no more than half of
    all, and that each starts on a multiple of ALIGNMENT bytes. Before `lw-graph-fuse`: others drop the copies.
    """

    name: ClassVar[str] = "lw-graph-place-joins"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = set[SSAValue]()
        for found in applied(op):
            if found.operator.data in _JOINING and _is_outermost(found) and _are_aligned(found):
                _place(found, taken)


def _place(op: ApplyOp, taken: set[SSAValue]) -> None:
    """Put what is joined in the place of a concatenation, and add the values written there to those taken."""
    written, copied = set[SSAValue](), list[int]()
    for k, value in enumerate(map(below_views, op.inputs)):
        if _may_be_placed(value) and value not in taken | written:
            written.add(value)
        else:
            copied.append(k)
    if 2 * sum(_nbytes(op.inputs[k]) for k in copied) > _nbytes(op.outputs[0]):
        return
    before, values = Before(op), list(op.inputs)
    for k in copied:
        values[k] = before.apply("cast", values[k], dtype=dtype_of(values[k]))
    taken.update(written)
    replace(op, [before.apply("joined", *values, shape=shape_of(op.outputs[0]))])


def _is_outermost(op: ApplyOp) -> bool:
    shape = shape_of(op.outputs[0])
    return prod(shape[: int(option(op, "axis")) % len(shape)]) == 1


def _may_be_placed(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, ApplyOp) and kind_of(owner) in _WRITTEN and not _is_returned(value)


def _is_returned(value: SSAValue) -> bool:
    return any(
        isinstance(op, ReturnOp) or (isinstance(op, ApplyOp) and is_view(op) and _is_returned(op.outputs[0]))
        for op in users(value)
    )


def _are_aligned(op: ApplyOp) -> bool:
    nbytes = [*map(_nbytes, op.inputs)]
    return all(each and not each % ALIGNMENT for each in nbytes[:-1]) and bool(nbytes[-1])


def _nbytes(value: SSAValue) -> int:
    return prod(shape_of(value)) * np.dtype(dtype_of(value)).itemsize
