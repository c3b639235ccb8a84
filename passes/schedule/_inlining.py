"""Inlining, shared by primitives that put one body into another: copies of scalar operations over other iterators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.element import is_unsigned
from ...dialects.index import IndexExpr, Ranges
from ...dialects.lookups import depending_on
from ...dialects.loop import BlockOp, LoadOp
from ...dialects.te import IndexOp, PredicateOp, YieldOp, unsigned_constant
from ..analysis.nest import simplify_conditions

TRAPPING = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")
"""Operations that must not run on the zero that a masked load gives."""

_FLOATS = ("addf", "subf", "mulf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf", "extf", "truncf", "sitofp")
_INTEGERS = (
    "addi",
    "subi",
    "muli",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
    "shrui",
)
_CONVERSIONS = ("extsi", "extui", "trunci", "fptosi", "fptoui", "uitofp", "bitcast")
_MATH = ("absf", "absi", "sqrt", "tanh", "sin", "tan", "erf", "floor", "ceil", "trunc", "roundeven")
KEEPS_ZERO = frozenset(
    (*(f"arith.{name}" for name in (*_FLOATS, *_INTEGERS, *_CONVERSIONS)), *(f"math.{name}" for name in _MATH))
)
"""Operations whose result is zero where all operands are."""


def copy_body(
    source: BlockOp,
    iterators: Mapping[str, IndexExpr],
    ranges: Ranges,
    mask: Sequence[IndexExpr] = (),
    values: Mapping[SSAValue, SSAValue] | None = None,
) -> tuple[list[Operation], list[SSAValue]]:
    """Copies of the operations of `source`, and what it yields, with its iterators replaced by expressions.

    `ranges` are of the axes in these; loads are masked by `mask` as well. Loads whose result is in `values` are left
    out, and that value is taken.
    """
    known = dict(values or {})
    copies: list[Operation] = []
    for op in source.body.block.ops:
        if isinstance(op, YieldOp):
            return copies, [known[v] for v in op.values]
        if op.results[0] in known:
            continue
        copy = _copy(op, iterators, ranges, mask, known)
        copy.results[0].name_hint = op.results[0].name_hint
        known[op.results[0]] = copy.results[0]
        copies.append(copy)
    raise AssertionError("a body ends with a yield")


def _copy(
    op: Operation,
    iterators: Mapping[str, IndexExpr],
    ranges: Ranges,
    mask: Sequence[IndexExpr],
    known: dict[SSAValue, SSAValue],
) -> Operation:
    if isinstance(op, LoadOp):
        where = [*mask, *(e.substitute(iterators).simplify(ranges) for e in op.conditions)]
        replaced = [e.substitute(iterators) for e in op.indices.data]
        indices = [e if e.as_axis() is not None else e.simplify(ranges) for e in replaced]  # one of extent 1 stays
        positions = [known[v] for v in op.positions]
        if positions:  # they are zero as well where the mask fails
            indices = [depending_on(e, set().union(*(c.axes() for c in mask))) for e in indices]
        return LoadOp(op.buffer, indices, needed_conditions(where, ranges), positions=positions)
    if isinstance(op, IndexOp):
        return IndexOp(op.value.substitute(iterators).simplify(ranges), op.result.type)
    if isinstance(op, PredicateOp):
        where = [e.substitute(iterators).simplify(ranges) for e in op.where.data]
        return PredicateOp(needed_conditions(where, ranges))
    return op.clone(known)


def needed_conditions(conditions: Iterable[IndexExpr], ranges: Ranges) -> list[IndexExpr]:
    """Conditions `e >= 0` without those that always hold or that another implies."""
    tightest: dict[IndexExpr, IndexExpr] = {}
    for condition in simplify_conditions(conditions, ranges):
        terms = condition - condition.const
        if terms not in tightest or condition.const < tightest[terms].const:
            tightest[terms] = condition
    return list(tightest.values())


def is_zero_where_masked(block: BlockOp) -> bool:
    """True where the single value that `block` yields is surely zero once all its loads are."""
    zero: set[SSAValue] = set()
    for op in block.body.block.ops:
        if isinstance(op, LoadOp) or (op.name in KEEPS_ZERO and zero.issuperset(op.operands)):
            zero.add(op.results[0])
        elif isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr | IntegerAttr):
            if op.value.value.data == 0:
                zero.add(op.result)
        elif isinstance(op, arith.SelectOp) and zero.issuperset(op.operands[1:]):
            zero.add(op.result)
    return block.yielded[0] in zero


def zero_of(element: Attribute) -> arith.ConstantOp | IndexOp:
    """Return the zero of an element type as an operation."""
    if is_unsigned(element):
        return unsigned_constant(0, element)
    if isinstance(element, AnyFloat):
        return arith.ConstantOp(FloatAttr(0.0, element))
    assert isinstance(element, IntegerType)
    return arith.ConstantOp(IntegerAttr(0, element))
