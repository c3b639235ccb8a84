"""A sketch: a schedule with holes, a domain for each hole, and array expressions over populations of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...passes.open_number import OpenText
from .formula import Estimate, Formulas
from .hole import Columns, Derived, Hole, Limit
from .population import Population, Rows

_ALLOWED = re.compile(r"(auto_unroll_max_step=)\d+")
"""Steps up to which loops are unrolled, in a schedule's text."""


class Description(Protocol):
    """Knowledge of a sketch's candidates before any is built, for cost models and searches; columns are `(rows,)`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""

    def __call__(self, columns: Columns, rows: int, /) -> npt.NDArray[np.float32]:
        """Return the features `(rows, len(names))`."""

    def build_seconds(self, columns: Columns, rows: int, /) -> npt.NDArray[np.float64] | None:
        """Rough seconds until rows are built, `(rows,)`; None where nobody has an idea."""

    def steps_allowed(self, columns: Columns, rows: int, /) -> npt.NDArray[np.float64] | None:
        """Limits of unrolling `(limits, rows)`, as far as they make a difference; None where nobody says."""

    def has_room(self, columns: Columns, schedule: str, /) -> bool:
        """True where blocks of one row, with its schedule, take no more shared memory than there is."""


class RefusedSketchError(Exception):
    """A sketch whose steps are not legal, which was found when they were done: all are to be made without plans."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a step of sketch '{name}' is refused")


@dataclass(frozen=True)
class Sketch:
    """A schedule text with `<name>` for holes, and what holds for its candidates.

    The text is `written` when it is asked for, as that of most sketches of a workload is not.

    Rows of a population are positions in the holes' choices. `limits` are masks over the columns, `features` an
    `(n, f)` matrix, `prior` the estimated seconds `(n,)` by which random candidates are drawn. Where these are
    `sure` they tell its candidates apart better than the cost model that ships: its default is the one of the least
    estimate, and is taken untuned where that is near the least of all sketches. That model has seen none like an
    `unseen` one: untuned it is taken or left by its estimate alone.
    """

    name: str
    written: Callable[[], str]
    """Writes the text; RefusedSketchError where that is not legal."""
    holes: tuple[Hole, ...]
    derived: tuple[Derived, ...] = ()
    limits: tuple[Limit, ...] = ()
    describe: Description | None = None
    prior: Callable[[Columns], npt.NDArray[np.float64]] | None = None
    sure: bool = False
    unseen: bool = False
    tensorized: bool = False
    """True for products by intrinsics, those of matrix units."""
    formulas: Formulas = field(default_factory=Formulas, compare=False, repr=False)
    written_as_seen: Callable[[], str] | None = None
    """Writes the text with the steps that the cost model that ships has seen; None where all are known to be such."""

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

    @cached_property
    def template(self) -> str:
        """The schedule text; RefusedSketchError where a step of it is not legal."""
        return self.written()

    @cached_property
    def seen_template(self) -> str:
        """The text by which the cost model that ships is asked; RefusedSketchError where a step of it is not legal."""
        return self.template if self.written_as_seen is None else self.written_as_seen()

    @property
    def is_legal(self) -> bool:
        """True where no step of it is refused."""
        try:
            return bool(self.template)
        except RefusedSketchError:
            return False

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
        """Space of its rows."""
        return Population(self.holes, self.derived, self.limits, self.formulas)

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
        if len(rows) <= 1 or (seconds := self.estimate(rows)) is None:
            return rows
        noise = rng.gumbel(size=len(rows)) * 0.25
        order = np.argsort(np.log(seconds) - noise)
        return rows[order[:n]]

    @cached_property
    def default_seconds(self) -> float:
        """The prior's seconds of the defaults; 0 where there is no prior."""
        found = self.estimate(self.default[None])
        return 0.0 if found is None else float(found[0])

    def estimate(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        """The prior's seconds of each row; None where there is no prior."""
        if isinstance(self.prior, Estimate):
            return self.prior.of_rows(self.population, rows)
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
        """Return the mask of rows that keep all limits."""
        return self.population.legal(rows)

    def has_room(self, row: npt.NDArray[np.int64], schedule: str = "") -> bool:
        """False where the blocks of a legal row, with its schedule, keep more in shared memory than there is.

        Limits tell that of the tiles that are planned, a little less than the steps make of some: copies in vectors
        that go on behind a tile, and tiles that go on behind the edge of an image. Of 717,026 legal candidates for 57
        convolutions with windows of 5x1 to 11x11 (limits of an H200) 254 keep more, all but 3 of windows of
        nine or eleven taps.
        """
        return self.describe is None or self.describe.has_room(self.columns(row[None]), schedule or self.schedule(row))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of `features`; empty where nobody says."""
        return () if self.describe is None else self.describe.names

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return the features of each row for the cost model."""
        assert self.describe is not None
        return self.describe(self.columns(rows), len(rows))

    def build_seconds(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        """Rough seconds that each row takes to be built; None where nobody has an idea."""
        return None if self.describe is None else self.describe.build_seconds(self.columns(rows), len(rows))

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        """The schedule text of one row."""
        values = {name: int(column[0]) for name, column in self.population.all_columns(row.reshape(1, -1)).items()}
        return self._text.filled(values)

    def code(self, row: npt.NDArray[np.int64], schedule: str) -> str:
        """The schedule text of a row, where pragmas allow no more copies of statements than there are.

        Of 512 candidates that simulated searches of two workloads proposed 22 and 34 had the source of another one, all
        for that.
        """
        rows = row[None]
        steps = None if self.describe is None else self.describe.steps_allowed(self.columns(rows), len(rows))
        if steps is None:
            return schedule
        return _ALLOWED.sub("\\g<1>" + "/".join(f"{n:.0f}" for n in steps[:, 0]), schedule)

    @cached_property
    def _text(self) -> OpenText:
        return OpenText.of(self.template)
