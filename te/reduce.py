"""Reductions: the named combiners add, mul, max, min, and combiners a user writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias, overload

from .errors import ExpressionError
from .expr import Const, Expr, IterVar, Operand, Param, cast, convert
from .functions import maximum, minimum

Axes: TypeAlias = IterVar | Sequence[IterVar]


@dataclass(frozen=True)
class Reduce:
    """`values` combined over `axes`; the body of a compute, never a part of an expression."""

    combiner: str
    values: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    identity: tuple[Const, ...] = ()
    joined: tuple[Expr, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError("a reduction has no truth value")

    def _refuse(self, *_: object) -> Any:
        raise ExpressionError(
            "a reduction must be the whole body of a compute: name it with te.compute first, then use its elements"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pow__ = __getitem__ = astype = _refuse


class Reduces(Reduce):
    """Several values that are combined together, as a number and its place; a compute of it is a list of tensors."""


def reduce_axis(domain: Sequence[int], name: str = "rv") -> IterVar:
    """An axis to reduce over, with values in `[domain[0], domain[1])`."""
    if not isinstance(domain, Sequence) or len(domain) != 2 or not all(isinstance(n, Integral) for n in domain):
        raise ExpressionError(f"reduce_axis '{name}': the domain is two whole numbers, as in (0, n), got {domain!r}")
    lower, upper = (int(bound) for bound in domain)
    if upper <= lower:
        raise ExpressionError(f"reduce_axis '{name}': the domain [{lower}, {upper}) is empty")
    return IterVar(name, upper - lower, True, lower)


def sum(value: Operand, axis: Axes) -> Reduce:
    """The sum of a value over reduction axes."""
    return _named("add", "sum", value, axis)


def prod(value: Operand, axis: Axes) -> Reduce:
    """The product of a value over reduction axes."""
    return _named("mul", "prod", value, axis)


@overload
def max(value: Operand, *, axis: Axes) -> Reduce: ...
@overload
def max(value: Operand, *others: Operand) -> Expr: ...
def max(value: Operand, *others: Operand, axis: Axes | None = None) -> Expr | Reduce:
    """The largest value over reduction axes, or, given several values and no axis, the largest of them."""
    return _extreme("max", maximum, value, others, axis)


@overload
def min(value: Operand, *, axis: Axes) -> Reduce: ...
@overload
def min(value: Operand, *others: Operand) -> Expr: ...
def min(value: Operand, *others: Operand, axis: Axes | None = None) -> Expr | Reduce:
    """The smallest value over reduction axes, or, given several values and no axis, the smallest of them."""
    return _extreme("min", minimum, value, others, axis)


def _extreme(
    combiner: str,
    elementwise: Callable[[Operand, Operand], Expr],
    value: Operand,
    others: tuple[Operand, ...],
    axis: Axes | None,
) -> Expr | Reduce:
    if axis is not None and not others:
        return _named(combiner, combiner, value, axis)
    if axis is not None or not others:
        raise ExpressionError(f"te.{combiner} takes one value and axis=..., or several values and no axis")
    result: Operand = value
    for other in others:
        result = elementwise(result, other)
    return convert(result)


def _named(combiner: str, name: str, value: Operand, axis: Axes) -> Reduce:
    expr = convert(value)
    if expr.dtype == "bool":
        raise ExpressionError(f"te.{name} reduces numbers, got conditions: cast them to int32 first")
    return Reduce(combiner, (expr,), _reduction_axes(name, axis))


def _reduction_axes(name: str, axis: Axes) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    for a in axes:
        if not isinstance(a, IterVar) or not a.reduce:
            raise ExpressionError(f"te.{name} reduces over axes made by te.reduce_axis, got {a!r}")
    if not axes:
        raise ExpressionError(f"te.{name} needs at least one reduction axis")
    return axes


@dataclass(frozen=True)
class CommReducer:
    """A combiner that a user wrote: call it on a value, or a tuple of values, with `axis=`."""

    fcombine: Callable[[Any, Any], Any]
    fidentity: Callable[..., Any]
    name: str = "reduce"

    @overload
    def __call__(self, value: Operand, /, *, axis: Axes) -> Reduce: ...
    @overload
    def __call__(self, values: Sequence[Operand], /, *, axis: Axes) -> Reduces: ...
    @overload
    def __call__(self, first: Operand, second: Operand, /, *more: Operand, axis: Axes) -> Reduces: ...
    def __call__(self, *values: Any, axis: Axes) -> Reduce:
        """Reduce one value, or a tuple of values that are combined together."""
        if len(values) == 1 and isinstance(values[0], tuple | list):
            values = tuple(values[0])
        exprs = tuple(convert(v) for v in values)
        count = len(exprs)
        types = [e.dtype for e in exprs]
        identity = _as_tuple(self.fidentity(*types))
        old = tuple(Param(k, t) for k, t in enumerate(types))
        new = tuple(Param(count + k, t) for k, t in enumerate(types))
        joined = _as_tuple(self.fcombine(old, new) if count > 1 else self.fcombine(old[0], new[0]))
        if len(joined) != count or len(identity) != count:
            raise ExpressionError(
                f"combiner '{self.name}' reduces {count} value(s), but fcombine gives {len(joined)} "
                f"and fidentity {len(identity)}"
            )
        return (Reduce if count == 1 else Reduces)(
            "custom",
            exprs,
            _reduction_axes(self.name, axis),
            tuple(_identity_const(self.name, v, t) for v, t in zip(identity, types, strict=True)),
            tuple(cast(j, t) for j, t in zip(joined, types, strict=True)),
        )


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> CommReducer:
    """A commutative, associative combiner: `fcombine(x, y)` joins two values, or two tuples of values;

    `fidentity(dtype, ...)` takes one element type per value and returns the number, or tuple of numbers, that changes
    nothing.
    """
    if not inspect.isroutine(fcombine) and not callable(fcombine):
        raise ExpressionError(f"combiner '{name}': fcombine must be a function")
    return CommReducer(fcombine, fidentity, name)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _identity_const(name: str, value: Any, dtype: str) -> Const:
    expr = cast(value, dtype)
    if not isinstance(expr, Const):
        raise ExpressionError(f"combiner '{name}': fidentity must return numbers")
    return expr
