"""Index expressions from and to text: parsed as they are printed, and as source of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from .index import Div, IndexExpr, Lookup, axis, constant


class IndexSyntax:
    """Recursive descent over any token source: three callables that consume a token or say no."""

    def __init__(
        self, symbol: Callable[[str], bool], integer: Callable[[], int | None], name: Callable[[], str | None]
    ) -> None:
        self.symbol = symbol
        self.integer = integer
        self.name = name

    def parse(self, fail: Callable[[str], NoReturn]) -> IndexExpr:
        negative = self.symbol("-")
        total = self._product(fail) * (-1 if negative else 1)
        while True:
            if self.symbol("+"):
                total = total + self._product(fail)
            elif self.symbol("-"):
                total = total - self._product(fail)
            else:
                return total

    def _product(self, fail: Callable[[str], NoReturn]) -> IndexExpr:
        value = self._operand(fail)
        while True:
            if self.symbol("*"):
                other = self._operand(fail)
                if not (other.is_constant or value.is_constant):
                    fail("index expressions multiply by constants only")
                value = value * other.const if other.is_constant else other * value.const
            elif self.symbol("floordiv") or self.symbol("//"):
                value = value // self._positive(fail)
            elif self.symbol("mod") or self.symbol("%"):
                value = value % self._positive(fail)
            else:
                return value

    def _positive(self, fail: Callable[[str], NoReturn]) -> int:
        value = self.integer()
        if value is None or value < 1:
            fail("floordiv and mod take a positive constant")
        return value

    def _operand(self, fail: Callable[[str], NoReturn]) -> IndexExpr:
        if self.symbol("("):
            inner = self.parse(fail)
            if not self.symbol(")"):
                fail("expected ')'")
            return inner
        value = self.integer()
        if value is not None:
            return constant(value)
        if self.symbol("?"):
            return self._lookup(fail)
        name = self.name()
        if name is None:
            fail("expected an axis name, an integer or '('")
        return axis(name)

    def _lookup(self, fail: Callable[[str], NoReturn]) -> IndexExpr:
        number = self.integer()
        if number is None or not self.symbol("("):
            fail("expected '?0(i, j) of 10': the number of an operand and what it depends on")
        args: list[IndexExpr] = []
        while not self.symbol(")"):
            if args and not self.symbol(","):
                fail("expected ',' or ')'")
            args.append(self.parse(fail))
        if not self.symbol("of") or not (extent := self.integer()):
            fail("expected 'of' and the number of values that are read so")
        return IndexExpr(((Lookup(number, tuple(args), extent), 1),), 0)


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%(),?]))")


def parse_index(text: str) -> IndexExpr:
    """Parse `ff0 * 16 + ff1`, `p floordiv 7 - 1`, `p mod 7` (also spelt `//`, `%`); ValueError with the reason."""
    tokens: list[str] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ValueError(f"index expression '{text}': unexpected '{stripped[position:].strip()}'")
        tokens.append(match.group(0).strip())
        position = match.end()

    def symbol(wanted: str) -> bool:
        if tokens and tokens[0] == wanted:
            tokens.pop(0)
            return True
        return False

    def integer() -> int | None:
        return int(tokens.pop(0)) if tokens and tokens[0].isdigit() else None

    def name() -> str | None:
        return tokens.pop(0) if tokens and (tokens[0][0].isalpha() or tokens[0][0] == "_") else None

    def fail(reason: str) -> NoReturn:
        raise ValueError(f"index expression '{text}': {reason}")

    result = IndexSyntax(symbol, integer, name).parse(fail)
    if tokens:
        fail(f"unexpected '{tokens[0]}'")
    return result


def python_source(expr: IndexExpr, rename: Callable[[str], str] = str) -> str:
    """Print the expression as Python source, axes spelled by `rename`; it works on integers and NumPy arrays.

    What the program reads is looked up before (`looked_up`).
    """
    parts = [str(expr.const)] if expr.const or not expr.terms else []
    for atom, c in expr.terms:
        if isinstance(atom, str):
            text = rename(atom)
        elif isinstance(atom, Lookup):
            raise ValueError(f"{atom} has a value only while a program runs")
        else:
            inner = python_source(atom.expr, rename)
            text = f"(({inner}){'//' if isinstance(atom, Div) else '%'}{atom.divisor})"
        parts.append(text if c == 1 else f"{c}*{text}")
    return "+".join(parts)
