"""Networks that compute the same at each point that both have: they differ in the extents of spatial axes alone.

Where each tensor expression of one reads by the same indices as its like in the other, and sums over the same extents,
an element of the smaller network is computed from elements of the smaller network only. By induction over the
operators, the larger one gives the same at each point of the smaller, whatever lies around it.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.graph import ApplyOp, ConstantOp, OptionsAttr
from ..dialects.te import ComputeOp
from .evaluate import expressions
from .network import Network


def difference(small: Network, large: Network) -> str | None:
    """Return why a network may differ from a larger one at the points that both have; None if it cannot."""
    ops = [list(net.function.body.block.ops) for net in (small, large)]
    numbers = [_numbers(net.function.body.block) for net in (small, large)]
    if len(ops[0]) != len(ops[1]):
        return "the graph has other operators"
    for one, other in zip(*ops, strict=True):
        if type(one) is not type(other) or [numbers[0][v] for v in one.operands] != [
            numbers[1][v] for v in other.operands
        ]:
            return "the graph has other operators"
        if isinstance(one, ConstantOp) and isinstance(other, ConstantOp) and not _begins(small, one, large, other):
            return f"constant {one.label.data} has other values"
        if isinstance(one, ApplyOp) and isinstance(other, ApplyOp) and _form_of(one) != _form_of(other):
            return f"operator {one.operator.data} of {one.outputs[0].name_hint} depends on the extent"
    return None


def _numbers(block: Block) -> dict[SSAValue, int]:
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return {value: number for number, value in enumerate(values)}


def _begins(small: Network, one: ConstantOp, large: Network, other: ConstantOp) -> bool:
    """True where a constant is the first part, along each axis, of the other."""
    if one.value is not None or other.value is not None:
        return str(one.number) == str(other.number) and one.result.type == other.result.type
    few, many = small.constant_values(one), large.constant_values(other)
    if (
        few.ndim != many.ndim
        or few.dtype != many.dtype
        or any(a > b for a, b in zip(few.shape, many.shape, strict=True))
    ):
        return False
    return few is many or np.array_equal(few, many[tuple(slice(n) for n in few.shape)], equal_nan=True)


def _form_of(op: ApplyOp) -> Hashable:
    return _form_of_expressions(op.operator.data, tuple(value.type for value in op.inputs), op.options)


@lru_cache(maxsize=512)
def _form_of_expressions(name: str, kinds: tuple[Attribute, ...], options: OptionsAttr) -> Hashable:
    module = expressions(name, kinds, options)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return _form(function.body.block, {})


def _form(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    """Return all that a block says but the extents of tensors and of spatial axes."""
    rows: list[Hashable] = []
    for value in block.args:
        numbers[value] = len(numbers)
        rows.append(_element(value.type))
    for op in block.ops:
        inner = tuple(tuple(_form(each, numbers) for each in region.blocks) for region in op.regions)
        rows.append(
            (_what(op), tuple(numbers[v] for v in op.operands), tuple(_element(v.type) for v in op.results), inner)
        )
        for value in op.results:
            numbers[value] = len(numbers)
    return tuple(rows)


def _what(op: Operation) -> Hashable:
    said = {**op.properties, **op.attributes}
    axes: tuple[Hashable, ...] = ()
    if isinstance(op, ComputeOp):
        said.pop("axes")
        axes = tuple((axis.name, axis.reduce, axis.extent if axis.reduce else None) for axis in op.axes.data)
    return (op.name, axes, tuple(sorted((name, str(value)) for name, value in said.items())))


def _element(kind: Attribute) -> Hashable:
    """A type without extents, but with the rank."""
    return (kind.get_element_type(), kind.get_num_dims()) if isinstance(kind, TensorType) else kind
