"""Values as sums of integers times constants, between limits: what lies between products of integers and rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, prod

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import INTEGERS
from ..types import dtype_of, shape_of
from ._rewrite import Before, either_way, is_constant, number_of, option, producer, used_once


@dataclass(frozen=True)
class Integers:
    """Integers that stand for (value - zero) * scale; `zero` is a number, `scale` broadcasts with the value.

    `dtype` is the type whose range they are of, less a zero point.
    """

    value: SSAValue
    scale: SSAValue
    zero: int = 0
    dtype: str = ""

    @property
    def is_uniform(self) -> bool:
        """True where one scale holds for all elements."""
        return all(n == 1 for n in shape_of(self.scale))


@dataclass(frozen=True)
class Linear:
    """The sum of `terms`, integers times a constant, and of `offset`, within `low` to `high`."""

    terms: tuple[tuple[SSAValue, SSAValue | None], ...]
    offset: SSAValue | None = None
    low: float = -inf
    high: float = inf

    @property
    def is_limited(self) -> bool:
        """True where it is not linear any more."""
        return self.low > -inf or self.high < inf


def linear(before: Before, value: SSAValue, known: Mapping[SSAValue, Integers]) -> Linear | None:
    """Return what a value is of integers: of those `known` by what they stand for, and of casts of others.

    None where it is no such sum, where something else reads what lies between, or where no integers are in it. What
    the constants come to is left to `lw-graph-fold-constants`.
    """
    found = _limited(before, value, known)
    return found if found is not None and found.terms else None


def _limited(before: Before, value: SSAValue, known: Mapping[SSAValue, Integers]) -> Linear | None:
    op = producer(value, "relu", "clip", "maximum", "minimum")
    if op is None or value in known or not used_once(value):
        return _sum(before, value, known)
    limits = _limits(op)
    if limits is None:
        return None
    source, low, high = limits
    found = _limited(before, source, known)
    if found is None:
        return None
    low, high = max(low, found.low), min(high, found.high)
    return replace(found, low=low, high=high) if low <= high else None


def _limits(op: ApplyOp) -> tuple[SSAValue, float, float] | None:
    """Return what an operator limits, and to which numbers."""
    name = op.operator.data
    if name == "relu":
        return op.inputs[0], 0.0, inf
    if name == "clip":
        return op.inputs[0], float(option(op, "low")), float(option(op, "high"))
    for source, limit in either_way(op):
        bound = number_of(limit)
        if bound is not None and shape_of(source) == shape_of(op.outputs[0]):
            return (source, bound, inf) if name == "maximum" else (source, -inf, bound)
    return None


def _sum(before: Before, value: SSAValue, known: Mapping[SSAValue, Integers]) -> Linear | None:
    if is_constant(value):
        return Linear((), value)
    if value in known:
        found = known[value]
        offset = _scaled(before, before.number(-float(found.zero), "float32"), found.scale) if found.zero else None
        return Linear(((found.value, found.scale),), offset)
    op = producer(value, "add", "multiply", "cast", "scaled_sum")
    if op is None or not used_once(value) or dtype_of(value) != "float32":
        return None
    if op.operator.data == "cast":
        return Linear(((op.inputs[0], None),)) if dtype_of(op.inputs[0]) in INTEGERS else None
    if op.operator.data == "scaled_sum":
        tensors = list(op.inputs)
        pairs = tuple(zip(tensors[::2], tensors[1::2], strict=False))
        return Linear(pairs, tensors[-1] if len(tensors) % 2 else None)
    return _added(before, op, known) if op.operator.data == "add" else _multiplied(before, op, known)


def computed(before: Before, form: Linear) -> SSAValue:
    """Add the operator that computes a sum, its limits left out.

    Factors have one shape: kernels of layers that differ in them alone are the same.
    """
    shapes = [() if m is None else shape_of(m) for _, m in form.terms]
    beside = [*shapes, *([] if form.offset is None else [shape_of(form.offset)])]
    shape = max(beside, key=lambda each: (prod(each), len(each)))
    tensors: list[SSAValue] = []
    for (value, factor), own in zip(form.terms, shapes, strict=True):
        factor = before.number(1.0, "float32") if factor is None else factor
        tensors += [value, factor if own == shape else before.apply("broadcast_to", factor, shape=shape)]
    tensors += [] if form.offset is None else [form.offset]
    return before.apply("scaled_sum", *tensors)


def _added(before: Before, op: ApplyOp, known: Mapping[SSAValue, Integers]) -> Linear | None:
    first, second = (_sum(before, v, known) for v in op.inputs)
    if first is None or second is None:
        return None
    offsets = [x.offset for x in (first, second) if x.offset is not None]
    offset = before.apply("add", *offsets) if len(offsets) == 2 else next(iter(offsets), None)
    return Linear((*first.terms, *second.terms), offset)


def _multiplied(before: Before, op: ApplyOp, known: Mapping[SSAValue, Integers]) -> Linear | None:
    for source, factor in either_way(op):
        if is_constant(factor):
            found = _sum(before, source, known)
            return None if found is None else scaled(before, found, factor)
    return None


def scaled(before: Before, form: Linear, factor: SSAValue) -> Linear:
    """Multiply a sum by a constant."""
    terms = tuple((x, _scaled(before, m, factor)) for x, m in form.terms)
    return Linear(terms, None if form.offset is None else _scaled(before, form.offset, factor), form.low, form.high)


def _scaled(before: Before, first: SSAValue | None, second: SSAValue) -> SSAValue:
    return second if first is None else before.apply("multiply", first, second)
