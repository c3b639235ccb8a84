"""The pass that has softmax and the steps before it in the shape of the product that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..types import shape_of
from ._attention import PRODUCTS
from ._rewrite import Before, applied, is_elementwise, producer, replace, used_once

_SMALL = 8
"""A mask is written for all heads where that takes an eighth of the scores' memory at most. A choice: such masks have
one row for all queries, and are far smaller."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class FlattenSoftmax(ModulePass):
    """reshape(softmax(f(reshape(x), y))) -> softmax(f(x, reshape(y))) for elementwise f, where a product reads it.

    Models keep batch and heads apart, (batch, heads, rows, keys), but for their products: in one shape scores, masks,
    softmax and weighted sum are read axis by axis. Masks with an axis for one of the two are written for both where
    they are small; where they are not, or where there are fewer than `least_rows`, all stays. Where a product reads
    softmax as it is, or in as many rows of other heads, steps before that take its shape instead:
    softmax(f(reshape(g(reshape(x))))) -> softmax(f(g(x))).
    What a try leaves that comes to nothing is dead.
    """

    name: ClassVar[str] = "lw-graph-flatten-softmax"
    least_rows: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data in PRODUCTS:
                _flatten(found, self.least_rows)
                _straighten(found)


def _flatten(product: ApplyOp, least_rows: int) -> None:
    view = producer(product.inputs[0], "reshape")
    softmax = producer(view.inputs[0], "softmax") if view is not None else None
    if view is None or softmax is None or not used_once(softmax.outputs[0]):
        return
    apart, shape = shape_of(softmax.outputs[0]), shape_of(view.outputs[0])
    if shape[-2] < least_rows:
        return
    last = softmax.options.values.get("axis", -1) in (-1, len(apart) - 1)
    if not last or apart[-2:] != shape[-2:]:
        return
    before = Before(softmax)
    if len(apart) == len(shape) + 1 and apart[2:] == shape[1:]:
        data = _flat(softmax.inputs[0], apart, shape, before)
    else:
        data = _without_views(softmax.inputs[0], shape, before)
    if data is not None:
        replace(view, [before.apply("softmax", data, label=softmax.outputs[0].name_hint, axis=len(shape) - 1)])


def _flat(value: SSAValue, apart: Shape, shape: Shape, before: Before) -> SSAValue | None:
    """Return a value that stretches to the shape `apart` as one that stretches to `shape`; None where it takes much."""
    own = shape_of(value)
    if not own:
        return value
    if own != apart:
        return _flat_mask(value, (1,) * (len(apart) - len(own)) + own, apart, before)
    owner = value.owner
    view = producer(value, "reshape")
    if view is not None and shape_of(view.inputs[0]) == shape:
        return view.inputs[0]
    if isinstance(owner, ApplyOp) and is_elementwise(owner) and used_once(value):
        inputs = [_flat(v, apart, shape, before) for v in owner.inputs]
        found = [v for v in inputs if v is not None]
        if len(found) < len(inputs):
            return None
        return before.apply(owner.operator.data, *found, label=value.name_hint, **owner.options.values)
    return before.reshape(value, shape)


def _flat_mask(value: SSAValue, own: Shape, apart: Shape, before: Before) -> SSAValue | None:
    rest = own[2:]
    if own[:2] == (1, 1):
        return before.reshape(value, (1, *rest))
    if own[:2] != apart[:2]:
        if _SMALL * prod(apart[:2]) * prod(rest) > prod(apart):
            return None
        value = before.apply("broadcast_to", before.reshape(value, own), shape=(*apart[:2], *rest))
    return before.reshape(value, (prod(apart[:2]), *rest))


def _straighten(product: ApplyOp) -> None:
    """Take views of one shape and back out of the steps before a softmax that a product reads as it is."""
    softmax = producer(product.inputs[0], "softmax")
    if softmax is None or not used_once(softmax.outputs[0]):
        return
    (value,), before = softmax.inputs, Before(softmax)
    found = _without_views(value, shape_of(value), before)
    if found is not None and found is not value:
        label, options = softmax.outputs[0].name_hint, softmax.options.values
        replace(softmax, [before.apply("softmax", found, label=label, **options)])


def _without_views(value: SSAValue, shape: Shape, before: Before) -> SSAValue | None:
    """Return a value, which has a shape or is a view of one that has, with its steps in that; None for others."""
    own, owner = shape_of(value), value.owner
    if prod(own) == 1:
        return value
    view = producer(value, "reshape")
    if view is not None and prod(own) == prod(shape):
        return _without_views(view.inputs[0], shape, before)
    if not (isinstance(owner, ApplyOp) and is_elementwise(owner) and used_once(value)):
        return value if own == shape else None
    inputs = [
        _without_views(v, shape, before) if shape_of(v) == own else _beside(v, own, shape, before) for v in owner.inputs
    ]
    found = [v for v in inputs if v is not None]
    if len(found) < len(inputs):
        return None
    if own == shape and all(new is old for new, old in zip(found, owner.inputs, strict=True)):
        return value
    return before.apply(owner.operator.data, *found, label=value.name_hint, **owner.options.values)


def _beside(value: SSAValue, own: Shape, shape: Shape, before: Before) -> SSAValue | None:
    """Return what stretches to the shape `own` as what stretches alike to `shape`; None where that cannot be."""
    if own == shape:
        return value
    last = min(len(own), len(shape))
    alike = next((n for n in range(last) if own[-1 - n] != shape[-1 - n]), last)
    given = shape_of(value)
    ahead = max(0, len(given) - alike)
    return before.reshape(value, given[ahead:]) if prod(given[:ahead]) == 1 else None
