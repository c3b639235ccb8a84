"""Transposes on both sides of a change of shape as one."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ..operator import is_view
from ..types import shape_of
from ._rewrite import Before, producer, transposed_order
from ._shapes import grouped_axes


def joined_by_view(op: ApplyOp) -> SSAValue | None:
    """`transpose(reshape(transpose(x)))` -> `reshape(transpose(x))`, without a transpose where it moves nothing.

    None where the outer one moves axes apart that the reshape makes of one, or in one with others. Axes of one element
    are of no account.
    """
    view = op.inputs[0].owner
    inner = producer(view.inputs[0], "transpose") if isinstance(view, ApplyOp) and is_view(view) else None
    order = None if inner is None else _order_inside(op, inner)
    if inner is None or order is None:
        return None
    before, source, first = Before(op), inner.inputs[0], transposed_order(inner)
    axes = [first[k] for k in order]
    moved = [k for k in axes if shape_of(source)[k] > 1]
    made = source if moved == sorted(moved) else before.apply("transpose", source, axes=axes)
    return before.reshape(made, shape_of(op.outputs[0]))


def _order_inside(op: ApplyOp, inner: ApplyOp) -> list[int] | None:
    """Return the order of axes that a transpose in front of the reshape gives them in the place of `op`."""
    given, made = shape_of(inner.outputs[0]), shape_of(op.inputs[0])
    own, other = ([k for k, n in enumerate(shape) if n > 1] for shape in (given, made))
    groups = grouped_axes([given[k] for k in own], [made[k] for k in other])
    if groups is None:
        return None
    of_first = {theirs[0]: (mine, theirs) for mine, theirs in groups}
    wanted = [other.index(k) for k in transposed_order(op) if made[k] > 1]
    order, position = [k for k, n in enumerate(given) if n == 1], 0
    while position < len(wanted):
        mine, theirs = of_first.get(wanted[position], ([], []))
        if not theirs or wanted[position : position + len(theirs)] != theirs:
            return None
        order += [own[k] for k in mine]
        position += len(theirs)
    return order
