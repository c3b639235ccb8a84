"""The pass that has products of one batch after another read their second factors where they are."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..operator import is_view
from ..types import shape_of
from ._rewrite import (
    Before,
    applied,
    erase,
    is_constant,
    option,
    producer,
    replace,
    transposed_order,
    used_once,
    with_options,
)

_PRODUCTS = ("matmul", "batch_matmul")


@dataclass(frozen=True)
class DirectFactors(ModulePass):
    """matmul(a, transpose(b)) -> matmul(a, b) by `transpose_b`; rows of batches that share a factor in one product.

    Keys of attention are turned by a kernel of their own otherwise, and stretched to the heads of queries that share
    them: of one query (a token beside a cache of keys and values) both cost more than the product. Several queries of a
    head stay a product of theirs, as what is added to their scores differs from one to the next.
    """

    name: ClassVar[str] = "lw-graph-direct-factors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data in _PRODUCTS and not is_constant(found.inputs[1]):
                shared = _shared(_turned(found))
                if shared is not None:
                    replace(*shared)


def _turned(product: ApplyOp) -> ApplyOp:
    """Have a product read what its second factor is the transpose of, and return it."""
    second = product.inputs[1]
    below = _below_views(second, 2)
    turning = producer(below, "transpose")
    if turning is None or not used_once(below):
        return product
    rank, order = len(shape_of(below)), transposed_order(turning)
    if order[-2:] != (rank - 1, rank - 2) or order[:-2] != tuple(range(rank - 2)):
        return product
    *batch, rows, columns = shape_of(second)
    before, turned = Before(product), not option(product, "transpose_b")
    given = before.reshape(turning.inputs[0], (*batch, columns, rows))
    options: dict[str, Any] = with_options(product, transpose_b=turned or None)
    made = before.apply(product.operator.data, product.inputs[0], given, **options)
    replace(product, [made])
    _drop(second)
    assert isinstance(made.owner, ApplyOp)
    return made.owner


def _drop(value: SSAValue) -> None:
    """Drop the operators that only led to a value that nobody reads."""
    while isinstance(owner := value.owner, ApplyOp) and not any(result.uses for result in owner.outputs):
        value = owner.inputs[0]
        erase(owner)


def _shared(product: ApplyOp) -> tuple[ApplyOp, list[SSAValue]] | None:
    """Return a product of one row a batch, and one of a row for each batch of those that share a factor in its place.

    The factor was stretched along the last axes of its batches.
    """
    batch, rows, columns = (1, *shape_of(product.outputs[0]))[-3:]
    first, second = product.inputs
    stretched = producer(_below_views(second, 2), "broadcast_to")
    if rows != 1 or stretched is None or option(product, "transpose_a") or shape_of(first)[0] != batch:
        return None
    source, shape = shape_of(stretched.inputs[0]), shape_of(stretched.outputs[0])
    source = (1,) * (len(shape) - len(source)) + source
    wide = [k for k, (before, after) in enumerate(zip(source, shape, strict=True)) if before != after]
    sharing = prod(shape[k] for k in wide)
    if not wide or wide[-1] >= len(shape) - 2 or prod(shape[wide[0] : -2]) != sharing:
        return None
    before, own = Before(product), batch // sharing
    rows_of_each = before.reshape(first, (own, sharing, shape_of(first)[-1]))
    factor = before.reshape(stretched.inputs[0], (own, *shape_of(second)[-2:]))
    made = before.apply("batch_matmul", rows_of_each, factor, **dict[str, Any](product.options.values))
    return product, [before.reshape(made, (batch, rows, columns))]


def _below_views(value: SSAValue, kept: int) -> SSAValue:
    """Return what a value is a view of, with the same last axes, that nobody else reads on the way."""
    shape = shape_of(value)[-kept:]
    while isinstance(owner := value.owner, ApplyOp) and is_view(owner) and used_once(value):
        if shape_of(owner.inputs[0])[-kept:] != shape:
            break
        value = owner.inputs[0]
    return value
