"""Holes of a sketch: numbers to be chosen, numbers that follow from them, and what limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, npt.NDArray[np.int64]]
"""The value of each hole for each candidate of a population, `(n,)`."""

P = ParamSpec("P")
T = TypeVar("T")
Asked = Callable[Concatenate[Any, Columns, P], T]
"""A method that computes something of columns."""


class KnownColumns(dict[str, npt.NDArray[np.int64]]):
    """Columns, and what methods marked `once` have computed of them, which nobody may change."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.known: dict[tuple[object, ...], Any] = {}


def once(method: Asked[P, T]) -> Asked[P, T]:
    """The method, computed once for the same `KnownColumns` and arguments that are the same objects."""

    def asked(self: Any, c: Columns, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not isinstance(c, KnownColumns):
            return method(self, c, *args, **kwargs)
        key = (method, id(self), *map(id, args))  # these are kept with the result, so that none is another by then
        known = c.known.get(key)
        if known is None:
            known = c.known[key] = method(self, c, *args, **kwargs), self, args
        found: T = known[0]
        return found

    return update_wrapper(asked, method)


Limit: TypeAlias = Callable[[Columns], npt.NDArray[np.bool_]]
"""Predicate over candidates `(n,)` that the target can run; it asks for the columns it needs by name."""

Kind: TypeAlias = Literal["tile", "threads", "vector", "unroll", "stages", "parts"]


@dataclass(frozen=True)
class Hole:
    """A number to be chosen: its name, what it may be, and what it is without a search.

    `kind` says what is chosen: the factor of a tile, threads, a vector's width, unrolled copies, the stages of a
    pipeline, parts of a reduction. Holes that share an `axis` divide it together: a search may move a factor from one
    to the other.
    """

    name: str
    choices: tuple[int, ...]
    default: int
    kind: Kind = "tile"
    axis: str = ""

    @classmethod
    def near(cls, name: str, choices: tuple[int, ...], wanted: int, kind: Kind = "tile", axis: str = "") -> Hole:
        """A hole that is, without a search, the choice nearest to the one wanted."""
        default = wanted if wanted in choices else min(choices, key=lambda choice: abs(choice - wanted))
        return cls(name, choices, default, kind, axis)


@dataclass(frozen=True)
class Derived:
    """A number that follows from the holes, such as the width of a panel from tile and vector width."""

    name: str
    function: Callable[[Columns], npt.NDArray[np.int64]]
    default: int

    @classmethod
    def of(
        cls, name: str, function: Callable[[Columns], npt.NDArray[np.int64]], numbers: Iterable[Hole | Derived]
    ) -> Derived:
        """Make a number that a function computes from others; its default is computed from theirs."""
        defaults = {number.name: np.array([number.default]) for number in numbers}
        return cls(name, function, int(function(defaults)[0]))


Number: TypeAlias = Hole | Derived | int
"""A number of a step: open, or known."""
