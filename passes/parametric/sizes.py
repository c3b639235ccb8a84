"""Numbers that depend on decisions: plain numbers for one candidate, expressions over columns for a population.

The same code computes with both: where all operands are numbers the result is one, and nothing is built.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import TypeAlias

from ..open_number import OpenNumber

Number: TypeAlias = int | float

_COMMUTATIVE = frozenset(("add", "mul", "minimum", "maximum", "gcd", "equal"))


class SizeGraph:
    """Expressions over named columns, each built once however often it is asked for.

    A schedule's features are some 90,000 operations and 20,000 expressions, so what is known is looked up first.
    """

    def __init__(self) -> None:
        self.nodes: list[SizeValue] = []
        self._known: dict[str, dict[tuple[Size | str, ...], SizeValue]] = {
            op: {} for op in ("column", "where", *NUMBERS)
        }
        self.sums, self.products = self._known["add"], self._known["mul"]
        """Those of the operations that are asked for most, by their operands in order."""
        self.constants: dict[Number | str, int] = {}
        """The operands in the table that are no nodes, and the place of each."""
        self._operations, self._operands = array("i"), array("i")

    def column(self, name: str) -> SizeValue:
        """The column called `name`."""
        return self._known["column"].get((name,)) or self._node("column", (name,))

    def one(self, op: str, a: SizeValue) -> SizeValue:
        """An operation of one operand."""
        return self._known[op].get((a,)) or self._node(op, (a,))

    def two(self, op: str, a: Size, b: Size) -> Size:
        """An operation of two operands, of which one at least is an expression."""
        if op in _COMMUTATIVE and type(b) is SizeValue and (type(a) is not SizeValue or a.index > b.index):
            a, b = b, a  # numbers behind expressions, expressions by age
        args = (a, b)
        return self._known[op].get(args) or self.made(op, args)

    def made(self, op: str, args: tuple[Size, Size]) -> Size:
        """An operation of two operands, in order, that was not asked for before, or something simpler."""
        a, b = args
        if a is b or type(a) is not SizeValue or type(b) is not SizeValue:
            rule = _SIMPLER.get(op)
            simple = rule(a, b) if rule is not None else None
            if simple is not None:
                return simple
        return self._node(op, args)

    def choice(self, condition: SizeValue, yes: Size, no: Size) -> Size:
        """One of two sizes by a condition that is an expression."""
        if yes is no or _same_number(yes, no):
            return no
        args = (condition, yes, no)
        return self._known["where"].get(args) or self._node("where", args)

    def table(self) -> tuple[array[int], array[int]]:
        """The number of each node's operation, by `OPERATIONS`, and the operands of all, one node's after another's.

        An operand that is a node has its index; a number, or the name of a column, has `-1 - place` in `constants`.
        """
        fresh, constants = self.nodes[len(self._operations) :], self.constants
        self._operations.fromlist([_NUMBER[node.op] for node in fresh])
        self._operands.fromlist(
            [
                a.index if type(a) is SizeValue else -1 - constants.setdefault(a, len(constants))  # type: ignore[arg-type]
                for node in fresh
                for a in node.args
            ]
        )
        return self._operations, self._operands

    def forget(self) -> None:
        """Let go of all expressions, which refer to the graph: they end with it, and no collector has to find them."""
        self.nodes.clear()
        self.constants.clear()
        del self._operations[:], self._operands[:]
        for known in self._known.values():
            known.clear()

    def _node(self, op: str, args: tuple[Size | str, ...]) -> SizeValue:
        node = self._known[op][args] = SizeValue(self, len(self.nodes), op, args)
        self.nodes.append(node)
        return node


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
        args = (other, self) if type(other) is SizeValue and other.index < self.index else (self, other)
        return self.graph.sums.get(args) or self.graph.made("add", args)

    def __radd__(self, other: Number) -> Size:
        args = (self, other)
        return self.graph.sums.get(args) or self.graph.made("add", args)

    def __sub__(self, other: Size) -> Size:
        return self.graph.two("sub", self, other)

    def __rsub__(self, other: Size) -> Size:
        return self.graph.two("sub", other, self)

    def __mul__(self, other: Size) -> Size:
        args = (other, self) if type(other) is SizeValue and other.index < self.index else (self, other)
        return self.graph.products.get(args) or self.graph.made("mul", args)

    def __rmul__(self, other: Number) -> Size:
        args = (self, other)
        return self.graph.products.get(args) or self.graph.made("mul", args)

    def __truediv__(self, other: Size) -> Size:
        return self.graph.two("div", self, other)

    def __rtruediv__(self, other: Size) -> Size:
        return self.graph.two("div", other, self)

    def __floordiv__(self, other: Size) -> Size:
        return self.graph.two("floordiv", self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return self.graph.two("floordiv", other, self)

    def __mod__(self, other: Size) -> Size:
        return self.graph.two("mod", self, other)

    def __rmod__(self, other: Size) -> Size:
        return self.graph.two("mod", other, self)

    def __neg__(self) -> Size:
        return self.graph.two("sub", 0, self)


Size: TypeAlias = int | float | SizeValue
"""A number, or an expression over the columns of a population."""


class Sizes:
    """The sizes that numbers in a schedule stand for: open ones for a column of decisions, others for themselves."""

    def __init__(self, column: Callable[[str], Size]) -> None:
        self._column = column

    def of(self, number: int) -> Size:
        """The size that a number in a step's options is."""
        return self._column(number.name) if isinstance(number, OpenNumber) else number


def _largest_divisor(count: Number, most: Number) -> int:
    count, most = int(count), int(most)
    return next((n for n in range(min(count, most), 0, -1) if count % n == 0), 0)


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
    "divisor": _largest_divisor,
    "less": lambda a, b: float(a < b),
    "equal": lambda a, b: float(a == b),
    "at_most": lambda a, b: float(a <= b),
    "log2": math.log2,
    "absolute": abs,
    "floor": math.floor,
    "sqrt": math.sqrt,
}
"""Function of each operation on numbers."""
OPERATIONS = (*NUMBERS, "where", "column")
"""Operations of nodes; the number of one is its place among them."""
_NUMBER = {op: number for number, op in enumerate(OPERATIONS)}


def _simpler_sum(a: Size, b: Size) -> Size | None:
    return a if _is(b, 0) else None


def _simpler_difference(a: Size, b: Size) -> Size | None:
    if _is(b, 0):
        return a
    return 0 if a is b else None


def _simpler_product(a: Size, b: Size) -> Size | None:
    if _is(b, 0):
        return 0
    return a if _is(b, 1) else None


def _simpler_quotient(a: Size, b: Size) -> Size | None:
    if _is(b, 1):
        return a
    return 0 if _is(a, 0) else None


def _simpler_remainder(a: Size, b: Size) -> Size | None:
    return 0 if _is(a, 0) or _is(b, 1) else None


def _one_of_equals(a: Size, b: Size) -> Size | None:
    return a if a is b else None


_SIMPLER: dict[str, Callable[[Size, Size], Size | None]] = {
    "add": _simpler_sum,
    "sub": _simpler_difference,
    "mul": _simpler_product,
    "div": _simpler_quotient,
    "floordiv": _simpler_quotient,
    "mod": _simpler_remainder,
    "minimum": _one_of_equals,
    "maximum": _one_of_equals,
    "gcd": _one_of_equals,
}
"""For each operation the value that needs no node of its own, of one operand that is there twice or of an expression
and a number, in order."""


def _is(size: Size, number: int) -> bool:
    return type(size) is not SizeValue and size == number


def _same_number(a: Size, b: Size) -> bool:
    return not isinstance(a, SizeValue) and not isinstance(b, SizeValue) and a == b


def _two(op: str, a: Size, b: Size) -> Size:
    if type(a) is SizeValue:
        return a.graph.two(op, a, b)
    return b.graph.two(op, a, b) if type(b) is SizeValue else NUMBERS[op](a, b)


def _one(op: str, a: Size) -> Size:
    return a.graph.one(op, a) if isinstance(a, SizeValue) else NUMBERS[op](a)


def minimum(a: Size, *others: Size) -> Size:
    """The smallest."""
    for other in others:
        a = _two("minimum", a, other)
    return a


def maximum(a: Size, *others: Size) -> Size:
    """The largest."""
    for other in others:
        a = _two("maximum", a, other)
    return a


def where(condition: Size, yes: Size, no: Size) -> Size:
    """`yes` where the condition is not zero, else `no`."""
    if not isinstance(condition, SizeValue):
        return yes if condition else no
    return condition.graph.choice(condition, yes, no)


def less(a: Size, b: Size) -> Size:
    """1 where `a < b`, else 0."""
    return _two("less", a, b)


def equal(a: Size, b: Size) -> Size:
    """1 where `a == b`, else 0."""
    return _two("equal", a, b)


def at_most(a: Size, b: Size) -> Size:
    """1 where `a <= b`, else 0."""
    return _two("at_most", a, b)


def negated(condition: Size) -> Size:
    """1 where the condition is 0."""
    return 1 - condition


def is_one(size: Size) -> bool:
    """True for a size that is 1 for all candidates."""
    return isinstance(size, int) and size == 1


def known_number(size: Size) -> int:
    """Return an extent that is a whole number, as those of a nest without steps are."""
    assert isinstance(size, int)
    return size


def ceil_div(a: Size, b: Size) -> Size:
    """`a / b` rounded up."""
    return -((-a) // b) if not isinstance(a, SizeValue) and not isinstance(b, SizeValue) else (a + (b - 1)) // b


def gcd(a: Size, b: Size) -> Size:
    """The greatest common divisor of whole numbers; that of 0 and b is b."""
    return _two("gcd", a, b)


def largest_divisor(a: Size, most: Size) -> Size:
    """The largest number up to `most` that divides a whole number."""
    return _two("divisor", a, most)


def absolute(a: Size) -> Size:
    """The value without its sign."""
    return _one("absolute", a)


def log2(a: Size) -> Size:
    """The base-2 logarithm of a positive number."""
    return _one("log2", a)


def floor(a: Size) -> Size:
    """The whole number below."""
    return _one("floor", a)


def square_root(a: Size) -> Size:
    """The square root of a number that is not negative."""
    return _one("sqrt", a)


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
