"""Taking reductions apart, shared by primitives: their loops, their start values, index rewriting in a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, Region

from ...dialects.attributes import IndicesAttr
from ...dialects.combiner import identity
from ...dialects.element import is_float, is_unsigned
from ...dialects.index import ZERO, IndexExpr
from ...dialects.loop import BlockOp, ForOp, LoadOp, element_of_buffer
from ...dialects.te import IndexOp, PredicateOp, unsigned_constant
from ..analysis.nest import new_loop, ranges_of, simplify_conditions


def reduce_loop_names(block: BlockOp) -> set[str]:
    """Return the loops that some reduce iterator of `block` is bound to."""
    names: set[str] = set()
    for axis, expr in zip(block.axes, block.bindings.data, strict=True):
        if axis.reduce:
            names |= expr.axes()
    return names


def spatial_loop_names(block: BlockOp) -> set[str]:
    """Return the loops that some spatial iterator of `block` is bound to."""
    names: set[str] = set()
    for axis, expr in zip(block.axes, block.bindings.data, strict=True):
        if not axis.reduce:
            names |= expr.axes()
    return names


def conditions_at_start(block: BlockOp) -> list[IndexExpr]:
    """Return the predicate of the first instance of each reduction: all reduce loops at zero."""
    start = dict.fromkeys(reduce_loop_names(block), ZERO)
    ranges = ranges_of(block.enclosing_loops)
    return simplify_conditions([e.substitute(start) for e in block.conditions], ranges)


def loops_to_copy(block: BlockOp, inside: Sequence[ForOp]) -> list[ForOp]:
    """Return those of the loops `inside` over which elements of the reduction differ."""
    wanted = spatial_loop_names(block)
    for condition in conditions_at_start(block):
        wanted |= condition.axes()
    return [loop for loop in inside if loop.loop_name in wanted]


def wrapped_in(inner: Operation, loops: Iterable[ForOp], keep_lanes: bool) -> Operation:
    """`inner` in copies of `loops`, marked alike; without `keep_lanes` a vectorized loop becomes serial."""
    for loop in reversed(list(loops)):
        kind = loop.loop_kind if keep_lanes or loop.loop_kind != "vectorized" else "serial"
        inner = new_loop(loop.loop_name, loop.size, [inner], kind)
    return inner


def start_values(block: BlockOp) -> list[ConstantOp | IndexOp]:
    """One constant per output: what its reduction starts from."""
    return [_constant(value, element) for value, element in _starts(block)]


def _starts(block: BlockOp) -> Iterable[tuple[Attribute | float, Attribute]]:
    for position, output in enumerate(block.outputs):
        element = element_of_buffer(output)
        if block.identity is not None:
            yield block.identity.data[position], element
        else:
            yield identity(block.combiner.data, element), element


def _constant(value: Attribute | float, element: Attribute) -> ConstantOp | IndexOp:
    if is_unsigned(element):
        number = value.value.data if isinstance(value, IntegerAttr) else value
        assert isinstance(number, int)
        return unsigned_constant(number, element)
    if isinstance(value, FloatAttr | IntegerAttr):
        return ConstantOp(value)
    assert isinstance(value, int | float)
    if is_float(element):
        return ConstantOp(FloatAttr(float(value), element))  # type: ignore[call-overload]
    return ConstantOp(IntegerAttr(int(value), element))  # type: ignore[call-overload]


def substitute_in_body(body: Region, values: Mapping[str, IndexExpr]) -> None:
    """Replace iterators by expressions in every index and condition of a block's body."""
    for op in body.block.ops:
        if isinstance(op, LoadOp):
            op.indices = IndicesAttr(tuple(e.substitute(values) for e in op.indices.data))
            if op.where is not None:
                op.where = IndicesAttr(tuple(e.substitute(values) for e in op.where.data))
        elif isinstance(op, IndexOp):
            op.expr = IndicesAttr((op.value.substitute(values),))
        elif isinstance(op, PredicateOp):
            op.where = IndicesAttr(tuple(e.substitute(values) for e in op.where.data))
