"""Rules of arithmetic with numbers: what changes nothing, and what has a name of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from ...dialects.graph import ApplyOp, ConstantOp
from ...dialects.numpy_types import FLOATS
from ..types import dtype_of, shape_of
from ._rewrite import Before, either_way, erase, networks, number_of, option, producer, used_once
from ._rows import below_views, reduced_axes


def join_numbers(module: ModuleOp) -> None:
    """Let constants that are the same number be one, so that what is computed from them can be seen to be the same."""
    for function in networks(module):
        first: dict[tuple[Attribute, str], SSAValue] = {}
        for op in list(function.body.block.ops):
            if isinstance(op, ConstantOp) and op.value is not None:
                known = first.setdefault((op.result.type, repr(op.value)), op.result)
                if known is not op.result:
                    op.result.replace_all_uses_with(known)
                    erase(op)


def _beyond(infinity: float) -> Callable[[ApplyOp], SSAValue | None]:
    """Return the rule of the larger (or smaller) of a value and the number that bounds all."""

    def rule(op: ApplyOp) -> SSAValue | None:
        return next((x for x, n in either_way(op) if number_of(n) == infinity and _is_result(x, op)), None)

    return rule


def _where(op: ApplyOp) -> SSAValue | None:
    condition = number_of(op.inputs[0])
    if condition is None:
        return None
    chosen = op.inputs[1 if condition else 2]
    return chosen if _is_result(chosen, op) else None


def _subtract(op: ApplyOp) -> SSAValue | None:
    value, other = op.inputs
    return value if number_of(other) == 0 and _is_result(value, op) else None


def _multiply(op: ApplyOp) -> SSAValue | None:
    for value, factor in either_way(op):
        number = number_of(factor)
        if number == 1 and _is_result(value, op):
            return value
        if number is not None and (mean := _mean(op, value, number)) is not None:
            return mean
    return None


def _divide(op: ApplyOp) -> SSAValue | None:
    value, divisor = op.inputs
    number = number_of(divisor)
    if number is not None and number != 0:
        return value if number == 1 and _is_result(value, op) else _mean(op, value, 1 / number)
    return _sigmoid(op, divisor) if number_of(value) == 1 else None


def _reciprocal(op: ApplyOp) -> SSAValue | None:
    return _sigmoid(op, op.inputs[0])


def _mean(op: ApplyOp, total: SSAValue, factor: float) -> SSAValue | None:
    """Return the mean that a sum of floats times `factor` is, where the sum is read for nothing else."""
    found = below_views(total, "sum")
    if found is None or not _is_result(total, op) or dtype_of(total) not in FLOATS:
        return None
    if not all(used_once(value) for value in (total, found.outputs[0])):
        return None
    data = found.inputs[0]
    count = math.prod(shape_of(data)[d] for d in reduced_axes(found))
    if not math.isclose(factor * count, 1, rel_tol=1e-6):
        return None
    before = Before(op)
    mean = before.apply("mean", data, axis=reduced_axes(found), keepdims=option(found, "keepdims"))
    return before.reshape(mean, shape_of(total))


def _sigmoid(op: ApplyOp, divisor: SSAValue) -> SSAValue | None:
    """Return the sigmoid that 1 / (1 + exp(-x)) is."""
    total = producer(divisor, "add")
    for one, power in either_way(total) if total is not None else ():
        exponential = producer(power, "exp") if number_of(one) == 1 else None
        negative = producer(exponential.inputs[0], "negative") if exponential is not None else None
        if negative is not None and _is_result(negative.inputs[0], op) and dtype_of(divisor) in FLOATS:
            return Before(op).apply("sigmoid", negative.inputs[0])
    return None


def _is_result(value: SSAValue, op: ApplyOp) -> bool:
    """True where a value has the shape and the type of an operator's result."""
    return value.type == op.outputs[0].type


ARITHMETIC: dict[str, Callable[[ApplyOp], SSAValue | None]] = {
    "maximum": _beyond(-math.inf),
    "minimum": _beyond(math.inf),
    "where": _where,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "reciprocal": _reciprocal,
}
"""Operator -> what it simplifies to, or None."""
