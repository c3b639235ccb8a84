"""The pass that divides products of few rows by the rows' root mean squares, instead of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..operator import is_view, operator
from ..types import dtype_of, infer, shape_of
from ._rewrite import (
    Before,
    applied,
    is_constant,
    is_elementwise,
    networks,
    option,
    put_in_order,
    replace,
    used_once,
    users,
)

MOST_ROWS = 4
"""Rows of a product up to which every block of it computes their sums of squares by itself: dot products of as many are
all that is tried for it on CUDA devices (`gpu_few_rows.FEW_ROWS`). Of more rows a block has a tile, which needs no more
than a part of their terms at a time."""

LEAST_TERMS = 256
"""Elements of a row from which on there are such dot products whatever its type: vectors of eight for each thread of a
warp."""


@dataclass(frozen=True)
class MoveNorms(ModulePass):
    """`dense(rms_norm(x) * gamma, w)` -> `rms_dense(x, w * gamma)` for constant gamma and w, and few rows.

    A root mean square is a number for each row, by which a row of the product may be divided as well. Each block of the
    product reads the row anyway, so that a kernel less stands between two products. All that reads what is normalised
    are such products. Gamma goes into the weights, which are rounded once more, as batch normalisation does. Products
    of one shape that elementwise operators take together, as a gate and what it is for, are one operator with several
    weights: the sums of squares are computed once for them.
    """

    name: ClassVar[str] = "lw-graph-move-norms"
    rows: int = MOST_ROWS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for norm in applied(op):
            if norm.operator.data == "rms_norm":
                for products in _together(_products_of(norm, self.rows)):
                    _move(norm, products)
        for function in networks(op):
            put_in_order(function.body.block)


Factors: TypeAlias = Sequence[SSAValue]
"""Tensors that a normalised row is multiplied with before it is read."""
Products: TypeAlias = list[tuple[ApplyOp, Factors]]


def _products_of(norm: ApplyOp, rows: int) -> Products:
    """Return the products that read a normalisation, with the factors on the way; none where something else does."""
    data, *gamma = norm.inputs
    axis, rank = option(norm, "axis"), len(shape_of(data))
    axes = [a % rank for a in ((axis,) if isinstance(axis, int) else axis)]
    long = shape_of(data)[-1] >= LEAST_TERMS
    if axes != [rank - 1] or not long or dtype_of(data) not in FLOATS or not all(map(is_constant, gamma)):
        return []
    found: Products = []
    if not _collect(norm.outputs[0], tuple(gamma), rows, found):
        return []
    assert norm.parent is not None
    place = {op: number for number, op in enumerate(norm.parent.ops)}
    return sorted(found, key=lambda each: place[each[0]])


def _collect(value: SSAValue, factors: Factors, rows: int, found: Products) -> bool:
    """Add the products that read a normalised value to those found; False where something else reads it."""
    for op in users(value):
        if not isinstance(op, ApplyOp):
            return False
        if op.operator.data == "dense" and op.inputs[0] is value and op.inputs[1] is not value:
            if not is_constant(op.inputs[1]) or shape_of(value)[0] > rows or "rounds" in op.options.values:
                return False
            found.append((op, factors))
        elif (step := _passed_on(op, value)) is None or not _collect(op.outputs[0], (*factors, *step), rows, found):
            return False
    return True


def _passed_on(op: ApplyOp, value: SSAValue) -> Factors | None:
    """Return the factors that an operator multiplies rows with; none for a view of them, None for another operator."""
    size = shape_of(value)[-1]
    if shape_of(op.outputs[0])[-1:] != (size,):
        return None
    if is_view(op):
        return ()
    others = [v for v in op.inputs if v is not value]
    if op.operator.data != "multiply" or len(others) != 1 or not is_constant(others[0]):
        return None
    *ahead, last = shape_of(others[0]) or (1,)
    same = shape_of(op.outputs[0]) == shape_of(value)
    return others if same and last in (1, size) and all(n == 1 for n in ahead) else None


def _together(products: Products) -> list[Products]:
    """Divide products into those that elementwise operators take together, in their order."""
    found: list[Products] = []
    for each in products:
        behind = _elementwise_behind(each[0])
        for others in found:
            shape = shape_of(others[0][0].outputs[0])
            if shape == shape_of(each[0].outputs[0]) and not behind.isdisjoint(_elementwise_behind(others[0][0])):
                others.append(each)
                break
        else:
            found.append([each])
    return found


def _elementwise_behind(product: ApplyOp) -> set[Operation]:
    """Return the elementwise operators of its shape that a product leads to, each the only reader of what is before."""
    found, value = set[Operation](), product.outputs[0]
    while used_once(value):
        (op,) = users(value)
        if not is_elementwise(op) or shape_of(op.outputs[0]) != shape_of(value):
            break
        found.add(op)
        value = op.outputs[0]
    return found


def _move(norm: ApplyOp, products: Products) -> None:
    """Put the products of a row as it is in the place of those of a normalised row."""
    first = products[0][0]
    before = Before(first)
    weights = [_scaled(before, product.inputs[1], factors) for product, factors in products]
    data = before.reshape(norm.inputs[0], shape_of(first.inputs[0]))
    options = operator("rms_dense").options("rms_dense", {"epsilon": float(option(norm, "epsilon"))})
    inputs = [data, *weights]
    made = ApplyOp("rms_dense", inputs, options, infer("rms_dense", [v.type for v in inputs], options))
    block = first.parent
    assert block is not None
    block.insert_op_before(made, first)
    for (product, _), value in zip(products, made.outputs, strict=True):
        replace(product, [value])


def _scaled(before: Before, weight: SSAValue, factors: Factors) -> SSAValue:
    for factor in factors:
        weight = before.apply("multiply", weight, before.reshape(factor, shape_of(factor)[-1:] or (1,)))
    return weight
