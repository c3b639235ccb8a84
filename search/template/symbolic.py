"""Numbers that know how they follow from the knobs: one call of a template then tells of a whole population."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Columns = Mapping[tuple[str, int], Ints]
"""The numbers of each knob by (name, part), a column for a population each; part -1 is the position of the choice."""

POSITION = -1
"""Stands for the place of a knob's choice, where others are parts of its value."""

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
}


@dataclass(frozen=True, eq=False, slots=True)
class KnobExpr:
    """A constant (`const`), a number of a knob (`knob`), or an operation on two expressions; `value` is what it is at
    the config that was traced.
    """

    op: str
    args: tuple[Any, ...]
    value: int

    def evaluate(self, columns: Columns, known: dict[int, Any]) -> Any:
        """The column of this expression, or a number where it is the same for all; `known` holds what was computed."""
        if self.op == "const":
            return self.value
        found = known.get(id(self))
        if found is None:
            if self.op == "knob":
                found = columns[self.args]
            else:
                left, right = (arg.evaluate(columns, known) for arg in self.args)
                found = _OPERATIONS[self.op](left, right)
            known[id(self)] = found
        return found

    def __add__(self, other: KnobExpr) -> KnobExpr:
        return _fold("add", self, other, self.value + other.value, zero=(0, 0))

    def __sub__(self, other: KnobExpr) -> KnobExpr:
        return _fold("sub", self, other, self.value - other.value, zero=(None, 0))

    def __mul__(self, other: KnobExpr) -> KnobExpr:
        return _fold("mul", self, other, self.value * other.value, zero=(1, 1))

    def __floordiv__(self, other: KnobExpr) -> KnobExpr:
        return _fold("floordiv", self, other, self.value // other.value, zero=(None, 1))

    def equals(self, other: KnobExpr) -> KnobExpr:
        """1 where both are the same, else 0."""
        same = int(self.value == other.value)
        return const(same) if self.op == other.op == "const" else KnobExpr("eq", (self, other), same)

    def below(self, other: KnobExpr) -> KnobExpr:
        """1 where this is less, else 0."""
        less = int(self.value < other.value)
        return const(less) if self.op == other.op == "const" else KnobExpr("lt", (self, other), less)

    def at_most(self, other: KnobExpr) -> KnobExpr:
        """The smaller of two."""
        return _fold("min", self, other, min(self.value, other.value), zero=(None, None))

    def at_least(self, other: KnobExpr) -> KnobExpr:
        """The larger of two."""
        return _fold("max", self, other, max(self.value, other.value), zero=(None, None))


def const(value: int) -> KnobExpr:
    """The same number for all configs."""
    return KnobExpr("const", (), value)


def _fold(op: str, a: KnobExpr, b: KnobExpr, value: int, zero: tuple[int | None, int | None]) -> KnobExpr:
    """The operation, or less where one side changes nothing; `zero` are the neutral numbers on the left and right."""
    if a.op == b.op == "const":
        return const(value)
    if a.op == "const" and a.value == zero[0]:
        return b
    if b.op == "const" and b.value == zero[1]:
        return a
    return KnobExpr(op, (a, b), value)


class Tracer:
    """Remembers what a template asked of its knobs: for configs that answer the same, it does the same."""

    def __init__(self) -> None:
        self.conditions: list[tuple[KnobExpr, bool]] = []

    def number(self, value: int, expr: KnobExpr) -> Number:
        """A number of a config that knows where it comes from."""
        made = Number(value)
        made.expr, made.tracer = expr, self
        return made

    def decide(self, expr: KnobExpr, outcome: bool) -> bool:
        """Note that the template went on with this outcome."""
        if expr.op != "const":
            self.conditions.append((expr, outcome))
        return outcome

    def fix(self, knob: str, position: int) -> None:
        """Note that what follows holds for this choice of a knob only."""
        where = KnobExpr("knob", (knob, POSITION), position)
        self.conditions.append((KnobExpr("eq", (where, const(position)), 1), True))


class Number(int):
    """A whole number that knows how it follows from the knobs. Arithmetic keeps that; questions are noted."""

    expr: KnobExpr
    tracer: Tracer

    def _with(self, other: Any, op: str, turned: bool = False) -> Any:
        plain = getattr(int, f"__{'r' if turned else ''}{op}__")(self, other)
        if plain is NotImplemented or not isinstance(other, int) or not isinstance(plain, int):
            if plain is not NotImplemented or not isinstance(other, int):
                self._settle()
            return plain
        mine, theirs = self.expr, expr_of(other)
        a, b = (theirs, mine) if turned else (mine, theirs)
        return self.tracer.number(plain, KnobExpr(op, (a, b), plain))

    def __add__(self, other: Any) -> Any:
        return self._with(other, "add")

    def __radd__(self, other: Any) -> Any:
        return self._with(other, "add", turned=True)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "sub")

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, "sub", turned=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, "mul")

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, "mul", turned=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, "floordiv")

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, "floordiv", turned=True)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, "mod")

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, "mod", turned=True)

    def _ask(self, other: Any, op: str, outcome: Any, negated: bool = False, turned: bool = False) -> Any:
        if not isinstance(other, int) or not isinstance(outcome, bool):
            self._settle()
            return outcome
        a, b = (expr_of(other), self.expr) if turned else (self.expr, expr_of(other))
        truth = outcome != negated
        return self.tracer.decide(KnobExpr(op, (a, b), int(truth)), truth) != negated

    def __eq__(self, other: object) -> Any:
        return self._ask(other, "eq", int.__eq__(self, other))

    def __ne__(self, other: object) -> Any:
        return self._ask(other, "eq", int.__ne__(self, other), negated=True)

    def __lt__(self, other: Any) -> Any:
        return self._ask(other, "lt", int.__lt__(self, other))

    def __le__(self, other: Any) -> Any:
        return self._ask(other, "le", int.__le__(self, other))

    def __gt__(self, other: Any) -> Any:
        return self._ask(other, "lt", int.__gt__(self, other), turned=True)

    def __ge__(self, other: Any) -> Any:
        return self._ask(other, "le", int.__ge__(self, other), turned=True)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def _settle(self) -> int:
        """This number as a plain one, which the template may do anything with: other numbers are other cases."""
        value = int.__add__(self, 0)
        self.tracer.decide(KnobExpr("eq", (self.expr, const(value)), 1), True)
        return value

    def __hash__(self) -> int:
        return hash(self._settle())

    def __int__(self) -> int:
        return self._settle()

    def __index__(self) -> int:
        return self._settle()

    def __float__(self) -> float:
        return float(self._settle())

    def __str__(self) -> str:
        return str(self._settle())

    def __repr__(self) -> str:
        return repr(self._settle())

    def __format__(self, spec: str) -> str:
        return format(self._settle(), spec)

    def __truediv__(self, other: Any) -> Any:
        return self._settle() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._settle()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return pow(self._settle(), other, modulus)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return pow(other, self._settle(), modulus)

    def __lshift__(self, other: Any) -> Any:
        return self._settle() << other

    def __rlshift__(self, other: Any) -> Any:
        return other << self._settle()

    def __rshift__(self, other: Any) -> Any:
        return self._settle() >> other

    def __and__(self, other: Any) -> Any:
        return self._settle() & other

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self._settle() | other

    __ror__ = __or__

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return self if self >= 0 else 0 - self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def bit_length(self) -> int:
        return self._settle().bit_length()


def expr_of(value: int) -> KnobExpr:
    """Computation of a number from the knobs."""
    return value.expr if isinstance(value, Number) else const(int(value))
