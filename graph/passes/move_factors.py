"""The pass that gathers the numbers that scale both factors of a product, where they cost nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..operator import is_view
from ..types import dtype_of, shape_of
from ._channels import CHANNELS, without_bias
from ._rewrite import (
    Before,
    applied,
    erase,
    is_constant,
    is_elementwise,
    number_of,
    producer,
    transposed_order,
    used_once,
    users,
)
from ._shapes import grouped_axes
from ._slices import Range, ranges_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MoveFactors(ModulePass):
    """batch_matmul(a * s, b * t) -> batch_matmul(a * (s * t), b), the numbers s and t under whatever views.

    PyTorch scales queries and keys of attention by the square root of a number each, which keeps scores of 16-bit
    floats in range. The number goes up through views, transposes and slices to a product with constant weights, for
    `lw-graph-fold-batch-norm`; else to an elementwise operator that gives a or b; else behind the product. One number
    alone, without a product above it, stays where it is.
    """

    name: ClassVar[str] = "lw-graph-move-factors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data == "batch_matmul" and dtype_of(found.outputs[0]) in FLOATS:
                _gather(found)


def _gather(product: ApplyOp) -> None:
    scales = [list(_scales_of(value)) for value in product.inputs]
    above = next((each for value in product.inputs if (each := _weighted(value)) is not None), None)
    if not any(scales) or not (all(scales) or above is not None):
        return
    number = prod(scale for each in scales for _, _, scale in each)
    for op, data, _ in (one for each in scales for one in each):
        op.outputs[0].replace_all_uses_with(data)
        erase(op)
    if above is not None:
        value, factor = above
        _multiply_behind(value, lambda before: factor.build(before, before.number(number, dtype_of(value))))
        return
    sources = [_below_moves(value) for value in product.inputs]
    computed = next((v for v in sources if isinstance(v.owner, Operation) and is_elementwise(v.owner)), None)
    behind = product.outputs[0] if computed is None or not used_once(computed) else computed
    _multiply_behind(behind, lambda before: before.number(number, dtype_of(behind)))


def _scales_of(value: SSAValue) -> Iterator[tuple[ApplyOp, SSAValue, float]]:
    """Iterate over the products with a number that nobody but `value` has: operator, the tensor in it, the number."""
    while isinstance(op := value.owner, ApplyOp) and used_once(value):
        scaled = _scaled(op)
        if scaled is not None:
            yield op, *scaled
        elif not _moves(op):
            return
        value = op.inputs[0] if scaled is None else scaled[0]


def _scaled(op: ApplyOp) -> tuple[SSAValue, float] | None:
    """Return the tensor and the finite number that an operator multiplies it with."""
    if op.operator.data not in ("multiply", "divide"):
        return None
    pairs = [tuple(op.inputs)] if op.operator.data == "divide" else [tuple(op.inputs), tuple(op.inputs)[::-1]]
    for data, other in pairs:
        number = number_of(other)
        if data.type == op.outputs[0].type and number is not None and 0 < abs(number) < math.inf:
            return data, number if op.operator.data == "multiply" else 1 / number
    return None


def _moves(op: ApplyOp) -> bool:
    """True for views and transposes: the same elements elsewhere."""
    return op.operator.data == "transpose" or is_view(op)


def _below_moves(value: SSAValue) -> SSAValue:
    while isinstance(op := value.owner, ApplyOp) and used_once(value) and _moves(op):
        value = op.inputs[0]
    return value


def _multiply_behind(value: SSAValue, factor: Callable[[Before], SSAValue]) -> None:
    """Let all that reads a value read it times a factor."""
    owner = value.owner
    assert isinstance(owner, Operation) and owner.next_op is not None
    before = Before(owner.next_op)
    scaled = before.apply("multiply", value, factor(before), label=value.name_hint)
    value.replace_uses_with_if(scaled, lambda use: use.operation is not scaled.owner)


@dataclass(frozen=True)
class _Factor:
    """A number for some of a tensor's elements, 1 for others: its shape, 1 along what it is the same for.

    `build` adds the operators that make it of the number.
    """

    shape: Shape
    build: Callable[[Before, SSAValue], SSAValue]

    def then(self, shape: Shape, step: Callable[[Before, SSAValue], SSAValue]) -> _Factor:
        return _Factor(shape, lambda before, number: step(before, self.build(before, number)))


def _weighted(value: SSAValue) -> tuple[SSAValue, _Factor] | None:
    """Return the product with constant weights that a value is a part of, under whatever views, and a factor for that.

    None where there is none, or where others would be scaled with it.
    """
    factor = _Factor((1,) * len(shape_of(value)), lambda before, number: number)
    alone = used_once(value)
    while alone and isinstance(op := value.owner, ApplyOp):
        if _has_weights(value):
            along_columns = all(n == 1 for n in factor.shape[:-1])
            return (value, factor) if along_columns else None
        scaled = _scaled(op)
        below = None if scaled is not None else _below(op, factor)
        if scaled is None and below is None:
            return None
        factor = below or factor
        value = op.inputs[0] if scaled is None else scaled[0]
        alone = used_once(value) or op.operator.data == "strided_slice"
    return None


def _has_weights(value: SSAValue) -> bool:
    product = producer(without_bias(value)[0], "dense", "matmul")
    return product is not None and product.operator.data in CHANNELS and is_constant(product.inputs[1])


def _below(op: ApplyOp, factor: _Factor) -> _Factor | None:
    """Return the factor for the input of an operator that is one for its result; None where it has none."""
    if op.operator.data == "transpose":
        order = transposed_order(op)
        back = sorted(range(len(order)), key=order.__getitem__)
        if all(n == 1 for n in factor.shape):
            return factor
        return factor.then(
            tuple(factor.shape[k] for k in back), lambda before, made: before.apply("transpose", made, axes=back)
        )
    if is_view(op):
        return _below_view(factor, shape_of(op.outputs[0]), shape_of(op.inputs[0]))
    return _below_slice(op, factor) if op.operator.data == "strided_slice" else None


def _below_view(factor: _Factor, after: Shape, before_it: Shape) -> _Factor | None:
    """The factor under another shape: groups of axes along which it differs are written out."""
    wide, made = list(after), list(before_it)
    if all(n == 1 for n in factor.shape):
        return _Factor((1,) * len(before_it), factor.build)
    groups = grouped_axes(after, before_it)
    if groups is None:
        return None
    for outer, inner in groups:
        if all(factor.shape[k] == 1 for k in outer):
            for k in outer:
                wide[k] = 1
            for k in inner:
                made[k] = 1
    return factor.then(
        tuple(made),
        lambda before, value: before.reshape(before.apply("broadcast_to", value, shape=wide), made),
    )


def _below_slice(op: ApplyOp, factor: _Factor) -> _Factor | None:
    """The factor for what a slice is of, 1 for the rest; None where other readers are no slices beside it."""
    source = op.inputs[0]
    extents = shape_of(source)
    own = _taken(op)
    others = [_taken(user) for user in users(source) if user is not op]
    if own is None or any(other is None or other[0] != own[0] for other in others):
        return None
    axis, (start, _, taken) = own
    if any(other is not None and start < other[1].end and other[1].start < start + taken for other in others):
        return None

    def placed(before: Before, value: SSAValue) -> SSAValue:
        shape = list(factor.shape)

        def stretch(given: SSAValue, extent: int) -> SSAValue:
            return before.apply("broadcast_to", given, shape=[*shape[:axis], extent, *shape[axis + 1 :]])

        one = before.number(1.0, dtype_of(value))
        pieces = [(one, start), (value, taken), (one, extents[axis] - start - taken)]
        return before.apply("concatenate", *(stretch(v, n) for v, n in pieces if n), axis=axis)

    return factor.then((*factor.shape[:axis], extents[axis], *factor.shape[axis + 1 :]), placed)


def _taken(op: Operation) -> tuple[int, Range] | None:
    """Return the one axis that a slice takes a stretch of, and the stretch."""
    if not isinstance(op, ApplyOp) or op.operator.data != "strided_slice" or (ranges := ranges_of(op)) is None:
        return None
    parts = [(d, r) for d, (r, n) in enumerate(zip(ranges, shape_of(op.inputs[0]), strict=True)) if r != Range(0, 1, n)]
    return parts[0] if len(parts) == 1 and parts[0][1].step == 1 else None
