"""Expressions over columns, in place of arrays: what functions of arrays compute is written down, not computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from ...passes.parametric.sizes import (
    Size,
    SizeGraph,
    SizeValue,
    at_most,
    equal,
    floor,
    less,
    maximum,
    square_root,
    where,
)

NumberT = TypeVar("NumberT", np.int64, np.float64)
Integers = npt.NDArray[np.int64]

BOOL, INT, FLOAT = 0, 1, 2
"""Kinds of numbers, of which the result of arithmetic has the last that an operand has."""


class NoExpressionError(TypeError):
    """A function of arrays asks for what an expression has not: its values, its shape, or a test of it."""


class Expression:
    """An array `(n,)` that is not there: the expression of its elements, and their kind."""

    __slots__ = ("kind", "level", "size")
    __array_ufunc__ = None
    """NumPy's arrays leave operators to this class."""

    def __init__(self, size: Size, kind: int, level: int = 0) -> None:
        self.size = size
        self.kind = kind
        self.level = level
        """Mapped functions, one inside the other, that it depends on."""

    def __len__(self) -> int:
        return 1

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise NoExpressionError("an expression has no values")

    __array__ = __index__ = __iter__ = __getitem__ = __setitem__ = __hash__ = _refused

    def __float__(self) -> float:
        """The number of an expression that is one, as of extents alone."""
        return self._refused() if isinstance(self.size, SizeValue) else float(self.size)

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def astype(self, kind: Any) -> Expression:
        """The elements as 64-bit floats, or as 64-bit whole numbers, towards zero."""
        wanted = kind_of_type(kind)
        if wanted != BOOL and np.dtype(kind) not in (np.int64, np.float64):
            self._refused()  # numbers of fewer bits are rounded, or wrap around
        if wanted == INT and self.kind == FLOAT:
            below, above = floor(self.size), 0 - floor(0 - self.size)
            return Expression(where(less(self.size, 0), above, below), INT, self.level)
        if wanted == BOOL and self.kind != BOOL:
            self._refused()
        return Expression(self.size, wanted, self.level)

    def copy(self) -> Expression:
        return self

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(self.size + size, kind, level)

    def __radd__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(size + self.size, kind, level)

    def __sub__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(self.size - size, kind, level)

    def __rsub__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(size - self.size, kind, level)

    def __mul__(self, other: Any) -> Expression:
        size, kind, level = self._with(other, BOOL)
        return Expression(self.size * size, kind, level)

    def __rmul__(self, other: Any) -> Expression:
        size, kind, level = self._with(other, BOOL)
        return Expression(size * self.size, kind, level)

    def __truediv__(self, other: Any) -> Expression:
        size, _, level = self._with(other)
        return Expression(self.size / size, FLOAT, level)

    def __rtruediv__(self, other: Any) -> Expression:
        size, _, level = self._with(other)
        return Expression(size / self.size, FLOAT, level)

    def __floordiv__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(self.size // size, kind, level)

    def __rfloordiv__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(size // self.size, kind, level)

    def __mod__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(self.size % size, kind, level)

    def __rmod__(self, other: Any) -> Expression:
        size, kind, level = self._with(other)
        return Expression(size % self.size, kind, level)

    def __neg__(self) -> Expression:
        return 0 - self

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, float | int) and self.kind == FLOAT and power in _POWERS:
            return Expression(_POWERS[power](self.size), FLOAT, self.level)
        return _power(self, power)

    def __rpow__(self, base: Any) -> Any:
        return _power(base, self)

    def _with(self, other: Any, least: int = INT) -> tuple[Size, int, int]:
        """The size of an operand, and kind and level of the result; sums of truths are no arithmetic."""
        size, kind, level = parts(other)
        if kind < self.kind:
            kind = self.kind
        if kind < least:
            self._refused()
        return size, kind, level if level > self.level else self.level

    # -- truths -------------------------------------------------------------------------------------------------------

    def _truth(self, function: Callable[[Size, Size], Size], other: Any, swapped: bool = False) -> Expression:
        size, _, level = parts(other)
        found = function(size, self.size) if swapped else function(self.size, size)
        return Expression(found, BOOL, max(self.level, level))

    def __lt__(self, other: Any) -> Expression:
        return self._truth(less, other)

    def __le__(self, other: Any) -> Expression:
        return self._truth(at_most, other)

    def __gt__(self, other: Any) -> Expression:
        return self._truth(less, other, swapped=True)

    def __ge__(self, other: Any) -> Expression:
        return self._truth(at_most, other, swapped=True)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._truth(equal, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return ~self._truth(equal, other)

    def __and__(self, other: Any) -> Expression:
        return self._joined(lambda a, b: a * b, other)

    def __or__(self, other: Any) -> Expression:
        return self._joined(maximum, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Expression:
        if self.kind != BOOL:
            self._refused()
        return Expression(1 - self.size, BOOL, self.level)

    def _joined(self, function: Callable[[Size, Size], Size], other: Any) -> Expression:
        size, kind, level = parts(other)
        if max(self.kind, kind) != BOOL:
            self._refused()
        return Expression(function(self.size, size), BOOL, max(self.level, level))


_POWERS: dict[float, Callable[[Size], Size]] = {0.5: square_root, 1.0: lambda a: a, 2.0: lambda a: a * a}
"""Powers that NumPy computes otherwise than by its power function."""


def parts(value: Any) -> tuple[Size, int, int]:
    """The size, kind and level of an operand: an expression, a number, or an array of one."""
    if type(value) is Expression:
        return value.size, value.kind, value.level
    if type(value) is int or type(value) is float:
        return value, INT if type(value) is int else FLOAT, 0
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise NoExpressionError(f"an expression goes with numbers, got {value!r:.40}")
    kind = kind_of_type(array.dtype)
    number = array.item()
    return number if kind == FLOAT else int(number), kind, 0


def kind_of_type(dtype: Any) -> int:
    """The kind of numbers that a NumPy type is of."""
    letter = np.dtype(dtype).kind
    return BOOL if letter == "b" else FLOAT if letter == "f" else INT


# -- what is being written down ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mapped:
    """A function of arrays that stays one: its result is the column `name`, made of what is computed before."""

    name: str
    function: Callable[..., npt.NDArray[Any]]
    operands: tuple[Expression, ...]
    level: int


@dataclass
class Writing:
    """Expressions of a graph that are being written down, and the functions of arrays among them."""

    graph: SizeGraph
    mapped: list[Mapped] = field(default_factory=list)

    def of(self, function: Callable[..., npt.NDArray[Any]], args: Sequence[Any], kind: int) -> Expression:
        """The column of numbers of a kind that a function gives for some operands, expressions or numbers."""
        operands = tuple(Expression(*parts(arg)) for arg in args)
        level = 1 + max(operand.level for operand in operands)
        for known in self.mapped:
            if known.function == function and all(map(_is_same, known.operands, operands)):
                return Expression(self.graph.column(known.name), kind, level)
        name = f"#{len(self.mapped)}"
        self.mapped.append(Mapped(name, function, operands, level))
        return Expression(self.graph.column(name), kind, level)


def _is_same(one: Expression, other: Expression) -> bool:
    a, b = one.size, other.size
    if isinstance(a, SizeValue) or isinstance(b, SizeValue):
        return a is b
    return one.kind == other.kind and a == b


_WRITING: ContextVar[Writing | None] = ContextVar("_WRITING", default=None)


@contextmanager
def written(graph: SizeGraph) -> Iterator[Writing]:
    """While the block runs, functions of `arrays` write expressions of a graph down."""
    writing = Writing(graph)
    token = _WRITING.set(writing)
    try:
        yield writing
    finally:
        _WRITING.reset(token)


def is_writing() -> bool:
    """True where arrays that are made, as of ones, are expressions."""
    return _WRITING.get() is not None


def operation(of_sizes: Callable[..., Size]) -> Callable[[Callable[..., Integers]], Callable[..., Integers]]:
    """Make a function of arrays of whole numbers one of expressions, too, which is the operation `of_sizes`."""

    def made(function: Callable[..., Integers]) -> Callable[..., Integers]:
        def called(*args: Any) -> Any:
            if not any(type(arg) is Expression for arg in args):
                return function(*args)
            operands = [parts(arg) for arg in args]
            return Expression(of_sizes(*(size for size, _, _ in operands)), INT, max(at for _, _, at in operands))

        return update_wrapper(called, function)

    return made


def mapped(function: Callable[..., npt.NDArray[NumberT]], kind: int = INT) -> Callable[..., npt.NDArray[NumberT]]:
    """A function of arrays, element by element, with numbers of a kind: it is called with arrays alone."""

    def called(*args: Any) -> Any:
        if not any(type(arg) is Expression for arg in args):
            return function(*args)
        return _writing().of(function, args, kind)

    return update_wrapper(called, function)


def _power(base: Any, power: Any) -> Any:
    return _writing().of(np.power, (base, power), FLOAT)


def _writing() -> Writing:
    writing = _WRITING.get()
    assert writing is not None, "expressions live as long as they are written down"
    return writing


def is_nowhere(mask: npt.NDArray[np.bool_]) -> bool:
    """True where a mask is known to be False of all elements."""
    return not isinstance(mask, Expression) and not mask.any()


def also(
    mask: npt.NDArray[np.bool_],
    columns: Any,
    asked: Callable[[Any], npt.NDArray[np.bool_]],
    narrowed: Callable[[npt.NDArray[np.bool_]], Any],
) -> npt.NDArray[np.bool_]:
    """A mask and another one, which is asked about what the first leaves: of columns that are `narrowed` to it."""
    if isinstance(mask, Expression):
        return mask & asked(columns)
    if mask.any():
        mask[mask] = asked(narrowed(mask))
    return mask
