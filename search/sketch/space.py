"""Interface of a sketch to a search, and a guard that says whose fault a failure is: anyone may add sketch rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...dialects.errors import Error
from ..cost_model import Floats

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
P = ParamSpec("P")
T = TypeVar("T")


class Space(Protocol):
    """A sketch's candidates: rows of `n_decisions` integers; all feature matrices of a search are equally wide."""

    @property
    def name(self) -> str:
        """The sketch's name, stable from one search to the next."""

    @property
    def n_decisions(self) -> int:
        """Width of a row."""

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Return about n random rows `(n, d)`; they need not be legal."""

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        """Return as many rows, each changed a little."""

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        """Return rows that each mix the same row of `a` and of `b`."""

    def legal(self, rows: Rows) -> Mask:
        """Return which rows `(n,)` keep the target's limits."""

    def features(self, rows: Rows) -> Floats:
        """Return the features `(n, f)` of legal rows."""

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        """Return the schedule text of one row."""


@runtime_checkable
class Adopting(Protocol):
    """A space that can take over rows of another one: the mutation that changes the sketch."""

    def adopt(self, rng: np.random.Generator, other: Any, rows: Rows) -> Rows:
        """Return rows of this space, at most as many, that resemble `rows` of the space `other`."""


@runtime_checkable
class Estimating(Protocol):
    """A space that has an idea of how long its rows take before anything was measured."""

    def estimate(self, rows: Rows) -> Floats | None:
        """Return rough times of legal rows `(n,)` in seconds, comparable among spaces; None where there are none."""


@runtime_checkable
class Unfamiliar(Protocol):
    """A space that says if cost models that ship were trained without any like it."""

    @property
    def unseen(self) -> bool:
        """True where a model's correction of its estimates means nothing."""


@runtime_checkable
class Costing(Protocol):
    """A space that has an idea of how long its rows take to be built."""

    def build_seconds(self, rows: Rows) -> Floats | None:
        """Return rough seconds `(n,)`, comparable among spaces; None where there are none."""


@runtime_checkable
class Fitting(Protocol):
    """A space that knows whether the target has room for a legal row, once it is about to be built."""

    def has_room(self, row: npt.NDArray[np.int64], schedule: str) -> bool:
        """Return False where the target has no room for a legal row, whose schedule this is."""


@runtime_checkable
class Coded(Protocol):
    """A space that has an idea of which rows are built to the same code, though their schedules differ."""

    def code(self, row: npt.NDArray[np.int64], schedule: str) -> str:
        """Return a text that is the same for rows of the same code, be they of several spaces, of a row's schedule."""


@runtime_checkable
class Described(Protocol):
    """A space whose rows have a description of their own in records, as configs of templates do."""

    def described(self, row: Sequence[int]) -> dict[str, Any]:
        """Return what a record says of one row, in the field `template`."""


@runtime_checkable
class Listed(Protocol):
    """A space whose rows can be counted: each decision is one of so many positions, in any combination."""

    @property
    def sizes(self) -> Rows:
        """Return the number of positions of each decision, `(d,)`; not each row need be legal."""


@runtime_checkable
class Surveying(Protocol):
    """A space that tells legality and features at once, for less than one after the other."""

    def survey(self, rows: Rows) -> tuple[Mask, Floats]:
        """Return which rows `(n,)` are legal, and the features of those."""


class SpaceError(Error):
    """No space is left to search: each failed, the last one as the text says."""


class SpaceFailure(Exception):
    """A space raised instead of answering; the cause says what."""

    def __init__(self, space: GuardedSpace) -> None:
        self.space = space

    @property
    def sentence(self) -> str:
        """Return the sketch at fault, and the first line of what it raised."""
        cause = self.__cause__
        line = next(iter(str(cause).strip().splitlines()), "")
        raised = f"{type(cause).__name__}{': ' if line else ''}{line}"
        return f"sketch '{self.space.name}' is left out of the search: it raised {raised}"


class GuardedSpace:
    """The space `number` of a search; SpaceFailure where it raises anything. Left out, it has no candidates."""

    def __init__(self, space: Space, number: int) -> None:
        self._space = space
        self.number = number
        self.left_out = False

    @property
    def name(self) -> str:
        return self._space.name

    @property
    def n_decisions(self) -> int:
        return self._space.n_decisions

    @property
    def adopts(self) -> bool:
        """True where it can take over rows of another space."""
        return isinstance(self._space, Adopting) and not self.left_out

    @property
    def unseen(self) -> bool:
        """True where a model that has learned nothing in the search knows no more than the space's estimates."""
        return isinstance(self._space, Unfamiliar) and self._space.unseen

    @property
    def is_listed(self) -> bool:
        """True where its rows can be counted."""
        return isinstance(self._space, Listed)

    @property
    def sizes(self) -> Rows:
        """The number of positions of each decision."""
        return self._ask(self._sizes)

    def _sizes(self) -> Rows:
        if not isinstance(self._space, Listed):
            raise TypeError("its rows cannot be listed, as it has no `sizes`")
        return np.asarray(self._space.sizes, dtype=np.int64)

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        if self.left_out:
            return np.zeros((0, self.n_decisions), dtype=np.int64)
        return self._ask(self._space.sample, rng, n)

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        return self._ask(self._space.mutate, rng, rows)

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        return self._ask(self._space.crossover, rng, a, b)

    def legal(self, rows: Rows) -> Mask:
        return self._ask(self._space.legal, rows)

    def features(self, rows: Rows) -> Floats:
        return self._ask(self._space.features, rows)

    def survey(self, rows: Rows) -> tuple[Mask, Floats]:
        """Return the mask of legal rows, and the features of those."""
        if isinstance(self._space, Surveying):
            return self._ask(self._space.survey, rows)
        legal = self.legal(rows)
        return legal, self.features(rows[legal])

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        return self._ask(self._space.schedule, row)

    def has_room(self, row: npt.NDArray[np.int64], schedule: str) -> bool:
        """False where the space knows that the target has no room for a row, whose schedule this is."""
        return not isinstance(self._space, Fitting) or self._ask(self._space.has_room, row, schedule)

    def code(self, row: npt.NDArray[np.int64], schedule: str) -> str:
        """A text that is the same for rows of the same code: the row's schedule where the space has no idea."""
        return self._ask(self._space.code, row, schedule) if isinstance(self._space, Coded) else schedule

    def estimate(self, rows: Rows) -> Floats | None:
        """Rough seconds `(n,)` of legal rows; None where the space has no idea."""
        return self._ask(self._space.estimate, rows) if isinstance(self._space, Estimating) and len(rows) else None

    def build_seconds(self, rows: Rows) -> Floats | None:
        """Rough seconds `(n,)` that rows take to be built; None where the space has no idea."""
        return self._ask(self._space.build_seconds, rows) if isinstance(self._space, Costing) and len(rows) else None

    def adopt(self, rng: np.random.Generator, other: GuardedSpace, rows: Rows) -> Rows:
        """Rows of this space that resemble `rows` of another."""
        assert isinstance(self._space, Adopting)
        return self._ask(self._space.adopt, rng, other._space, rows)

    def _ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return question(*args, **kwargs)
        except Exception as error:
            raise SpaceFailure(self) from error
