"""The pass that takes the question for rows without any element out of a softmax."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..types import dtype_of, shape_of
from ._lowest import all_along, any_along, asked_rows, lowest_of
from ._rewrite import Before, applied, is_constant, number_of, option, producer, replace, used_once


@dataclass(frozen=True)
class MaskedSoftmax(ModulePass):
    """where(all(x == -inf), 0, softmax(x)) -> softmax(x), or where(all(m), 0, softmax(x)) for the mask m of x.

    PyTorch gives 0 for rows of which a mask leaves nothing, where a softmax alone is NaN. Where no mask makes elements
    -inf, none are: products of finite numbers are taken to be finite. Else the rows are those of the mask, which layers
    share. Of a constant mask it is known, once it is computed, whether there are any; `lw-graph-simplify` drops the
    question then. Where a product sums what the softmax weights, its rows are set to 0 instead, so that all between
    the two products of attention is plain.
    """

    name: ClassVar[str] = "lw-graph-masked-softmax"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data == "where":
                _drop_question(found)
        for found in applied(op):
            if found.operator.data == "batch_matmul":
                _clear_behind(found)


def _drop_question(op: ApplyOp) -> None:
    condition, zero, shares = op.inputs
    softmax = producer(shares, "softmax")
    asked = asked_rows(condition) if softmax is not None and _is_zero(zero) else None
    if asked is None or softmax is None or shares.type != op.outputs[0].type or asked.data is not softmax.inputs[0]:
        return
    rank = len(shape_of(shares))
    if int(option(softmax, "axis")) % rank != asked.axis:
        return
    before = Before(op)
    rows = _rows(before, asked.data, asked.axis)
    if rows is None:
        replace(op, [shares])
        return
    cleared = before.apply("where", rows, zero, shares)
    if is_constant(rows):
        cleared = before.apply("where", any_along(before, rows, None), cleared, shares)
    replace(op, [cleared])


def _is_zero(value: SSAValue) -> bool:
    while (view := producer(value, "reshape", "broadcast_to")) is not None:
        value = view.inputs[0]
    return number_of(value) == 0


def _rows(before: Before, data: SSAValue, axis: int) -> SSAValue | None:
    """Return where all along an axis is -inf, by the masks; None where there is no such row."""
    lowest = lowest_of(before, data)
    if lowest is None:
        return None
    rank, own = len(shape_of(data)), shape_of(lowest)
    return all_along(before, before.reshape(lowest, (1,) * (rank - len(own)) + own), axis)


def _clear_behind(product: ApplyOp) -> None:
    """`batch_matmul(where(rows, 0, s), v)` -> `where(rows, 0, batch_matmul(s, v))`, also under a view of the weights.

    The rows are then told apart for all heads at once where they are the same for all.
    """
    weights = product.inputs[0]
    view = producer(weights, "reshape")
    cleared = producer(weights if view is None else view.inputs[0], "where")
    if cleared is None or option(product, "transpose_a") or not used_once(cleared.outputs[0]):
        return
    rows, zero, shares = cleared.inputs
    if producer(shares, "softmax") is None or not _is_zero(zero) or shape_of(rows)[-1:] != (1,):
        return
    before = Before(product)
    shape = shape_of(weights)
    where = _flat_rows(before, rows, shape_of(shares), shape)
    if where is None:
        return
    options: dict[str, Any] = dict(product.options.values)
    made = before.apply("batch_matmul", before.reshape(shares, shape), product.inputs[1], **options)
    number = before.number(0.0, dtype_of(made))
    replace(product, [before.apply("where", where, number, made)])


def _flat_rows(before: Before, rows: SSAValue, apart: tuple[int, ...], shape: tuple[int, ...]) -> SSAValue | None:
    """Return the rows (..., M, 1) of weights `apart` for those of `shape` (B, M, K); None where M is another."""
    own = shape_of(rows)
    own = (1,) * (len(apart) - len(own)) + own
    if apart[-2:] != shape[-2:] or prod(apart[:-2]) != shape[0]:
        return None
    if prod(own[:-2]) == 1:
        return before.reshape(rows, (1, *own[-2:]))
    if own[:-2] != apart[:-2]:
        rows = before.apply("broadcast_to", before.reshape(rows, own), shape=(*apart[:-2], *own[-2:]))
    return before.reshape(rows, (shape[0], *own[-2:]))
