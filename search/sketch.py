"""A sketch: a schedule with holes, a domain for each hole, and array expressions over populations of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ..passes.lower.lower_te_to_loop import LowerTeToLoop
from ..passes.pipeline_text import lower_to_loops
from ..passes.primitive import Primitive

Columns = Mapping[str, npt.NDArray[np.int64]]
"""The value of each hole for each candidate of a population, `(n,)`."""

_MARK = 910_000_000
"""Numbers from here on stand for holes while a step is turned into text; no extent comes near."""


@dataclass(frozen=True)
class Hole:
    """A number to be chosen: its name, what it may be, and what it is without a search."""

    name: str
    choices: tuple[int, ...]
    default: int


@dataclass(frozen=True)
class Derived:
    """A number that follows from the holes, such as the width of a panel from tile and vector width."""

    name: str
    function: Callable[[Columns], npt.NDArray[np.int64]]
    default: int


@dataclass(frozen=True)
class Sketch:
    """A schedule text with `<name>` for holes, and what holds for its candidates.

    Rows of a population are positions in the holes' choices. `limits` are masks over the columns, `features` an
    `(n, f)` matrix, `prior` the estimated seconds `(n,)` by which random candidates are drawn.
    """

    name: str
    template: str
    holes: tuple[Hole, ...]
    derived: tuple[Derived, ...] = ()
    limits: tuple[Callable[[Columns], npt.NDArray[np.bool_]], ...] = ()
    describe: Callable[[Columns, int], npt.NDArray[np.float32]] | None = None
    prior: Callable[[Columns], npt.NDArray[np.float64]] | None = None

    @property
    def n_decisions(self) -> int:
        return len(self.holes)

    @property
    def size(self) -> int:
        """Number of candidates, legal or not."""
        total = 1
        for hole in self.holes:
            total *= len(hole.choices)
        return total

    @property
    def default(self) -> npt.NDArray[np.int64]:
        """The row of the holes' defaults."""
        return np.array([h.choices.index(h.default) for h in self.holes], dtype=np.int64)

    def columns(self, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
        """The values of holes and derived numbers for each row."""
        values = {h.name: np.asarray(h.choices, dtype=np.int64)[rows[:, i]] for i, h in enumerate(self.holes)}
        for number in self.derived:
            values[number.name] = number.function(values)
        return values

    def sample(self, rng: np.random.Generator, n: int) -> npt.NDArray[np.int64]:
        """Random rows `(n, d)`: of four times as many, those the prior favours, with as much noise as it deserves."""
        if not self.holes:
            return np.zeros((1, 0), dtype=np.int64)
        sizes = np.array([len(h.choices) for h in self.holes])
        rows = rng.integers(0, sizes, size=(4 * n, len(sizes)))
        if self.prior is None:
            return rows[:n]
        rows = rows[self.legal(rows)]
        if len(rows) <= 1:
            return rows
        noise = rng.gumbel(size=len(rows)) * 0.25
        order = np.argsort(np.log(self.prior(self.columns(rows))) - noise)
        return rows[order[:n]]

    def mutate(self, rng: np.random.Generator, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Each row with one or two decisions moved: to a neighbour, or anywhere."""
        if not self.holes or not len(rows):
            return rows
        rows = rows.copy()
        sizes = np.array([len(h.choices) for h in self.holes])
        n = len(rows)
        for share in (1.0, 0.4):
            chosen = rng.integers(0, len(sizes), size=n)
            which = np.arange(n)[rng.random(n) < share]
            at = chosen[which]
            step = rows[which, at] + rng.choice([-1, 1], size=len(which))
            anywhere = rng.integers(0, sizes[at])
            moved = np.where(rng.random(len(which)) < 0.6, np.clip(step, 0, sizes[at] - 1), anywhere)
            rows[which, at] = moved
        return rows

    def crossover(
        self, rng: np.random.Generator, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Each decision from `a` or from `b`."""
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def legal(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which rows keep all limits."""
        mask = np.ones(len(rows), dtype=bool)
        if not len(rows):
            return mask
        columns = self.columns(rows)
        for limit in self.limits:
            mask &= limit(columns)
        return mask

    def features(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """What the cost model sees of each row."""
        assert self.describe is not None
        return self.describe(self.columns(rows), len(rows))

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        """The schedule text of one row."""
        values = {name: int(column[0]) for name, column in self.columns(row.reshape(1, -1)).items()}
        return re.sub(r"<(\w+)>", lambda match: str(values[match[1]]), self.template)


class CostEstimate(Protocol):
    """What is known of the cost of one structure, as array expressions over a population."""

    def seconds(self, columns: Columns, /) -> npt.NDArray[np.float64]:
        """A rough time of each candidate `(n,)`, in seconds."""

    def features(self, columns: Columns, /) -> npt.NDArray[np.float32]:
        """What a cost model may see of each candidate `(n, f)`."""


@dataclass
class Draft:
    """A sketch on its way: each step is applied to a module with the holes' defaults, and kept as text with holes.

    Names of loops, blocks and buffers do not depend on the holes' values, so what is legal for one is for all, the
    primitives taking every factor.
    """

    module: ModuleOp
    parts: list[str] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    limits: list[Callable[[Columns], npt.NDArray[np.bool_]]] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    """Blocks that a rule has dealt with, and no other one should."""
    names: list[str] = field(default_factory=list)
    """The structures that rules have chosen: together the sketch's name."""
    models: list[CostEstimate] = field(default_factory=list)
    """Estimates of what rules have scheduled; their sum orders the sketches."""

    @classmethod
    def of(cls, module: ModuleOp) -> Draft:
        """Start from a copy of a te-level module."""
        draft = cls(module.clone())
        lower_to_loops(draft.module)
        draft.parts.append(str(LowerTeToLoop()))
        return draft

    def copy(self) -> Draft:
        """A draft that can go another way."""
        return Draft(
            self.module.clone(),
            [*self.parts],
            [*self.holes],
            [*self.derived],
            [*self.limits],
            {*self.settled},
            [*self.names],
            [*self.models],
        )

    def hole(self, name: str, choices: tuple[int, ...], default: int) -> Hole:
        """A new hole; its default is made one of the choices."""
        nearest = default if default in choices else min(choices, key=lambda c: abs(c - default))
        hole = Hole(name, choices, nearest)
        self.holes.append(hole)
        return hole

    def derive(self, name: str, function: Callable[[Columns], npt.NDArray[np.int64]]) -> Derived:
        """A new derived number."""
        defaults = {h.name: np.array([h.default]) for h in self.holes}
        for number in self.derived:
            defaults[number.name] = np.array([number.default])
        derived = Derived(name, function, int(function(defaults)[0]))
        self.derived.append(derived)
        return derived

    def do(self, kind: type[Primitive[Any]], **options: object) -> None:
        """Apply a step, whose options may hold holes and derived numbers, also in tuples and in lists of text parts."""
        marks: dict[str, str] = {}
        plain = {key: _filled(value, None) for key, value in options.items()}
        marked = {key: _filled(value, marks) for key, value in options.items()}
        step = kind(**plain)
        step.run(self.module)
        text = str(replace(step, **{f.name: marked[f.name] for f in fields(step) if f.name in marked}))
        for mark, name in marks.items():
            text = text.replace(mark, f"<{name}>")
        self.parts.append(text)

    @property
    def template(self) -> str:
        return ",".join(self.parts)


def _filled(value: object, marks: dict[str, str] | None) -> object:
    """An option with its holes as defaults, or, with `marks`, as numbers that stand for them."""
    if isinstance(value, Hole | Derived):
        if marks is None:
            return value.default
        mark = str(_MARK + len(marks))
        marks[mark] = value.name
        return int(mark)
    if isinstance(value, list):
        return "".join(str(_filled(v, marks)) for v in value)
    if isinstance(value, tuple):
        return tuple(_filled(v, marks) for v in value)
    return value
