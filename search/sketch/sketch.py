"""A sketch: a schedule with holes, a domain for each hole, and array expressions over populations of their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...passes.lower.lower_te_to_loop import LowerTeToLoop
from ...passes.open_number import OpenNumber, OpenText
from ...passes.pipeline_text import lower_to_loops
from ...passes.primitive import Primitive
from .hole import Columns, Derived, Hole, Kind, Limit
from .population import Population, Rows

__all__ = ["Columns", "CostEstimate", "Derived", "Draft", "Hole", "Sketch"]


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
    limits: tuple[Limit, ...] = ()
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
    def sizes(self) -> Rows:
        """The number of choices of each hole, `(d,)`."""
        return self.population.sizes

    @property
    def default(self) -> Rows:
        """The row of the holes' defaults."""
        return self.population.default

    @cached_property
    def population(self) -> Population:
        """Where its rows come from."""
        return Population(self.holes, self.derived, self.limits)

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[np.int64]]:
        """The values of holes and derived numbers for each row."""
        return self.population.columns(rows)

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Random legal rows `(n, d)`: of three times as many those that the prior favours, with some noise.

        None where none is legal; one where there is nothing to choose.
        """
        if not self.holes:
            return np.zeros((1, 0), dtype=np.int64)
        if self.prior is None:
            return self.population.sample(rng, n)
        rows = self.population.sample(rng, 3 * n)
        if len(rows) <= 1:
            return rows
        noise = rng.gumbel(size=len(rows)) * 0.25
        order = np.argsort(np.log(self.prior(self.columns(rows))) - noise)
        return rows[order[:n]]

    def estimate(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        """The prior's seconds of each row; None where there is no prior."""
        return None if self.prior is None else self.prior(self.columns(rows))

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        """Each row changed a little: see `Population.mutate`."""
        return self.population.mutate(rng, rows)

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        """Rows that mix `a` and `b`: see `Population.crossover`."""
        return self.population.crossover(rng, a, b)

    def adopt(self, rng: np.random.Generator, other: Sketch, rows: Rows) -> Rows:
        """Rows of another sketch as rows of this one, as far as their holes have the same names."""
        return self.population.adopt(rng, other.population, rows)

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which rows keep all limits."""
        return self.population.legal(rows)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the columns of `features` are called; empty where nobody says."""
        return tuple(getattr(self.describe, "names", ()))

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        """What the cost model sees of each row."""
        assert self.describe is not None
        return self.describe(self.columns(rows), len(rows))

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        """The schedule text of one row."""
        values = {name: int(column[0]) for name, column in self.columns(row.reshape(1, -1)).items()}
        return self._text.filled(values)

    @cached_property
    def _text(self) -> OpenText:
        return OpenText.of(self.template)


class CostEstimate(Protocol):
    """What is known of the cost of one structure, as array expressions over a population."""

    def seconds(self, columns: Columns, /) -> npt.NDArray[np.float64]:
        """A rough time of each candidate `(n,)`, in seconds."""


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
    limits: list[Limit] = field(default_factory=list)
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

    def hole(self, name: str, choices: tuple[int, ...], default: int, kind: Kind = "tile", axis: str = "") -> Hole:
        """A new hole, as `Hole` has it; its default is made one of the choices."""
        self._require_new(name)
        nearest = default if default in choices else min(choices, key=lambda c: abs(c - default))
        hole = Hole(name, choices, nearest, kind, axis)
        self.holes.append(hole)
        return hole

    def derive(self, name: str, function: Callable[[Columns], npt.NDArray[np.int64]]) -> Derived:
        """A new derived number."""
        self._require_new(name)
        defaults = {h.name: np.array([h.default]) for h in self.holes}
        for number in self.derived:
            defaults[number.name] = np.array([number.default])
        derived = Derived(name, function, int(function(defaults)[0]))
        self.derived.append(derived)
        return derived

    def _require_new(self, name: str) -> None:
        """ValueError where a number of this name is there: columns of populations are found by name."""
        taken = {hole.name for hole in self.holes} | {number.name for number in self.derived}
        if name in taken:
            raise ValueError(f"a sketch has one hole or derived number of a name, '{name}' is there already")

    @property
    def population(self) -> Population:
        """The candidates so far."""
        return Population(tuple(self.holes), tuple(self.derived), tuple(self.limits))

    @property
    def default_seconds(self) -> float:
        """What the models estimate of the defaults."""
        columns = self.population.columns(self.population.default[None])
        return float(sum(model.seconds(columns)[0] for model in self.models))

    def make_defaults_legal(self) -> bool:
        """Move defaults that break a limit to the candidate that the models like best; False where there is none."""
        population = self.population
        if population.legal(population.default[None])[0]:
            return True
        rows = population.sample(np.random.default_rng(0), 256)
        if not len(rows):
            return False
        columns = population.columns(rows)
        best = rows[int(np.argmin(sum((model.seconds(columns) for model in self.models), np.zeros(len(rows)))))]
        self.holes = [replace(h, default=h.choices[i]) for h, i in zip(self.holes, best, strict=True)]
        chosen = population.columns(best[None])
        self.derived = [replace(number, default=int(chosen[number.name][0])) for number in self.derived]
        return True

    def do(self, kind: type[Primitive[Any]], **options: object) -> None:
        """Apply a step, whose options may hold holes and derived numbers, also in tuples and in lists of text parts."""
        kind(**{key: _with_numbers(value, False) for key, value in options.items()}).run(self.module)
        self.parts.append(str(kind(**{key: _with_numbers(value, True) for key, value in options.items()})))

    @property
    def template(self) -> str:
        return ",".join(self.parts)


def _with_numbers(value: object, as_open: bool) -> object:
    """An option with holes and derived numbers as their defaults, or as open numbers."""
    if isinstance(value, Hole | Derived):
        return OpenNumber(value.name, value.default) if as_open else value.default
    if isinstance(value, list):
        return "".join(str(_with_numbers(v, as_open)) for v in value)
    if isinstance(value, tuple):
        return tuple(_with_numbers(v, as_open) for v in value)
    return value
