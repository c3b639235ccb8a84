"""A genetic algorithm over decisions, by measured speeds alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..cost_model import CostModel
from ..sketch.space import GuardedSpace, Rows, Space, SpaceFailure
from .strategy import Note, Proposal, Strategy, matrix

_TRIES = 4
"""Rounds of breeding, of twice as many children as are wanted, before the rest of a generation is drawn at random. A
choice: eight children for each that is wanted."""

Individual = tuple[int, tuple[int, ...]]
"""A space, and a row of it."""


class Genetic(Strategy):
    """Breeds each generation from the last one and its elite.

    Parents are drawn by their speed; a child has one parent's decisions up to a random place, those of another one of
    the same space behind it, and each decision at random with the probability `mutation`. What was measured before is
    bred again, never measured again. Defaults: Chen et al., Learning to Optimize Tensor Programs, 2018.
    """

    learns = False

    def __init__(
        self,
        spaces: Sequence[Space],
        seed: int = 0,
        note: Note = lambda text: None,
        *,
        population: int = 100,
        elite: int = 3,
        mutation: float = 0.1,
    ) -> None:
        super().__init__(spaces, seed, note)
        self._population, self._most_elite, self._mutation = population, elite, mutation
        self._generation: dict[Individual, float] = {}
        """The speeds of what was measured since the last generation was bred; 0 of failures."""
        self._elite: dict[Individual, float] = {}
        self._parents: dict[Individual, float] = {}
        self._waiting: list[Individual | None] = []
        """The rest of a generation; None for any candidate."""

    def observe(self, space: int, row: Sequence[int], time_s: float) -> None:
        super().observe(space, row, time_s)
        measured, speed = (space, self._measured[-1][1]), 1.0 / time_s
        self._generation[measured] = speed
        ranked = sorted({**self._elite, measured: speed}.items(), key=lambda pair: -pair[1])
        self._elite = dict(ranked[: self._most_elite])

    def _propose(self, model: CostModel, count: int) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < count:
            self._waiting = self._waiting or self._next_generation()
            child = self._waiting.pop(0)
            if child is not None:
                self._take(proposals, *child)
            elif len(self._fill(proposals, wanted := len(proposals) + 1)) < wanted:
                break
        return proposals

    def _next_generation(self) -> list[Individual | None]:
        """Children of what was measured, and any candidates where there are too few of those."""
        rng = np.random.default_rng([self._seed, len(self._seen)])
        if self._generation:
            self._parents, self._generation = {**self._elite, **self._generation}, {}
        right = {one: speed for one, speed in self._parents.items() if speed > 0}
        bred: dict[Individual, None] = {}
        for _ in range(_TRIES if len(right) > 1 else 0):
            for space in self.spaces:
                own = {row: speed for (number, row), speed in right.items() if number == space.number}
                share = sum(own.values()) / sum(right.values())
                bred |= dict.fromkeys(self._children(rng, space, own, round(2 * share * self._population)))
            if len(bred) >= self._population:
                break
        children = [*bred]
        mixed = [children[n] for n in rng.permutation(len(children))[: self._population]]
        return [*mixed, *[None] * (self._population - len(mixed))]

    def _children(
        self, rng: np.random.Generator, space: GuardedSpace, parents: dict[tuple[int, ...], float], count: int
    ) -> list[Individual]:
        """Unseen legal children of parents with their speeds."""
        if not parents or not count or space.left_out:
            return []
        speeds = np.array([*parents.values()])
        try:
            rows = self._breed(rng, space, matrix([*parents]), speeds / speeds.sum(), count)
            rows = rows[space.legal(rows)]
        except SpaceFailure as failure:
            self._leave_out(failure)
            return []
        found = [(space.number, tuple(row)) for row in rows.tolist()]
        return [one for one in found if one not in self._seen]

    def _breed(
        self, rng: np.random.Generator, space: GuardedSpace, rows: Rows, chances: npt.NDArray[np.float64], count: int
    ) -> Rows:
        """Children `(count, d)` of parents `(n, d)`."""
        a, b = rng.choice(len(rows), size=(2, count), p=chances)
        cut = rng.integers(0, rows.shape[1] + 1, size=count)
        children: Rows = np.where(np.arange(rows.shape[1]) < cut[:, None], rows[a], rows[b])
        drawn = space.sample(rng, count)
        if not len(drawn):
            return children
        mutated = rng.random(children.shape) < self._mutation
        mixed: Rows = np.where(mutated, drawn[np.arange(count) % len(drawn)], children)
        return mixed
