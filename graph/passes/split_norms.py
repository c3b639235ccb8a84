"""The pass that has normalisations in a shape that their scale and shift can be read for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..types import shape_of
from ._rewrite import Before, applied, is_elementwise, option, producer, replace, used_once, users

Shape = tuple[int, ...]


@dataclass(frozen=True)
class SplitNorms(ModulePass):
    """f(reshape(norm(x)), y) -> f(reshape(norm(reshape(x))), y) with the axes of the norm split where y needs it.

    Group normalisation is one of rows, groups of channels, behind which each channel is scaled: (N, G, K) -> (N, C, H,
    W). As (N, G, C / G, H * W), normalised over two axes, rows can be read with the scale of a channel, and
    `lw-graph-sink-views` brings elementwise operators to what they read, into one kernel.
    """

    name: ClassVar[str] = "lw-graph-split-norms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for view in applied(op):
            norm = producer(view.inputs[0], "layer_norm", "rms_norm") if view.operator.data == "reshape" else None
            if norm is not None and len(norm.inputs) == 1 and used_once(norm.outputs[0]):
                _split(norm, view)


def _split(norm: ApplyOp, view: ApplyOp) -> None:
    rows, shape = shape_of(norm.inputs[0]), shape_of(view.outputs[0])
    ends = _ends(rows)
    for reader in users(view.outputs[0]):
        if is_elementwise(reader) and shape_of(reader.outputs[0]) == shape:
            for other in reader.inputs:
                ends |= _changes(other, shape)
    cuts = sorted(ends)
    if ends == _ends(rows) or any(after % before for before, after in pairwise(cuts)):
        return
    split = tuple(after // before for before, after in pairwise([1, *cuts]))
    axis, before = option(norm, "axis"), Before(norm)
    normalised = {a % len(rows) for a in ((axis,) if isinstance(axis, int) else axis)}
    first = [*accumulate((1, *rows), mul)]
    axes = tuple(
        k for k, end in enumerate(cuts) if any(first[a] < end <= first[a + 1] and split[k] > 1 for a in normalised)
    )
    if not axes:
        return
    options: dict[str, Any] = {**norm.options.values, "axis": axes}
    made = before.apply(norm.operator.data, before.reshape(norm.inputs[0], split), **options)
    replace(view, [Before(view).reshape(made, shape)])


def _ends(shape: Shape) -> set[int]:
    """Return how many elements of the leading axes there are, for each axis of more than one."""
    return {after for before, after in pairwise(accumulate((1, *shape), mul)) if after != before}


def _changes(value: SSAValue, shape: Shape) -> set[int]:
    """Return such numbers where a tensor, read for a shape, goes from an axis that it has to one that it has not."""
    own = shape_of(value)
    has = [n != 1 for n in (*(1,) * (len(shape) - len(own)), *own)]
    ends = [*accumulate(shape, mul)]
    return {ends[k] for k in range(len(shape) - 1) if has[k] != has[k + 1] and ends[k] > 1}
