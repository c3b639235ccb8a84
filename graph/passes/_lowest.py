"""Elements that are -inf: the predicates by which networks ask for rows of them, and the masks that make them so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..operator import Kind, operator
from ..types import dtype_of, shape_of
from ._rewrite import Before, either_way, number_of, producer
from ._rows import is_along, reduced_axes
from .lower_precision import PRODUCTS

_MOVES = ("transpose", "broadcast_to", "strided_slice")
"""Operators that give elements of their input at other places."""
_WIDE = ("float32", "float64")
"""Floats that a product and a finite mask add up to a finite number of: -65504 less a score is -inf in float16."""


@dataclass(frozen=True)
class LowestRows:
    """The question where all elements of `data` along `axis` are -inf."""

    data: SSAValue
    axis: int


def asked_rows(condition: SSAValue) -> LowestRows | None:
    """Match all(x == -inf) along one axis that is kept, also as not any(x != -inf), of truth or of integers.

    None for another condition.
    """
    value, negated, axes = condition, False, None
    while isinstance(op := value.owner, ApplyOp):
        name = op.operator.data
        lowest = _is_lowest(op) if name in ("equal", "not_equal") else None
        if lowest is not None:
            found = axes is not None and len(axes) == 1 and (name == "not_equal") == negated
            stretched = found and axes is not None and is_along(condition, shape_of(lowest), axes)
            return LowestRows(lowest, axes[0]) if stretched and axes is not None else None
        if name in ("max", "min"):
            if axes is not None or (name == "max") != negated:
                return None
            axes = reduced_axes(op)
        elif name == "logical_not" or _is_zero_test(op, "equal"):
            negated = not negated
        elif not (_is_zero_test(op, "not_equal") or _is_cast_of_truth(op)):
            return None
        value = op.inputs[0]
    return None


def _is_lowest(op: ApplyOp) -> SSAValue | None:
    """Return the floats that an operator compares with -inf."""
    for value, other in either_way(op):
        if number_of(other) == -math.inf and shape_of(value) == shape_of(op.outputs[0]):
            return value
    return None


def _is_zero_test(op: ApplyOp, name: str) -> bool:
    if op.operator.data != name or dtype_of(op.inputs[0]) in FLOATS:
        return False
    return number_of(op.inputs[1]) == 0


def _is_cast_of_truth(op: ApplyOp) -> bool:
    if op.operator.data != "cast":
        return False
    return "bool" in (dtype_of(op.inputs[0]), dtype_of(op.outputs[0])) and dtype_of(op.inputs[0]) not in FLOATS


def lowest_of(before: Before, value: SSAValue) -> SSAValue | None:
    """Return a tensor of truth, of a shape that stretches to that of `value`, which tells where it is -inf.

    It is made of masks alone where there are such: products of finite numbers are finite. None where nothing is -inf.
    """
    number, op = number_of(value), value.owner
    if number is not None and number != -math.inf:
        return None
    if isinstance(op, ApplyOp):
        name = op.operator.data
        if _is_moderate(value):
            return None
        if name == "broadcast_to":
            return lowest_of(before, op.inputs[0])
        if name in _MOVES or operator(name).kind is Kind.VIEW:
            inner = lowest_of(before, op.inputs[0])
            return None if inner is None else _moved(before, op, inner)
        if name == "cast" and dtype_of(op.inputs[0]) in FLOATS and dtype_of(value) in _WIDE:
            return lowest_of(before, op.inputs[0])
        if (mask := _added_mask(op)) is not None:
            return lowest_of(before, mask)
        if name == "where":
            return _chosen(before, op)
    return before.apply("equal", value, before.number(-math.inf, dtype_of(value)))


def _moved(before: Before, op: ApplyOp, inner: SSAValue) -> SSAValue:
    whole = inner if shape_of(inner) == shape_of(op.inputs[0]) else None
    if whole is None:
        whole = before.apply("broadcast_to", inner, shape=shape_of(op.inputs[0]))
    options: dict[str, Any] = dict(op.options.values)
    return before.apply(op.operator.data, whole, **options)


def _is_moderate(value: SSAValue) -> bool:
    """True for what is far from the ends of its type's range: a product, also of a number, in whatever shape."""
    op = value.owner
    if not isinstance(op, ApplyOp):
        return False
    name = op.operator.data
    if name in ("multiply", "divide") and 0 < abs(number_of(op.inputs[1]) or 0) < math.inf:
        return _is_moderate(op.inputs[0])
    if name in _MOVES or operator(name).kind is Kind.VIEW:
        return _is_moderate(op.inputs[0])
    return name in PRODUCTS or name == "softmax"


def _added_mask(op: ApplyOp) -> SSAValue | None:
    """Return the mask that is added to a product."""
    if op.operator.data != "add":
        return None
    for product, mask in either_way(op):
        if _is_moderate(product) and (dtype_of(mask) in _WIDE or _is_zero_or_lowest(mask)):
            return mask
    return None


def _is_zero_or_lowest(value: SSAValue) -> bool:
    """True for a mask that is added, 0, and -inf where it hides what is beside it; also for one that is stretched."""
    op = producer(_below_moves(value), "where")
    return op is not None and {number_of(_below_moves(v)) for v in op.inputs[1:]} <= {0.0, -math.inf}


def _below_moves(value: SSAValue) -> SSAValue:
    while (moved := producer(value, *_MOVES)) is not None:
        value = moved.inputs[0]
    return value


def _either(before: Before, first: SSAValue | None, second: SSAValue | None) -> SSAValue | None:
    if first is None or second is None:
        return first if second is None else second
    return before.apply("logical_or", first, second)


def _chosen(before: Before, op: ApplyOp) -> SSAValue | None:
    condition, *branches = op.inputs
    found: SSAValue | None = None
    for branch, taken in zip(branches, (True, False), strict=True):
        if number_of(branch) == -math.inf:
            lowest = condition if taken else before.apply("logical_not", condition)
        elif (inner := lowest_of(before, branch)) is None:
            continue
        else:
            where = condition if taken else before.apply("logical_not", condition)
            lowest = before.apply("logical_and", where, inner)
        found = _either(before, found, lowest)
    return found


def any_along(before: Before, truth: SSAValue, axis: int | None) -> SSAValue:
    """Tell where there is any truth along an axis, or anywhere."""
    kept: dict[str, Any] = {} if axis is None else {"axis": axis, "keepdims": True}
    return before.apply(
        "not_equal",
        before.apply("max", before.apply("cast", truth, dtype="int8"), **kept),
        before.number(0, "int8"),
    )


def all_along(before: Before, truth: SSAValue, axis: int) -> SSAValue:
    """Tell where all is true along an axis, which is kept."""
    if shape_of(truth)[axis] == 1:
        return truth
    negated = producer(truth, "logical_not")
    other = before.apply("logical_not", truth) if negated is None else negated.inputs[0]
    return before.apply("logical_not", any_along(before, other, axis))
