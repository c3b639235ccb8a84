"""Numbers that depend on decisions: plain numbers for one candidate, expressions over columns for a population.

The same code computes with both: where all operands are numbers the result is one, and nothing is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ..open_number import OpenNumber

Number: TypeAlias = "int | float"
Size: TypeAlias = "int | float | SizeValue"
"""A number, or an expression over the columns of a population."""

_COMMUTATIVE = frozenset(("add", "mul", "minimum", "maximum", "gcd", "equal"))


class SizeGraph:
    """Expressions over named columns, each built once however often it is asked for."""

    def __init__(self) -> None:
        self.nodes: list[SizeValue] = []
        self._known: dict[tuple[object, ...], SizeValue] = {}

    def column(self, name: str) -> SizeValue:
        """The column called `name`."""
        return self._node(("column", name), "column", (name,))

    def apply(self, op: str, *args: Size) -> Size:
        """An operation on numbers and expressions; a number where all are."""
        if op in _COMMUTATIVE and _order(args[0]) > _order(args[1]):
            args = (args[1], args[0])
        simple = _simplified(op, args)
        return simple if simple is not None else self._node((op, *map(_key, args)), op, args)

    def _node(self, key: tuple[object, ...], op: str, args: tuple[Size | str, ...]) -> SizeValue:
        known = self._known.get(key)
        if known is None:
            known = SizeValue(self, len(self.nodes), op, args)
            self._known[key] = known
            self.nodes.append(known)
        return known


class SizeValue:
    """One expression of a graph; `args` are values and numbers, for a column its name."""

    __slots__ = ("args", "graph", "index", "op")

    def __init__(self, graph: SizeGraph, index: int, op: str, args: tuple[Size | str, ...]) -> None:
        self.graph = graph
        self.index = index
        self.op = op
        self.args = args

    def __repr__(self) -> str:
        return self.args[0] if self.op == "column" else f"{self.op}({', '.join(map(repr, self.args))})"  # type: ignore[return-value]

    def __add__(self, other: Size) -> Size:
        return self.graph.apply("add", self, other)

    def __radd__(self, other: Size) -> Size:
        return self.graph.apply("add", self, other)

    def __sub__(self, other: Size) -> Size:
        return self.graph.apply("sub", self, other)

    def __rsub__(self, other: Size) -> Size:
        return self.graph.apply("sub", other, self)

    def __mul__(self, other: Size) -> Size:
        return self.graph.apply("mul", self, other)

    def __rmul__(self, other: Size) -> Size:
        return self.graph.apply("mul", self, other)

    def __truediv__(self, other: Size) -> Size:
        return self.graph.apply("div", self, other)

    def __rtruediv__(self, other: Size) -> Size:
        return self.graph.apply("div", other, self)

    def __floordiv__(self, other: Size) -> Size:
        return self.graph.apply("floordiv", self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return self.graph.apply("floordiv", other, self)

    def __mod__(self, other: Size) -> Size:
        return self.graph.apply("mod", self, other)

    def __rmod__(self, other: Size) -> Size:
        return self.graph.apply("mod", other, self)

    def __neg__(self) -> Size:
        return self.graph.apply("sub", 0, self)


class Sizes:
    """The sizes that numbers in a schedule stand for: open ones for a column of decisions, others for themselves."""

    def __init__(self, column: Callable[[str], Size]) -> None:
        self._column = column

    def of(self, number: int) -> Size:
        """The size that a number in a step's options is."""
        return self._column(number.name) if isinstance(number, OpenNumber) else number


NUMBERS: dict[str, Callable[..., Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "gcd": lambda a, b: math.gcd(int(a), int(b)),
    "less": lambda a, b: float(a < b),
    "equal": lambda a, b: float(a == b),
    "where": lambda c, a, b: a if c else b,
    "log2": math.log2,
    "absolute": abs,
}
"""Function of each operation on numbers."""


def _simplified(op: str, args: tuple[Size, ...]) -> Size | None:  # noqa: C901
    """The value of an operation that needs no node of its own."""
    if not any(isinstance(a, SizeValue) for a in args):
        return NUMBERS[op](*args)
    a, b = args[0], args[-1]
    match op:
        case "add" | "sub" if _is(b, 0):
            return a
        case "add" if _is(a, 0):
            return b
        case "sub" if a is b:
            return 0
        case "mul" if _is(a, 0) or _is(b, 0):
            return 0
        case "mul" | "div" | "floordiv" if _is(b, 1):
            return a
        case "mul" if _is(a, 1):
            return b
        case "div" | "floordiv" | "mod" if _is(a, 0):
            return 0
        case "mod" if _is(b, 1):
            return 0
        case "minimum" | "maximum" | "gcd" if a is b:
            return a
        case "where" if not isinstance(a, SizeValue):
            return args[1] if a else b
        case "where" if args[1] is b or _same_number(args[1], b):
            return b
    return None


def _is(size: Size, number: int) -> bool:
    return not isinstance(size, SizeValue) and size == number


def _same_number(a: Size, b: Size) -> bool:
    return not isinstance(a, SizeValue) and not isinstance(b, SizeValue) and a == b


def _key(size: Size) -> object:
    return size if isinstance(size, SizeValue) else ("number", size)


def _order(size: Size) -> float:
    """Numbers behind expressions, as the simplifications expect them; expressions by age."""
    return size.index if isinstance(size, SizeValue) else math.inf


def _apply(op: str, *args: Size) -> Size:
    for arg in args:
        if isinstance(arg, SizeValue):
            return arg.graph.apply(op, *args)
    return NUMBERS[op](*args)


def minimum(a: Size, *others: Size) -> Size:
    """The smallest."""
    for other in others:
        a = _apply("minimum", a, other)
    return a


def maximum(a: Size, *others: Size) -> Size:
    """The largest."""
    for other in others:
        a = _apply("maximum", a, other)
    return a


def where(condition: Size, yes: Size, no: Size) -> Size:
    """`yes` where the condition is not zero, else `no`."""
    return _apply("where", condition, yes, no)


def less(a: Size, b: Size) -> Size:
    """1 where `a < b`, else 0."""
    return _apply("less", a, b)


def equal(a: Size, b: Size) -> Size:
    """1 where `a == b`, else 0."""
    return _apply("equal", a, b)


def negated(condition: Size) -> Size:
    """1 where the condition is 0."""
    return 1 - condition


def is_one(size: Size) -> bool:
    """True for a size that is 1 for all candidates."""
    return isinstance(size, int) and size == 1


def ceil_div(a: Size, b: Size) -> Size:
    """`a / b` rounded up."""
    return -((-a) // b) if not isinstance(a, SizeValue) and not isinstance(b, SizeValue) else (a + (b - 1)) // b


def gcd(a: Size, b: Size) -> Size:
    """The greatest common divisor of whole numbers; that of 0 and b is b."""
    return _apply("gcd", a, b)


def absolute(a: Size) -> Size:
    """The value without its sign."""
    return _apply("absolute", a)


def log2(a: Size) -> Size:
    """The base-2 logarithm of a positive number."""
    return _apply("log2", a)


def product(sizes: list[Size] | tuple[Size, ...]) -> Size:
    """The product, 1 of none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def total(sizes: list[Size] | tuple[Size, ...]) -> Size:
    """The sum, 0 of none."""
    result: Size = 0
    for size in sizes:
        result = result + size
    return result
