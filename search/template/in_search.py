"""A template's configs as the search sees them: a space of rows, and a task that one loop tunes as it does sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ..measure.measurement import headline
from ..records.file import ErrorCode, Record
from ..records.index import SKETCH_PREFIX
from ..tune.in_search import InSearch
from .bound import BoundTemplate
from .config import Config
from .fallback import fallback_config
from .features import SKETCH
from .space import Rows

_ASKED = 8
"""Configs that are asked for a reason where none is legal. A choice."""
_DRAWS = 8
"""Rows drawn for each that is asked for, at most: of a space where few configs are legal, fewer come. A choice."""


class TemplateSpace:
    """The configs of a template task: a row is a position in each knob's choices.

    Features are those of sketches, read from the nest of a config's case, so that one cost model serves both, unless
    another kind of `features.KINDS` is asked for.
    """

    def __init__(self, task: BoundTemplate, kind: str = SKETCH) -> None:
        self._task, self._kind = task, kind
        self._space = task.config_space
        self.name = SKETCH_PREFIX + task.name

    @property
    def n_decisions(self) -> int:
        return self._space.n_decisions

    @property
    def sizes(self) -> Rows:
        """The number of choices of each knob, `(d,)`."""
        return self._space.sizes

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """About n random rows `(n, d)`, all legal; fewer where few are."""
        found = self._space.sample(rng, 0)
        for _ in range(_DRAWS):
            rows = self._space.sample(rng, n)
            found = np.concatenate([found, rows[self.legal(rows)]])
            if len(found) >= n:
                break
        return found[:n]

    def mutate(self, rng: np.random.Generator, rows: Rows) -> Rows:
        """Each row with one knob at another position."""
        return self._space.mutate(rng, rows)

    def crossover(self, rng: np.random.Generator, a: Rows, b: Rows) -> Rows:
        """Each knob from one of two rows."""
        return np.where(rng.random(a.shape) < 0.5, a, b)

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows keep the target's limits."""
        return self._task.legal(rows)

    def features(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The features `(n, f)`."""
        return self._task.features(rows, self._kind)

    def survey(self, rows: Rows) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
        """Return the mask of legal rows, and the features of those."""
        return self._task.survey(rows, self._kind)

    def schedule(self, row: npt.NDArray[np.int64]) -> str:
        """The schedule text of one row."""
        return self._task.schedules([self._task.config(tuple(row.tolist()))])[0]

    def described(self, row: Sequence[int]) -> dict[str, Any]:
        """A record's fields for a row: the template, its arguments, the config."""
        return self._task.described(self._task.config(tuple(int(position) for position in row)))


@dataclass(frozen=True)
class TemplateInSearch(InSearch[BoundTemplate]):
    """A template as the tuning loop sees it; the untuned schedule is that of the fallback config."""

    refusals: list[str] = field(default_factory=list)

    @cached_property
    def spaces(self) -> Sequence[TemplateSpace]:
        return [TemplateSpace(self.task)]

    @cached_property
    def fallback(self) -> Config:
        """The schedule that is built without any record."""
        return fallback_config(self.task)

    @cached_property
    def default_schedule(self) -> str:
        return self.task.schedule(self.fallback)

    def tried(self, record: Record) -> bool:
        """True for the record of a trial of this template, the untuned schedule among them."""
        return record.template.get("name") == self.task.name

    def passes_over(self, record: Record) -> bool:
        """Pass over a config that no kernel could be made of."""
        if record.error is not ErrorCode.INSTANTIATION_ERROR:  # refused before anything was built or run
            return False
        self.refusals.append(record.message)
        return True

    def why_no_trial(self) -> str:
        """Say why a config is not legal: one that was proposed, else one that never was."""
        rows = self.task.config_space.sample(np.random.default_rng(0), _ASKED)
        reason = next(filter(None, [*self.refusals, *map(self.task.why_not, () if self.refusals else rows)]), "")
        first = f"; the first one asked: {headline(reason)}" if reason else ""
        return f"no config of {self.name} is legal on {self.target}{first}"

    def described_default(self) -> dict[str, Any]:
        """The fallback config."""
        return self.task.described(self.fallback)
